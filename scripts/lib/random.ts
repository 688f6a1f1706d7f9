/**
 * 32-bit integers of the generator mulberry32. It adds, shifts and multiplies
 * modulo 2^32 and nothing else, so a seed gives the same numbers on every machine.
 */
export function seededBits(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
}

/** Standard normal numbers from a seed, by Box-Muller. The same on every machine but for the last bit of log and cos. */
function seededNormal(seed: number): () => number {
  const bits = seededBits(seed);
  // Half a step up, so that the logarithm below never sees 0.
  const uniform = () => (bits() + 0.5) / 2 ** 32;
  return () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
}

/** `length` normal numbers of standard deviation `deviation`. */
export function normalArray(length: number, deviation: number, seed: number): Float32Array<ArrayBuffer> {
  const normal = seededNormal(seed);
  const values = new Float32Array(length);
  for (let i = 0; i < length; i++) values[i] = deviation * normal();
  return values;
}
