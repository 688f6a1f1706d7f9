/**
 * The 16-bit float formats, worked out in float64 from their definition: a
 * value is a multiple of the quantum of its binade.
 */

export interface Format {
  readonly name: "half" | "bfloat";
  /** Bits of the mantissa that are stored. */
  readonly mantissa: number;
  /** Least exponent of a normal value. */
  readonly minExponent: number;
  /** Greatest exponent of a finite value. */
  readonly maxExponent: number;
}

export const half: Format = { name: "half", mantissa: 10, minExponent: -14, maxExponent: 15 };
export const bfloat: Format = { name: "bfloat", mantissa: 7, minExponent: -126, maxExponent: 127 };

/** The integer next to `x`, of two as near the even one. */
export function roundToEven(x: number): number {
  const floor = Math.floor(x);
  const rest = x - floor;
  if (rest !== 0.5) return rest < 0.5 ? floor : floor + 1;
  return floor % 2 === 0 ? floor : floor + 1;
}

/** Exponent of the greatest power of two that is not above `x` > 0. */
function exponentOf(x: number): number {
  let exponent = Math.floor(Math.log2(x));
  if (2 ** exponent > x) exponent -= 1;
  if (2 ** (exponent + 1) <= x) exponent += 1;
  return exponent;
}

/** Bits of `value` rounded to nearest even; NaN gives the quiet NaN without a sign. */
export function bitsOf({ mantissa, minExponent, maxExponent }: Format, value: number): number {
  const bias = 1 - minExponent;
  const infinity = (maxExponent + 1 + bias) << mantissa;
  if (Number.isNaN(value)) return infinity | (1 << (mantissa - 1));
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0;
  const size = Math.abs(value);
  if (size === 0) return sign;
  if (size === Number.POSITIVE_INFINITY) return sign | infinity;
  const exponent = Math.max(exponentOf(size), minExponent);
  // In quanta of the binade; a carry out of the mantissa runs on into the exponent.
  const quanta = roundToEven(size / 2 ** (exponent - mantissa));
  return sign | Math.min(((exponent + bias - 1) << mantissa) + quanta, infinity);
}

/** The value that 16 bits stand for. */
export function numberOf({ mantissa, minExponent, maxExponent }: Format, bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const field = (bits & 0x7fff) >> mantissa;
  const fraction = (bits & ((1 << mantissa) - 1)) / 2 ** mantissa;
  if (field > maxExponent - minExponent + 1) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return field === 0 ? sign * fraction * 2 ** minExponent : sign * (1 + fraction) * 2 ** (field - 1 + minExponent);
}

/** Bits of values rounded to nearest even. */
export function codes(format: Format, values: readonly number[]): number[] {
  return values.map((value) => bitsOf(format, value));
}

/** Values rounded to a format. */
export function rounded(format: Format, values: readonly number[]): number[] {
  return codes(format, values).map((bits) => numberOf(format, bits));
}
