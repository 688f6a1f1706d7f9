/** Classic programs of general-purpose GPU code, against the same thing in TypeScript or in Bun's own library. */
import { createHash } from "node:crypto";
import { seededBits } from "../../scripts/lib/random.ts";
import { bitsOf, half } from "./formats.ts";
import { floats, type Input, ints, type KernelCase, kernelSuite, range, uints, type Values } from "./harness.ts";
import { kernelSource } from "./kernels/source.ts";

const bits = seededBits(23);
const random = (): number => bits() / 2 ** 32;
const f = Math.fround;
const bytesOf = (list: readonly number[]): Input => ({ type: "uchar", values: list });

const message = range(40 * 24, () => bits() & 255);
const hashing: KernelCase[] = [
  {
    name: "CRC-32 by a table that the compiler computes",
    kernel: "crc32",
    out: "uint",
    inputs: [bytesOf(message)],
    bytes: { 2: new Uint32Array([24]) },
    grid: 40,
    threads: 8,
    expected: range(40, (k) => Bun.hash.crc32(new Uint8Array(message.slice(24 * k, 24 * k + 24)))),
  },
  {
    name: "SHA-256 of spans of 0 to 200 bytes, through a struct on the stack",
    kernel: "sha256",
    out: "uchar",
    inputs: [bytesOf(message), uints(range(11, (k) => [k * 30, k * 20]).flat())],
    grid: 11,
    threads: 11,
    expected: range(11, (k) => [
      ...createHash("sha256")
        .update(new Uint8Array(message.slice(k * 30, k * 30 + k * 20)))
        .digest(),
    ]).flat(),
  },
];

const count = 100_000;
const terms = range(count, () => bits() & 63);
let running = 0;
const sums = terms.map((x) => (running += x));
const scan: KernelCase = {
  name: "prefix sums in one pass: each of 782 threadgroups waits for those before it",
  kernel: "scan_lookback",
  out: "uint",
  inputs: [uints(terms), uints(range(Math.ceil(count / 128), () => 0)), uints([0])],
  bytes: { 4: new Uint32Array([count]) },
  form: "threadgroups",
  grid: Math.ceil(count / 128),
  threads: 128,
  expected: sums,
};

const pairs = range(300, () => [bits() % 100, bits() % 1000] as const);
const totals = new Map<number, number>();
for (const [key, value] of pairs) totals.set(key, (totals.get(key) ?? 0) + value);
// Which of two keys with one home slot lies there depends on the order of threads: slots are compared by key.
const emptySlot = [0xffffffff, 0] as const;
const byKey = (slots: readonly (readonly [number, number])[]): number[] =>
  slots.toSorted(([key], [other]) => key - other).flat();
const slotsOf = (output: Values): (readonly [number, number])[] =>
  range(output.length / 2, (slot) => [Number(output[2 * slot]), Number(output[2 * slot + 1])] as const);

const signs = range(32, () => (bits() % 7) - 3);
// A ring of 50 vertices with three chords.
const edges = range(50, (v) => [(v + 1) % 50, (v + 49) % 50, ...(v % 20 === 0 ? [(v + 25) % 50] : [])]);
const reach = (level: number): number[] => {
  const depth = range(50, (v): number => (v === 0 ? 0 : -1));
  for (let at = 0; at <= level; at += 1) {
    for (const [v, next] of edges.entries()) {
      if (depth[v] !== at) continue;
      for (const to of next) if (depth[to] === -1) depth[to] = at + 1;
    }
  }
  return depth;
};
const graph: KernelCase[] = [
  {
    name: "sums by key in a hash table, by compare-exchange in structs of atomics",
    kernel: "hash_insert",
    out: "uint",
    initial: range(256, () => emptySlot).flat(),
    inputs: [uints(pairs.flat())],
    bytes: { 2: new Uint32Array([256]) },
    grid: 300,
    threads: 1,
    arrange: (output) => byKey(slotsOf(output)),
    expected: byKey([...totals, ...range(256 - totals.size, () => emptySlot)]),
  },
  {
    name: "compaction of one SIMD group: a ballot, its count below the lane, one addition",
    kernel: "compact",
    out: "uint",
    inputs: [ints(signs), uints([0])],
    grid: 32,
    threads: 32,
    expected: signs.filter((x) => x > 0),
  },
  {
    name: "one level of a breadth-first search, depths as atomics",
    kernel: "bfs",
    out: "int",
    initial: reach(1),
    inputs: [
      uints([0, ...range(50, (v) => edges.slice(0, v + 1).flat().length)]),
      uints(edges.flat()),
      ints([2]),
      uints([0]),
    ],
    grid: 50,
    threads: 10,
    expected: reach(2),
  },
];

