/** Tables of 256 numbers that lanes look bytes of words up in, over and over: in all kinds of memory, all four bytes or some
 * of them, by some of the lanes, at places of a buffer that pages end in, and while the table changes. */
import { afterAll, describe, expect, test } from "bun:test";
import { Device } from "../../src/index.ts";
import { runOnVectors } from "./dispatch.ts";

const threads = 80; // Two SIMD groups and a half.
const turns = 3;
const size = 256;
const page = 4096;

const numberAt = (i: number): number => (i * 2654435) % 65521;
const wordOf = (thread: number, turn: number): number => Math.imul(thread + 1 + 100 * turn, 2654435761) >>> 0;
/** The table after a change: number 7 of it becomes more. */
const changeBy = 70000;

/** What a thread adds up of a word: `at(k)` is the table at byte k of it. */
const asked = {
  "all bytes": { text: "at(0) + 3 * at(1) + 5 * at(2) + 7 * at(3)", weights: [1, 3, 5, 7] },
  "bytes out of order, one twice": { text: "at(3) * 7 + at(1) + at(0) * 2 + at(1)", weights: [2, 2, 0, 7] },
  "two bytes": { text: "at(2) + 9 * at(3)", weights: [0, 0, 1, 9] },
  "one byte": { text: "4 * at(2)", weights: [0, 0, 4, 0] },
};
/** Which threads look up. */
const readers = {
  "by all": { text: "true", are: () => true },
  "by the odd ones": { text: "index % 2 == 1", are: (thread: number) => thread % 2 === 1 },
};
/** When the table changes: before which turns. Threads wait for each other around it. */
const changes = {
  "as it stays": { text: "false", before: () => false },
  "that changes before the second of two loops": {
    text: "turn == 0 && loop == 1",
    before: (turn: number) => turn === 3,
  },
  "that changes in each turn": { text: "true", before: () => true },
};
/** Where the table is: what makes `table` of what is given, and where a change is made. */
const memories = {
  device: { text: "device uint *table = given;" },
  member: { text: "device uint *table = ((device Member *)(given - 3))->table;" },
  threadgroup: {
    text: `threadgroup uint before[3], table[${size}];
  before[index % 3] = 0;
  for (uint i = index; i < ${size}; i += ${threads}) table[i] = given[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);`,
  },
  thread: { text: `uint table[${size}];\n  for (uint i = 0; i < ${size}; i++) table[i] = given[i];`, isOwn: true },
};

const cases = Object.entries(memories).flatMap(([memory, of], a) =>
  Object.entries(changes).flatMap(([change, at], b) =>
    Object.entries(asked).flatMap(([bytes, look], c) =>
      Object.entries(readers).map(([by, reader], d) => ({
        how: `${bytes} in ${memory} memory, ${by}, ${change}`,
        kernel: `bytes_${a}_${b}_${c}_${d}`,
        text: of.text,
        changer: "isOwn" in of ? "true" : "index == 0",
        at,
        look,
        reader,
      })),
    ),
  ),
);

const source = `#include <metal_stdlib>
using namespace metal;
struct Member { uint before[3], table[${size}]; };
${cases
  .map(
    ({ kernel, text, changer, at, look, reader }) => `
kernel void ${kernel}(device uint *given [[buffer(0)]], const device uint *words [[buffer(1)]],
    const device uint *settings [[buffer(2)]], device uint *out [[buffer(3)]],
    uint index [[thread_position_in_threadgroup]]) {
  ${text}
  uint sum = 0;
  // With a function of lanes, so that they run together.
  const uint turns = settings[0] & simd_and(~0u);
  for (uint loop = 0; loop < 2; loop++) {
    for (uint turn = 0; turn < turns; turn++) {
      ${
        at.text === "false"
          ? ""
          : `if (${at.text}) {
        threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
        if (${changer}) table[7] += ${changeBy};
        threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
      }`
      }
      const uint word = words[(loop * turns + turn) * ${threads} + index];
#define at(k) table[word >> 8 * k & 255]
      if (${reader.text}) sum = sum * 31 + ${look.text};
#undef at
    }
  }
  out[index] = sum;
}`,
  )
  .join("")}`;

const device = Device.open();
afterAll(() => device.dispose());
device.registerSource("byte_tables.metal", source);

// A seventh of the words asks for the number that changes.
const words = Uint32Array.from({ length: 2 * turns * threads }, (_, i) =>
  i % 7 === 0 ? 0x07070707 : wordOf(i % threads, Math.floor(i / threads)),
);

/** What each thread adds up. */
function expectedOf({ at, look, reader }: (typeof cases)[number]): number[] {
  const table = Uint32Array.from({ length: size }, (_, i) => numberAt(i));
  const sums = new Uint32Array(threads);
  for (let turn = 0; turn < 2 * turns; turn++) {
    if (at.before(turn)) table[7] = (table[7] as number) + changeBy;
    for (let thread = 0; thread < threads; thread++) {
      if (!reader.are(thread)) continue;
      const word = words[turn * threads + thread] as number;
      const found = look.weights.map((weight, k) => weight * (table[(word >>> (8 * k)) & 255] as number));
      sums[thread] = found.reduce((sum, each) => sum + each, Math.imul(sums[thread] as number, 31));
    }
  }
  return Array.from(sums);
}

describe("a table is asked for", () => {
  test.each(cases)("$how", (each) => {
    using given = device.tensor("u32", [words.length]).set(words);
    using settings = device.tensor("u32", [1]).set([turns]);
    using out = device.tensor("u32", [threads]);
    // At the end of a buffer, and with a page's end in the table.
    const length = (2 * page) / 4;
    for (const first of [3, 4, page / 4 - 250, page / 4 - 256, page / 4 - 8, length - size]) {
      using buffer = device.tensor("u32", [length]);
      using table = buffer.slice(first, first + size).set(Array.from({ length: size }, (_, i) => numberAt(i)));
      runOnVectors(device, each.kernel, [table, given, settings, out], threads);
      expect({ first, sums: Array.from(out.view()) }).toEqual({ first, sums: expectedOf(each) });
    }
  });
});
