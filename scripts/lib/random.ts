/** Standard normal numbers from a seed: Box-Muller over mulberry32. The same on every machine but for the last bit of log and cos. */
export function seededNormal(seed: number): () => number {
  let state = seed >>> 0;
  const uniform = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let bits = Math.imul(state ^ (state >>> 15), state | 1);
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61);
    // Half a step up, so that the logarithm below never sees 0.
    return (((bits ^ (bits >>> 14)) >>> 0) + 0.5) / 2 ** 32;
  };
  return () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
}

/** `length` normal numbers of standard deviation `deviation`. */
export function normalArray(length: number, deviation: number, seed: number): Float32Array<ArrayBuffer> {
  const normal = seededNormal(seed);
  const values = new Float32Array(length);
  for (let i = 0; i < length; i++) values[i] = deviation * normal();
  return values;
}
