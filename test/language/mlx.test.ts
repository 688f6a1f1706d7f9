/** Products in tiles of fragments and reductions in the manner of MLX, against TypeScript. */
import { seededBits } from "../../scripts/lib/random.ts";
import { seededRandom } from "../helpers/random.ts";
import { bfloat, codes, type Format, half, rounded } from "./formats.ts";
import { encoded, floats, type Input, ints, type KernelCase, kernelSuite, range, uints } from "./harness.ts";
import { kernelSource } from "./kernels/source.ts";
import { record } from "./record.ts";

const random = seededRandom(31);
const bits = seededBits(37);
const values = (count: number): number[] => range(count, () => Math.fround(random() * 2 - 1));

// D = alpha A B + beta C in two batches, M and N beyond whole tiles of 32, K beyond whole tiles of 16.
interface Gemm {
  readonly format?: Format;
  readonly transposed: boolean;
  readonly aligned: boolean;
  readonly accumulate: boolean;
}
const bool = (index: number, value: boolean) => ({ index, dtype: "bool", value }) as const;
function gemm({ format, transposed, aligned, accumulate }: Gemm): KernelCase {
  const [m, n, k] = aligned ? [64, 32, 48] : [45, 39, 43];
  const name = format === undefined ? "float32" : "float16";
  const exact = (count: number): number[] => (format === undefined ? values(count) : rounded(format, values(count)));
  const input = (list: readonly number[]): Input => (format === undefined ? floats(list) : encoded(format, list));
  const [a, b, c] = [exact(2 * m * k), exact(2 * k * n), exact(2 * m * n)];
  const [alpha, beta] = [0.5, 2];
  const expected = range(2 * m * n, (at) => {
    const [batch, i, j] = [Math.floor(at / (m * n)), Math.floor(at / n) % m, at % n];
    const product = range(k, (p) => {
      const factor = transposed ? b[batch * k * n + j * k + p] : b[batch * k * n + p * n + j];
      return (a[batch * m * k + i * k + p] ?? 0) * (factor ?? 0);
    }).reduce((x, y) => x + y);
    return accumulate ? alpha * product + beta * (c[at] ?? 0) : product;
  });
  const shape = record([
    ...[m, n, k, k, transposed ? k : n, n, Math.ceil(n / 32), Math.ceil(m / 32)].map((x) => ["i32", x] as const),
    ...[m * k, k * n, m * n].map((x) => ["i64", x] as const),
    ...[0, Math.floor(k / 16), 1].map((x) => ["i32", x] as const),
  ]);
  const added = record([
    ["i32", n],
    ["i32", 1],
    ["i64", m * n],
    ["f32", alpha],
    ["f32", beta],
  ]);
  return {
    name: `products of matrices in fragments: ${name}, ${transposed ? "B transposed" : "B as it is"}, ${aligned ? "whole" : "partial"} tiles${accumulate ? ", alpha and beta" : ""}`,
    kernel: `steel_gemm_fused_${transposed ? "nt" : "nn"}_${name}_${name}_bm32_bn32_bk16_wm2_wn2`,
    constants: [
      bool(10, true),
      bool(100, accumulate),
      bool(110, accumulate),
      ...[m % 32, n % 32, k % 16].map((rest, at) => bool(200 + at, rest === 0)),
      bool(300, false),
    ],
    out: format?.name ?? "float",
    ...(format === undefined ? {} : { format }),
    outIndex: 3,
    inputs: accumulate ? [input(a), input(b), input(c)] : [input(a), input(b)],
    bytes: {
      4: shape,
      ...(accumulate ? { 5: added } : {}),
      6: new Int32Array([2]),
      7: new BigInt64Array([BigInt(m * k), BigInt(k * n)]),
    },
    form: "threadgroups",
    grid: [Math.ceil(n / 32), Math.ceil(m / 32), 2],
    threads: [32, 2, 2],
    absolute: format === undefined ? 5e-6 : 2 ** -8,
    expected: format === undefined ? expected : codes(format, expected),
  };
}
kernelSuite("mlx_gemm", kernelSource("mlx_steel") + kernelSource("mlx_gemm"), [
  gemm({ transposed: false, aligned: true, accumulate: false }),
  gemm({ transposed: true, aligned: false, accumulate: true }),
  gemm({ format: half, transposed: false, aligned: false, accumulate: false }),
  gemm({ format: half, transposed: true, aligned: true, accumulate: true }),
]);

