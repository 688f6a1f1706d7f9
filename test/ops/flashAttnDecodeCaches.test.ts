import { afterAll, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { normalArray } from "../../scripts/lib/random.ts";
import {
  type DecodeCache,
  Device,
  type DType,
  flashAttnDecode,
  hadamardQuantizeKv,
  hadamardQuantizeKvSeq,
  kvCacheBytes,
  kvCacheCopyBatch,
  kvCacheCopySeq,
  type Pass,
  type Tensor,
} from "../../src/index.ts";
import { readSafetensors, type SafetensorsDType, writeSafetensors } from "../../src/safetensors/index.ts";

// Decode attention over a cache that the library wrote gives the same bits however the cache was appended to, and
// after it was saved and loaded.

const device = Device.open();
afterAll(() => device.dispose());

const [heads, kvHeads, headDim, length, window] = [4, 2, 64, 290, 270];
/** Slots of a cache in a line, and of a ring, which wraps and holds the window. */
const [capacity, ringCapacity] = [300, 272];
const values = (count: number, seed: number) => normalArray(count, 1, seed);
const q = device.tensor("f32", [heads, 1, headDim]).set(values(heads * headDim, 3));

/** Values of all tokens, [length, kvHeads, headDim]. */
const source = (seed: number) =>
  device.tensor("f32", [length, kvHeads, headDim]).set(values(length * kvHeads * headDim, seed));
const sources = [source(1), source(2)] as const;
const [srcK, srcV] = sources;
const token = (src: Tensor<"f32">, position: number) => src.slice(position, position + 1).reshape([kvHeads, headDim]);

type Storage = "f32" | "f16" | "bf16" | 2 | 3 | 4 | 5 | 6 | 8;

/** K or V without a token, each byte of it set. */
function emptyCache(storage: Storage, slots: number): DecodeCache {
  if (typeof storage === "string") {
    const rows = device.tensor(storage, [kvHeads, slots, headDim]);
    rows.bytes.fill(0xff);
    return rows;
  }
  const { bytesPerRow, normsPerPos } = kvCacheBytes({ headDim, nKvHeads: kvHeads, capacity: slots, bits: storage });
  const packed = device.tensor("u8", [kvHeads, slots, bytesPerRow]);
  packed.bytes.fill(0xff);
  const norms = device.tensor("f32", [kvHeads, slots, normsPerPos]);
  norms.bytes.fill(0xff);
  return { packed, norms, bits: storage };
}

/** Appends `tokens` tokens from `first` on, one by the operation for a token. */
function append(pass: Pass, k: DecodeCache, v: DecodeCache, first: number, tokens: number, isSliding: boolean): void {
  const run = { srcTokOffset: first, nTokens: tokens, isSliding };
  if ("packed" in k && "packed" in v) {
    const [{ bits, ...codesK }, { bits: _same, ...codesV }] = [k, v];
    if (tokens === 1) {
      const [ofK, ofV] = [token(srcK, first), token(srcV, first)];
      const streams = { k: { src: ofK, ...codesK }, v: { src: ofV, ...codesV } };
      hadamardQuantizeKv(pass, { ...streams, bits, writePos: first, isSliding });
    } else {
      const streams = { k: { src: srcK, ...codesK }, v: { src: srcV, ...codesV } };
      hadamardQuantizeKvSeq(pass, { ...streams, bits, writePosStart: first, ...run });
    }
  } else if (!("packed" in k || "packed" in v)) {
    if (tokens === 1) {
      const streams = { k: { src: token(srcK, first), cache: k }, v: { src: token(srcV, first), cache: v } };
      kvCacheCopyBatch(pass, { ...streams, seqPos: first, isSliding });
    } else {
      kvCacheCopySeq(pass, { k: { src: srcK, cache: k }, v: { src: srcV, cache: v }, seqPosStart: first, ...run });
    }
  }
}

/** K and V with all tokens, appended in runs of these lengths, the last one as often as it takes. */
function filled(storage: Storage, runs: readonly number[], isSliding = false): readonly [DecodeCache, DecodeCache] {
  const slots = isSliding ? ringCapacity : capacity;
  const [k, v] = [emptyCache(storage, slots), emptyCache(storage, slots)];
  using pass = device.pass();
  let first = 0;
  for (let i = 0; first < length; i++) {
    const tokens = Math.min(runs[Math.min(i, runs.length - 1)] as number, length - first);
    append(pass, k, v, first, tokens, isSliding);
    first += tokens;
  }
  pass.commitAndWait();
  return [k, v];
}

/** The bits of the attention over K and V. */
function bitsOver([k, v]: readonly [DecodeCache, DecodeCache], isSliding = false): string {
  const [out, lse] = [device.tensor("f32", [heads, 1, headDim]), device.tensor("f32", [heads, 1])];
  using pass = device.pass();
  flashAttnDecode(pass, { q, k, v, out, lse, seqLen: length, isSliding, window });
  pass.commitAndWait();
  expect(out.toFloat32Array().every(Number.isFinite)).toBe(true);
  return [out, lse].map(({ bytes }) => Buffer.from(bytes).toString("hex")).join(" ");
}

const storages: readonly Storage[] = ["f32", "f16", "bf16", 2, 3, 4, 5, 6, 8];

test.each(storages)("appended in any runs, to a line or a ring, in %p", (storage) => {
  const expected = bitsOver(filled(storage, [length]));
  for (const runs of [[1], [256, 1], [33, 200, 57], [100, 1, 1, 90]]) {
    expect(bitsOver(filled(storage, runs))).toBe(expected);
    expect(bitsOver(filled(storage, runs, true), true)).toBe(expected);
  }
});

const fileDtypes: Partial<Record<DType, SafetensorsDType>> = { f32: "F32", f16: "F16", bf16: "BF16", u8: "U8" };

/** The same memory of another tensor, out of a file. */
async function reloaded(path: string, caches: readonly DecodeCache[]): Promise<DecodeCache[]> {
  const parts = (cache: DecodeCache) => ("packed" in cache ? [cache.packed, cache.norms] : [cache]);
  const tensors = caches.flatMap((cache, i) =>
    parts(cache).map(({ dtype, shape, bytes }, j) => {
      return [
        `${i}.${j}`,
        { dtype: fileDtypes[dtype] as SafetensorsDType, shape, bytes: new Uint8Array(bytes) },
      ] as const;
    }),
  );
  await writeSafetensors(path, { tensors: new Map(tensors) });
  const file = await readSafetensors(path);
  const load = <T extends DType>(name: string, { dtype }: Tensor<T>): Tensor<T> => {
    const saved = file.tensors.get(name);
    if (saved === undefined) throw new Error(`the file has no ${name}`);
    expect(saved.dtype).toBe(fileDtypes[dtype] as SafetensorsDType);
    const tensor = device.tensor(dtype, saved.shape);
    tensor.bytes.set(saved.bytes);
    return tensor;
  };
  return caches.map((cache, i) =>
    "packed" in cache
      ? { ...cache, packed: load(`${i}.0`, cache.packed), norms: load(`${i}.1`, cache.norms) }
      : load(`${i}.0`, cache),
  );
}

test.each(storages)("saved and loaded, in %p", async (storage) => {
  const [k, v] = filled(storage, [64]);
  const folder = await mkdtemp(join(tmpdir(), "metal-attention-cache-"));
  try {
    const [loadedK, loadedV] = (await reloaded(join(folder, "cache.safetensors"), [k, v])) as [
      DecodeCache,
      DecodeCache,
    ];
    expect(bitsOver([loadedK, loadedV])).toBe(bitsOver([k, v]));
    // The other way round there are other bits: the file's tensors are what is read.
    expect(bitsOver([loadedV, loadedK])).not.toBe(bitsOver([k, v]));
  } finally {
    await rm(folder, { recursive: true });
  }
});
