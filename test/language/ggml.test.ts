/** Products of matrices and attention in the manner of ggml, from quantized blocks, against float64. */
import { isOtherGpu } from "../helpers/otherGpu.ts";
import { seededRandom } from "../helpers/random.ts";
import { iq4_nl, q4_0, q4_K, q8_0, type RowMaker } from "./blocks.ts";
import { bfloat, type Format, half, rounded } from "./formats.ts";
import { encoded, floats, type Input, ints, type KernelCase, kernelSuite, range } from "./harness.ts";
import { kernelSource } from "./kernels/source.ts";
import { type Members, record } from "./record.ts";

const random = seededRandom(41);
const values = (count: number, size = 1): number[] => range(count, () => Math.fround((random() * 2 - 1) * size));
const dot = (a: readonly number[], b: readonly number[]): number => a.reduce((sum, x, k) => sum + x * (b[k] ?? 0), 0);
const bytesOf = (list: readonly number[]): Input => ({ type: "uchar", values: list });
const bytesIn = (input: Input): Input => bytesOf([...new Uint8Array(new Uint16Array(input.values.map(Number)).buffer)]);

/** Weights in a type: `rows` rows of `inner` numbers, as bytes and as values. */
function weights(type: RowMaker | Format, rows: number, inner: number): { input: Input; rows: readonly number[][] } {
  if (typeof type !== "function") {
    const list = range(rows, () => rounded(type, values(inner)));
    return { input: bytesIn(encoded(type, list.flat())), rows: list };
  }
  const perBlock = type(1, random).values.length;
  const list = range(rows, () => type(inner / perBlock, random));
  return { input: bytesOf(list.flatMap(({ bytes }) => bytes)), rows: list.map((row) => [...row.values]) };
}

// Products of [M, K] weights with [N, K] activations, M and N beyond whole tiles of 64 and 32.
const [m, n, inner] = [70, 37, 256];
const product = (kernel: string, type: RowMaker | Format, error: number): KernelCase => {
  const { input, rows } = weights(type, m, inner);
  const y = range(n, () => values(inner));
  const rowBytes = input.values.length / m;
  const args: Members = [
    ["i32", inner],
    ["i32", 1],
    ...([rowBytes, rowBytes * m, rowBytes * m] as const).map((x) => ["i64", x] as const),
    ["i32", 1],
    ...([4, 4 * inner, 4 * inner * n, 4 * inner * n] as const).map((x) => ["i64", x] as const),
    ["i32", m],
    ["i32", n],
    ["i16", 1],
    ["i16", 1],
  ];
  return {
    name: `a product of matrices through tiles of 64 x 32: ${kernel}`,
    kernel,
    out: "float",
    outIndex: 3,
    inputs: [bytesOf([...record(args)]), input, floats(y.flat())],
    threadgroupMemory: { 0: 8192 },
    form: "threadgroups",
    grid: [Math.ceil(n / 32), Math.ceil(m / 64)],
    threads: 128,
    absolute: error,
    expected: y.flatMap((column) => rows.map((row) => dot(row, column))),
  };
};
// Weights are rounded to half (11 bits) on their way: 256 products of their size, with random signs. A tensor core adds
// in an order of its own, without a rounding for each step.
const exact = isOtherGpu ? 1e-4 : 2e-5;
kernelSuite("ggml_mul_mm", kernelSource("ggml_mul_mm"), [
  product("kernel_mul_mm_f16_f32", half, exact),
  product("kernel_mul_mm_bf16_f32", bfloat, exact),
  product("kernel_mul_mm_q4_0_f32", q4_0, 1e-2),
  product("kernel_mul_mm_q8_0_f32", q8_0, 0.1),
  product("kernel_mul_mm_iq4_nl_f32", iq4_nl, 0.1),
  product("kernel_mul_mm_q4_K_f32", q4_K, 1),
]);

