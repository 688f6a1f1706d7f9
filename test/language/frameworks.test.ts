/** Kernels in the manner of tinygrad, candle, PyTorch and metal-flash-attention, against TypeScript. */
import { seededBits } from "../../scripts/lib/random.ts";
import { seededRandom } from "../helpers/random.ts";
import { bfloat, bitsOf, codes, half, rounded } from "./formats.ts";
import { encoded, floats, type Input, ints, kernelSuite, range, uints, type Values } from "./harness.ts";
import { kernelSource } from "./kernels/source.ts";

const random = seededRandom(53);
const bits = seededBits(59);
const f = Math.fround;
const values = (count: number): number[] => range(count, () => f(random() * 2 - 1));
const bytesOf = (list: Values): Input => ({ type: "uchar", values: list });
const sum = (list: readonly number[]): number => list.reduce((x, y) => x + y, 0);
/** a [m, k] times b [k, n]. */
const product = (a: readonly number[], b: readonly number[], [m, n, k]: readonly [number, number, number]): number[] =>
  range(m * n, (at) => sum(range(k, (p) => (a[Math.floor(at / n) * k + p] ?? 0) * (b[p * n + (at % n)] ?? 0))));

const [a, b] = [rounded(half, values(1024)), rounded(half, values(1024))];
const means = values(256);
const casts = values(16).map((x) => x * 8);
const bytes = range(16, (k) => ((k * 37) % 7 === 0 ? 0 : (k * 29) % 200));
const unary = values(16).map((x) => Math.abs(x) + 0.5);
const flags = range(16, (k) => (k >> 1) & 1);
kernelSuite("tinygrad", kernelSource("tinygrad"), [
  {
    name: "a product of matrices by a function of vectors around thread_elements()",
    kernel: "r_2_2_32_2_2_4_8",
    out: "float",
    inputs: [encoded(half, a), encoded(half, b)],
    form: "threadgroups",
    grid: [2, 2],
    threads: 32,
    absolute: 1e-5,
    expected: product(a, b, [32, 32, 32]),
  },
  {
    name: "means of groups through an aligned threadgroup array",
    kernel: "r_4_16_4",
    out: "float",
    inputs: [floats(means)],
    form: "threadgroups",
    grid: 4,
    threads: 16,
    absolute: 1e-6,
    expected: range(4, (k) => sum(means.slice(64 * k, 64 * k + 64)) / 64),
  },
  {
    name: "conversions of generated code: half, signed char, bits of float",
    kernel: "E_4_4_cast",
    out: "int",
    outIndex: 2,
    inputs: [
      encoded(
        half,
        range(16, () => 0),
      ),
      bytesOf(bytes),
      floats(casts),
      bytesOf(bytes),
    ],
    bytes: { 5: new Int32Array([7]) },
    form: "threadgroups",
    grid: 4,
    threads: 4,
    expected: casts.map((x, k) => {
      const code = bytes[k] ?? 0;
      const word = new Int32Array(new Float32Array([code > 127 ? code - 256 : code]).buffer)[0] ?? 0;
      return x >= 0 ? Math.trunc(Math.sin(x * 0.5)) + 7 : word;
    }),
  },
  {
    name: "a line unrolled by four, with choices by bool",
    kernel: "E_unrolled",
    out: "float",
    inputs: [floats(unary), bytesOf(flags)],
    form: "threadgroups",
    grid: 1,
    threads: 4,
    relative: 1e-6,
    expected: unary.map((x, k) => {
      const on = flags[k] === 1;
      const power = 2 ** (f(unary[k - (k % 4)] ?? 0) * 1.4426950408889634);
      if (k % 4 === 0) return on ? 1 / (1 + 2 ** (-x * 1.4426950408889634)) : 0;
      if (k % 4 === 1) return on ? power : 0;
      if (k % 4 === 2) return on ? Math.sqrt(x) : Number.NaN;
      return on ? Number.POSITIVE_INFINITY : Math.log2(x);
    }),
  },
]);