const points = range(30, () => f(random()));
const interleave = (x: number, y: number, z: number): number =>
  range(10, (b) => (((x >> b) & 1) * 4 + ((y >> b) & 1) * 2 + ((z >> b) & 1)) * 8 ** b).reduce((p, q) => p + q);
const [width, height] = [21, 14];
const cells = range(width * height, () => bits() & 1);
const neighbours = (x: number, y: number): number =>
  range(9, (k) => [(k % 3) - 1, Math.floor(k / 3) - 1] as const)
    .filter(([dx, dy]) => dx !== 0 || dy !== 0)
    .map(([dx, dy]) => cells[((y + dy + height) % height) * width + ((x + dx + width) % width)] ?? 0)
    .reduce((p, q) => p + q);
/** Steps until |z| > 2, with every operation rounded to float as the kernel rounds it. */
function stepsToEscape(cx: number, cy: number): number {
  let [x, y] = [0, 0];
  for (let k = 1; ; k += 1) {
    [x, y] = [f(f(f(x * x) - f(y * y)) + cx), f(f(f(2 * x) * y) + cy)];
    if (k === 255 || f(f(x * x) + f(y * y)) > 4) return k;
  }
}
const [nx, ny, nz] = [8, 4, 4];
const heat = range(nx * ny * nz, () => f(random()));
const inner = (at: number): boolean => {
  const [x, y, z] = [at % nx, Math.floor(at / nx) % ny, Math.floor(at / (nx * ny))];
  return x > 0 && y > 0 && z > 0 && x < nx - 1 && y < ny - 1 && z < nz - 1;
};
const grids: KernelCase[] = [
  {
    name: "Morton codes of points in three dimensions",
    kernel: "morton",
    out: "uint",
    inputs: [floats(points)],
    grid: 10,
    threads: 10,
    expected: range(10, (k) => {
      const [x = 0, y = 0, z = 0] = points.slice(3 * k).map((v) => Math.floor(f(v * 1024)));
      return interleave(x, y, z);
    }),
  },
  {
    name: "a step of the game of life on a torus",
    kernel: "life",
    out: "uchar",
    inputs: [bytesOf(cells)],
    bytes: { 2: new Int32Array([width, height]) },
    grid: [24, 16],
    threads: [8, 8],
    expected: cells.map((cell, at) => {
      const n = neighbours(at % width, Math.floor(at / width));
      return n === 3 || (n === 2 && cell === 1) ? 1 : 0;
    }),
  },
  {
    name: "the Mandelbrot set, by float2",
    kernel: "mandelbrot",
    out: "uint",
    bytes: { 1: new Float32Array([-2, -1, 2.5, 2]) },
    grid: [32, 16],
    threads: [32, 2],
    expected: range(32 * 16, (at) =>
      stepsToEscape(f(-2 + 2.5 * f((at % 32) / 32)), f(-1 + 2 * f(Math.floor(at / 32) / 16))),
    ),
  },
  {
    name: "a Jacobi step in three dimensions, with a sum of floats by atomics beside it",
    kernel: "jacobi",
    out: "float",
    inputs: [floats(heat), floats([0])],
    bytes: { 3: new Uint32Array([nx, ny, nz, 0]) },
    grid: [nx, ny, nz],
    threads: [nx, ny, 1],
    absolute: 1e-6,
    expected: heat.map((value, at) =>
      inner(at)
        ? [1, -1, nx, -nx, nx * ny, -nx * ny].reduce((sum, step) => sum + (heat[at + step] ?? 0), 0) / 6
        : value,
    ),
  },
];

