import { expect, test } from "bun:test";
import { prepareQuantizeInC } from "../../scripts/bench/quantize-c.ts";
import { normalArray } from "../../scripts/lib/random.ts";
import { referenceDequantizeKv, referenceHadamardQuantizeKv } from "../../src/reference/index.ts";

const format = { bits: 4, packing: "nibble" } as const;

test.each([128, 256])("the loops in C write and read the cache of the oracle, D = %p", (headDim) => {
  const [tokens, heads] = [9, 3];
  const vectors = tokens * heads;
  const cache = {
    src: normalArray(vectors * headDim, 2, 7),
    packed: new Uint8Array((vectors * headDim) / 2),
    norms: new Float32Array(vectors),
    out: new Float32Array(vectors * headDim),
  };
  // A vector of zeros, which has no direction.
  cache.src.fill(0, headDim, 2 * headDim);
  const c = prepareQuantizeInC({ tokens, heads, headDim, ...cache });
  try {
    c.quantize();
    c.dequantize();
  } finally {
    c.dispose();
  }
  const expected = { packed: new Uint8Array(cache.packed.length), norms: new Float32Array(vectors) };
  const positions = { nKvHeads: heads, headDim, capacity: tokens, posStart: 0, nTokens: tokens, isSliding: false };
  referenceHadamardQuantizeKv(cache.src, expected, { ...positions, srcTokOffset: 0 }, format);
  const differ = cache.packed.reduce((sum, byte, i) => sum + (byte === expected.packed[i] ? 0 : 1), 0);
  // A value on the boundary of two codes may take the other.
  expect(differ).toBeLessThanOrEqual(1);
  const decoded = referenceDequantizeKv({ packed: cache.packed, norms: cache.norms }, positions, format);
  for (const [i, norm] of expected.norms.entries()) {
    expect(Math.abs((cache.norms[i] as number) - norm)).toBeLessThanOrEqual(1e-6 * norm);
  }
  for (const [i, value] of decoded.entries()) expect(Math.abs((cache.out[i] as number) - value)).toBeLessThan(1e-5);
});
