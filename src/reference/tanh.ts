import { exp } from "./exp.ts";

/** The hyperbolic tangent, by an exponential that does not overflow. */
export function tanh(x: number): number {
  const small = exp(-2 * Math.abs(x));
  return (Math.sign(x) * (1 - small)) / (1 + small);
}
