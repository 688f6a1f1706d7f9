/**
 * Functions of a SIMD group and of a quad group, in uniform and in divergent
 * flow, on 32 lanes whose values are known.
 */
import { type Case, type Element, languageSuite, range, uints } from "./harness.ts";

const values = range(32, (k) => ((k * 7) % 32) + 1);
const small = range(32, (k) => (k % 5 === 0 ? 2 : 1));
const lanes = range(32, (k) => k);
const sum = (list: readonly number[]): number => list.reduce((x, y) => x + y, 0);
const product = (list: readonly number[]): number => list.reduce((x, y) => x * y, 1);
const quadOf = (k: number): number => k - (k % 4);
const quad = (list: readonly number[], k: number): number[] => list.slice(quadOf(k), quadOf(k) + 4);

/** One case for `uint` lanes: an expression of `x` (a[lane]) and its value in lane k. */
const lane = (name: string, expression: string, of: (k: number) => number, input = values): Case => ({
  name,
  code: `const uint x = a[i]; out[i] = ${expression};`,
  out: "uint",
  inputs: [uints(input)],
  expected: range(32, (k) => of(k) >>> 0),
});

const at = (k: number): number => values[k] as number;
const uniform: Case[] = [
  lane("simd_shuffle", "simd_shuffle(x, ushort(31 - lane))", (k) => at(31 - k)),
  lane("simd_shuffle_xor", "simd_shuffle_xor(x, ushort(5))", (k) => at(k ^ 5)),
  lane("simd_shuffle_up", "simd_shuffle_up(x, ushort(3))", (k) => at(k < 3 ? k : k - 3)),
  lane("simd_shuffle_down", "simd_shuffle_down(x, ushort(3))", (k) => at(k > 28 ? k : k + 3)),
  lane("simd_shuffle_rotate_up", "simd_shuffle_rotate_up(x, ushort(3))", (k) => at((k + 29) % 32)),
  lane("simd_shuffle_rotate_down", "simd_shuffle_rotate_down(x, ushort(3))", (k) => at((k + 3) % 32)),
  lane("simd_shuffle_and_fill_up", "simd_shuffle_and_fill_up(x, 100u + lane, ushort(3))", (k) =>
    k < 3 ? 100 + 29 + k : at(k - 3),
  ),
  lane("simd_shuffle_and_fill_down", "simd_shuffle_and_fill_down(x, 100u + lane, ushort(3))", (k) =>
    k > 28 ? 100 + k + 3 - 32 : at(k + 3),
  ),
  lane("simd_shuffle_and_fill_up, modulo 8", "simd_shuffle_and_fill_up(x, 100u + lane, ushort(2), ushort(8))", (k) =>
    k % 8 < 2 ? 100 + k + 6 : at(k - 2),
  ),
  lane(
    "simd_shuffle_and_fill_down, modulo 8",
    "simd_shuffle_and_fill_down(x, 100u + lane, ushort(2), ushort(8))",
    (k) => (k % 8 > 5 ? 100 + k - 6 : at(k + 2)),
  ),
  lane("simd_broadcast", "simd_broadcast(x, ushort(9))", () => at(9)),
  lane("simd_broadcast_first", "simd_broadcast_first(x)", () => at(0)),
  lane("simd_sum", "simd_sum(x)", () => sum(values)),
  lane("simd_product", "simd_product(x)", () => product(small), small),
  lane("simd_min", "simd_min(x)", () => Math.min(...values)),
  lane("simd_max", "simd_max(x)", () => Math.max(...values)),
  lane("simd_and", "simd_and(x | 64u)", () => values.reduce((x, y) => x & (y | 64), -1)),
  lane("simd_or", "simd_or(x)", () => values.reduce((x, y) => x | y, 0)),
  lane("simd_xor", "simd_xor(x)", () => values.reduce((x, y) => x ^ y, 0)),
  lane("simd_prefix_inclusive_sum", "simd_prefix_inclusive_sum(x)", (k) => sum(values.slice(0, k + 1))),
  lane("simd_prefix_exclusive_sum", "simd_prefix_exclusive_sum(x)", (k) => sum(values.slice(0, k))),
  lane(
    "simd_prefix_inclusive_product",
    "simd_prefix_inclusive_product(x)",
    (k) => product(small.slice(0, k + 1)),
    small,
  ),
  lane("simd_prefix_exclusive_product", "simd_prefix_exclusive_product(x)", (k) => product(small.slice(0, k)), small),
  lane("simd_any", "simd_any(x == 9u) * 2 + simd_any(x == 90u)", () => 2),
  lane("simd_all", "simd_all(x < 90u) * 2 + simd_all(x < 9u)", () => 2),
  lane("simd_ballot", "uint(ulong(simd_ballot(x > 16u)))", () =>
    values.reduce((mask, x, k) => (x > 16 ? mask | (1 << k) : mask), 0),
  ),
  lane("simd_vote", "simd_ballot(x > 0u).all() * 2 + simd_ballot(x > 90u).any()", () => 2),
  lane("simd_active_threads_mask", "uint(ulong(simd_active_threads_mask()))", () => 0xffffffff),
  lane("simd_is_first", "simd_is_first()", (k) => (k === 0 ? 1 : 0)),
  lane("quad_shuffle", "quad_shuffle(x, ushort(3 - lane % 4))", (k) => at(quadOf(k) + 3 - (k % 4))),
  lane("quad_shuffle_xor", "quad_shuffle_xor(x, ushort(1))", (k) => at(k ^ 1)),
  lane("quad_shuffle_up", "quad_shuffle_up(x, ushort(1))", (k) => at(k % 4 === 0 ? k : k - 1)),
  lane("quad_shuffle_down", "quad_shuffle_down(x, ushort(1))", (k) => at(k % 4 === 3 ? k : k + 1)),
  lane("quad_shuffle_rotate_up", "quad_shuffle_rotate_up(x, ushort(1))", (k) => at(quadOf(k) + ((k + 3) % 4))),
  lane("quad_shuffle_rotate_down", "quad_shuffle_rotate_down(x, ushort(1))", (k) => at(quadOf(k) + ((k + 1) % 4))),
  lane("quad_shuffle_and_fill_up", "quad_shuffle_and_fill_up(x, 100u + lane, ushort(1))", (k) =>
    k % 4 === 0 ? 100 + k + 3 : at(k - 1),
  ),
  lane("quad_broadcast", "quad_broadcast(x, ushort(2))", (k) => at(quadOf(k) + 2)),
  lane("quad_broadcast_first", "quad_broadcast_first(x)", (k) => at(quadOf(k))),
  lane("quad_sum", "quad_sum(x)", (k) => sum(quad(values, k))),
  lane("quad_product", "quad_product(x)", (k) => product(quad(small, k)), small),
  lane("quad_min", "quad_min(x)", (k) => Math.min(...quad(values, k))),
  lane("quad_max", "quad_max(x)", (k) => Math.max(...quad(values, k))),
  lane("quad_and", "quad_and(x)", (k) => quad(values, k).reduce((x, y) => x & y, -1)),
  lane("quad_or", "quad_or(x)", (k) => quad(values, k).reduce((x, y) => x | y, 0)),
  lane("quad_xor", "quad_xor(x)", (k) => quad(values, k).reduce((x, y) => x ^ y, 0)),
  lane("quad_prefix_inclusive_sum", "quad_prefix_inclusive_sum(x)", (k) => sum(values.slice(quadOf(k), k + 1))),
  lane("quad_prefix_exclusive_sum", "quad_prefix_exclusive_sum(x)", (k) => sum(values.slice(quadOf(k), k))),
  lane("quad_any", "quad_any(lane == 5)", (k) => (quadOf(k) === 4 ? 1 : 0)),
  lane("quad_all", "quad_all(lane != 5)", (k) => (quadOf(k) === 4 ? 0 : 1)),
  lane("quad_ballot", "uint(quad_vote::vote_t(quad_ballot(lane % 4 != 1)))", () => 0b1101),
];

