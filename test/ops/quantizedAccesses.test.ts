import { afterAll, describe, expect, test } from "bun:test";
import { Device, dequantizeKv, hadamardQuantizeKv, hadamardQuantizeKvSeq, type Tensor } from "../../src/index.ts";

// Barriers follow from the bytes that a dispatch is known to read and to write.

const device = Device.open();
afterAll(() => device.dispose());

/** Milliseconds for a test that may compile kernels. */
const timeout = 60_000;

const [nKvHeads, capacity, headDim, tokens] = [2, 5, 512, 4];
const [rowBytes, normBytes] = [headDim / 2, 8];

function cache() {
  return {
    packed: device.tensor("u8", [nKvHeads, capacity, rowBytes]),
    norms: device.tensor("f32", [nKvHeads, capacity, normBytes / 4]),
  };
}
const [k, v] = [cache(), cache()];
const src = device.tensor("f32", [tokens, nKvHeads, headDim]);
const token = src.slice(1, 2).reshape([nKvHeads, headDim]);
const scratch = device.tensor("f32", [nKvHeads, headDim]);
const [outK, outV] = [1, 2].map(() => device.tensor("f32", [nKvHeads, 2, headDim])) as [Tensor<"f32">, Tensor<"f32">];
const bits = 4;

/** Offset and length of slots `first` to `end` - 1 of all heads, the rows between included. */
const slots = (first: number, end: number, row: number) => [
  first * row,
  (capacity * (nKvHeads - 1) + end - first) * row,
];
const vector = 4 * nKvHeads * headDim;

/** The ranges of the last dispatch, without their buffers. */
function ranges(encode: (pass: ReturnType<Device["pass"]>) => void) {
  using pass = device.pass();
  encode(pass);
  const [dispatch] = pass.describe().slice(-1);
  const plain = (list: readonly { offset: number; length: number }[] = []) =>
    list.map(({ offset, length }) => [offset, length]);
  return { reads: plain(dispatch?.reads), writes: plain(dispatch?.writes) };
}

describe("bytes read and written", () => {
  test(
    "one token, with a probe",
    () => {
      expect(
        ranges((pass) => hadamardQuantizeKv(pass, { src: token, ...k, bits, writePos: 3, rmsScratch: scratch })),
      ).toEqual({
        reads: [[vector, vector]],
        writes: [slots(3, 4, rowBytes), slots(3, 4, normBytes), [0, vector]],
      });
    },
    timeout,
  );

  test(
    "K and V of some tokens of a source",
    () => {
      const streams = { k: { src, ...k }, v: { src, ...v } };
      const call = { ...streams, bits, writePosStart: 1, srcTokOffset: 2, nTokens: 2 } as const;
      const written = [slots(1, 3, rowBytes), slots(1, 3, normBytes)];
      expect(ranges((pass) => hadamardQuantizeKvSeq(pass, call))).toEqual({
        reads: Array(2).fill([2 * vector, 2 * vector]),
        writes: [...written, ...written],
      });
    },
    timeout,
  );

  test(
    "tokens that wrap around a ring: to the end of the cache, and from its start",
    () => {
      const call = { src, ...k, bits, writePosStart: capacity + 3, nTokens: 4, isSliding: true } as const;
      const wrapped = (row: number) => [
        [3 * row, (nKvHeads * capacity - 3) * row],
        [0, 2 * row],
      ];
      expect(ranges((pass) => hadamardQuantizeKvSeq(pass, call)).writes).toEqual([
        ...wrapped(rowBytes),
        ...wrapped(normBytes),
      ]);
    },
    timeout,
  );

  test(
    "decoding",
    () => {
      const streams = { k: { ...k, out: outK }, v: { ...v, out: outV } };
      const read = [slots(2, 4, rowBytes), slots(2, 4, normBytes)];
      expect(ranges((pass) => dequantizeKv(pass, { ...streams, bits, readPosStart: 2 }))).toEqual({
        reads: [...read, ...read],
        writes: Array(2).fill([0, 2 * vector]),
      });
    },
    timeout,
  );
});

test(
  "a barrier before what reads or rewrites the same slots, and none before others",
  () => {
    using pass = device.pass();
    hadamardQuantizeKvSeq(pass, { src, ...k, bits, writePosStart: 0, nTokens: 2 });
    hadamardQuantizeKvSeq(pass, { src, ...v, bits, writePosStart: 0, nTokens: 2 });
    dequantizeKv(pass, { ...k, out: outK, bits });
    dequantizeKv(pass, { ...v, out: outV, bits });
    hadamardQuantizeKv(pass, { src: token, ...k, bits, writePos: 0 });
    expect(pass.describe().map(({ barrierBefore }) => barrierBefore)).toEqual([false, false, true, false, true]);
  },
  timeout,
);
