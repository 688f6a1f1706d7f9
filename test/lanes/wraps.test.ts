/** Integers that wrap between two lanes, or whose low bits the lanes do not share: what the compiler pass knows of a
 * number's stride, of its zeros and of its bound must not hold there. */
import { describe, expect, test } from "bun:test";
import { Device } from "../../src/index.ts";
import { runOnVectors } from "./dispatch.ts";

interface Case {
  readonly name: string;
  /** Statements that set `r`, 64 bits, from `x`, `y`, `n`, `in` and `lane`. */
  readonly metal: string;
  /** `x`, `y` and `n`; 0 where one is left out. */
  readonly given: readonly number[];
  /** `in`, of 64 words: their own numbers, where nothing else is said. */
  readonly input?: (i: number) => number;
  readonly expected: (lane: number) => bigint | number;
}

const u32 = (value: number): number => value >>> 0;
const mul = (a: number, b: number): number => Math.imul(a, b) >>> 0;
/** 16 below the first number that does not fit. */
const nearEnd = 0xffff_fff0;

/** Of 64 bits, as which they are stored: a stride that is taken to hold shows. */
const sums: readonly Case[] = [
  {
    name: "a sum that wraps",
    metal: "r = ulong(x + lane);",
    given: [nearEnd],
    expected: (lane) => u32(nearEnd + lane),
  },
  {
    name: "the larger of two that are chosen",
    metal: "r = ulong((n != 0 ? x & 0xf0u : y) + lane);",
    given: [3, nearEnd],
    expected: (lane) => u32(nearEnd + lane),
  },
  {
    name: "the larger of two that are chosen the other way around",
    metal: "r = ulong((n == 0 ? x & 0xf0u : y) + lane);",
    given: [3, nearEnd, 1],
    expected: (lane) => u32(nearEnd + lane),
  },
  {
    name: "a small number that a loop makes large",
    metal: "uint s = x & 15u; for (uint k = 0; k < n; ++k) s = s * 5 - 16; r = ulong(s + lane);",
    given: [16, 0, 1],
    expected: (lane) => u32(nearEnd + lane),
  },
  {
    name: "a small number less a larger one",
    metal: "r = ulong((x & 15u) - y + lane);",
    given: [0, 16],
    expected: (lane) => u32(lane - 16),
  },
  {
    name: "a number shifted down whose sign comes with it",
    metal: "r = ulong(uint(int((x & 0xffffu) * 65521u) >> 27) + lane);",
    given: [32776],
    expected: (lane) => u32((Math.imul(32776, 65521) >> 27) + lane),
  },
  {
    name: "a number that becomes negative",
    metal: "r = ulong(long(int((x & 0x7fffffffu) + lane)));",
    given: [0x7fff_fff0],
    expected: (lane) => BigInt((0x7fff_fff0 + lane) | 0),
  },
  {
    name: "one that wraps, chosen, and not one that does not",
    metal: "r = n != 0 ? ulong(y) + lane : ulong(x + lane);",
    given: [nearEnd, 5],
    expected: (lane) => u32(nearEnd + lane),
  },
  {
    name: "one that wraps, from a loop, and not one that does not",
    metal: "r = ulong(y) + lane; for (uint k = 0; k < n; ++k) r = ulong(x * (k + 1) + lane);",
    given: [nearEnd, 5, 1],
    expected: (lane) => u32(nearEnd + lane),
  },
  {
    name: "which of two is less where one wraps",
    metal: "r = x + lane < y + lane;",
    given: [nearEnd, 5],
    expected: (lane) => Number(u32(nearEnd + lane) < 5 + lane),
  },
  {
    name: "whether two are equal where one wraps",
    metal: "r = ulong(x + lane) == ulong(y) + lane;",
    given: [nearEnd, nearEnd],
    expected: (lane) => Number(lane < 16),
  },
];