type Complex = readonly [number, number];
const times = ([a, b]: Complex, [c, d]: Complex): Complex => [a * c - b * d, a * d + b * c];
const [length, rows] = [203, 7];
const x = range(rows * length, () => Math.fround(random() * 4 - 2));
const row = (list: readonly number[], at: number): readonly number[] => list.slice(at * length, (at + 1) * length);
const flat = (list: readonly Complex[]): number[] => list.flat();
const unit = range(rows * length, (): Complex => {
  const angle = random() * 6;
  return [Math.fround(Math.cos(angle)), Math.fround(Math.sin(angle))];
});
const rowReduce = {
  bytes: { 2: new BigUint64Array([BigInt(length)]), 3: new BigInt64Array([BigInt(rows)]) },
  outIndex: 1,
  form: "threadgroups",
  grid: [1, 2, 1],
  threads: 64,
} as const;
// A [5, 3, 4] tensor of complex numbers, its axes of 5 and 3 reduced for each of the last axis.
const strided = range(60, (): Complex => [(bits() % 9) - 4, (bits() % 9) - 4]);
const columns = {
  bytes: {
    2: new BigUint64Array([15n]),
    3: new BigInt64Array([1n]),
    4: new Int32Array([5, 3]),
    5: new BigInt64Array([12n, 4n]),
    6: new Int32Array([2]),
  },
  outIndex: 1,
  form: "threadgroups",
  grid: 4,
  threads: 32,
} as const;
const column = (at: number): readonly Complex[] => range(15, (k) => strided[4 * k + at] ?? [0, 0]);
const greater = (p: Complex, q: Complex): boolean => p[0] > q[0] || (p[0] === q[0] && p[1] > q[1]);
const places = range(40, () => bits() % 10);
const small = range(40, () => bits() % 20);
const summed = range(10, (at) => small.reduce((sum, each, k) => (places[k] === at ? sum + each : sum), 0));
kernelSuite("mlx_reduce", kernelSource("mlx_reduce"), [
  {
    ...rowReduce,
    name: "sums of rows, four rows a threadgroup, the last ones twice",
    kernel: "row_reduce_simple_sum_f32",
    out: "float",
    inputs: [floats(x)],
    absolute: 1e-4,
    expected: range(rows, (at) => row(x, at).reduce((p, q) => p + q)),
  },
  {
    ...rowReduce,
    name: "sums of 64 bits, through shuffles of their halves",
    kernel: "row_reduce_simple_sum_i64",
    out: "long",
    inputs: [ints(x.map((v) => Math.round(v * 2 ** 29)))],
    expected: range(rows, (at) => BigInt(row(x, at).reduce((p, q) => p + Math.round(q * 2 ** 29), 0))),
  },
  {
    ...rowReduce,
    name: "maxima of bfloat rows, a NaN in one of them",
    kernel: "row_reduce_simple_max_bf16",
    out: "bfloat",
    format: bfloat,
    inputs: [
      encoded(
        bfloat,
        x.map((v, at) => (at === 2 * length + 77 ? Number.NaN : v)),
      ),
    ],
    expected: codes(
      bfloat,
      range(rows, (at) => (at === 2 ? Number.NaN : Math.max(...rounded(bfloat, row(x, at) as number[])))),
    ),
  },
  {
    ...rowReduce,
    name: "products of complex numbers, structs in registers, in threadgroup and in device memory",
    kernel: "row_reduce_simple_prod_c64",
    out: "float",
    inputs: [floats(flat(unit))],
    absolute: 1e-4,
    expected: flat(range(rows, (at) => unit.slice(at * length, (at + 1) * length).reduce(times))),
  },
  {
    ...rowReduce,
    name: "whether all of a row hold",
    kernel: "row_reduce_simple_and_bool",
    out: "uchar",
    inputs: [{ type: "uchar", values: range(rows * length, (at) => (at === 3 * length + 9 ? 0 : 1)) }],
    expected: range(rows, (at) => (at === 3 ? 0 : 1)),
  },
  {
    ...columns,
    name: "sums of columns of complex numbers, by a recursive struct of strides",
    kernel: "col_reduce_looped_sum_c64",
    out: "float",
    inputs: [floats(flat(strided))],
    expected: flat(range(4, (at) => column(at).reduce(([a, b], [c, d]) => [a + c, b + d]))),
  },
  {
    ...columns,
    name: "maxima of columns of complex numbers, from a struct as constant of a template",
    kernel: "col_reduce_looped_max_c64",
    out: "float",
    inputs: [floats(flat(strided))],
    expected: flat(range(4, (at) => column(at).reduce((p, q) => (greater(q, p) ? q : p)))),
  },
  {
    name: "sums of bytes by compare-exchange of the words they are in",
    kernel: "scatter_add_uint8",
    out: "uchar",
    initial: range(12, () => 0),
    inputs: [{ type: "uchar", values: small }, uints(places)],
    grid: 40,
    threads: 40,
    expected: [...summed, 0, 0].map((sum) => sum & 255),
  },
  {
    name: "sums of halves by compare-exchange of the words they are in",
    kernel: "scatter_add_float16",
    out: "half",
    initial: range(10, () => 0),
    inputs: [encoded(half, small), uints(places)],
    grid: 40,
    threads: 40,
    expected: codes(half, summed),
  },
]);