/** A sum over lanes of each type, from integers that every type holds exactly. */
const types: readonly (readonly [Element, string])[] = [
  ["int", "int"],
  ["uint", "uint"],
  ["short", "short"],
  ["ushort", "ushort"],
  ["float", "float"],
  ["half", "half"],
  ["bfloat", "bfloat"],
  ["char", "char"],
  ["uchar", "uchar"],
];
for (const [, type] of types) {
  uniform.push(
    {
      name: `simd_sum and simd_max of ${type}`,
      code: `const ${type} x = ${type}(lane % 4); out[i] = int(simd_sum(x)) * 10 + int(simd_max(x));`,
      out: "int",
      expected: range(32, () => 483),
    },
    {
      name: `simd_shuffle_xor of ${type}`,
      code: `const ${type} x = ${type}(lane); out[i] = int(simd_shuffle_xor(x, ushort(1)));`,
      out: "int",
      expected: range(32, (k) => k ^ 1),
    },
  );
  for (const width of [2, 3, 4]) {
    uniform.push({
      name: `${type}${width} of other lanes, written by index and kept in arrays`,
      code: `${type}${width} x = ${type}${width}(${type}(lane % 4)), r = ${type}${width}(${type}(0)), list[4]; x[1] = ${type}(1);
        for (uint k = 0; k < 4; k++) list[k] = simd_shuffle(x, ushort(k));
        for (uint k = 0; k < 4; k++) r += list[(k + lane) % 4];
        out[i] = int(r[0]) * 10 + int(r[1]);`,
      out: "int",
      expected: range(32, () => 64),
    });
    uniform.push({
      name: `functions of quad groups of ${type}${width}`,
      code: `${type}${width} x = ${type}${width}(lane % 4); x[1] = ${type}(1);
        out[i] = int(quad_sum(x)[0]) * 1000 + int(quad_product(x)[1]) * 100 + int(quad_max(x)[0]) * 10 +
          int(quad_min(x)[0]) + int(quad_prefix_inclusive_sum(x)[0]) * 10000 + int(quad_prefix_exclusive_product(x)[1]);`,
      out: "int",
      expected: range(32, (k) => 6131 + 10000 * sum(range((k % 4) + 1, (q) => q))),
    });
    uniform.push({
      name: `simd_sum and simd_shuffle of ${type}${width}`,
      code: `${type}${width} x = ${type}${width}(lane % 4); x[1] = ${type}(1);
        out[i] = int(simd_sum(x)[0]) * 100 + int(simd_sum(x)[1]) + int(simd_shuffle(x, ushort(3))[0]);`,
      out: "int",
      expected: range(32, () => 4835),
    });
  }
}