/** As often as a number that grows from lane to lane is below a bound: the last lane tells for all where none wraps. */
const loops: readonly Case[] = [
  {
    name: "lanes behind the largest number alone",
    metal: "for (uint k = x + lane; k < y; k += 32) r += k + 1;",
    given: [u32(-24), 100],
    expected: (lane) => {
      let sum = 0;
      for (let k = lane - 24; k >= 0 && k < 100; k += 32) sum += k + 1;
      return sum;
    },
  },
  {
    name: "lanes behind the largest positive number alone",
    metal: "for (int k = int(x + lane); k < int(y); k = int(uint(k) + 32)) r += uint(k) & 0xffu;",
    given: [0x7fff_fff0, u32(-0x7fff_ff00)],
    expected: (lane) => {
      let sum = 0;
      for (let k = (0x7fff_fff0 + lane) | 0; k < -0x7fff_ff00; k += 32) sum += k & 0xff;
      return sum;
    },
  },
];

const lowBits: readonly Case[] = [
  {
    name: "bits of a sum",
    metal: "r = (x + lane) & 31u;",
    given: [5],
    expected: (lane) => (5 + lane) & 31,
  },
  {
    name: "a sum without its low bits",
    metal: "r = (x + lane) & ~31u;",
    given: [5],
    expected: (lane) => (5 + lane) & ~31,
  },
  {
    name: "a sum shifted down",
    metal: "r = (x + lane) >> 5;",
    given: [5],
    expected: (lane) => (5 + lane) >> 5,
  },
  {
    name: "bits of a multiple of 32 less another number",
    metal: "r = ((x * 32 - y) + lane) & 63u;",
    given: [2, 1],
    expected: (lane) => (63 + lane) & 63,
  },
  {
    name: "bits of a multiple of 32, or of another number, chosen",
    metal: "r = ((n != 0 ? x * 32 : y) + lane) & 63u;",
    given: [2, 63],
    expected: (lane) => (63 + lane) & 63,
  },
  {
    name: "bits of a multiple of 32, and of another number from a loop on",
    metal: "uint s = x * 32; for (uint k = 0; k < n; ++k) s = (s ^ y) * 3; r = (s + lane) & 63u;",
    given: [2, 1, 1],
    expected: (lane) => (mul(64 ^ 1, 3) + lane) & 63,
  },
  {
    name: "three bits of a sum shifted down",
    metal: "r = (x + lane * 16) >> 2 & 0x38u;",
    given: [0x1234],
    expected: (lane) => ((0x1234 + lane * 16) >> 2) & 0x38,
  },
  {
    name: "a negative sum shifted down, without three bits",
    metal: "r = uint(int(x + lane * 16) >> 2 & ~7);",
    given: [nearEnd],
    expected: (lane) => u32((u32(nearEnd + lane * 16) >> 2) & ~7),
  },
  {
    name: "bits that a lane's number has already",
    metal: "r = lane | x;",
    given: [5],
    expected: (lane) => lane | 5,
  },
];

