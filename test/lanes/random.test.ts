/** 500 random kernels leave the same bits on both executors. `bun test/lanes/main.ts` runs more of them. */
import { expect, test } from "bun:test";
import { differingSeeds, shrunk } from "./compare.ts";

const perRun = 20;
const firstSeeds = Array.from({ length: 25 }, (_, run) => 1 + run * perRun);

async function expectNone(first: number, count: number): Promise<void> {
  const seeds = await differingSeeds(first, count);
  expect(seeds.length > 0 ? await shrunk(seeds[0] as number) : "").toBe("");
}

if (process.platform === "linux") {
  test.each(firstSeeds)("random kernels from seed %i on", (first) => expectNone(first, perRun));

  test("a matrix scaled in a loop of products into one of four", () => expectNone(20300, 1));
}
