/** The compiler pass alone: small kernels in LLVM's language, run for one SIMD group with known results. */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run, runChecked } from "../helpers/run.ts";
import { lanesPlugin } from "./plugin.ts";
import { compileProgram, expectedOf, laneCounts, programs } from "./programs.ts";

const folder = mkdtempSync(join(tmpdir(), "lanes-"));
afterAll(() => rmSync(folder, { recursive: true }));

const isLinux = process.platform === "linux";

if (isLinux)
  test.each(Object.keys(programs))("%s", async (name) => {
    const program = await compileProgram(name, lanesPlugin(), folder);
    for (const lanes of laneCounts)
      expect({ lanes, words: program(lanes) }).toEqual({ lanes, words: expectedOf(name, lanes) });
  });

/** Without instructions for masks of 16 bits, for scatters, for gathers. */
if (isLinux && process.arch === "x64")
  describe.each(["x86-64-v2", "x86-64-v3"])("masked accesses at %s", (level) => {
    test("give what they do elsewhere", async () => {
      const program = await compileProgram("masked", lanesPlugin(), folder, level);
      for (const lanes of laneCounts)
        expect({ lanes, words: program(lanes) }).toEqual({ lanes, words: expectedOf("masked", lanes) });
    });

    test("are no branch a lane each, which would take clang minutes a kernel", async () => {
      const source = join(import.meta.dir, "ir/masked.ll");
      const options = ["-O3", `-march=${level}`, "-S", "-w", `-fpass-plugin=${lanesPlugin()}`];
      const code = await runChecked(["clang-19", ...options, source, "-o", "-"]);
      // 3 accesses of 32 lanes, in 2 versions.
      expect(code.match(/^\tj\w+/gm)?.length ?? 0).toBeLessThan(40);
    });
  });

if (isLinux)
  test("what the pass leaves alone is refused with the kernel's name and the reason", async () => {
    const source = join(folder, "refused.ll");
    await Bun.write(
      source,
      `declare void @sm_kernel(i32, i1)
     define void @kernel(ptr %group, i32 %simdgroup) {
       %way = load ptr, ptr %group
       call void @sm_kernel(i32 32, i1 true)
       call void %way()
       ret void
     }`,
    );
    const options = ["-O3", "-c", `-fpass-plugin=${lanesPlugin()}`];
    const { status, errors } = await run(["clang-19", ...options, source, "-o", join(folder, "refused.o")]);
    expect(status).not.toBe(0);
    expect(errors).toContain("softmetal: kernel 'kernel' cannot run as vectors: a call through a pointer");
  });