/** What eight or four neighbours share, by where they read. */
const runs: readonly Case[] = [
  {
    name: "which of two is less in a row where one wraps",
    metal: "r = in[x + (lane & 7) < y + (lane & 7)];",
    given: [u32(-4), 5],
    expected: (lane) => Number(u32(-4 + (lane & 7)) < 5 + (lane & 7)),
  },
  {
    name: "an eighth of a number that begins within eight",
    metal: "r = in[(x + lane) >> 3];",
    given: [5],
    expected: (lane) => (5 + lane) >> 3,
  },
  {
    name: "a sixteenth of three a lane",
    metal: "r = in[lane * 3 >> 4];",
    given: [0],
    expected: (lane) => (lane * 3) >> 4,
  },
  {
    name: "a sixteenth of three a lane in rows of eight",
    metal: "r = in[(in[lane >> 3] * 32 + (lane & 7) * 3) >> 4];",
    given: [0],
    expected: (lane) => ((lane >> 3) * 32 + (lane & 7) * 3) >> 4,
  },
  {
    name: "even numbers of a row",
    metal: "r = in[(in[lane >> 3] * 8 + (lane & 7)) & 0xfffeu];",
    given: [0],
    expected: (lane) => lane & ~1,
  },
  {
    name: "a row in another order",
    metal: "r = in[(in[lane >> 3] * 8 + (lane & 7)) ^ 2u];",
    given: [0],
    expected: (lane) => lane ^ 2,
  },
  {
    name: "half of the numbers of a row",
    metal: "r = in[((in[lane >> 3] & 15u) * 8 + (lane & 7)) >> 1];",
    given: [0],
    expected: (lane) => lane >> 1,
  },
  {
    name: "a row that wraps, widened, by those behind its end",
    metal: "if (y <= (lane & 7)) r = 1 + in[ulong(in[lane >> 3] * 8 + (lane & 7) + x)];",
    given: [u32(-4), 4],
    input: (i) => (i < 4 ? 0 : i),
    expected: (lane) => ((lane & 4) === 0 ? 0 : 1),
  },
  {
    name: "a row of few bits that wraps once all of them are turned",
    metal: `const uint v = (in[lane >> 3] & 3u) * 8 + (lane & 7);
  if (y <= (lane & 7)) r = 1 + in[ulong((v ^ 0xfffffff8u) + 4)];`,
    given: [0, 4],
    input: (i) => (i < 4 ? 0 : i),
    expected: (lane) => ((lane & 4) === 0 ? 0 : 1),
  },
  {
    name: "a quarter of a row's bytes, which wrap",
    metal: "const uint v = (in[lane >> 3] & ~3u) + (lane & 7) * 4; if (y <= (lane & 7)) r = 1 + in[v >> 2];",
    given: [0, 4],
    input: (i) => (i < 4 ? nearEnd : i),
    expected: (lane) => ((lane & 4) === 0 ? 0 : 1 + nearEnd),
  },
  {
    name: "a quarter of a row's bytes that begin below 0",
    metal: `const ulong v = ulong(long(int(x & 0xfffffff0u))) + (lane & 7) * 4;
  if (y <= (lane & 7)) r = 1 + in[v >> 2];`,
    given: [u32(-9), 4],
    expected: (lane) => ((lane & 4) === 0 ? 0 : 1 + (lane & 3)),
  },
];

const groups = { sums, loops, lowBits, runs };
const source = `#include <metal_stdlib>
using namespace metal;
${Object.entries(groups)
  .flatMap(([group, cases]) =>
    cases.map(
      ({ metal }, k) => `
kernel void ${group}_${k}(const device uint *given [[buffer(0)]], const device uint *in [[buffer(1)]],
                        device ulong *out [[buffer(2)]], uint i [[thread_position_in_grid]],
                        uint lane [[thread_index_in_simdgroup]]) {
  const uint x = given[0], y = given[1], n = given[2];
  ulong r = 0;
  ${metal}
  if (simd_any(x != 0xabcdefu)) out[i] = r;
}`,
    ),
  )
  .join("")}

kernel void multiples(device uint *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  const uint whole = i & ~31u, part = i & 31u, number = i >> 5;
  if (simd_any(i != ~0u)) out[3 * i] = whole, out[3 * i + 1] = part, out[3 * i + 2] = number;
}`;

const device = Device.open();
device.registerSource("wraps.metal", source);

/** Whole SIMD groups, and one that lacks lanes. */
const counts = [64, 40];

for (const [group, cases] of Object.entries(groups)) {
  describe(group, () => {
    test.each(cases.map((each, k) => [each.name, each, `${group}_${k}`] as const))("%s", (_, each, kernel) => {
      using given = device.tensor("u32", [3]).set([0, 1, 2].map((k) => each.given[k] ?? 0));
      using input = device.tensor("u32", [64]).set(Array.from({ length: 64 }, (_, i) => each.input?.(i) ?? i));
      for (const threads of counts) {
        using out = device.tensor("u64", [threads]);
        runOnVectors(device, kernel, [given, input, out], threads);
        const wanted = Array.from({ length: threads }, (_, i) => BigInt.asUintN(64, BigInt(each.expected(i % 32))));
        expect({ threads, values: [...out.view()] as unknown[] }).toEqual({ threads, values: wanted });
      }
    });
  });
}

test("multiples of 32 in threadgroups that do not begin at one", () => {
  const threads = 75;
  using out = device.tensor("u32", [3 * threads]);
  using pass = device.pass();
  pass.dispatch(device.pipeline("multiples"), { buffers: [out], grid: threads, threads: 50 });
  pass.commitAndWait();
  expect([...out.view()] as unknown[]).toEqual(
    Array.from({ length: threads }, (_, i) => [i - (i % 32), i % 32, Math.floor(i / 32)]).flat(),
  );
});
