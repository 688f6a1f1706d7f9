/** 500 random kernels leave the same bits on both executors. `bun test/lanes/main.ts` runs more of them. */
import { expect, test } from "bun:test";
import { differingSeeds, shrunk } from "./compare.ts";

/** Kernels of one source, which clang reads once for each executor. */
const perSource = 50;
const firstSeeds = Array.from({ length: 10 }, (_, source) => 1 + source * perSource);

if (process.platform === "linux") {
  // All at once, so that no processor waits for the slower executor of a source.
  let found: Promise<number[]>[] | undefined;
  const begin = () => {
    found ??= firstSeeds.map((first) => differingSeeds(first, perSource, "size"));
    for (const each of found) each.catch(() => {});
    return found;
  };

  test.each(firstSeeds.map((first, index) => [first, index] as const))(
    "random kernels from seed %i on",
    async (_, index) => {
      const seeds = (await begin()[index]) ?? [];
      expect(seeds.length > 0 ? await shrunk(seeds[0] as number, "size") : "").toBe("");
    },
    // A source's first result waits for the others' compiles, which share the cores with it.
    1_200_000,
  );

  // With AVX-512, by what the code generator makes of masks with known lanes and of a product with zeros.
  test.each([1004177, 1009843, 1014329, 1018286])("seed %i", async (seed) => {
    expect(await differingSeeds(seed, 1, "size")).toEqual([]);
  });

  test("a matrix scaled in a loop of products into one of four", async () => {
    expect(await differingSeeds(20300, 1, "default")).toEqual([]);
  });
}
