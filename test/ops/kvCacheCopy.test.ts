import { describe, expect, test } from "bun:test";
import { type Device, type KvCacheCopyArgs, kvCacheCopy } from "../../src/index.ts";
import { type FloatName, referenceKvCacheCopy } from "../../src/reference/index.ts";
import { runOneDispatch, TestStream } from "../helpers/copies.ts";
import { oneAndTwoThreads } from "../helpers/devices.ts";
import { testTable } from "../helpers/table.ts";

const devices = oneAndTwoThreads();

const kernels: Readonly<Record<string, string>> = {
  bf16: "kv_cache_copy",
  f32: "kv_cache_copy_f32",
  f16: "kv_cache_copy_f16",
};

interface CopyCase {
  readonly name: string;
  readonly rowSize: number;
  /** Rows in the source. */
  readonly rows: number;
  readonly nNew?: number;
  readonly cacheCap: number;
  readonly writePos: number;
  readonly isSliding?: boolean;
  readonly srcOffset?: number;
  readonly cacheOffset?: number;
}

const rowSizes = [1, 2, 3, 4, 5, 6, 7, 8, 12, 20, 31, 64, 127, 128, 255, 257, 1024];
const offsets = [0, 1, 2, 3, 4, 5];

const cases: readonly CopyCase[] = [
  ...rowSizes.flatMap((rowSize): CopyCase[] => [
    { name: `linear, rows of ${rowSize}`, rowSize, rows: 3, cacheCap: 5, writePos: 1 },
    { name: `ring that wraps, rows of ${rowSize}`, rowSize, rows: 3, cacheCap: 5, writePos: 4, isSliding: true },
    { name: `one token, rows of ${rowSize}`, rowSize, rows: 1, cacheCap: 3, writePos: 2 },
  ]),
  ...offsets.flatMap((srcOffset) =>
    offsets.map((cacheOffset): CopyCase => {
      const name = `source ${srcOffset} and cache ${cacheOffset} elements into their buffers`;
      return { name, rowSize: 8, rows: 3, cacheCap: 4, writePos: 2, isSliding: true, srcOffset, cacheOffset };
    }),
  ),
  { name: "odd rows at odd offsets", rowSize: 9, rows: 4, cacheCap: 5, writePos: 1, srcOffset: 3, cacheOffset: 1 },
  { name: "linear, the first slot", rowSize: 4, rows: 1, cacheCap: 4, writePos: 0 },
  { name: "linear, to the very end", rowSize: 4, rows: 3, cacheCap: 4, writePos: 1 },
  { name: "linear, the whole cache", rowSize: 4, rows: 4, cacheCap: 4, writePos: 0 },
  { name: "a cache of one slot", rowSize: 6, rows: 1, cacheCap: 1, writePos: 0 },
  { name: "fewer tokens than the source has", rowSize: 4, rows: 5, nNew: 2, cacheCap: 4, writePos: 2 },
  { name: "isSliding without a wrap", rowSize: 4, rows: 2, cacheCap: 6, writePos: 3, isSliding: true },
  { name: "a ring of one slot", rowSize: 4, rows: 1, cacheCap: 1, writePos: 7, isSliding: true },
  { name: "the last slot of a ring, then the first", rowSize: 4, rows: 2, cacheCap: 7, writePos: 6, isSliding: true },
  { name: "a whole ring from its middle", rowSize: 4, rows: 7, cacheCap: 7, writePos: 3, isSliding: true },
  { name: "a position many turns on", rowSize: 4, rows: 3, cacheCap: 5, writePos: 5 * 1000 + 4, isSliding: true },
  { name: "the largest positions", rowSize: 4, rows: 3, cacheCap: 7, writePos: 2 ** 32 - 4, isSliding: true },
  { name: "work for many threads", rowSize: 1024, rows: 200, cacheCap: 220, writePos: 1000, isSliding: true },
  { name: "more elements than one threadgroup", rowSize: 1000, rows: 9, cacheCap: 11, writePos: 5, isSliding: true },
];

