/** Elements at which a copy or a conversion goes wrong first. */
import { encode, type FloatName } from "../../src/reference/index.ts";

const bothSigns = (values: readonly number[]): number[] => values.flatMap((value) => [value, -value]);

/** Values at which a conversion from f32 to f16 or bf16 goes wrong first. */
const edgesOfF32: readonly number[] = bothSigns([
  0,
  1,
  2 ** -149, // the smallest subnormal float
  2 ** -126 - 2 ** -149, // the largest
  2 ** -126,
  2 ** -133, // the smallest subnormal bfloat
  2 ** -134, // a tie with 0
  2 ** -134 + 2 ** -149,
  3 * 2 ** -134, // a tie, upwards
  2 ** -24, // the smallest subnormal half
  2 ** -25, // a tie with 0
  2 ** -25 + 2 ** -48,
  3 * 2 ** -25, // a tie, upwards
  2 ** -14 - 2 ** -24, // the largest subnormal half
  2 ** -14 - 2 ** -25, // a tie with the smallest normal half
  2 ** -14,
  1 + 2 ** -11, // a tie, downwards, of halves
  1 + 3 * 2 ** -11, // a tie, upwards
  1 + 2 ** -11 + 2 ** -23,
  1 + 3 * 2 ** -11 - 2 ** -23,
  1 + 2 ** -8, // a tie, downwards, of bfloats
  1 + 3 * 2 ** -8, // a tie, upwards
  1 + 2 ** -8 + 2 ** -23,
  1 + 3 * 2 ** -8 - 2 ** -23,
  2 - 2 ** -23, // carries into the exponent
  65504,
  65520 - 2 ** -8,
  65520, // a tie with infinity
  2 ** 16,
  2 ** 127 * (2 - 2 ** -7), // the largest bfloat
  2 ** 127 * (2 - 2 ** -8), // a tie with infinity
  2 ** 127 * (2 - 2 ** -8 - 2 ** -23),
  2 ** 127 * (2 - 2 ** -23),
  Number.POSITIVE_INFINITY,
]);

/** NaNs: quiet and signalling, of both signs, with payloads in high and in low bits. */
const nans: Readonly<Record<FloatName, readonly number[]>> = {
  f32: [0x7fc00000, 0xffc00000, 0x7f800001, 0xff800001, 0x7f80ffff, 0x7fa5a5a5, 0xffffffff, 0x7fbfffff],
  f16: [0x7e00, 0xfe00, 0x7c01, 0xfc01, 0x7d55, 0xffff, 0x7dff],
  bf16: [0x7fc0, 0xffc0, 0x7f81, 0xff81, 0x7fa5, 0xffff, 0x7fbf],
};

/** The edges of a format: signed zeros, subnormals, ties, infinities, NaNs. */
export function edgeBits(dtype: FloatName): number[] {
  return [...edgesOfF32.map((value) => encode(dtype, value)), ...nans[dtype]];
}