const odd = lanes.filter((k) => k % 2 === 1);
const divergent: Case[] = [
  {
    name: "the active lanes of a branch",
    code: "uint r = 0; if (lane % 2 == 1) { r = simd_sum(lane); } out[i] = r;",
    out: "uint",
    expected: range(32, (k) => (k % 2 === 1 ? sum(odd) : 0)),
  },
  {
    name: "both branches, then all lanes again",
    code: "uint r; if (lane < 10) { r = simd_sum(1u); } else { r = simd_sum(100u); } out[i] = simd_sum(r);",
    out: "uint",
    expected: range(32, () => 10 * 10 + 22 * 2200),
  },
  {
    name: "one helper called from both branches",
    code: "uint r; if (lane < 10) { r = total(1u); } else { r = total(2u); } out[i] = r;",
    out: "uint",
    expected: range(32, (k) => (k < 10 ? 10 : 44)),
  },
  {
    name: "all lanes, between two branches on one condition",
    code: "if (lane < 16) { out[i + 32] = 1; } out[i] = simd_sum(1u); if (lane < 16) { out[i + 32] += 2; }",
    out: "uint",
    threads: 32,
    expected: range(64, (k) => (k < 32 ? 32 : k < 48 ? 3 : 0)),
  },
  {
    name: "a helper called by all lanes, between two branches on one condition",
    code: "if (lane < 16) { out[i + 32] = 1; } out[i] = total(2u); if (lane < 16) { out[i + 32] += 2; }",
    out: "uint",
    threads: 32,
    expected: range(64, (k) => (k < 32 ? 64 : k < 48 ? 3 : 0)),
  },
  {
    name: "a shuffle by all lanes, between two branches on one condition",
    code: "if (lane < 16) { out[i + 32] = 1; } out[i] = simd_shuffle_xor(lane, ushort(16)); if (lane < 16) { out[i + 32] += 2; }",
    out: "uint",
    threads: 32,
    expected: range(64, (k) => (k < 32 ? k ^ 16 : k < 48 ? 3 : 0)),
  },
  {
    name: "a loop that lanes leave one after another",
    code: "uint r = 0; for (uint k = 0; k <= lane; ++k) { r += simd_sum(1u); } out[i] = r;",
    out: "uint",
    expected: range(32, (k) => sum(range(k + 1, (step) => 32 - step))),
  },
  {
    name: "simd_is_first and simd_broadcast_first in a branch",
    code: "uint r = 0; if (lane >= 7) { r = simd_broadcast_first(lane) * 2 + simd_is_first(); } out[i] = r;",
    out: "uint",
    expected: range(32, (k) => (k < 7 ? 0 : k === 7 ? 15 : 14)),
  },
  {
    name: "simd_active_threads_mask and simd_all in a branch",
    code: "uint r = 0; if (lane % 2 == 1) { r = uint(ulong(simd_active_threads_mask())) + simd_all(lane % 2 == 1); } out[i] = r;",
    out: "uint",
    expected: range(32, (k) => (k % 2 === 1 ? (0xaaaaaaaa + 1) >>> 0 : 0)),
  },
  {
    name: "nested branches",
    code: `uint r = 1; if (lane < 16) { r = simd_sum(1u); if (lane < 4) { r += simd_sum(10u); } r += simd_sum(1000u); }
      out[i] = r;`,
    out: "uint",
    expected: range(32, (k) => (k < 4 ? 16 + 40 + 16000 : k < 16 ? 16 + 16000 : 1)),
  },
  {
    name: "min, max, and, or, xor and prefix sums of active lanes",
    code: `uint r = 0; if (lane % 4 == 2) {
      r = simd_min(lane) + simd_max(lane) * 100 + simd_prefix_exclusive_sum(1u) * 10000;
      r += (simd_and(lane) == 2u) * 1000000 + (simd_or(lane) == 30u) * 2000000 + (simd_xor(lane) == 0u) * 4000000; }
      out[i] = r;`,
    out: "uint",
    expected: range(32, (k) => (k % 4 === 2 ? 2 + 3000 + ((k - 2) / 4) * 10000 + 7000000 : 0)),
  },
  {
    name: "values of different sizes in two branches at once",
    code: `uint r; if (lane % 2 == 0) { r = simd_sum(uint4(lane, 1, 2, 3)).x; } else { r = simd_sum(ushort(lane)); }
      out[i] = r;`,
    out: "uint",
    expected: range(32, (k) => sum(lanes.filter((other) => other % 2 === k % 2))),
  },
  {
    name: "lanes that have returned",
    code: "out[i] = 7; if (lane >= 20) { return; } out[i] = simd_sum(1u);",
    out: "uint",
    expected: range(32, (k) => (k < 20 ? 20 : 7)),
  },
  {
    name: "a partial SIMD group",
    code: "out[i] = simd_sum(lane + 1u);",
    out: "uint",
    threadgroup: 40,
    threads: 40,
    expected: range(40, (k) => (k < 32 ? 528 : 36)),
  },
];

