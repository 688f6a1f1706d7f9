/** Operators of neural networks and signal processing as libraries write them, against their formulas in float64. */
import { seededRandom } from "../helpers/random.ts";
import { bitsOf, half, numberOf } from "./formats.ts";
import { floats, type Input, ints, type KernelCase, kernelSuite, range, words } from "./harness.ts";
import { kernelSource } from "./kernels/source.ts";
import { record } from "./record.ts";

const random = seededRandom(67);
const values = (count: number): number[] => range(count, () => Math.fround(random() * 2 - 1));
const halves = (list: readonly number[]): number[] => list.map((x) => bitsOf(half, x));
const rounded = (list: readonly number[]): number[] => halves(list).map((x) => numberOf(half, x));
const bytesOf = (bytes: Uint8Array): Input => ({ type: "uchar", values: [...bytes] });
const sum = (list: readonly number[]): number => list.reduce((x, y) => x + y, 0);

type Complex = readonly [number, number];
const signal = range(3, () => range(128, (): Complex => [Math.fround(random()), Math.fround(random())]));
/** X[k] = sum over j of x[j] exp(-2 pi i j k / n); the inverse has + in the exponent and 1 / n before the sum. */
function transform(x: readonly Complex[], inverse: boolean): Complex[] {
  const [sign, scale] = inverse ? [1, 1 / x.length] : [-1, 1];
  return range(x.length, (k) => {
    const angle = (j: number): number => (sign * 2 * Math.PI * ((j * k) % x.length)) / x.length;
    return [
      scale * sum(x.map(([re, im], j) => re * Math.cos(angle(j)) - im * Math.sin(angle(j)))),
      scale * sum(x.map(([re, im], j) => re * Math.sin(angle(j)) + im * Math.cos(angle(j)))),
    ];
  });
}
const fft = (inverse: boolean): KernelCase => ({
  name: `a ${inverse ? "inverse " : ""}Fourier transform, steps of 4 and of 2 by a function as template argument`,
  kernel: "fft_mem_256_float2_float2",
  constants: [
    { index: 0, dtype: "bool", value: inverse },
    { index: 1, dtype: "bool", value: true },
    { index: 2, dtype: "i32", value: 4 },
    { index: 4, dtype: "i32", value: 3 },
    { index: 5, dtype: "i32", value: 1 },
  ],
  out: "float",
  outIndex: 1,
  inputs: [floats(signal.flat(2)), ints([128]), ints([3])],
  grid: [32, 3],
  threads: [32, 1],
  absolute: 2e-5,
  expected: signal.flatMap((x) => transform(x, inverse)).flat(),
});

const filters = values(2 * 3 * 32);
const transforms = [
  [1, 0, 0],
  [-2 / 9, -2 / 9, -2 / 9],
];
// Two channels of 6 x 5, kernel 3 x 2, stride 2 and 1, padding 1, dilation 1.
const [width, height, channels] = [6, 5, 2];
const [outWidth, outHeight] = [3, 6];
const image = values(width * height * channels);
const columns = range(outWidth * outHeight * channels * 6, (at) => {
  const [place, tap] = [Math.floor(at / (channels * 6)), at % (channels * 6)];
  const [channel, ky, kx] = [Math.floor(tap / 6), Math.floor((tap % 6) / 2), tap % 2];
  const [x, y] = [(place % outWidth) * 2 + kx - 1, Math.floor(place / outWidth) + ky - 1];
  return x < 0 || y < 0 || x >= width || y >= height ? 0 : (image[(channel * height + y) * width + x] ?? 0);
});
const im2col = (kernel: string, out: "float" | "half"): KernelCase => ({
  name: `columns of an image: ${kernel}`,
  kernel,
  out,
  outIndex: 2,
  inputs: [
    bytesOf(
      record([
        ...[width, height, channels * 6].map((x) => ["i32", x] as const),
        ...[width * height * channels, width * height].map((x) => ["i64", x] as const),
        ...[2, 1, 1, 1, 1, 1, 1, 3, 2, 6].map((x) => ["i32", x] as const),
      ]),
    ),
    floats(image),
  ],
  form: "threadgroups",
  grid: [channels, outHeight, outWidth],
  threads: [1, 3, 2],
  expected: out === "half" ? halves(columns) : columns,
});

const keys = values(2 * 50);
const sorted = (descending: boolean): KernelCase => ({
  name: `the order of rows, ${descending ? "descending" : "ascending"}: an enumerator as template argument`,
  kernel: `kernel_argsort_f32_i32_${descending ? "desc" : "asc"}`,
  out: "int",
  outIndex: 2,
  inputs: [
    bytesOf(
      record([
        ["i64", 50],
        ["i64", 64],
      ]),
    ),
    floats(keys),
  ],
  threadgroupMemory: { 0: 256 },
  form: "threadgroups",
  grid: [1, 2],
  threads: 64,
  expected: range(2, (row) => {
    const line = keys.slice(50 * row, 50 * row + 50);
    return range(50, (k) => k).sort((p, q) => ((line[p] ?? 0) - (line[q] ?? 0)) * (descending ? -1 : 1));
  }).flat(),
});

// Rotary embedding of 16 of 20 values a row, with factors of the frequencies, as YaRN interpolates them.
const [rotated, rowSize, base, scale, context] = [16, 20, 10000, 0.25, 4096];
const positions = [0, 1, 17, 300];
const factors = range(rotated / 2, (k) => 1 + k / 8);
const limit = (rotations: number): number =>
  (rotated * Math.log(context / (rotations * 2 * Math.PI))) / (2 * Math.log(base));
