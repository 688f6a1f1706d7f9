import type { Benchmark } from "../benchmark.ts";
import { prepareToken } from "../decode.ts";
import type { CacheKind } from "../decode-cache.ts";

export const lengths = [256, 1024, 4096, 16384, 32768];
/** Beside f16, the baseline. */
export const formats: readonly { readonly name: string; readonly k: CacheKind; readonly v: CacheKind }[] = [
  { name: "f32", k: "f32", v: "f32" },
  { name: "k8v4", k: 8, v: 4 },
  { name: "k4v4", k: 4, v: 4 },
  { name: "k3v3", k: 3, v: 3 },
];
const extents = { heads: 32, kvHeads: 8, headDim: 128 };
export const lengthName = (format: string, keys: number) => `decode-length-${format}-${keys}`;

/** A token over each format at each length. */
export const lengthBenchmarks: readonly Benchmark[] = formats.flatMap(({ name, k, v }) =>
  lengths.map((keys) => ({
    name: lengthName(name, keys),
    unit: "us",
    about: `flashAttnDecode over ${name}, 32 / 8 heads, D = 128, ${keys.toLocaleString("en")} keys, one thread`,
    baselineAbout: "the same over f16",
    rounds: ({ quick }) => (quick ? 3 : 9),
    warmUp: true,
    prepare() {
      const token = prepareToken({ ...extents, keys }, k, v);
      const half = prepareToken({ ...extents, keys }, "f16", "f16");
      return {
        measure: () => 1e6 * token.seconds(),
        baseline: () => 1e6 * half.seconds(),
        dispose() {
          token.dispose();
          half.dispose();
        },
      };
    },
  })),
);
