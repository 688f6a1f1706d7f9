/** Sorts, scans and random bits in the manner of MLX, against TypeScript. */
import { seededBits } from "../../scripts/lib/random.ts";
import { seededRandom } from "../helpers/random.ts";
import { bfloat, codes, rounded } from "./formats.ts";
import { encoded, floats, kernelSuite, range, uints } from "./harness.ts";
import { kernelSource } from "./kernels/source.ts";

const random = seededRandom(71);
const bits = seededBits(73);
const values = (count: number): number[] => range(count, () => Math.fround(random() * 2 - 1));

const keys = range(2 * 1000, () => Math.fround(random() * 100));
const shorts = range(200, () => (bits() % 5000) - 2500);
const scanned = values(600);
const longs = range(333, () => BigInt(bits()) * 1000n);
function prefix<T>(list: readonly T[], op: (a: T, b: T) => T): T[] {
  const out: T[] = [];
  for (const [k, value] of list.entries()) out.push(k === 0 ? value : op(out[k - 1] as T, value));
  return out;
}
const scan = { outIndex: 1, form: "threadgroups", grid: [1, 1, 1], threads: 64 } as const;
const size = (count: number) => ({ 2: new BigUint64Array([BigInt(count)]) });

/** Threefry-2x32 of 20 rounds (Salmon and others, 2011). */
function threefry([k0, k1]: readonly [number, number], [c0, c1]: readonly [number, number]): [number, number] {
  const key = [k0, k1, (k0 ^ k1 ^ 0x1bd11bda) >>> 0];
  let [v0, v1] = [(c0 + k0) >>> 0, (c1 + k1) >>> 0];
  for (let group = 0; group < 5; group += 1) {
    for (const turn of group % 2 === 0 ? [13, 15, 26, 6] : [17, 29, 16, 24]) {
      v0 = (v0 + v1) >>> 0;
      v1 = ((((v1 << turn) | (v1 >>> (32 - turn))) >>> 0) ^ v0) >>> 0;
    }
    v0 = (v0 + (key[(group + 1) % 3] ?? 0)) >>> 0;
    v1 = (v1 + (key[(group + 2) % 3] ?? 0) + group + 1) >>> 0;
  }
  return [v0, v1];
}
const seeds = [11, 0xdeadbeef, 7, 1] as const;
kernelSuite("mlx_sort", kernelSource("mlx_sort"), [
  {
    name: "the order of rows of 1,000 keys, by merges of blocks",
    kernel: "carg_block_sort_float32_uint32_bn128_tn8",
    out: "uint",
    outIndex: 1,
    inputs: [floats(keys)],
    bytes: { 2: new Int32Array([1000]), 3: new Int32Array([1]) },
    form: "threadgroups",
    grid: [1, 2],
    threads: 128,
    expected: range(2, (at) => {
      const line = keys.slice(1000 * at, 1000 * at + 1000);
      return range(1000, (k) => k).sort((p, q) => (line[p] ?? 0) - (line[q] ?? 0) || p - q);
    }).flat(),
  },
  {
    name: "200 shorts in order, in a kernel that leaves one of two branches with threadgroup arrays out",
    kernel: "c_block_sort_int16_int16_bn64_tn4",
    out: "short",
    outIndex: 1,
    inputs: [{ type: "short", values: shorts }],
    bytes: { 2: new Int32Array([200]), 3: new Int32Array([1]) },
    form: "threadgroups",
    grid: [1, 1],
    threads: 64,
    expected: shorts.toSorted((p, q) => p - q),
  },
]);
kernelSuite("mlx_scan", kernelSource("mlx_scan"), [
  {
    ...scan,
    name: "prefix sums of a row, four values a thread",
    kernel: "contiguous_scan_inclusive_sum_float32_float32",
    out: "float",
    inputs: [floats(scanned)],
    bytes: size(600),
    absolute: 2e-5,
    expected: prefix(scanned, (p, q) => p + q),
  },
  {
    ...scan,
    name: "sums of 64 bits from the end, by shuffles of halves that are filled",
    kernel: "contiguous_scan_inclusive_sum_int64_int64",
    out: "long",
    inputs: [{ type: "long", values: longs }],
    bytes: size(333),
    expected: prefix(longs.toReversed(), (p, q) => p + q).toReversed(),
  },
  {
    ...scan,
    name: "prefix maxima of bfloat",
    kernel: "contiguous_scan_inclusive_max_bf16",
    out: "bfloat",
    inputs: [encoded(bfloat, scanned)],
    bytes: size(600),
    expected: codes(bfloat, prefix(rounded(bfloat, scanned), Math.max)),
  },
  {
    name: "random bits of a counter, through a union of words and bytes",
    kernel: "rbitsc",
    out: "uint",
    outIndex: 1,
    inputs: [uints(seeds)],
    bytes: { 2: new Uint8Array([0]), 3: new Uint32Array([40]) },
    grid: [2, 5],
    threads: [2, 5],
    expected: range(2, (at) => {
      const pairs = range(5, (k) => threefry([seeds[2 * at] ?? 0, seeds[2 * at + 1] ?? 0], [k, k + 5]));
      return [...pairs.map(([low]) => low), ...pairs.map(([, high]) => high)];
    }).flat(),
  },
]);