const [groups, perGroup] = [5, 300];
const reduced = rounded(half, values(groups * perGroup)).map((x, at) => (at === 700 || at === 800 ? 3 : x));
const ofGroup = (at: number): number[] => reduced.slice(at * perGroup, (at + 1) * perGroup);
const octets = range(groups * perGroup, () => bits() & 255);
const gelu = (x: number): number =>
  0.5 * x * (1 + Math.tanh((2 / Math.sqrt(Math.PI)) * Math.SQRT1_2 * (x + 0.044715 * x ** 3)));
const activations = rounded(bfloat, values(24)).map((x) => x * 4);
const ulongs = (...list: readonly number[]): Input => ({ type: "ulong", values: list.map(BigInt) });
const longs = (...list: readonly number[]): Input => ({ type: "long", values: list.map(BigInt) });
const tensor = values(24);
// Of a [2, 3, 4] tensor, its last axis first.
const order = range(24, (at) => (Math.floor(at / 3) % 2) * 12 + (at % 3) * 4 + Math.floor(at / 6));
kernelSuite("candle", kernelSource("candle"), [
  ...(
    [
      ["fast_sum_f32", "float", floats(reduced), (at: number) => sum(ofGroup(at)), 256],
      ["fast_max_f16", "half", encoded(half, reduced), (at: number) => bitsOf(half, Math.max(...ofGroup(at))), 64],
      ["fast_argmax_f32", "uint", floats(reduced), (at: number) => ofGroup(at).indexOf(Math.max(...ofGroup(at))), 256],
      [
        "fast_sum_u8",
        "uint",
        bytesOf(octets),
        (at: number) => sum(octets.slice(at * perGroup, (at + 1) * perGroup)),
        32,
      ],
    ] as const
  ).map(([kernel, out, input, expected, threads]) => ({
    name: `reductions by a struct over threadgroup memory, of ${threads} threads: ${kernel}`,
    kernel,
    out,
    outIndex: 3,
    inputs: [uints([groups * perGroup]), uints([perGroup]), input],
    form: "threadgroups" as const,
    grid: groups,
    threads,
    absolute: out === "float" ? 1e-4 : 0,
    expected: range(groups, expected),
  })),
  {
    name: "an activation of bfloat, by a macro for each type",
    kernel: "gelu_bf16",
    out: "bfloat",
    format: bfloat,
    outIndex: 2,
    inputs: [ulongs(24), encoded(bfloat, activations)],
    grid: 32,
    threads: 32,
    relative: 2 ** -7,
    absolute: 1e-3,
    expected: codes(bfloat, activations.map(gelu)),
  },
  {
    name: "squares of a tensor in another order of its axes, by shape and strides in constant memory",
    kernel: "sqr_f32_strided",
    out: "float",
    outIndex: 5,
    inputs: [ulongs(24), uints([3]), ulongs(4, 2, 3), ulongs(1, 12, 4), floats(tensor)],
    grid: 24,
    threads: 24,
    expected: order.map((at) => f((tensor[at] ?? 0) ** 2)),
  },
]);