function check(device: Device, dtype: FloatName, entry: CopyCase, seed: number): void {
  const { rowSize, rows, cacheCap, writePos, isSliding, nNew, srcOffset, cacheOffset } = entry;
  const shapes = { srcShape: [rows, rowSize], cacheShape: [cacheCap, rowSize] };
  const stream = new TestStream(device, { from: dtype, to: dtype, ...shapes, srcOffset, cacheOffset, seed });
  const args: KvCacheCopyArgs = {
    src: stream.src,
    cache: stream.cache,
    writePos,
    ...(isSliding === undefined ? {} : { isSliding }),
    ...(nNew === undefined ? {} : { nNew }),
  };
  for (let repeat = 0; repeat < 2; repeat++) {
    stream.reset();
    runOneDispatch(device, kernels[dtype] as string, (pass) => kvCacheCopy(pass, args));
    stream.expectCopied((reference) =>
      referenceKvCacheCopy(reference, {
        writePos,
        rowSize,
        nNew: nNew ?? rows,
        cacheCap,
        isSliding: isSliding ?? false,
      }),
    );
  }
}

for (const dtype of ["bf16", "f32", "f16"] as const) {
  testTable(`kvCacheCopy, ${dtype}`, cases, (entry) => {
    for (const [index, device] of devices.entries()) check(device, dtype, entry, index + 1);
  });
}

describe("kvCacheCopy", () => {
  const [device] = devices;

  test("no token: success without a dispatch", () => {
    const stream = new TestStream(device, { from: "f32", to: "f32", srcShape: [2, 4], cacheShape: [3, 4], seed: 1 });
    const { src, cache } = stream;
    using pass = device.pass();
    kvCacheCopy(pass, { src, cache, writePos: 0, nNew: 0 });
    kvCacheCopy(pass, { src: src.slice(0, 0), cache, writePos: 1 });
    kvCacheCopy(pass, { src, cache, writePos: 3, nNew: 0 });
    kvCacheCopy(pass, { src, cache, writePos: 2, nNew: 0, isSliding: true });
    kvCacheCopy(pass, { src: src.slice(0, 0).reshape([2, 0]), cache: cache.slice(0, 0).reshape([3, 0]), writePos: 1 });
    expect(pass.describe()).toEqual([]);
    pass.commitAndWait();
    stream.expectUntouched();
  });

  test("two copies of one pass into the same cache happen in order", () => {
    const plan = { from: "bf16", to: "bf16", srcShape: [4, 12], cacheShape: [4, 12], seed: 3 } as const;
    const stream = new TestStream(device, plan);
    const { src, cache } = stream;
    using pass = device.pass();
    for (let turn = 0; turn < 50; turn++) kvCacheCopy(pass, { src, cache, writePos: turn, isSliding: true });
    expect(pass.describe().length).toBe(50);
    pass.commitAndWait();
    const params = { writePos: 49, rowSize: 12, nNew: 4, cacheCap: 4, isSliding: true };
    stream.expectCopied((reference) => referenceKvCacheCopy(reference, params));
  });

  test("describe names the bytes read and written", () => {
    const stream = new TestStream(device, {
      from: "f16",
      to: "f16",
      srcShape: [3, 10],
      cacheShape: [6, 10],
      srcOffset: 5,
      cacheOffset: 3,
      seed: 4,
    });
    using pass = device.pass();
    kvCacheCopy(pass, { src: stream.src, cache: stream.cache, writePos: 2, nNew: 2 });
    const [dispatch] = pass.describe();
    const within = (
      range: { offset: number; length: number } | undefined,
      tensor: { byteOffset: number; byteLength: number },
    ) =>
      range !== undefined &&
      range.offset >= tensor.byteOffset &&
      range.offset + range.length <= tensor.byteOffset + tensor.byteLength;
    expect(dispatch?.reads.length).toBe(1);
    expect(dispatch?.writes.length).toBe(1);
    expect(within(dispatch?.reads[0], stream.src)).toBe(true);
    expect(within(dispatch?.writes[0], stream.cache)).toBe(true);
  });
});
