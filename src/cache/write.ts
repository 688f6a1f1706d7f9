import type { Pass } from "../device/pass.ts";
import type { Tensor } from "../device/tensor.ts";
import { type AppendRope, kvCacheAppend } from "../ops/cacheCopy/kvCacheAppend.ts";
import type { DecodeDType } from "../ops/decode/decodeCache.ts";
import { type HadamardQuantizeKvSeqArgs, hadamardQuantizeKvSeq } from "../ops/quantizedCache/hadamardQuantizeKvSeq.ts";
import type { PageView, StreamView } from "./store.ts";
import type { Views } from "./views.ts";

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
  /** How keys turn that go to a dense page, from their slot's angle on; as they are unless given. */
  readonly rope?: AppendRope | undefined;
}

/** Writes a run of tokens to a page, K and V in one dispatch where their formats are one. */
export function writeRows(pass: Pass, views: Views, k: Rows, v: Rows, target: Target): void {
  const { view, rope, ...plain } = target;
  if (isAlike(k, v, view)) {
    write(pass, views, target, [k, view.k], [v, view.v]);
  } else {
    write(pass, views, target, [k, view.k]);
    write(pass, views, { view, ...plain }, [v, view.v]);
  }
}

function isAlike(k: Rows, v: Rows, view: PageView): boolean {
  return k.first === v.first && view.k.format.text === view.v.format.text && k.tensor.dtype === v.tensor.dtype;
}

type Stream = readonly [rows: Rows, view: StreamView];

function write(pass: Pass, views: Views, target: Target, k: Stream, v?: Stream): void {
  const { offset, count, isRing, rope } = target;
  const { codes } = k[1].format;
  if (codes !== undefined) {
    const stream = ([{ tensor }, { rows, norms }]: Stream) => ({ src: tensor, packed: rows, norms });
    hadamardQuantizeKvSeq(pass, {
      ...(v === undefined ? stream(k) : { k: stream(k), v: stream(v) }),
      bits: codes.bits,
      packing: codes.packing,
      nTokens: count,
      srcTokOffset: k[0].first,
      isSliding: isRing,
      writePosStart: offset,
    } as HadamardQuantizeKvSeqArgs);
    return;
  }
  const stream = ([{ tensor, first }, { rows }]: Stream) => ({
    src: views.slice(tensor, first, first + count),
    cache: rows as Tensor<DecodeDType>,
  });
  kvCacheAppend(pass, {
    ...(v === undefined ? stream(k) : { k: stream(k), v: stream(v) }),
    start: offset,
    isSliding: isRing,
    ...(rope && { rope }),
  });
}
