/**
 * IEEE 754 formats as arithmetic on float64, independent of the library's own
 * conversions: what `src/device/convert.ts` and the kernels are compared with.
 *
 * A value rounds to the nearest multiple of `2^(e - precision + 1)`, e being its
 * exponent (not below the format's smallest), ties to the even multiple.
 */

/** A binary floating-point format. */
export interface FloatFormat {
  /** Bits of the significand, the hidden one included. */
  readonly precision: number;
  /** Exponent of the smallest normal value. */
  readonly minExponent: number;
  /** Exponent of the largest finite value. */
  readonly maxExponent: number;
}

/** The float formats of tensors. */
export const FORMATS = {
  f32: { precision: 24, minExponent: -126, maxExponent: 127 },
  f16: { precision: 11, minExponent: -14, maxExponent: 15 },
  bf16: { precision: 8, minExponent: -126, maxExponent: 127 },
} as const satisfies Record<string, FloatFormat>;

/** Name of a float format. */
export type FloatName = keyof typeof FORMATS;

const doubleView = new DataView(new ArrayBuffer(8));

/** Exponent of a finite `magnitude` > 0 that is a normal float64. */
function exponentOf(magnitude: number): number {
  doubleView.setFloat64(0, magnitude);
  return ((doubleView.getUint32(0) >>> 20) & 0x7ff) - 1023;
}

/** Nearest integer, ties to even, of `value` >= 0. */
function roundHalfEven(value: number): number {
  const below = Math.floor(value);
  const rest = value - below;
  const up = rest > 0.5 || (rest === 0.5 && below % 2 === 1);
  return up ? below + 1 : below;
}

/**
 * `value` rounded to the nearest number of the format, ties to even. Too large
 * becomes an infinity; NaN, infinities and the sign of zero stay.
 *
 * @example roundTo("bf16", 1.00390625) // 1: a tie between 1 and 1.0078125
 */
export function roundTo(format: FloatName, value: number): number {
  const { precision, minExponent, maxExponent } = FORMATS[format];
  if (!Number.isFinite(value) || value === 0) return value;
  const magnitude = Math.abs(value);
  const exponent = Math.max(exponentOf(magnitude), minExponent);
  const step = 2 ** (exponent - precision + 1);
  const rounded = roundHalfEven(magnitude / step) * step;
  const limit = 2 ** (maxExponent + 1);
  return Math.sign(value) * (rounded >= limit ? Number.POSITIVE_INFINITY : rounded);
}

/** Bits of a format: sign, biased exponent, fraction. NaN gets the fraction's highest bit alone. */
export function encode(format: FloatName, value: number): number {
  const { precision, minExponent, maxExponent } = FORMATS[format];
  const fractionBits = precision - 1;
  const scale = 2 ** fractionBits;
  const special = (maxExponent - minExponent + 2) * scale;
  const signBit = (maxExponent - minExponent + 3) * scale;
  if (Number.isNaN(value)) return special + scale / 2;
  const sign = value < 0 || Object.is(value, -0) ? signBit : 0;
  const magnitude = Math.abs(roundTo(format, value));
  if (magnitude === Number.POSITIVE_INFINITY) return sign + special;
  if (magnitude < 2 ** minExponent) return sign + magnitude / 2 ** (minExponent - fractionBits);
  const exponent = exponentOf(magnitude);
  return sign + (exponent - minExponent) * scale + magnitude / 2 ** (exponent - fractionBits);
}

/** The value of a format's bits: the inverse of {@link encode}. */
export function decode(format: FloatName, bits: number): number {
  const { precision, minExponent, maxExponent } = FORMATS[format];
  const scale = 2 ** (precision - 1);
  const exponents = maxExponent - minExponent + 3;
  const negative = bits >= exponents * scale;
  const magnitudeBits = negative ? bits - exponents * scale : bits;
  const biased = Math.floor(magnitudeBits / scale);
  const fraction = magnitudeBits % scale;
  const sign = negative ? -1 : 1;
  if (biased === exponents - 1) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  if (biased === 0) return sign * fraction * 2 ** (minExponent - precision + 1);
  return sign * (scale + fraction) * 2 ** (biased - 1 + minExponent - precision + 1);
}

/**
 * The bits of one format as the bits of another, rounded to nearest even. The
 * same or a wider format keeps every bit, NaN payloads included; a narrower one
 * keeps a NaN's sign and the upper bits of its payload, and makes it quiet.
 */
export function convertBits(from: FloatName, to: FloatName, bits: number): number {
  if (from === to) return bits;
  const value = decode(from, bits);
  return Number.isNaN(value) ? convertNaN(FORMATS[from], FORMATS[to], bits) : encode(to, value);
}

function convertNaN(from: FloatFormat, to: FloatFormat, bits: number): number {
  const fromScale = 2 ** (from.precision - 1);
  const toScale = 2 ** (to.precision - 1);
  const shifted = Math.floor(((bits % fromScale) * toScale) / fromScale);
  const narrows = to.precision < from.precision;
  const fraction = narrows && shifted < toScale / 2 ? shifted + toScale / 2 : shifted;
  const signed = bits >= (from.maxExponent - from.minExponent + 3) * fromScale;
  const exponents = to.maxExponent - to.minExponent + 3;
  return (signed ? exponents * toScale : 0) + (exponents - 1) * toScale + fraction;
}
