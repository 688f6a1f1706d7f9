import { checkObject, display, refused } from "../../checks.ts";
import { OptionNames } from "../../optionNames.ts";
import { type RopeAngles, type UsedAngles, useAngles } from "./ropeAngles.ts";

/** How K turns on its way into a cache. */
export interface AppendRope extends RopeAngles {
  /** What a token's position is ahead by for its angle, where a cache counts from elsewhere; 0 unless given. */
  readonly offset?: number | undefined;
}

const ropeNames = new OptionNames<AppendRope>("rope", {
  theta: true,
  invFreq: true,
  pairing: true,
  rotaryDim: true,
  attentionScale: true,
  offset: true,
});

/** What the C functions take of {@link AppendRope}. */
type UsedRope = Omit<UsedAngles, "invFreq"> & Partial<Pick<UsedAngles, "invFreq">> & { readonly offset: number };

const still: UsedRope = { rotaryDim: 0, pairing: 0, attentionScale: 0, offset: 0 };

/** @internal The angles of `rope`, or those that leave K as it is. */
export function useAppendRope(rope: AppendRope | undefined, headDim: number): UsedRope {
  if (rope === undefined) return still;
  ropeNames.check(checkObject(rope, "rope"), "rope.");
  const { offset = 0 } = rope;
  if (typeof offset !== "number" || !Number.isInteger(offset) || Math.abs(offset) > 0x7fff_ffff) {
    throw refused("rope.offset", `expected a whole number of at most 31 bits, got ${display(offset)}`);
  }
  return { ...useAngles(rope, headDim, "rope."), offset };
}
