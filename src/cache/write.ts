import type { Pass } from "../device/pass.ts";
import type { Tensor } from "../device/tensor.ts";
import { type KvCacheAppendArgs, kvCacheAppend } from "../ops/cacheCopy/kvCacheAppend.ts";
import type { DecodeDType } from "../ops/decode/decodeCache.ts";
import { type HadamardQuantizeKvSeqArgs, hadamardQuantizeKvSeq } from "../ops/quantizedCache/hadamardQuantizeKvSeq.ts";
import type { AppendRope } from "../ops/rope/appendRope.ts";
import type { PageView, StreamView } from "./store.ts";
import type { Views } from "./views.ts";

/** @internal Tokens to be written: rows of `tensor`, [tokens, nKvHeads, headDim], from `first` on. */
export interface Rows {
  readonly tensor: Tensor<DecodeDType>;
  readonly first: number;
}

/** @internal Places that the device reads: the tokens of several sequences, and of steps to come. */
export interface DevicePlaces {
  /** i32 [sequences, tokens of each]; a token at one below 0 is left out. */
  readonly positions: Tensor<"i32">;
  /** i32 [sequences, maxPages]; the sequences' own memory, one after another, unless given. */
  readonly table?: Tensor<"i32">;
}

/** @internal Where they go. */
export interface Target {
  /** A page; with a table all pages. */
  readonly view: PageView;
  /** Slot of the first in the page, before wrapping, or places in device memory. */
  readonly at: number | DevicePlaces;
  /** Tokens of each sequence. */
  readonly count: number;
  readonly isRing: boolean;
  /** How keys turn on their way, from their slot's angle on; as they are unless given. */
  readonly rope?: AppendRope | undefined;
}

/** Writes tokens, K and V in one dispatch where their formats are one. */
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

/** Writes one stream, or two that are alike. */
export function write(pass: Pass, views: Views, target: Target, k: Stream, v?: Stream): void {
  const { at, count, isRing, rope } = target;
  const { codes } = k[1].format;
  const isFixed = typeof at === "number";
  const sequences = isFixed ? 1 : (at.positions.shape[0] as number);
  const table = isFixed || at.table === undefined ? {} : { blockTable: at.table };
  // Rows of several sequences have an axis of them.
  const source = ({ tensor, first }: Rows) => {
    const part = views.slice(tensor, first, first + sequences * count);
    return isFixed ? part : views.reshape(part, [sequences, count, ...tensor.shape.slice(1)]);
  };
  if (codes !== undefined) {
    const stream = ([rows, { rows: packed, norms }]: Stream) => ({
      src: isFixed ? rows.tensor : source(rows),
      packed,
      norms,
    });
    hadamardQuantizeKvSeq(pass, {
      ...(v === undefined ? stream(k) : { k: stream(k), v: stream(v) }),
      bits: codes.bits,
      packing: codes.packing,
      isSliding: isRing,
      ...(isFixed
        ? { writePosStart: at, nTokens: count, srcTokOffset: k[0].first }
        : { positions: at.positions, ...table }),
      ...(rope && { rope }),
    } as HadamardQuantizeKvSeqArgs);
    return;
  }
  const stream = ([rows, { rows: cache }]: Stream) => ({ src: source(rows), cache });
  kvCacheAppend(pass, {
    ...(v === undefined ? stream(k) : { k: stream(k), v: stream(v) }),
    isSliding: isRing,
    ...(isFixed ? { start: at } : { positions: at.positions, ...table }),
    ...(rope && { rope }),
  } as KvCacheAppendArgs);
}
