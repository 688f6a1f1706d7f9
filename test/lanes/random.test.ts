/** Random kernels leave the same bits on both executors. `bun test/lanes/main.ts` runs more of them. */
import { expect, test } from "bun:test";
import { differingSeeds, shrunk } from "./compare.ts";

const perRun = 6;

if (process.platform === "linux")
  test.each([1, 7])("random kernels from seed %i on", async (first) => {
    const seeds = await differingSeeds(first, perRun);
    expect(seeds.length > 0 ? await shrunk(seeds[0] as number) : "").toBe("");
  });