const kargs = (rows: number, rowBytes: number): Members => [
  ...[inner, rows, 1].map((x) => ["i32", x] as const),
  ...[1, rowBytes, rowBytes * rows, rowBytes * rows].map((x) => ["i64", x] as const),
  ...[inner, 1, 1].map((x) => ["i32", x] as const),
  ...[4, 4 * inner, 4 * inner, 4 * inner].map((x) => ["i64", x] as const),
  ...[rows, 1, 0].map((x) => ["i32", x] as const),
  ["i16", 1],
  ["i16", 1],
];
const rows = 8;
const vector = (kernel: string, type: RowMaker, perGroup: number, nsg: number): KernelCase => {
  const { input, rows: matrix } = weights(type, rows, 2 * inner);
  const y = values(2 * inner);
  const members: Members = [["i32", 2 * inner], ...kargs(rows, input.values.length / rows).slice(1)];
  return {
    name: `rows times a vector: ${kernel}, ${nsg} SIMD groups`,
    kernel,
    constants: [{ index: 600, dtype: "i16", value: nsg }],
    out: "float",
    outIndex: 3,
    inputs: [bytesOf([...record(members)]), input, floats(y)],
    form: "threadgroups",
    grid: rows / perGroup,
    threads: [32, nsg],
    relative: 1e-4,
    absolute: 1e-3,
    ...(kernel.includes("q8_0") ? { threadgroupMemory: { 0: 32 * 4 * 2 } } : {}),
    expected: matrix.map((row) => dot(row, y)),
  };
};
const experts = range(3, () => range(5, () => rounded(half, values(inner))));
const chosen = [2, 0, 1, 1];
const tokens = range(2, () => values(inner));
const byExpert: KernelCase = {
  name: "products by expert, through a function template as the argument of a function template",
  kernel: "kernel_mul_mv_id_f16_f32",
  out: "float",
  outIndex: 3,
  inputs: [
    bytesOf([
      ...record([
        ["i32", 2],
        ["i32", 2],
        ["i64", 8],
        ["i32", inner],
        ["i32", 5],
        ["i64", 2 * inner],
        ["i64", 10 * inner],
        ["i32", 1],
        ["i32", 2],
        ["i64", 4 * inner],
        ["i64", 4 * inner],
        ["i32", 5],
        ["i32", 2],
        ["i64", 20],
      ]),
    ]),
    bytesIn(encoded(half, experts.flat(2))),
    floats(tokens.flat()),
    ints(chosen),
  ],
  threadgroupMemory: { 0: 16 },
  form: "threadgroups",
  grid: [5, 1, 4],
  threads: [32, 1],
  absolute: 2e-5,
  expected: chosen.flatMap((expert, at) =>
    (experts[expert] ?? []).map((row) => dot(row, tokens[Math.floor(at / 2)] ?? [])),
  ),
};
kernelSuite("ggml_mul_mv", kernelSource("ggml_mul_mv"), [
  vector("kernel_mul_mv_q4_0_f32_nr4", q4_0, 8, 2),
  vector("kernel_mul_mv_q8_0_f32", q8_0, 2, 4),
  byExpert,
]);
kernelSuite("ggml_k_quants", kernelSource("ggml_k_quants"), [vector("kernel_mul_mv_q4_K_f32", q4_K, 4, 2)]);

