import { seededBits } from "../../scripts/lib/random.ts";

/** A small deterministic generator of floats in [0, 1). */
export function seededRandom(seed: number): () => number {
  const bits = seededBits(seed);
  return () => bits() / 2 ** 32;
}
