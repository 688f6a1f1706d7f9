import type { Tensor } from "../device/tensor.ts";
import { kvCacheAppend } from "../ops/cacheCopy/kvCacheAppend.ts";
import type { DecodeDType } from "../ops/decode/decodeCache.ts";
import { type ApplyRopeArgs, applyRope } from "../ops/rope/applyRope.ts";
import type { AppendCall } from "./append.ts";
import type { KvMemory } from "./memory.ts";
import type { Rows } from "./write.ts";

/** How K is turned before it is written: what {@link applyRope} takes beside tensors and positions. */
export type KvRope = Pick<ApplyRopeArgs, "theta" | "invFreq" | "pairing" | "rotaryDim" | "attentionScale">;

/** @internal Tokens that go through the stage at once. */
export const stageTokens = 256;

/** @internal Tokens on their way, [tokens, nKvHeads, headDim]: `count` rows of `x` from `first` on. */
export interface Staged {
  readonly x: Tensor<DecodeDType>;
  readonly first: number;
  readonly count: number;
  /** Where there is a rotation: how they turn, and the position of the first, or a tensor of them all. */
  readonly turn?: { readonly rope: KvRope; readonly positions: number | Tensor<"i32"> } | undefined;
}

/**
 * @internal Turns and converts tokens into memory of the stage, and gives them there: what stands between an append and
 * the quantizer, and before a tail, whose rows are of all heads.
 */
export function stageRows(
  memory: KvMemory,
  { pass, views }: Pick<AppendCall, "pass" | "views">,
  name: "stageK" | "stageV",
  dtype: DecodeDType,
  { x, first, count, turn }: Staged,
): Rows {
  const out = memory.stage(name, dtype, count);
  const source = views.slice(x, first, first + count);
  if (turn === undefined) {
    // As one token of so many heads, which lie in a cache of one slot as they do there; a thread takes several.
    const [tokens, nKvHeads, headDim] = out.shape as readonly [number, number, number];
    const heads = tokens * nKvHeads;
    kvCacheAppend(pass, {
      src: views.reshape(source, [1, heads, headDim]),
      cache: views.reshape(out, [heads, 1, headDim]),
    });
  } else {
    const { rope, positions } = turn;
    const place = typeof positions === "number" ? { start: positions } : { positions };
    applyRope(pass, { x: source, out, layout: "sequence-major", ...rope, ...place } as ApplyRopeArgs);
  }
  return { tensor: out, first: 0 };
}
