/** Words that lanes read at places of a row that 32, 16 or 8 of them share, a number of bits from lane to lane that memory
 * tells: near enough for a register or not, backwards, by some of the lanes, where pages and a buffer end. */
import { afterAll, describe, expect, test } from "bun:test";
import { Device } from "../../src/index.ts";
import { runOnVectors } from "./dispatch.ts";

const threads = 80; // Two SIMD groups and a half.
const page = 4096;
const length = 3 * page;
const steps = [1, 12, 24, 40, 48, 64, 66, 68, 124, 512];

/** Where lane number `lane` of those that share a row reads, in bits. */
const places = {
  "step by step": { text: "lane * step", of: (lane: number, step: number) => lane * step, isOfWords: false },
  backwards: {
    text: "(sharing - 1 - lane) * step",
    of: (lane: number, step: number, sharing: number) => (sharing - 1 - lane) * step,
    isOfWords: false,
  },
  "in whole words": {
    text: "lane * step & ~31u",
    of: (lane: number, step: number) => lane * step - ((lane * step) % 32),
    isOfWords: true,
  },
  "side by side": { text: "lane * 32", of: (lane: number) => lane * 32, isOfWords: true },
  // A quotient is made for lanes alone that ask for it.
  "of a row found by them": {
    text: "lane * step",
    of: (lane: number, step: number) => lane * step,
    isOfWords: false,
    isFound: true,
  },
};
/** Which lanes read. */
const readers = {
  all: { text: "true", are: () => true },
  "the second half": { text: "(index & 16) != 0", are: (index: number) => (index & 16) !== 0 },
  "the odd ones": { text: "index % 2 == 1", are: (index: number) => index % 2 === 1 },
  "most of a row": {
    text: "lane < sharing / 4 * 3 - 1",
    are: (index: number, sharing: number) => index % sharing < (sharing / 4) * 3 - 1,
  },
};
const cases = Object.values(places).flatMap((place, i) =>
  Object.values(readers).map((reader, j) => ({
    how: `${Object.keys(places)[i]} by ${Object.keys(readers)[j]}`,
    kernel: `read_${i}_${j}`,
    place,
    reader,
  })),
);
const sharings = [32, 16, 8];

const source = `#include <metal_stdlib>
using namespace metal;
${sharings
  .flatMap((sharing) =>
    cases.map(
      ({ kernel, place, reader }) => `
kernel void ${kernel}_${sharing}(
    const device uchar *bytes [[buffer(0)]], const device uint *settings [[buffer(1)]], device uint *out [[buffer(2)]],
    uint index [[thread_position_in_threadgroup]]) {
  // With a function of lanes, so that they run together.
  const uint step = settings[0] & simd_and(~0u), rowBytes = settings[1], sharing = ${sharing};
  const uint lane = index % sharing;
  const device uchar *row = bytes + index / sharing * rowBytes;
  uint word = 7;
  if (${reader.text}) {
    const uint start = (${place.text}) / 16;${"isFound" in place ? "row = bytes + index / sharing * 2 / settings[2] * rowBytes;" : ""}
    ${
      place.isOfWords
        ? "word = ((const device uint *)row)[start / 2];"
        : "const packed_ushort2 words = *(const device packed_ushort2 *)(row + 2 * start); word = uint(words[0]) | uint(words[1]) << 16;"
    }
  }
  out[index] = word;
}`,
    ),
  )
  .join("")}`;

const device = Device.open();
afterAll(() => device.dispose());
device.registerSource("row_loads.metal", source);
const bytes = device.tensor("u8", [length]);
bytes.set(Uint8Array.from({ length }, (_, i) => Math.imul(i + 1, 2654435761) >>> 24));
const view = new DataView(bytes.bytes.buffer, bytes.bytes.byteOffset, length);

/** What the threads read of rows one behind the other, the first of them at byte `first`. */
function read(kernel: string, step: number, first: number, rowBytes: number): number[] {
  using settings = device.tensor("u32", [3]).set([step, rowBytes, 2]);
  using out = device.tensor("u32", [threads]);
  using from = bytes.slice(first, length);
  runOnVectors(device, kernel, [from, settings, out], threads);
  return [...out.view()];
}

describe.each(sharings)("rows of %i lanes are read", (sharing) => {
  test.each(cases)("$how", ({ kernel, place, reader }) => {
    for (const step of steps) {
      // Rows of whole words of 32 bits, as long as the farthest lane's word needs.
      const farthest = Math.max(...[0, sharing - 1].map((lane) => place.of(lane, step, sharing)));
      const rowBytes = 4 * Math.ceil((farthest + 48) / 32);
      const extent = Math.ceil(threads / sharing) * rowBytes;
      // At the end of the buffer, and with a page's end at places all over the first row.
      const ends = Array.from({ length: 18 }, (_, i) => page - 4 * Math.floor((i * (rowBytes + 128)) / 68));
      for (const first of [length - extent, ...ends.filter((at) => at >= 0 && at + extent <= length)]) {
        const expected = Array.from({ length: threads }, (_, index) => {
          if (!reader.are(index, sharing)) return 7;
          const word = 2 * Math.floor(place.of(index % sharing, step, sharing) / 16);
          return view.getUint32(first + Math.floor(index / sharing) * rowBytes + word, true);
        });
        expect({ step, first, words: read(`${kernel}_${sharing}`, step, first, rowBytes) }).toEqual({
          step,
          first,
          words: expected,
        });
      }
    }
  });
});