const [low, high] = [Math.max(0, Math.floor(limit(32))), Math.min(rotated - 1, Math.ceil(limit(1)))];
const rope = (rows: readonly number[]): number[] =>
  positions.flatMap((position, row) => {
    const x = rows.slice(row * rowSize, row * rowSize + rowSize);
    const turned = [...x];
    for (const k of range(rotated / 2, (pair) => pair)) {
      const full = (position * base ** ((-2 * k) / rotated)) / (factors[k] ?? 1);
      const share = 1 - Math.min(1, Math.max(0, (k - low) / Math.max(0.001, high - low)));
      const angle = scale * full * (1 - share) + full * share;
      const size = 1 + 0.1 * Math.log(1 / scale);
      const [re, im] = [x[k] ?? 0, x[k + rotated / 2] ?? 0];
      turned[k] = (re * Math.cos(angle) - im * Math.sin(angle)) * size;
      turned[k + rotated / 2] = (re * Math.sin(angle) + im * Math.cos(angle)) * size;
    }
    return turned;
  });
const rows = rounded(values(positions.length * rowSize));
const ropeCase = (kernel: string, isHalf: boolean): KernelCase => ({
  name: `rotary embedding with factors of frequencies: ${kernel}`,
  kernel,
  out: isHalf ? "half" : "float",
  ...(isHalf ? { format: half } : {}),
  outIndex: 4,
  inputs: [
    bytesOf(
      record([
        ...[0, rotated, context].map((x) => ["i32", x] as const),
        ...[base, scale, 1, 1, 32, 1].map((x) => ["f32", x] as const),
        // The third is a bool, with padding behind it.
        ...[0, 1, rowSize].map((x) => ["i32", x] as const),
        ["i64", rowSize * (isHalf ? 2 : 4)],
      ]),
    ),
    isHalf ? words("half", halves(rows)) : floats(rows),
    ints(positions),
    floats(factors),
  ],
  form: "threadgroups",
  grid: positions.length,
  threads: 8,
  // Angles of up to 300 in float, values of up to 1.6.
  absolute: isHalf ? 2e-3 : 1e-4,
  expected: isHalf ? halves(rope(rows)) : rope(rows),
});

const [count, length] = [3, 132];
const x = values(count * length).map((v) => v * 4);
const [w0, w1] = [values(length), values(length)];
const mask = rounded(values(length));
const row = (at: number): number[] => x.slice(Math.floor(at / length) * length, (Math.floor(at / length) + 1) * length);
const softMax = x.map((v, at) => {
  const weigh = (each: number, k: number): number => Math.exp(each * 0.5 + (mask[k] ?? 0));
  return weigh(v, at % length) / sum(row(at).map(weigh));
});
const rms = (at: number): number => (x[at] ?? 0) / Math.sqrt(sum(row(at).map((v) => v * v)) / length + 1e-5);
const perRow = { out: "float", form: "threadgroups", grid: count, threads: 64, threadgroupMemory: { 0: 128 } } as const;
kernelSuite("operators", kernelSource("operators"), [
  fft(false),
  fft(true),
  {
    name: "filters transformed by constants of a template's specialisation",
    kernel: "winograd_weight_float32_bc32",
    out: "float",
    outIndex: 1,
    inputs: [floats(filters), ints([32])],
    form: "threadgroups",
    grid: 2,
    threads: 32,
    absolute: 1e-6,
    expected: range(2 * 2 * 32, (at) => {
      const [tile, k, lane] = [Math.floor(at / 64), Math.floor(at / 32) % 2, at % 32];
      return sum(range(3, (r) => (transforms[k]?.[r] ?? 0) * (filters[(tile * 3 + r) * 32 + lane] ?? 0)));
    }),
  },
  im2col("kernel_im2col_f32", "float"),
  im2col("kernel_im2col_f16", "half"),
  sorted(false),
  sorted(true),
  ropeCase("kernel_rope_neox_f32", false),
  ropeCase("kernel_rope_neox_f16", true),
  {
    ...perRow,
    name: "soft maximum of scaled rows and a mask of halves",
    kernel: "kernel_soft_max_f16",
    outIndex: 2,
    inputs: [floats(x), words("half", halves(mask)), ints([length]), floats([0.5])],
    relative: 1e-5,
    expected: softMax,
  },
  {
    ...perRow,
    name: "RMS norm of float4 with a factor and a summand, chosen by a template's number",
    kernel: "kernel_rms_norm_mul_add_f32_4",
    outIndex: 5,
    inputs: [ints([length]), floats([1e-5]), floats(x), floats(w0), floats(w1)],
    absolute: 2e-6,
    expected: x.map((_, at) => rms(at) * (w0[at % length] ?? 0) + (w1[at % length] ?? 0)),
  },
  {
    ...perRow,
    name: "RMS norm of single floats by the same template, with a dot of its own for them",
    kernel: "kernel_rms_norm_mul_f32",
    outIndex: 5,
    inputs: [ints([length]), floats([1e-5]), floats(x), floats(w0), floats(w1)],
    absolute: 2e-6,
    expected: x.map((_, at) => rms(at) * (w0[at % length] ?? 0)),
  },
]);