const barriers: Case[] = [
  {
    name: "threadgroup memory through a barrier",
    code: `threadgroup uint box[256]; box[local] = local * 3; threadgroup_barrier(mem_flags::mem_threadgroup);
      out[i] = box[255 - local];`,
    out: "uint",
    threads: 512,
    threadgroup: 256,
    expected: range(512, (k) => (255 - (k % 256)) * 3),
  },
  {
    name: "a reduction tree over 1,024 threads",
    code: `threadgroup uint box[1024]; box[local] = local + 1; threadgroup_barrier(mem_flags::mem_threadgroup);
      for (uint step = 512; step > 0; step /= 2) {
        if (local < step) { box[local] += box[local + step]; }
        threadgroup_barrier(mem_flags::mem_threadgroup);
      }
      out[i] = box[0];`,
    out: "uint",
    threads: 1024,
    threadgroup: 1024,
    expected: range(1024, () => (1024 * 1025) / 2),
  },
  {
    name: "threads that return before a barrier that others reach",
    code: `threadgroup uint box[128]; box[local] = 0; threadgroup_barrier(mem_flags::mem_threadgroup);
      out[i] = 1; if (local >= 70) { return; }
      box[local] = 5; threadgroup_barrier(mem_flags::mem_threadgroup); out[i] = box[69 - local];`,
    out: "uint",
    threads: 128,
    threadgroup: 128,
    expected: range(128, (k) => (k < 70 ? 5 : 1)),
  },
  {
    name: "simdgroup_barrier between lanes of a SIMD group",
    code: `threadgroup uint box[64]; box[local] = local; simdgroup_barrier(mem_flags::mem_threadgroup);
      out[i] = box[group * 32 + 31 - lane];`,
    out: "uint",
    threads: 64,
    threadgroup: 64,
    expected: range(64, (k) => k - (k % 32) + 31 - (k % 32)),
  },
  {
    name: "divergent lane functions between barriers",
    code: `threadgroup uint box[96]; uint r = 0; if (lane < 5) { r = simd_sum(group + 1u); } box[local] = r;
      threadgroup_barrier(mem_flags::mem_threadgroup); out[i] = box[(local + 32) % 96];`,
    out: "uint",
    threads: 96,
    threadgroup: 96,
    expected: range(96, (k) => (k % 32 < 5 ? 5 * (((Math.floor(k / 32) + 1) % 3) + 1) : 0)),
  },
  {
    name: "dynamic threadgroup memory",
    code: `shared[local] = float(local); threadgroup_barrier(mem_flags::mem_threadgroup);
      out[i] = uint(shared[63 - local]);`,
    out: "uint",
    threads: 64,
    threadgroup: 64,
    shared: 256,
    expected: range(64, (k) => 63 - k),
  },
];

const prelude = "inline uint total(uint x) { return simd_sum(x); }\n";
languageSuite("simdgroup", prelude, uniform);
languageSuite("divergence", prelude, divergent);
languageSuite("barrier", prelude, barriers);
