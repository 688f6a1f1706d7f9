/** Kernels in the manner of the public libraries of language models, against the same thing in float64. */
import { seededRandom } from "../helpers/random.ts";
import { bfloat, bitsOf, half, numberOf, rounded } from "./formats.ts";
import { encoded, floats, ints, kernelSuite, range } from "./harness.ts";
import { quantizedProduct, rowReduce } from "./models.ts";

const random = seededRandom(11);
const values = (count: number): number[] => range(count, () => Math.fround(random() * 2 - 1));

// Rows of 4-bit blocks: 2 bytes of scale, 16 of nibbles, the first 16 values in the low ones.
const [rows, blocks] = [21, 20];
const scales = range(rows * blocks, () => numberOf(half, bitsOf(half, random() / 8)));
const nibbles = range(rows * blocks * 32, () => Math.floor(random() * 16));
const weights = {
  type: "uchar",
  values: range(rows * blocks, (block) => {
    const bits = bitsOf(half, scales[block] ?? 0);
    const low = (k: number): number => nibbles[block * 32 + k] ?? 0;
    return [bits & 255, bits >> 8, ...range(16, (k) => low(k) | (low(k + 16) << 4))];
  }).flat(),
} as const;
const weight = (at: number): number => (scales[at >> 5] ?? 0) * ((nibbles[at] ?? 0) - 8);
const y = values(blocks * 32);
const ids = [3, 20, 0, 7];
const sizes = { 3: new Int32Array([blocks * 32, rows]) };
kernelSuite("quantized_product", quantizedProduct, [
  {
    name: "4-bit rows times a vector, 4 rows a SIMD group, the last of them partly",
    kernel: "kernel_mul_vec_q4_0_f32",
    out: "float",
    inputs: [weights, floats(y)],
    bytes: sizes,
    form: "threadgroups",
    grid: Math.ceil(rows / 8),
    threads: 64,
    // Sums of 640 terms below 1 in another order.
    absolute: 1e-4,
    expected: range(rows, (row) => y.reduce((sum, value, k) => sum + weight(row * blocks * 32 + k) * value, 0)),
  },
  {
    name: "4-bit rows by their index, through a function as template argument",
    kernel: "kernel_get_rows_q4_0",
    out: "float",
    inputs: [weights, ints(ids)],
    bytes: sizes,
    form: "threadgroups",
    grid: ids.length,
    threads: 16,
    // The scale times 16 and a sixteenth of it are exact, the sum of two products is rounded.
    absolute: 2e-6,
    expected: ids.flatMap((row) => range(blocks * 32, (k) => weight(row * blocks * 32 + k))),
  },
]);

const [count, length] = [5, 203];
const x = values(count * length).map((value) => value * 4);
const bias = values(length);
const row = (list: readonly number[], at: number): readonly number[] => list.slice(at * length, (at + 1) * length);
const bool = (index: number, value: boolean) => ({ index, dtype: "bool" as const, value });
const reduction = { out: "float", form: "threadgroups", grid: count, threads: 64 } as const;
const size = { 2: new BigUint64Array([BigInt(length)]) };
kernelSuite("row_reduce", rowReduce, [
  {
    ...reduction,
    name: "maxima of float rows, the last block read partly",
    kernel: "row_reduce_max_f32",
    inputs: [floats(x)],
    bytes: size,
    constants: [bool(200, false), bool(201, false), { index: 202, dtype: "i32", value: 1 }],
    expected: range(count, (at) => Math.max(...row(x, at))),
  },
  {
    ...reduction,
    name: "maxima of float rows plus a row of an optional buffer",
    kernel: "row_reduce_max_f32",
    inputs: [floats(x)],
    bytes: { ...size, 3: new Float32Array(bias) },
    constants: [bool(200, false), bool(201, true), { index: 202, dtype: "i32", value: 0 }],
    expected: range(count, (at) => Math.max(...row(x, at).map((value, k) => Math.fround(value + (bias[k] ?? 0))))),
  },
  {
    ...reduction,
    name: "maxima of bfloat rows, aligned: the last three values are not read",
    kernel: "row_reduce_max_bf16",
    inputs: [encoded(bfloat, x)],
    bytes: size,
    constants: [bool(200, true), bool(201, false), { index: 202, dtype: "i32", value: 2 }],
    expected: range(count, (at) =>
      Math.max(
        ...row(rounded(bfloat, x), at)
          .slice(0, length - (length % 8))
          .map((value) => value * value),
      ),
    ),
  },
  {
    ...reduction,
    name: "sums of squares of half rows",
    kernel: "row_reduce_sum_f16",
    inputs: [encoded(half, x)],
    bytes: size,
    constants: [bool(200, false), bool(201, false), { index: 202, dtype: "i32", value: 2 }],
    relative: 2e-6,
    expected: range(count, (at) => row(rounded(half, x), at).reduce((sum, value) => sum + value * value, 0)),
  },
]);
