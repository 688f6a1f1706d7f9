import { float32ToBfloat16 } from "../device/convert.ts";
import { type DType, dtypes } from "../device/dtypes.ts";
import { Block } from "./block.ts";
import { recordSizes } from "./records.ts";

/** Types of function constants: those of tensors, and integers of 16 and 64 bits. */
export type ConstantDType = DType | "i16" | "u16" | "i64" | "u64";

/** One component of a function constant. */
export type ConstantScalar = number | boolean | bigint;

/** A value for `[[function_constant(index)]]`. */
export interface FunctionConstant {
  readonly index: number;
  readonly dtype: ConstantDType;
  /** A scalar, or the 2 to 4 components of a vector. */
  readonly value: ConstantScalar | readonly ConstantScalar[];
}

/** Values of `MA_DTYPE_*`, by type. */
export const constantCodes: { readonly [T in ConstantDType]: number } = {
  ...(Object.fromEntries(Object.entries(dtypes).map(([name, { code }]) => [name, code])) as Record<DType, number>),
  i16: 9,
  u16: 10,
  i64: 11,
  u64: 12,
};

/** The components as they lie in memory. */
function encode(dtype: ConstantDType, components: readonly ConstantScalar[]): ArrayBufferView<ArrayBuffer> {
  switch (dtype) {
    case "i64":
      return BigInt64Array.from(components, BigInt);
    case "u64":
      return BigUint64Array.from(components, BigInt);
    case "i16":
      return Int16Array.from(components, Number);
    case "u16":
      return Uint16Array.from(components, Number);
    case "bf16":
      return float32ToBfloat16(Float32Array.from(components, Number));
    default: {
      const { size, View } = dtypes[dtype];
      const view = new View(new ArrayBuffer(components.length * size), 0, components.length);
      view.set(components.map(Number));
      return view;
    }
  }
}

/** Packs a list of `MAConstant`. The values have been checked against their types. */
export function packConstants(constants: readonly FunctionConstant[]): Block {
  const block = new Block(Math.max(1, constants.length) * recordSizes.MAConstant);
  constants.forEach(({ index, dtype, value }, position) => {
    const start = position * recordSizes.MAConstant;
    const components = typeof value === "object" ? value : [value];
    block.u32.set([index, constantCodes[dtype], components.length], start / 4);
    block.bytes.set(new Uint8Array(encode(dtype, components).buffer), start + 16);
  });
  return block;
}
