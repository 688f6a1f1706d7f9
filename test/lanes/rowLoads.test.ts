/** Words that lanes read at places of a row that 32, 16 or 8 of them share, a number of bits from lane to lane that memory
 * tells: near enough for a register or not, backwards, by some of the lanes, where pages and a buffer end. */
import { afterAll, describe, expect, test } from "bun:test";
import { Device, type Tensor } from "../../src/index.ts";

const threads = 80; // Two SIMD groups and a half.
const page = 4096;
const length = 3 * page;
const steps = [1, 12, 24, 40, 48, 64, 66, 68, 124, 512];

/** Where lane number `lane` of those that share a row reads, in bits, and which lanes do. */
const kinds = {
  all: { bit: "lane * step", reads: "true" },
  backwards: { bit: "(sharing - 1 - lane) * step", reads: "true" },
  "the second half": { bit: "lane * step", reads: "(index & 16) != 0" },
  "odd lanes": { bit: "lane * step", reads: "index % 2 == 1" },
  "whole words": { bit: "lane * step & ~31u", reads: "true" },
} as const;
type Kind = keyof typeof kinds;
const names = Object.keys(kinds) as Kind[];
const bitOf: Record<Kind, (lane: number, step: number, sharing: number) => number> = {
  all: (lane, step) => lane * step,
  backwards: (lane, step, sharing) => (sharing - 1 - lane) * step,
  "the second half": (lane, step) => lane * step,
  "odd lanes": (lane, step) => lane * step,
  "whole words": (lane, step) => Math.floor((lane * step) / 32) * 32,
};
const reads: Record<Kind, (index: number) => boolean> = {
  all: () => true,
  backwards: () => true,
  "the second half": (index) => (index & 16) !== 0,
  "odd lanes": (index) => index % 2 === 1,
  "whole words": () => true,
};

const source = `#include <metal_stdlib>
using namespace metal;
${[32, 16, 8]
  .flatMap((sharing) =>
    names.map(
      (kind) => `
kernel void row_${sharing}_${names.indexOf(kind)}(
    const device uchar *bytes [[buffer(0)]], const device uint *settings [[buffer(1)]], device uint *out [[buffer(2)]],
    uint index [[thread_position_in_threadgroup]]) {
  // With a function of lanes, so that they run together.
  const uint step = settings[0] & simd_and(~0u), rowBytes = settings[1], sharing = ${sharing};
  const uint lane = index % sharing;
  const device uchar *row = bytes + index / sharing * rowBytes;
  uint word = 7;
  if (${kinds[kind].reads}) {
    const uint start = (${kinds[kind].bit}) / 16;
    ${
      kind === "whole words"
        ? "word = *(const device uint *)(row + 2 * start);"
        : "const packed_ushort2 words = *(const device packed_ushort2 *)(row + 2 * start); word = uint(words[0]) | uint(words[1]) << 16;"
    }
  }
  out[index] = word;
}`,
    ),
  )
  .join("")}`;

const isOnVectors = process.platform === "linux" && process.env["SOFTMETAL_EXECUTOR"] !== "threads";
const device = Device.open();
afterAll(() => device.dispose());
device.registerSource("row_loads.metal", source);
const bytes = device.tensor("u8", [length]);
bytes.set(Uint8Array.from({ length }, (_, i) => Math.imul(i + 1, 2654435761) >>> 24));
const view = new DataView(bytes.bytes.buffer, bytes.bytes.byteOffset, length);

/** What the threads read of rows one behind the other, the first of them at byte `first`. */
function read(kind: Kind, sharing: number, step: number, first: number, rowBytes: number): number[] {
  using settings = device.tensor("u32", [2]).set([step, rowBytes]);
  using out = device.tensor("u32", [threads]);
  using from: Tensor<"u8"> = bytes.slice(first, length);
  using pipeline = device.pipeline(`row_${sharing}_${names.indexOf(kind)}`);
  if (isOnVectors) expect(pipeline.executor).toBe("vectors");
  using pass = device.pass();
  pass.dispatch(pipeline, { buffers: [from, settings, out], grid: threads, threads });
  pass.commitAndWait();
  return [...out.view()];
}

describe.each([32, 16, 8])("rows of %i lanes", (sharing) => {
  test.each(names)("read by %s", (kind) => {
    for (const step of steps) {
      // Rows of whole words of 32 bits, as long as the last lane's word needs.
      const rowBytes = 4 * Math.ceil(((sharing - 1) * step + 48) / 32);
      const extent = Math.ceil(threads / sharing) * rowBytes;
      // At the end of the buffer, and with a page's end at places all over the first row.
      const ends = Array.from({ length: 18 }, (_, i) => page - 4 * Math.floor((i * (rowBytes + 128)) / 68));
      for (const first of [length - extent, ...ends.filter((at) => at >= 0 && at + extent <= length)]) {
        const expected = Array.from({ length: threads }, (_, index) => {
          if (!reads[kind](index)) return 7;
          const bit = bitOf[kind](index % sharing, step, sharing);
          return view.getUint32(first + Math.floor(index / sharing) * rowBytes + 2 * Math.floor(bit / 16), true);
        });
        expect({ step, first, words: read(kind, sharing, step, first, rowBytes) }).toEqual({
          step,
          first,
          words: expected,
        });
      }
    }
  });
});
