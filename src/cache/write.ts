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

/** @internal Where they go. */
export interface Target {
  /** A page; with a table all pages; with places in device memory and no table the pages of the sequences in turn. */
  readonly view: PageView;
  /**
   * Slot of the first, before wrapping; or those of the tokens of several sequences, and of steps to come, in device
   * memory: i32 [sequences, tokens of each], where one below 0 leaves its token out.
   */
  readonly at: number | Tensor<"i32">;
  /** The pages of each sequence, i32 [sequences, maxPages]. */
  readonly table?: Tensor<"i32"> | undefined;
  /** Tokens of each sequence. */
  readonly count: number;
  readonly isRing: boolean;
  /** How keys turn on their way, from their slot's angle on; as they are unless given. */
  readonly rope?: AppendRope | undefined;
}

/** @internal Writes tokens: K and V in one dispatch where both are codes, or values of one dtype. */
export function writeRows(pass: Pass, views: Views, k: Rows, v: Rows, target: Target): void {
  const { view, rope, ...plain } = target;
  if (isTogether(k, v, view)) {
    write(pass, views, target, [k, view.k], [v, view.v]);
  } else {
    write(pass, views, target, [k, view.k]);
    write(pass, views, { view, ...plain }, [v, view.v]);
  }
}

function isTogether(k: Rows, v: Rows, view: PageView): boolean {
  const [formatK, formatV] = [view.k.format, view.v.format];
  const isOneKernel = (formatK.codes !== undefined && formatV.codes !== undefined) || formatK.text === formatV.text;
  return isOneKernel && k.first === v.first && k.tensor.dtype === v.tensor.dtype;
}

type Stream = readonly [rows: Rows, view: StreamView];

/** Writes one stream, or two that one dispatch takes. */
function write(pass: Pass, views: Views, target: Target, k: Stream, v?: Stream): void {
  const { at, table, count, isRing, rope } = target;
  const { codes } = k[1].format;
  const isFixed = typeof at === "number";
  const sequences = isFixed ? 1 : (at.shape[0] as number);
  // Rows of several sequences have an axis of them.
  const source = ({ tensor, first }: Rows) => {
    const part = views.slice(tensor, first, first + sequences * count);
    return isFixed ? part : views.reshape(part, [sequences, count, ...tensor.shape.slice(1)]);
  };
  const more = { ...(table && { blockTable: table }), ...(rope && { rope }) };
  if (codes !== undefined) {
    const stream = ([rows, { rows: packed, norms, format }]: Stream) => ({
      src: isFixed ? rows.tensor : source(rows),
      packed,
      norms,
      bits: format.codes?.bits,
      packing: format.codes?.packing,
    });
    hadamardQuantizeKvSeq(pass, {
      ...(v === undefined ? stream(k) : { k: stream(k), v: stream(v) }),
      isSliding: isRing,
      ...(isFixed ? { writePosStart: at, nTokens: count, srcTokOffset: k[0].first } : { positions: at }),
      ...more,
    } as HadamardQuantizeKvSeqArgs);
    return;
  }
  const stream = ([rows, { rows: cache }]: Stream) => ({ src: source(rows), cache });
  kvCacheAppend(pass, {
    ...(v === undefined ? stream(k) : { k: stream(k), v: stream(v) }),
    isSliding: isRing,
    ...(isFixed ? { start: at } : { positions: at }),
    ...more,
  } as KvCacheAppendArgs);
}
