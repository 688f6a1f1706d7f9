import {
  type DecodeCache,
  type DecodeDType,
  flashAttnDecode,
  flashAttnPrefill,
  kvCacheBytes,
} from "../../../src/index.ts";
import { operationsOf } from "../prefill.ts";
import type { DeviceRoom, DeviceRow } from "./row.ts";

const promptHeads = 16;

function prefill(headDim: number): DeviceRow {
  return {
    name: `prefill-d${headDim}`,
    about: `flashAttnPrefill in bf16, causal, ${promptHeads} heads, D = ${headDim}`,
    unit: "TFLOP/s",
    isOfMatrices: true,
    prepare(room, { tokens }) {
      const shape = [1, promptHeads, tokens, headDim];
      const tensor = () => room.normal("bf16", shape);
      const [q, k, v, out] = [tensor(), tensor(), tensor(), room.empty("bf16", shape)];
      return {
        moved: 4 * out.byteLength,
        work: operationsOf({ tokens, heads: promptHeads, headDim, causal: true }) / 1e12,
        encode: (pass) => flashAttnPrefill(pass, { q, k, v, out, causal: true }),
      };
    },
  };
}

const [heads, kvHeads, headDim] = [32, 8, 128];

type Format = "f16" | 8 | 4;

/** K or V of `batch` sequences, and its bytes. */
function cacheOf(room: DeviceRoom, format: Format, batch: number, keys: number): { cache: DecodeCache; bytes: number } {
  if (format === "f16") {
    const cache = room.normal("f16", [batch, kvHeads, keys, headDim]);
    return { cache, bytes: cache.byteLength };
  }
  const { bytesPerRow, normsPerPos } = kvCacheBytes({ headDim, nKvHeads: kvHeads, capacity: keys, bits: format });
  const packed = room.codes([batch, kvHeads, keys, bytesPerRow]);
  const norms = room.norms([batch, kvHeads, keys, normsPerPos]);
  return { cache: { packed, norms, bits: format }, bytes: packed.byteLength + norms.byteLength };
}

function token(k: Format, v: Format, batch: number): DeviceRow {
  const name = k === "f16" ? "f16" : `k${k}v${v}`;
  return {
    name: `token-${name}-b${batch}`,
    about: `flashAttnDecode of a token of ${batch === 1 ? "a sequence" : `${batch} sequences`}, ${heads} / ${kvHeads} heads, D = ${headDim}, ${name}`,
    unit: "tokens/s",
    prepare(room, { keys }) {
      const [first, second] = [cacheOf(room, k, batch, keys), cacheOf(room, v, batch, keys)];
      const dtype: DecodeDType = "f16";
      const q = room.normal(dtype, [batch, heads, 1, headDim]);
      const out = room.empty(dtype, [batch, heads, 1, headDim]);
      return {
        moved: first.bytes + second.bytes,
        work: batch,
        encode: (pass) => flashAttnDecode(pass, { q, k: first.cache, v: second.cache, out, seqLen: keys }),
      };
    },
  };
}

/** Attention of prompts and of tokens. */
export const attentionRows: readonly DeviceRow[] = [
  ...[64, 128, 256, 512].map(prefill),
  ...[1, 16].flatMap((batch) => [token("f16", "f16", batch), token(8, 4, batch), token(4, 4, batch)]),
];
