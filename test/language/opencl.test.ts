/**
 * The front end that turns Metal into C++ for OpenCL, behind SOFTMETAL_FRONTEND: the suites of this folder that it
 * passes whole, in a process of its own.
 */
import { expect, test } from "bun:test";
import { join } from "node:path";

/** In the order of the alphabet; those that are missing have cases that it does not pass yet. */
const suites = [
  "absentArguments",
  "atomics",
  "attributes",
  "bools",
  "constants",
  "execution",
  "field",
  "ggml",
  "gpgpu",
  "halves",
  "increments",
  "integers",
  "laneUse",
  "library",
  "literals",
  "math",
  "mlx",
  "models",
  "operators",
  "pack",
  "packed",
  "programs",
  "relational",
  "runtime",
  "scalars",
  "simdgroup",
  "spellings",
  "structs",
  "templates",
  "vectors",
];

test(`${suites.length} suites pass as C++ for OpenCL`, () => {
  const files = suites.map((suite) => join(import.meta.dir, `${suite}.test.ts`));
  const child = Bun.spawnSync([process.execPath, "test", "--timeout", "60000", ...files], {
    env: { ...process.env, SOFTMETAL_FRONTEND: "opencl" },
  });
  const report = child.stderr.toString();
  expect(report.match(/^\(fail\).*$/gm)).toBeNull();
  expect(Number(report.match(/^ *(\d+) pass$/m)?.[1])).toBeGreaterThan(1300);
  expect(child.exitCode).toBe(0);
}, 600_000);
