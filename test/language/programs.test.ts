/** Kernels as the field writes them, against the same thing computed in float64. */
import { seededRandom } from "../helpers/random.ts";
import { bfloat, bitsOf, codes, type Format, half, numberOf, rounded } from "./formats.ts";
import { encoded, floats, type Input, type KernelCase, kernelSuite, range, uints } from "./harness.ts";
import { quantizedRows, rmsNorm, softmax, steelAttention, tiledProduct } from "./programs.ts";

const random = seededRandom(7);
const values = (count: number): number[] => range(count, () => Math.fround(random() * 2 - 1));
const bitsOfFloat = (x: number): number => new Uint32Array(new Float32Array([x]).buffer)[0] ?? 0;

const [rows, columns, inner] = [37, 29, 45];
const a = values(rows * inner);
const b = values(inner * columns);
kernelSuite("tiled_product", tiledProduct, [
  {
    name: "a tiled product with partial tiles",
    kernel: "tiled_product",
    out: "float",
    inputs: [floats(a), floats(b), uints([rows, columns, inner])],
    form: "threadgroups",
    grid: [Math.ceil(columns / 16), Math.ceil(rows / 16)],
    threads: [16, 16],
    // Sums of 45 terms below 1: absolute error below 45 * 2^-24, far from a wrong term.
    absolute: 5e-6,
    expected: range(rows * columns, (at) =>
      range(
        inner,
        (k) => (a[Math.floor(at / columns) * inner + k] ?? 0) * (b[k * columns + (at % columns)] ?? 0),
      ).reduce((x, y) => x + y, 0),
    ),
  },
]);

const width = 301;
const x = values(3 * width);
const w = values(width);
const norm = (input: readonly number[], weight: readonly number[]): number[] =>
  input.map((value, at) => {
    const row = input.slice(Math.floor(at / width) * width, (Math.floor(at / width) + 1) * width);
    const mean = row.reduce((sum, each) => sum + each * each, 0) / width;
    return (weight[at % width] ?? 0) * (value / Math.sqrt(mean + 1e-5));
  });
const normBytes = { 3: new Float32Array([1e-5]), 4: new Uint32Array([width]) };
kernelSuite("rms_norm", rmsNorm, [
  {
    name: "RMS norm of float rows, 4 values a thread, the last partly",
    kernel: "rmsfloat32",
    out: "float",
    inputs: [floats(x), floats(w)],
    bytes: normBytes,
    form: "threadgroups",
    grid: 3,
    threads: 96,
    relative: 2e-6,
    expected: norm(x, w),
  },
  ...[half, bfloat].map((format) => {
    const one = rounded(format, x);
    return {
      name: `RMS norm of ${format.name} rows: within the two roundings to ${format.name}`,
      kernel: format === half ? "rmsfloat16" : "rmsbfloat16",
      out: format.name,
      inputs: [encoded(format, x), encoded(format, w)],
      bytes: normBytes,
      form: "threadgroups" as const,
      grid: 3,
      threads: 96,
      format,
      relative: 2 ** -format.mantissa,
      expected: codes(format, norm(one, rounded(format, w))),
    };
  }),
]);

const length = 1000;
const logits = values(4 * length).map((value) => Math.fround(value * 30));
kernelSuite("softmax", softmax, [
  {
    name: "softmax with a reduction over lanes and SIMD groups",
    kernel: "softmax_rows",
    out: "float",
    inputs: [floats(logits)],
    bytes: { 2: new Int32Array([length]) },
    threadgroupMemory: { 0: 128 },
    form: "threadgroups",
    grid: 4,
    threads: 1024,
    // The argument of exp is up to 60 in size: one rounding of it moves the result by 60 * 2^-24.
    relative: 1e-5,
    expected: logits.map((value, at) => {
      const row = logits.slice(Math.floor(at / length) * length, (Math.floor(at / length) + 1) * length);
      const top = Math.max(...row);
      return Math.exp(value - top) / row.reduce((sum, each) => sum + Math.exp(each - top), 0);
    }),
  },
]);

