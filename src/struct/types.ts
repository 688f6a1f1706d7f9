import { float32ToBfloat16 } from "../device/convert.ts";

/** Scalars of a struct, named as element types are; `bool` is one byte. */
export type ScalarType = "bool" | "u8" | "i8" | "u16" | "i16" | "u32" | "i32" | "u64" | "i64" | "f16" | "bf16" | "f32";

/** Metal's name of each scalar that has vectors, and the scalar. */
const vectorScalars = {
  bool: "bool",
  uchar: "u8",
  char: "i8",
  ushort: "u16",
  short: "i16",
  uint: "u32",
  int: "i32",
  ulong: "u64",
  long: "i64",
  half: "f16",
  bfloat: "bf16",
  float: "f32",
} as const satisfies Record<string, ScalarType>;

type VectorScalar = keyof typeof vectorScalars;

/** Vectors, by Metal's names: `float3`, and `packed_float3`, which is aligned as its scalar and has no padding. */
export type VectorType = `${VectorScalar}${2 | 3 | 4}` | `packed_${Exclude<VectorScalar, "bool">}${2 | 3 | 4}`;

/** A type of the Metal Shading Language as it lies in memory. */
export interface TypeTraits {
  /** Bytes, a multiple of `alignment`. */
  readonly size: number;
  readonly alignment: number;
  readonly scalar: ScalarType;
  /** 1 for a scalar. */
  readonly components: number;
}

/** What a scalar is in memory, and which numbers it takes. */
interface ScalarTraits {
  readonly size: number;
  /** What it takes, for messages. */
  readonly expected: string;
  fits(value: unknown): boolean;
  /** Stores a value that fits. */
  store(view: DataView, offset: number, value: number | bigint | boolean): void;
}

function integer(
  size: number,
  min: number,
  max: number,
  set: (view: DataView, offset: number, value: number) => void,
): ScalarTraits {
  return {
    size,
    expected: `an integer from ${min} to ${max}`,
    fits: (value) => Number.isInteger(value) && (value as number) >= min && (value as number) <= max,
    store: (view, offset, value) => set(view, offset, Number(value)),
  };
}

function long(min: bigint, max: bigint, set: (view: DataView, offset: number, value: bigint) => void): ScalarTraits {
  return {
    size: 8,
    expected: `an integer from ${min} to ${max}, as a bigint beyond 2^53`,
    fits: (value) =>
      (typeof value === "bigint" || Number.isSafeInteger(value)) &&
      (value as number | bigint) >= min &&
      (value as number | bigint) <= max,
    store: (view, offset, value) => set(view, offset, BigInt(value)),
  };
}

/** Infinities and NaN are values of a float type. */
function float(size: number, set: (view: DataView, offset: number, value: number) => void): ScalarTraits {
  return {
    size,
    expected: "a number",
    fits: (value) => typeof value === "number",
    // To f32 first, as a tensor's values are.
    store: (view, offset, value) => set(view, offset, Math.fround(Number(value))),
  };
}

/** The scalars by name. */
export const scalarTraits: Readonly<Record<ScalarType, ScalarTraits>> = {
  bool: {
    size: 1,
    expected: "true or false",
    fits: (value) => typeof value === "boolean",
    store: (view, offset, value) => view.setUint8(offset, Number(value)),
  },
  u8: integer(1, 0, 0xff, (view, offset, value) => view.setUint8(offset, value)),
  i8: integer(1, -0x80, 0x7f, (view, offset, value) => view.setInt8(offset, value)),
  u16: integer(2, 0, 0xffff, (view, offset, value) => view.setUint16(offset, value, true)),
  i16: integer(2, -0x8000, 0x7fff, (view, offset, value) => view.setInt16(offset, value, true)),
  u32: integer(4, 0, 0xffff_ffff, (view, offset, value) => view.setUint32(offset, value, true)),
  i32: integer(4, -0x8000_0000, 0x7fff_ffff, (view, offset, value) => view.setInt32(offset, value, true)),
  u64: long(0n, 2n ** 64n - 1n, (view, offset, value) => view.setBigUint64(offset, value, true)),
  i64: long(-(2n ** 63n), 2n ** 63n - 1n, (view, offset, value) => view.setBigInt64(offset, value, true)),
  f16: float(2, (view, offset, value) => view.setFloat16(offset, value, true)),
  bf16: float(2, (view, offset, value) => {
    view.setUint16(offset, float32ToBfloat16(Float32Array.of(value))[0] as number, true);
  }),
  f32: float(4, (view, offset, value) => view.setFloat32(offset, value, true)),
};

function allTypes(): Map<string, TypeTraits> {
  const types = new Map<string, TypeTraits>();
  for (const [name, { size }] of Object.entries(scalarTraits)) {
    types.set(name, { size, alignment: size, scalar: name as ScalarType, components: 1 });
  }
  for (const [name, scalar] of Object.entries(vectorScalars)) {
    const { size } = scalarTraits[scalar];
    for (const components of [2, 3, 4]) {
      // Three components take the room of four.
      const padded = size * (components === 3 ? 4 : components);
      types.set(`${name}${components}`, { size: padded, alignment: padded, scalar, components });
      if (scalar === "bool") continue;
      types.set(`packed_${name}${components}`, { size: size * components, alignment: size, scalar, components });
    }
  }
  return types;
}

/** All scalars and vectors by name. */
export const types: ReadonlyMap<string, TypeTraits> = allTypes();
