/** Kernels of NVIDIA GPUs: what of a lane's number their shuffle needs. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { compilePtx } from "./nvptx.ts";
import { lanesPlugin } from "./plugin.ts";

const source = join(import.meta.dir, "ir/numbers.ll");

if (process.platform === "linux")
  test("a shuffle among all lanes gets a number whose five lowest bits are right, without what clears others", async () => {
    const code = await compilePtx(source, [`-fpass-plugin=${lanesPlugin()}`]);
    const codes = /ld\.param\.u32\s+(%r\d+), \[kernel_param_1\]/.exec(code)?.[1] ?? "";
    const masks = new Map(
      Array.from(code.matchAll(/and\.b32\s+(%r\d+), (%r\d+), (\d+);/g), ([, to, from, mask]) => {
        expect(from).toBe(codes);
        return [to, Number(mask)] as const;
      }),
    );
    const numbers = Array.from(
      code.matchAll(/shfl\.sync\.idx\.b32\s+%r\d+, %r\d+, (%r\d+), \d+/g),
      ([, number]) => number,
    );
    expect(numbers.map((number) => (number === codes ? "all bits" : masks.get(number)))).toEqual([
      "all bits",
      "all bits",
      15,
      30,
      31,
    ]);
  });
