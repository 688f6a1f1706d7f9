import { seededBits } from "../../scripts/lib/random.ts";

/** A small deterministic generator of floats in [0, 1). */
export function seededRandom(seed: number): () => number {
  const bits = seededBits(seed);
  return () => bits() / 2 ** 32;
}

/** Draws of roughly N(0, 1): the sum of four uniform ones, scaled to variance 1; bounded. */
export function normalDraws(seed: number): () => number {
  const random = seededRandom(seed);
  return () => (random() + random() + random() + random() - 2) * Math.sqrt(3);
}
