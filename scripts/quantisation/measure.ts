import {
  type Device,
  dequantizeKv,
  hadamardQuantizeKvSeq,
  kvCacheBytes,
  type QuantizedBits,
  type QuantizedPacking,
} from "../../src/index.ts";
import { CODEBOOKS, dequantizeVector, nmse, quantizeVector } from "../../src/reference/index.ts";
import { type DataSet, structuredVectors } from "./data.ts";

/** A width and how its codes lie in memory. */
export interface Format {
  readonly bits: QuantizedBits;
  readonly packing: QuantizedPacking;
}

export const formats: readonly Format[] = [
  { bits: 2, packing: "dense" },
  { bits: 3, packing: "dense" },
  { bits: 4, packing: "nibble" },
  { bits: 5, packing: "dense" },
  { bits: 6, packing: "dense" },
  { bits: 5, packing: "byte" },
  { bits: 6, packing: "byte" },
  { bits: 8, packing: "byte" },
];

/** What a format does to a data set. */
export interface RoundTrip {
  readonly data: string;
  readonly format: Format;
  /** Norms included. */
  readonly bitsPerValue: number;
  /** Squared error over squared length: the distortion where the values have unit variance. */
  readonly error: number;
  /** The error in multiples of the smallest that so many levels allow on N(0, 1). */
  readonly toOptimum: number;
}

/** Writes a data set into a cache on the device and reads it back. */
export function roundTrip(device: Device, { name, headDim, values }: DataSet, format: Format): RoundTrip {
  const vectors = values.length / headDim;
  const extents = { headDim, nKvHeads: 1, capacity: vectors };
  const { bytesPerRow, normsPerPos, bitsPerValue } = kvCacheBytes({ ...extents, ...format });
  using src = device.tensor("f32", [vectors, 1, headDim]).set(values);
  using packed = device.tensor("u8", [1, vectors, bytesPerRow]);
  using norms = device.tensor("f32", [1, vectors, normsPerPos]);
  using out = device.tensor("f32", [1, vectors, headDim]);
  using pass = device.pass();
  hadamardQuantizeKvSeq(pass, { src, packed, norms, ...format, writePosStart: 0 });
  dequantizeKv(pass, { packed, norms, out, ...format });
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
        const format = formats.find((each) => each.bits === bits) as Format;
        const options = { ...format, withSigns };
        const { codes, norms } = quantizeVector(vector, options);
        return nmse(dequantizeVector(codes, norms, options), vector);
      };
      return { data: name, bits, withSigns: error(true), without: error(false) };
    }),
  );
}
