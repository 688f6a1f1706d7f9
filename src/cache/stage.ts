import type { Pass } from "../device/pass.ts";
import type { Tensor } from "../device/tensor.ts";
import { kvCacheAppend } from "../ops/cacheCopy/kvCacheAppend.ts";
import type { DecodeDType } from "../ops/decode/decodeCache.ts";
import { type ApplyRopeArgs, applyRope } from "../ops/rope/applyRope.ts";
import type { Views } from "./views.ts";

/** How K is turned before it is written: what {@link applyRope} takes beside tensors and positions. */
export type KvRope = Pick<ApplyRopeArgs, "theta" | "invFreq" | "pairing" | "rotaryDim" | "attentionScale">;

/** @internal Tokens that go through the stage at once. */
export const stageTokens = 256;

/** @internal Where the tokens of a stage are: the position of the first, or a tensor of them all. */
export type StagePositions = number | Tensor<"i32">;

/**
 * @internal Turns and converts the rows `from` up to `to` of `x`, [tokens, nKvHeads, headDim], into `out`, which has as many:
 * what stands between an append and the quantizer, and before a tail, whose rows are of all heads.
 */
export function stageRows(
  pass: Pass,
  views: Views,
  x: Tensor<DecodeDType>,
  [from, to]: readonly [number, number],
  out: Tensor<DecodeDType>,
  rope: KvRope | undefined,
  positions: StagePositions,
): void {
  const source = from === 0 && to === x.shape[0] ? x : views.slice(x, from, to);
  if (rope === undefined) {
    // To a cache of one head, whose rows lie as the tokens do.
    const [tokens, nKvHeads, headDim] = out.shape as readonly [number, number, number];
    const row = nKvHeads * headDim;
    kvCacheAppend(pass, {
      src: views.reshape(source, [tokens, 1, row]),
      cache: views.reshape(out, [1, tokens, row]),
    });
    return;
  }
  const place = typeof positions === "number" ? { start: positions } : { positions };
  applyRope(pass, { x: source, out, layout: "sequence-major", ...rope, ...place } as ApplyRopeArgs);
}
