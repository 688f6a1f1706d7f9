/** The order in which one flow of control visits the blocks of 32 lanes, on random graphs. */
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runChecked } from "../helpers/run.ts";

const source = join(import.meta.dir, "../../swift/Sources/CSoftMetal/lanes");

if (process.platform === "linux")
  test("2,000 random graphs: no lane is passed by or lost", async () => {
    const folder = mkdtempSync(join(tmpdir(), "lanes-"));
    try {
      const program = join(folder, "linearize");
      const files = [join(import.meta.dir, "linearize.cpp"), join(source, "Linearize.cpp")];
      await runChecked(["clang++-19", "-std=c++17", "-O1", "-I", source, ...files, "-o", program]);
      expect(await runChecked([program, "1", "2000"])).toBe("2000 graphs\n");
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