// Attention of 13 queries over 128 keys, one head of K and V for two of queries.
const [heads, queries, keys] = [2, 13, 128];
interface Flags {
  readonly mask: boolean;
  readonly sinks: boolean;
  readonly bias: boolean;
  readonly cap: boolean;
  readonly nsg: number;
}
const flash = (kernel: string, type: RowMaker | Format, d: number, flags: Flags): KernelCase => {
  const q = range(heads, () => range(queries, () => values(d)));
  const [k, v] = [weights(type, keys, d), weights(type, keys, d)];
  const rowBytes = k.input.values.length / keys;
  const mask = range(queries, (i) =>
    range(keys, (j) => (j > 100 + i ? Number.NEGATIVE_INFINITY : -Math.abs(i - j) / 8)),
  );
  const sinks = values(heads);
  const scale = Math.fround(1 / Math.sqrt(d) / (typeof type === "function" ? 16 : 1));
  const cap = 3;
  const expected = range(queries, (i) =>
    range(heads, (h) => {
      const scores = range(keys, (j) => {
        const score = dot(rounded(half, q[h]?.[i] ?? []), k.rows[j] ?? []) * scale;
        const capped = flags.cap ? cap * Math.tanh(score) : score;
        const slope = flags.bias ? 2 ** -(h + 1) : 1;
        return capped + (flags.mask ? slope * (mask[i]?.[j] ?? 0) : 0);
      });
      const top = Math.max(...scores, flags.sinks ? (sinks[h] ?? 0) : Number.NEGATIVE_INFINITY);
      const parts = scores.map((x) => Math.exp(x - top));
      const sum = parts.reduce((x, y) => x + y, flags.sinks ? Math.exp((sinks[h] ?? 0) - top) : 0);
      return range(d, (c) => parts.reduce((total, part, j) => total + part * (v.rows[j]?.[c] ?? 0), 0) / sum);
    }),
  ).flat(2);
  const args: Members = [
    ...[queries, heads, 1].map((x) => ["i32", x] as const),
    ...[4 * d, 4 * d * queries, 4 * d * queries * heads].map((x) => ["i64", x] as const),
    ...[keys, 1, 1, rowBytes / 2].map((x) => ["i32", x] as const),
    ...[rowBytes, rowBytes * keys, rowBytes * keys].map((x) => ["i64", x] as const),
    ["i32", rowBytes / 2],
    ...[rowBytes, rowBytes * keys, rowBytes * keys].map((x) => ["i64", x] as const),
    ["i32", queries],
    ["i64", 2 * keys],
    ...[heads, queries].map((x) => ["i32", x] as const),
    ["f32", scale],
    ["f32", 8],
    ["f32", 0.5],
    ["f32", 0.25],
    ["i32", heads],
    ["f32", cap],
  ];
  const bool = (index: number, value: boolean) => ({ index, dtype: "bool", value }) as const;
  return {
    name: `attention: ${kernel}, ${Object.entries(flags)
      .filter(([, on]) => on !== false)
      .map(([name, on]) => (on === true ? name : `${on} SIMD groups`))
      .join(", ")}`,
    kernel,
    constants: [
      ...[flags.mask, flags.sinks, flags.bias, flags.cap].map((on, at) => bool(300 + at, on)),
      ...[rowBytes / 2, rowBytes / 2, flags.nsg].map(
        (value, at) => ({ index: 320 + at, dtype: "i32", value }) as const,
      ),
    ],
    out: "float",
    outIndex: 6,
    inputs: [
      bytesOf([...record(args)]),
      floats(q.flat(2)),
      k.input,
      // Dense V is read by 64 columns, of the last rows beyond the end, where a model's memory goes on.
      typeof type === "function"
        ? v.input
        : { ...v.input, values: [...v.input.values, ...range(2 * (-d & 63), () => 0)] },
      encoded(half, range(16, (i) => mask[i] ?? range(keys, () => 0)).flat()),
      floats(sinks),
    ],
    // Half: queries, the result (float) padded to 64, scores and mask (float); then 4 x 16 x 8 for each SIMD group.
    threadgroupMemory: { 0: 2 * (8 * (d + 2 * 64 * Math.ceil(d / 64)) + 8 * 256 + flags.nsg * 512) },
    form: "threadgroups",
    grid: [Math.ceil(queries / 8), heads],
    threads: [32, flags.nsg],
    // Weights of half and values of up to 2 (blocks: 16).
    absolute: typeof type === "function" ? 0.05 : 2e-3,
    expected,
  };
};
const plain: Flags = { mask: false, sinks: false, bias: false, cap: false, nsg: 2 };
kernelSuite("ggml_flash_attn", kernelSource("ggml_flash_attn"), [
  flash("kernel_flash_attn_ext_f16_dk64_dv64", half, 64, { ...plain, mask: true, nsg: 4 }),
  flash("kernel_flash_attn_ext_f16_dk80_dv80", half, 80, { ...plain, mask: true, bias: true, cap: true }),
  flash("kernel_flash_attn_ext_q8_0_dk64_dv64", q8_0, 64, { ...plain, mask: true, sinks: true }),
]);