function attention(
  q: readonly number[],
  k: readonly number[],
  v: readonly number[],
  d: number,
  scale: number,
): number[] {
  const row = (m: readonly number[], at: number) => m.slice(at * d, (at + 1) * d);
  const keys = range(k.length / d, (at) => row(k, at));
  return range(q.length / d, (at) => {
    const scores = keys.map((key) => scale * key.reduce((sum, value, c) => sum + value * (q[at * d + c] ?? 0), 0));
    const top = Math.max(...scores);
    const weights = scores.map((score) => Math.exp(score - top));
    const sum = weights.reduce((p, r) => p + r, 0);
    return range(d, (c) => weights.reduce((total, weight, key) => total + weight * (v[key * d + c] ?? 0), 0) / sum);
  }).flat();
}
const attentionCase = (kernel: string, format: Format | undefined, d: number, queries: number, keys: number) => {
  const [q, k, v] = [values(queries * d), values(keys * d), values(keys * d)];
  const scale = Math.fround(1 / Math.sqrt(d));
  const input = (list: readonly number[]) => (format === undefined ? floats(list) : encoded(format, list));
  const exact =
    format === undefined
      ? attention(q, k, v, d, scale)
      : attention(rounded(format, q), rounded(format, k), rounded(format, v), d, scale);
  return {
    name: `attention in tiles of fragments: ${kernel}, ${queries} queries, ${keys} keys`,
    kernel,
    out: format?.name ?? ("float" as const),
    inputs: [input(q), input(k), input(v), uints([queries, keys, bitsOfFloat(scale)])],
    form: "threadgroups" as const,
    grid: Math.ceil(queries / 32),
    threads: 128,
    absolute: format === undefined ? 2e-6 : 2 ** -8,
    ...(format === undefined ? {} : { format }),
    expected: format === undefined ? exact : codes(format, exact),
  };
};
kernelSuite("steel_attention", steelAttention, [
  attentionCase("attention_float32_bd32", undefined, 32, 45, 67),
  attentionCase("attention_bfloat16_bd16", bfloat, 16, 33, 24),
]);

const [blocks, outputs] = [40, 7];
const deltas = range(blocks * outputs, () => numberOf(half, bitsOf(half, random() * 0.1)));
const nibbles = range(blocks * outputs * 32, () => Math.floor(random() * 16));
const packedRows = deltas.flatMap((delta, block) => {
  const bits = bitsOf(half, delta);
  const quants = range(16, (k) => (nibbles[block * 32 + k] ?? 0) | ((nibbles[block * 32 + 16 + k] ?? 0) << 4));
  return [bits & 255, bits >> 8, ...quants];
});
const y = values(blocks * 32);
const kargs = {
  type: "uchar",
  values: [...new Uint8Array(new Uint32Array([blocks * 32, outputs, blocks * 18, 0]).buffer)],
} as const;
const quantized = (weights: readonly number[]): number[] =>
  range(outputs, (row) =>
    range(
      blocks * 32,
      (k) => (deltas[row * blocks + (k >> 5)] ?? 0) * ((nibbles[row * blocks * 32 + k] ?? 0) - 8) * (weights[k] ?? 0),
    ).reduce((p, r) => p + r, 0),
  );
const quantizedCase = (kernel: string, weights: readonly number[], input: Input): KernelCase => ({
  name: `4-bit rows times a vector: ${kernel}`,
  kernel,
  out: "float",
  // ggml's order of arguments: sizes, rows, vector, result.
  outIndex: 3,
  inputs: [kargs, { type: "uchar", values: packedRows }, input],
  form: "threadgroups",
  grid: Math.ceil(outputs / 2),
  threads: 64,
  // Sums of 1,280 terms below 0.8.
  absolute: 1e-4,
  expected: quantized(weights),
});
kernelSuite("quantized_rows", quantizedRows, [
  quantizedCase("kernel_mul_mv_q4_0_f32", y, floats(y)),
  quantizedCase("kernel_mul_mv_q4_0_f16", rounded(half, y), encoded(half, y)),
]);
