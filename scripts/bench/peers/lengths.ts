import type { Benchmark, BenchResult } from "../benchmark.ts";
import { prepareToken } from "../decode.ts";
import type { CacheKind } from "../decode-cache.ts";

const extents = { heads: 32, kvHeads: 8, headDim: 128 };
const lengths = [256, 1024, 4096, 16384, 32768];
/** Beside K of 8 bits and V of 4, which is measured, and f16, the baseline. */
const others: Readonly<Record<string, readonly [k: CacheKind, v: CacheKind]>> = {
  f32: ["f32", "f32"],
  k4v4: [4, 4],
  k3v3: [3, 3],
};

/** The sides by name, in the order of a chart. */
export const formats = ["f32", "f16", "k8v4", "k4v4", "k3v3"] as const;
const prefix = "decode-length-";
/** The length that a result is of. */
export const keysOf = ({ name }: BenchResult): number => Number(name.slice(prefix.length));

/** A token over every format, in the same rounds, at each length. */
export const lengthBenchmarks: readonly Benchmark[] = lengths.map((keys) => ({
  name: `${prefix}${keys}`,
  unit: "us",
  about: `flashAttnDecode, K of 8 bits and V of 4, 32 / 8 heads, D = 128, ${keys.toLocaleString("en")} keys, one thread`,
  baselineAbout: "the same over f16",
  rounds: ({ quick }) => (quick ? 3 : 9),
  warmUp: true,
  prepare() {
    using stack = new DisposableStack();
    const side = (k: CacheKind, v: CacheKind) => {
      const token = stack.adopt(prepareToken({ ...extents, keys }, k, v), (each) => each.dispose());
      return () => 1e6 * token.seconds();
    };
    const [measure, baseline] = [side(8, 4), side("f16", "f16")];
    const rest = Object.fromEntries(Object.entries(others).map(([name, [k, v]]) => [name, side(k, v)]));
    const tokens = stack.move();
    return { measure, baseline, others: rest, dispose: () => tokens.dispose() };
  },
}));
