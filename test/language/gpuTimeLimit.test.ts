/** Time limits on a GPU, in a process of its own: what counts and does not end in time runs on until that ends. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { isOtherGpu } from "../helpers/otherGpu.ts";
import { countCase } from "./harness.ts";

if (isOtherGpu) {
  const done = countCase();
  test("a kernel whose loops count is given up by name, and no GPU opens in its process any more", () => {
    const child = Bun.spawnSync([process.execPath, join(import.meta.dir, "counting-child.ts")], { timeout: 60_000 });
    expect(child.stderr.toString()).toBe("");
    const [given, refused] = child.stdout
      .toString()
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(given.code).toBe("execution");
    expect(given.message).toContain("'counting' was given up after 0.5 seconds");
    expect(refused.code).toBe("device-unavailable");
    expect(refused.message).toContain("start another process");
    expect(child.exitCode).toBe(0);
    done();
  }, 90_000);
}
