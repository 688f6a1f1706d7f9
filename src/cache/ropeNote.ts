import { checkObject, refused } from "../checks.ts";
import type { ApplyRopeArgs } from "../ops/rope/applyRope.ts";
import { useAngles } from "../ops/rope/ropeAngles.ts";
import { OptionNames } from "../optionNames.ts";

/** How K is turned before it is written: what {@link applyRope} takes beside tensors and positions. */
export type KvRope = Pick<ApplyRopeArgs, "theta" | "invFreq" | "pairing" | "rotaryDim" | "attentionScale">;

const ropeNames = new OptionNames<KvRope>("rope", {
  theta: true,
  invFreq: true,
  pairing: true,
  rotaryDim: true,
  attentionScale: true,
});

/** Of keys that come as they are to be stored. */
export const noRope = "none";

/** How a caller wants keys turned, as yet unchecked but for the names. */
export function useRope(rope: KvRope): KvRope {
  return ropeNames.read(checkObject(rope, "rope"), "rope.");
}

/**
 * How the keys of a layer are turned, in words: what two appends of one layer have to agree in. What stands for a default
 * is left out. Checked as a whole, since what is encoded first may take no rotation.
 */
export function ropeNoteOf(rope: KvRope | undefined, headDim: number): string {
  if (rope === undefined) return noRope;
  const { theta, invFreq, pairing } = rope;
  const angles = useAngles(rope, headDim, "rope.");
  const parts = [invFreq === undefined ? `theta ${theta}` : `frequencies ${frequencyHash(angles.invFreq)}`, pairing];
  if (angles.rotaryDim !== headDim) parts.push(`rotaryDim ${angles.rotaryDim}`);
  if (angles.attentionScale !== 1) parts.push(`attentionScale ${angles.attentionScale}`);
  return parts.join(", ");
}

/** By an algorithm that has a definition, since files have it. */
function frequencyHash({ buffer, byteOffset, byteLength }: Float32Array): string {
  return Bun.hash.xxHash64(new Uint8Array(buffer, byteOffset, byteLength)).toString(16);
}

/** Refuses keys that are turned otherwise than those before. */
export function checkRopeNote(known: string | undefined, note: string, layer: number): void {
  if (known === undefined || known === note) return;
  throw refused(
    "rope",
    `layer ${layer} has keys of rope ${known}, not ${note}; a cache holds one kind, crop it to 0 first`,
  );
}