const [p, q] = [rounded(bfloat, values(12)), rounded(bfloat, values(12))];
const [words16, more16] = [range(12, () => (bits() % 200) - 100), range(12, () => (bits() % 200) - 100)];
const short = (list: readonly number[]): Input => ({ type: "short", values: list });
const [m, n, k] = [48, 64, 40];
const [left, right] = [rounded(half, values(m * k)), rounded(half, values(k * n))];
const rows = values(3 * 100);
const [weight, bias] = [values(100), values(100)];
const normalised = range(300, (at) => {
  const row = rows.slice(Math.floor(at / 100) * 100, Math.floor(at / 100) * 100 + 100);
  const mean = sum(row) / 100;
  const variance = sum(row.map((x) => x * x)) / 100 - mean * mean;
  return (((rows[at] ?? 0) - mean) / Math.sqrt(variance + 1e-5)) * (weight[at % 100] ?? 0) + (bias[at % 100] ?? 0);
});
kernelSuite("torch", kernelSource("torch"), [
  {
    name: "a functor whose result type decides on the kernel's argument",
    kernel: "make_complex_dense_float2_float",
    out: "float",
    inputs: [floats(p), floats(q)],
    grid: 12,
    threads: 12,
    expected: p.flatMap((x, at) => [x, q[at] ?? 0]),
  },
  {
    name: "bfloat computed in float",
    kernel: "add_mul_dense_bfloat_bfloat",
    out: "bfloat",
    inputs: [encoded(bfloat, p), encoded(bfloat, q)],
    grid: 12,
    threads: 12,
    // a + (a b) in float, then rounded: the sum of two numbers of 8 and 16 bits is exact or rounded far below.
    expected: codes(
      bfloat,
      p.map((x, at) => f(x + f(x * (q[at] ?? 0)))),
    ),
  },
  {
    name: "shorts through untyped pointers with strides, the operands in another order of axes",
    kernel: "add_mul_strided_short_short",
    out: "short",
    inputs: [short(words16), short(more16), longs(3, 4), longs(2, 6), longs(8, 2), longs(2, 6), uints([2, 0, 0, 0])],
    grid: 12,
    threads: 4,
    expected: range(12, (at) => {
      const [i, j] = [at % 3, Math.floor(at / 3)];
      const [x, y] = [words16[i * 4 + j] ?? 0, more16[i + 3 * j] ?? 0];
      return ((x + x * y) << 16) >> 16;
    }),
  },
  {
    name: "comparisons of halves as bools",
    kernel: "lt_dense_bool_half",
    out: "uchar",
    inputs: [encoded(half, p), encoded(half, q)],
    grid: 12,
    threads: 12,
    expected: p.map((x, at) => (x < (q[at] ?? 0) ? 1 : 0)),
  },
  {
    name: "values put at indices from the end, by offsets of 64 bits",
    kernel: "index_put_8bit_idx64",
    out: "uchar",
    inputs: [bytesOf([5, 6, 7]), longs(-1, 2, 0), ulongs(...range(3, (at) => [0, at, 0, 0]).flat()), longs(10)],
    grid: 3,
    threads: 3,
    expected: [7, 0, 6, 0, 0, 0, 0, 0, 0, 5],
  },
  {
    name: "normalised rows with weight and bias in constant memory",
    kernel: "layer_norm_single_row_float",
    out: "float",
    outIndex: 1,
    inputs: [
      floats(rows),
      floats([0, 0, 0]),
      floats([0, 0, 0]),
      uints([100]),
      floats([1e-5]),
      ints([1]),
      ints([1]),
      floats(weight),
      floats(bias),
    ],
    form: "threadgroups",
    grid: 3,
    threads: 64,
    absolute: 1e-5,
    expected: normalised,
  },
]);
const bool = (index: number, value: boolean) => ({ index, dtype: "bool", value }) as const;
kernelSuite(
  "metal_flash_attention",
  kernelSource("metal_flash_attention"),
  [false, true].map((transposed) => ({
    name: `a product through a struct of two elements a lane, ${transposed ? "B transposed" : "B as it is"}`,
    kernel: "gemm",
    constants: [
      ...[m, n, k].map((value, index) => ({ index, dtype: "u32", value }) as const),
      bool(10, false),
      bool(11, transposed),
      bool(14, false),
      ...[200, 201].map((index) => ({ index, dtype: "u16", value: 32 }) as const),
    ],
    out: "float" as const,
    outIndex: 2,
    inputs: [
      encoded(half, left),
      encoded(half, transposed ? range(k * n, (at) => right[(at % k) * n + Math.floor(at / k)] ?? 0) : right),
    ],
    threadgroupMemory: { 0: 1024 },
    form: "threadgroups" as const,
    grid: [2, 2],
    threads: 128,
    absolute: 1e-5,
    expected: product(left, right, [m, n, k]),
  })),
);
