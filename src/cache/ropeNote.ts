import { checkObject, display, refused } from "../checks.ts";
import { OptionNames } from "../optionNames.ts";
import type { KvRope } from "./stage.ts";

const ropeNames = new OptionNames<KvRope>("rope", {
  theta: true,
  invFreq: true,
  pairing: true,
  rotaryDim: true,
  attentionScale: true,
});

/** Of keys that come as they are to be stored. */
const noRope = "none";

/** How the keys of a layer are turned, in words: what two appends of one layer have to agree in. */
export function ropeNoteOf(rope: KvRope | undefined): string {
  if (rope === undefined) return noRope;
  ropeNames.check(checkObject(rope, "rope"), "rope.");
  const { theta, invFreq, pairing, rotaryDim, attentionScale } = rope;
  const frequencies = invFreq === undefined ? `theta ${theta}` : `frequencies ${frequencyHash(invFreq)}`;
  const parts = [frequencies, `${pairing}`];
  if (rotaryDim !== undefined) parts.push(`rotaryDim ${rotaryDim}`);
  if (attentionScale !== undefined) parts.push(`attentionScale ${attentionScale}`);
  return parts.join(", ");
}

/** Frequencies by their hash; of what is none, applyRope says so. */
function frequencyHash(invFreq: unknown): string {
  if (!(invFreq instanceof Float32Array)) return display(invFreq);
  return Bun.hash(new Uint8Array(invFreq.buffer, invFreq.byteOffset, invFreq.byteLength)).toString(16);
}

/** Refuses keys that are turned otherwise than those before. */
export function checkRopeNote(known: string | undefined, note: string, layer: number): void {
  if (known === undefined || known === note) return;
  throw refused(
    "rope",
    `layer ${layer} has keys of rope ${known}, not ${note}; a cache holds one kind, crop it to 0 first`,
  );
}
