import type { Pass } from "../device/pass.ts";
import type { Tensor } from "../device/tensor.ts";
import { type KvCacheCopySeqArgs, kvCacheCopySeq } from "../ops/cacheCopy/kvCacheCopySeq.ts";
import type { DecodeDType } from "../ops/decode/decodeCache.ts";
import { type HadamardQuantizeKvSeqArgs, hadamardQuantizeKvSeq } from "../ops/quantizedCache/hadamardQuantizeKvSeq.ts";
import type { PageView, StreamView } from "./store.ts";

/** @internal Tokens to be written: rows of `tensor`, [tokens, nKvHeads, headDim], from `first` on. */
export interface Rows {
  readonly tensor: Tensor<DecodeDType>;
  readonly first: number;
}

/** @internal Where they go in a page. */
export interface Target {
  readonly view: PageView;
  /** Slot of the first in the page, before wrapping; a parameter of a recorded pass too. */
  readonly offset: number;
  readonly count: number;
  readonly isRing: boolean;
}

/** Writes a run of tokens to a page, K and V in one dispatch where their formats are one. */
export function writeRows(pass: Pass, k: Rows, v: Rows, target: Target): void {
  const { view } = target;
  if (k.first === v.first && isAlike(k, v, view)) {
    write(pass, target, { k: [k, view.k], v: [v, view.v] });
  } else {
    write(pass, target, { k: [k, view.k] });
    write(pass, target, { k: [v, view.v] });
  }
}

function isAlike(k: Rows, v: Rows, view: PageView): boolean {
  return view.k.format.text === view.v.format.text && k.tensor.dtype === v.tensor.dtype;
}

type Stream = readonly [rows: Rows, view: StreamView];

function write(
  pass: Pass,
  { offset, count, isRing }: Target,
  { k, v }: { readonly k: Stream; readonly v?: Stream },
): void {
  const { codes } = k[1].format;
  const run = { nTokens: count, srcTokOffset: k[0].first, isSliding: isRing };
  if (codes !== undefined) {
    const stream = ([{ tensor }, { rows, norms }]: Stream) => ({ src: tensor, packed: rows, norms });
    const streams = v === undefined ? stream(k) : { k: stream(k), v: stream(v) };
    const format = { bits: codes.bits, packing: codes.packing };
    hadamardQuantizeKvSeq(pass, { ...streams, ...format, ...run, writePosStart: offset } as HadamardQuantizeKvSeqArgs);
  } else {
    const stream = ([{ tensor }, { rows }]: Stream) => ({ src: tensor, cache: rows });
    const streams = v === undefined ? stream(k) : { k: stream(k), v: stream(v) };
    kvCacheCopySeq(pass, { ...streams, ...run, seqPosStart: offset } as KvCacheCopySeqArgs);
  }
}
