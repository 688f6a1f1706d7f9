import { type Device, dequantizeKv, hadamardQuantizeKvSeq, kvCacheBytes, type QuantizedBits } from "../../src/index.ts";
import { type QuantizedFormat, quantizedFormats } from "../../src/ops/quantizedCache/quantizedFormat.ts";
import { CODEBOOKS, dequantizeVector, nmse, quantizeVector } from "../../src/reference/index.ts";
import { type DataSet, structuredVectors } from "./data.ts";

/** Every format, by width. */
export const formats = quantizedFormats().toSorted((a, b) => a.bits - b.bits);

/** What a format does to a data set. */
export interface RoundTrip {
  readonly data: string;
  readonly format: QuantizedFormat;
  /** Norms included. */
  readonly bitsPerValue: number;
  /** Squared error over squared length: the distortion where the values have unit variance. */
  readonly error: number;
  /** The error in multiples of the smallest that so many levels allow on N(0, 1). */
  readonly toOptimum: number;
}

/** Writes a data set into a cache on the device and reads it back. */
export function roundTrip(device: Device, { name, headDim, values }: DataSet, format: QuantizedFormat): RoundTrip {
  const { bits, packing } = format;
  const vectors = values.length / headDim;
  const extents = { headDim, nKvHeads: 1, capacity: vectors };
  const { bytesPerRow, normsPerPos, bitsPerValue } = kvCacheBytes({ ...extents, bits, packing });
  using src = device.tensor("f32", [vectors, 1, headDim]).set(values);
  using packed = device.tensor("u8", [1, vectors, bytesPerRow]);
  using norms = device.tensor("f32", [1, vectors, normsPerPos]);
  using out = device.tensor("f32", [1, vectors, headDim]);
  using pass = device.pass();
  hadamardQuantizeKvSeq(pass, { src, packed, norms, bits, packing, writePosStart: 0 });
  dequantizeKv(pass, { packed, norms, out, bits, packing });
  pass.commitAndWait();
  const error = nmse(out.view(), values);
  return { data: name, format, bitsPerValue, error, toOptimum: error / CODEBOOKS[format.bits].distortion };
}

/** The smallest error of any code of `rate` bits a value on Gaussian data (Shannon): 2^(-2 rate). */
export function rateDistortion(rate: number): number {
  return 2 ** (-2 * rate);
}

/** Error of one vector with the transform's signs, and with none. */
export interface SignsComparison {
  readonly data: string;
  readonly bits: QuantizedBits;
  readonly withSigns: number;
  readonly without: number;
}

/** By the float64 oracle: the kernels know no transform without signs. */
export function compareSigns(headDim: number, widths: readonly QuantizedBits[]): readonly SignsComparison[] {
  return structuredVectors(headDim).flatMap(({ name, vector }) =>
    widths.map((bits) => {
      const error = (withSigns: boolean) => {
        const format = formats.find((each) => each.bits === bits) as QuantizedFormat;
        const options = { ...format, withSigns };
        const { codes, norms } = quantizeVector(vector, options);
        return nmse(dequantizeVector(codes, norms, options), vector);
      };
      return { data: name, bits, withSigns: error(true), without: error(false) };
    }),
  );
}
