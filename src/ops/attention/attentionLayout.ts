import { checkObject, checkU32, display, refused } from "../../checks.ts";
import { OptionNames } from "../../optionNames.ts";
import { checkExtent } from "../shapes.ts";

/** Order of the axes: `head-major` [B, H, L, D] or `sequence-major` [B, L, H, D]. */
export type AttentionLayout = "head-major" | "sequence-major";

/** Elements from one batch, head and token (in a mask: query row) to the next. The innermost stride is 1. */
export interface AttentionStrides {
  readonly batch: number;
  readonly head: number;
  readonly token: number;
}

/**
 * Explicit extents and strides, for tensors in any order: queries, keys and values
 * side by side in one tensor, rows with gaps, a batch that shares its keys
 * (stride 0). The shapes of the tensors then do not count, only their lengths.
 */
export interface StridedLayout {
  /** B. */
  readonly batch: number;
  /** Query heads, H. */
  readonly heads: number;
  /** Key and value heads; they divide `heads`. */
  readonly kvHeads: number;
  /** Queries, qL. */
  readonly seqLenQ: number;
  /** D. */
  readonly headDim: number;
  readonly q: AttentionStrides;
  readonly k: AttentionStrides;
  readonly v: AttentionStrides;
  /** No two rows may share memory. */
  readonly out: AttentionStrides;
  /** Of the mask; its shape decides unless given. Not together with tile classes. */
  readonly mask?: AttentionStrides | undefined;
}

const layoutNames = new OptionNames<StridedLayout>("layout", {
  batch: true,
  heads: true,
  kvHeads: true,
  seqLenQ: true,
  headDim: true,
  q: true,
  k: true,
  v: true,
  out: true,
  mask: true,
});
const strideNames = new OptionNames<AttentionStrides>("strides", { batch: true, head: true, token: true });

/** Whether the axes that `argument` is about are sequence-major: as `order` says, else as the whole layout. */
export function checkAxisOrder(order: unknown, layout: boolean | StridedLayout, argument: string): boolean {
  if (order === undefined) return layout === true;
  if (typeof layout !== "boolean")
    throw refused(argument, "layout gives strides, which order the axes already; leave it out");
  if (order !== "head-major" && order !== "sequence-major") {
    throw refused(argument, `expected "head-major" or "sequence-major", got ${display(order)}`);
  }
  return order === "sequence-major";
}

/**
 * The layout that a caller gave: whether it is sequence-major, or a copy of
 * the strides, which no getter can change any more.
 */
export function checkLayout(layout: unknown): boolean | StridedLayout {
  if (layout === undefined || layout === "head-major") return false;
  if (layout === "sequence-major") return true;
  if (typeof layout !== "object" || layout === null || Array.isArray(layout)) {
    throw refused("layout", `expected "head-major", "sequence-major" or strides, got ${display(layout)}`);
  }
  layoutNames.check(layout, "layout.");
  const { batch, heads, kvHeads, seqLenQ, headDim, q, k, v, out, mask } = layout as Partial<StridedLayout>;
  const extent = (value: unknown, name: string) => checkExtent(checkU32(value, name), name, "the extent");
  return {
    batch: extent(batch, "layout.batch"),
    heads: extent(heads, "layout.heads"),
    kvHeads: extent(kvHeads, "layout.kvHeads"),
    seqLenQ: extent(seqLenQ, "layout.seqLenQ"),
    headDim: extent(headDim, "layout.headDim"),
    q: checkStrides(q, "layout.q"),
    k: checkStrides(k, "layout.k"),
    v: checkStrides(v, "layout.v"),
    out: checkStrides(out, "layout.out"),
    ...(mask === undefined ? {} : { mask: checkStrides(mask, "layout.mask") }),
  };
}

function checkStrides(value: unknown, argument: string): AttentionStrides {
  strideNames.check(checkObject(value as object, argument), `${argument}.`);
  const { batch, head, token } = value as Partial<AttentionStrides>;
  return {
    batch: checkStride(batch, `${argument}.batch`),
    head: checkStride(head, `${argument}.head`),
    token: checkStride(token, `${argument}.token`),
  };
}

function checkStride(value: unknown, argument: string): number {
  if (typeof value !== "number" || !Number.isSafeInteger(value) || value < 0) {
    throw refused(argument, `expected a whole number of elements from 0 to 2^53 - 1, got ${display(value)}`);
  }
  return value;
}
