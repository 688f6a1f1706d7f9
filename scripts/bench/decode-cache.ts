import type { DecodeCache, Device } from "../../src/index.ts";
import { kvCacheBytes } from "../../src/index.ts";
import { seededBits } from "../lib/random.ts";

/** How K or V is stored: a dtype, or bits of codes in their usual packing. */
export type CacheKind = "f32" | "f16" | "bf16" | 3 | 4 | 8;

/** Extents of a decode of one sequence. */
export interface DecodeExtents {
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  readonly keys: number;
}

/** K or V of a sequence: values of about 1. */
export function makeCache(
  device: Device,
  kind: CacheKind,
  { kvHeads, headDim, keys }: DecodeExtents,
): { readonly cache: DecodeCache; readonly bytes: Uint8Array } {
  const bits = seededBits(7);
  if (typeof kind === "string") {
    const cache = device.tensor(kind, [1, kvHeads, keys, headDim]);
    // Signs and fractions are random, exponents those of numbers from 1/2 to 1, or to 2 in f32 and bf16.
    const isHalf = kind === "f16";
    const words = new Uint32Array(cache.bytes.buffer, cache.bytes.byteOffset, cache.byteLength / 4);
    const [mask, exponents] = isHalf ? [0x83ff83ff, 0x38003800] : [0x807f807f, 0x3f003f00];
    for (let i = 0; i < words.length; i++) words[i] = ((bits() & mask) | exponents) >>> 0;
    return { cache, bytes: cache.bytes };
  }
  const { bytesPerRow, normsPerPos } = kvCacheBytes({ headDim, nKvHeads: kvHeads, capacity: keys, bits: kind });
  const packed = device.tensor("u8", [1, kvHeads, keys, bytesPerRow]);
  const words = new Uint32Array(packed.bytes.buffer, packed.bytes.byteOffset, packed.byteLength / 4);
  for (let i = 0; i < words.length; i++) words[i] = bits();
  const norms = device.tensor("f32", [1, kvHeads, keys, normsPerPos]);
  norms.view().fill(Math.sqrt(headDim));
  return { cache: { packed, norms, bits: kind }, bytes: packed.bytes };
}
