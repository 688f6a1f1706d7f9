import { expect, test } from "bun:test";
import { join } from "node:path";
import { YAML } from "bun";
import * as z from "zod/mini";

const workflow = z.object({
  jobs: z.record(
    z.string(),
    z.object({
      "runs-on": z.union([z.string(), z.array(z.string())]),
      strategy: z.optional(z.object({ matrix: z.record(z.string(), z.array(z.boolean())) })),
      env: z.optional(z.record(z.string(), z.string())),
      steps: z.array(z.object({ run: z.optional(z.string()) })),
    }),
  ),
});

test("the workflow runs every test on Ubuntu and on a Mac, there with Metal's validation too", async () => {
  const text = await Bun.file(join(import.meta.dir, "../../.github/workflows/ci.yml")).text();
  const { jobs } = workflow.parse(YAML.parse(text));
  const mac = ["self-hosted", "macOS", "ARM64"];
  expect(Object.values(jobs).map((job) => job["runs-on"])).toEqual(["ubuntu-24.04", "macos-15", mac]);
  for (const job of ["linux", "macos"]) expect(jobs[job]?.steps.map(({ run }) => run)).toContain("scripts/test");
  // A hosted Mac's GPU cannot run the kernels.
  expect(jobs["macos-build"]?.steps.map(({ run }) => run)).toContain("scripts/setup");
  expect(jobs["macos"]?.strategy?.matrix).toEqual({ validation: [false, true] });
  expect(Object.keys(jobs["macos"]?.env ?? {})).toEqual(["MTL_DEBUG_LAYER", "MTL_SHADER_VALIDATION"]);
});
