import {
  type Device,
  flashAttnDecode,
  flashAttnPrefill,
  hadamardQuantizeKvSeq,
  kvCacheBytes,
  type QuantizedBits,
} from "../../src/index.ts";
import { openWithThreads } from "../lib/open-device.ts";
import { normalArray } from "../lib/random.ts";
import { type Benchmark, secondsOf } from "./benchmark.ts";

const [headDim, nKvHeads, heads] = [128, 1, 4];
/** Rows that decode attention takes at once. */
const decodeRows = 16;

/** K or V of so many tokens as codes. */
function quantized(device: Device, tokens: number, bits: QuantizedBits, seed: number) {
  const { bytesPerRow, normsPerPos } = kvCacheBytes({ headDim, nKvHeads, capacity: tokens, bits });
  const src = device.tensor("f32", [tokens, nKvHeads, headDim]).set(normalArray(tokens * headDim, 1, seed));
  const packed = device.tensor("u8", [nKvHeads, tokens, bytesPerRow]);
  const norms = device.tensor("f32", [nKvHeads, tokens, normsPerPos]);
  using pass = device.pass();
  hadamardQuantizeKvSeq(pass, { src, packed, norms, bits, writePosStart: 0 });
  pass.commitAndWait();
  src.dispose();
  return { packed, norms, bits };
}

/** The tail of a cache that takes 256 tokens at once: 128 stay in it, and 32 leave it together. */
const tail = { tokens: 128, block: 32 };
const tailSlots = tail.tokens + tail.block - 1 + 256;

/**
 * Prefill over 8-bit keys and 4-bit values beside a dense cache: `rows` queries, the last of `tokens` keys, the newest of
 * them in a tail where `hasTail` says so.
 */
function besideDense(name: string, rows: number, tokens: number, text: string, hasTail = false): Benchmark {
  return {
    name,
    unit: "ms",
    about: `flashAttnPrefill over ${text} with K of 8 bits and V of 4, causal, f16, D = ${headDim}, ${heads} heads on ${nKvHeads}, one thread`,
    baselineAbout: "the same over a dense cache in f16",
    target: { text: "at most 1.25 times it", met: (_, ratio) => ratio <= 1.25 },
    rounds: ({ quick }) => (quick ? 3 : 9),
    warmUp: true,
    prepare({ quick }) {
      // A quick run has a quarter of the tokens.
      const [nQ, nK] = quick ? [Math.ceil(rows / 4), tokens / 4] : [rows, tokens];
      const device = openWithThreads(1);
      const dense = (count: number, length: number, seed: number) =>
        device.tensor("f16", [1, count, length, headDim]).set(normalArray(count * length * headDim, 1, seed));
      const [q, k, v] = [dense(heads, nQ, 1), dense(nKvHeads, nK, 2), dense(nKvHeads, nK, 3)];
      const out = device.tensor("f16", [1, heads, nQ, headDim]);
      const codes = { k: quantized(device, nK, 8, 2), v: quantized(device, nK, 4, 3) };
      const newest = (seed: number) => {
        const values = normalArray(tailSlots * headDim, 1, seed);
        return device.tensor("f16", [tailSlots, nKvHeads, headDim]).set(values);
      };
      const options = hasTail ? { tail: { k: newest(4), v: newest(5), ...tail } } : {};
      const milliseconds = (cache: { k: typeof k; v: typeof v } | typeof codes) =>
        1000 *
        secondsOf(() => {
          using pass = device.pass();
          flashAttnPrefill(pass, {
            ...{ q, ...cache, out, causal: true, qOffsetInK: nK - nQ },
            ...(cache === codes && options),
          });
          pass.commitAndWait();
        });
      // The other way to read codes: decoded as they are loaded, by each call anew, and never written.
      const [some, someOut] = [1, 2].map(() => device.tensor("f16", [heads, decodeRows, headDim])) as [
        typeof q,
        typeof q,
      ];
      some.set(normalArray(some.length, 1, 1));
      const inTiles = () =>
        1000 *
        secondsOf(() => {
          using pass = device.pass();
          for (let seqLen = nK - nQ + decodeRows; seqLen <= nK; seqLen += decodeRows) {
            flashAttnDecode(pass, { q: some, ...codes, out: someOut, seqLen });
          }
          pass.commitAndWait();
        });
      return {
        measure: () => milliseconds(codes),
        baseline: () => milliseconds({ k, v }),
        ...(rows <= 128 && { others: { "flashAttnDecode over the codes, 16 rows a call": inTiles } }),
        dispose: () => device.dispose(),
      };
    },
  };
}

/** A whole prompt, and the last chunk of one; a small chunk is read either way. */
export const prefillCodes: readonly Benchmark[] = [
  besideDense("prefill-k8v4", 4096, 4096, "4,096 tokens (1,024 in a quick run)"),
  besideDense("prefill-k8v4-rows", 64, 4096, "a chunk of 64 behind 4,032 tokens (a quarter of both in a quick run)"),
  besideDense("prefill-k8v4-chunk", 256, 4096, "a chunk of 256 behind 3,840 tokens (a quarter of both in a quick run)"),
  besideDense(
    "prefill-k8v4-tail",
    256,
    4096,
    "a chunk of 256 behind 3,840 tokens (a quarter of both in a quick run), the last 128 of each row and up to 31 more in a tail,",
    true,
  ),
];