const [columns, rows] = [37, 21];
const sheet = range(columns * rows, () => f(random()));
const pixels = range(10 * 9 * 4, () => bits() & 255);
const transposed = <T>(list: readonly T[], width: number, height: number): T[] =>
  range(width * height, (at) => list[(at % height) * width + Math.floor(at / height)] as T);
const tiles: KernelCase[] = [
  {
    name: "a transpose through padded tiles, 4 rows a thread, by default template arguments",
    kernel: "transpose_float",
    out: "float",
    inputs: [floats(sheet)],
    bytes: { 2: new Uint32Array([columns, rows]) },
    form: "threadgroups",
    grid: [3, 2],
    threads: [16, 4],
    expected: transposed(sheet, columns, rows),
  },
  {
    name: "a transpose of pixels",
    kernel: "transpose_uchar4",
    out: "uchar",
    inputs: [bytesOf(pixels)],
    bytes: { 2: new Uint32Array([10, 9]) },
    form: "threadgroups",
    grid: [2, 2],
    threads: [8, 8],
    expected: transposed(
      range(90, (k) => pixels.slice(4 * k, 4 * k + 4)),
      10,
      9,
    ).flat(),
  },
];

// Layer: weights 48 bytes, bias 12, flags 5 (and 1 of padding), at 6: 72. Then half scale, bool on[3]; the matrix at 160.
const layers = range(2, (l) => ({
  weights: range(12, () => (bits() % 9) - 4),
  bias: range(3, (k) => k + l),
  flags: range(5, (k) => k + 3 * l),
  at: range(3, (k) => k - l),
}));
const matrix = range(16, (k) => (k % 5) - 1);
function networkBytes(): Uint8Array {
  const bytes = new Uint8Array(224);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, 2, true);
  for (const [l, { weights, bias, flags, at }] of layers.entries()) {
    const base = 4 + 72 * l;
    for (const [k, x] of [...weights, ...bias].entries()) view.setFloat32(base + 4 * k, x, true);
    bytes.set(flags, base + 60);
    for (const [k, x] of at.entries()) view.setInt16(base + 66 + 2 * k, x, true);
  }
  view.setUint16(148, bitsOf(half, 0.5), true);
  bytes.set([1, 0, 1], 150);
  for (const [k, x] of matrix.entries()) view.setFloat32(160 + 4 * k, x, true);
  return bytes;
}
const network: KernelCase = {
  name: "an argument struct of structs, arrays of arrays, an unnamed struct, packed vectors and a matrix",
  kernel: "network",
  out: "float",
  bytes: { 1: networkBytes() },
  grid: 5,
  threads: 5,
  expected: range(5, (i) => {
    let x = [i, 1, 2, 3];
    for (const [l, { weights, bias, flags, at }] of layers.entries()) {
      const y = range(3, (r) => {
        const product = x.reduce((sum, value, c) => sum + value * (weights[4 * r + c] ?? 0), bias[r] ?? 0);
        return product + (at[r] ?? 0) * (flags[r + 2] ?? 0);
      });
      x = [...y, l === 0 ? 0.5 : 0];
    }
    return range(4, (r) => 10 ** r * x.reduce((sum, value, c) => sum + value * (matrix[4 * c + r] ?? 0), 0)).reduce(
      (p, q) => p + q,
    );
  }),
};

kernelSuite("gpgpu", kernelSource("gpgpu"), [...hashing, scan, ...graph, ...grids, ...tiles, network]);
