import { float32ToBfloat16 } from "../device/convert.ts";
import { type DType, dtypes } from "../device/dtypes.ts";
import { Block } from "./block.ts";
import { dtypeCodes } from "./generated/codes.ts";
import { packMAConstant, structSizes } from "./generated/structs.ts";
import { encodeText } from "./text.ts";

/** One component of a function constant. */
export type ConstantScalar = number | boolean | bigint;

/** @internal A function constant that has been checked, by its index or by its name. */
interface CheckedConstant {
  readonly index?: number | undefined;
  readonly name?: string | undefined;
  readonly dtype: DType;
  /** A scalar, or the 2 to 4 components of a vector. */
  readonly value: ConstantScalar | readonly ConstantScalar[];
}

/** The components as they lie in memory. */
function encode(dtype: DType, components: readonly ConstantScalar[]): ArrayBufferView<ArrayBuffer> {
  switch (dtype) {
    case "i64":
      return BigInt64Array.from(components, BigInt);
    case "u64":
      return BigUint64Array.from(components, BigInt);
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

/** @internal A list of `MAConstant`, and the names that it points to. */
interface PackedConstants {
  readonly list: Block;
  readonly names: readonly Block[];
}

/** @internal Packs a list of `MAConstant`. */
export function packConstants(constants: readonly CheckedConstant[]): PackedConstants {
  const names: Block[] = [];
  const size = structSizes.MAConstant;
  const block = new Block(Math.max(1, constants.length) * size);
  constants.forEach(({ index, name, dtype, value }, position) => {
    const components = typeof value === "object" ? value : [value];
    const label = name === undefined ? undefined : encodeText(name).block;
    if (label !== undefined) names.push(label);
    packMAConstant(block, (position * size) / 4, {
      name: label?.address ?? 0,
      index: index ?? 0,
      dtype: dtypeCodes[dtype],
      components: components.length,
      value: new Uint8Array(encode(dtype, components).buffer),
    });
  });
  return { list: block, names };
}
