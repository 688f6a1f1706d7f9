import { display, refused } from "../checks.ts";
import { dtypeCodes } from "../ffi/generated/codes.ts";

/** Element types of a tensor. `bool` is one byte, 0 or 1. */
export type DType = "f32" | "f16" | "bf16" | "u8" | "i8" | "u16" | "i16" | "u32" | "i32" | "u64" | "i64" | "bool";

/** Element types that a cache keeps rows in, and attention reads and writes. */
export type FloatDType = "f32" | "f16" | "bf16";

/** They, as a list for checks and messages. */
export const floatDTypes: readonly FloatDType[] = ["f32", "f16", "bf16"];

/**
 * The typed array that shows a tensor's memory. JavaScript has no bfloat16
 * array, so `bf16` shows its bit patterns; `bool` shows its bytes.
 */
export interface DTypeViews {
  f32: Float32Array<ArrayBuffer>;
  f16: Float16Array<ArrayBuffer>;
  bf16: Uint16Array<ArrayBuffer>;
  u8: Uint8Array<ArrayBuffer>;
  i8: Int8Array<ArrayBuffer>;
  u16: Uint16Array<ArrayBuffer>;
  i16: Int16Array<ArrayBuffer>;
  u32: Uint32Array<ArrayBuffer>;
  i32: Int32Array<ArrayBuffer>;
  u64: BigUint64Array<ArrayBuffer>;
  i64: BigInt64Array<ArrayBuffer>;
  bool: Uint8Array<ArrayBuffer>;
}

/** Facts about one element type. */
interface DTypeTraits<T extends DType> {
  /** Value of the type in the C ABI (`MA_DTYPE_*`). */
  readonly code: number;
  /** Bytes per element. */
  readonly size: number;
  /** Smallest and largest value of an integer type; absent for the float types. */
  readonly range?: readonly [min: number, max: number] | readonly [min: bigint, max: bigint] | undefined;
  /** Constructs the view of `length` elements from byte `offset`. */
  readonly View: new (
    buffer: ArrayBuffer,
    offset: number,
    length: number,
  ) => DTypeViews[T];
}

/** The element types by name. */
export const dtypes: { readonly [T in DType]: DTypeTraits<T> } = {
  f32: { code: dtypeCodes.f32, size: 4, View: Float32Array },
  f16: { code: dtypeCodes.f16, size: 2, View: Float16Array },
  bf16: { code: dtypeCodes.bf16, size: 2, View: Uint16Array },
  u8: { code: dtypeCodes.u8, size: 1, range: [0, 255], View: Uint8Array },
  i8: { code: dtypeCodes.i8, size: 1, range: [-128, 127], View: Int8Array },
  u16: { code: dtypeCodes.u16, size: 2, range: [0, 0xffff], View: Uint16Array },
  i16: { code: dtypeCodes.i16, size: 2, range: [-0x8000, 0x7fff], View: Int16Array },
  u32: { code: dtypeCodes.u32, size: 4, range: [0, 0xffff_ffff], View: Uint32Array },
  i32: { code: dtypeCodes.i32, size: 4, range: [-0x8000_0000, 0x7fff_ffff], View: Int32Array },
  u64: { code: dtypeCodes.u64, size: 8, range: [0n, 2n ** 64n - 1n], View: BigUint64Array },
  i64: { code: dtypeCodes.i64, size: 8, range: [-(2n ** 63n), 2n ** 63n - 1n], View: BigInt64Array },
  bool: { code: dtypeCodes.bool, size: 1, range: [0, 1], View: Uint8Array },
};

/** Whether `value` names an element type. */
function isDType(value: unknown): value is DType {
  return typeof value === "string" && Object.hasOwn(dtypes, value);
}

/** Refuses what names no element type. */
export function checkDType(value: unknown): asserts value is DType {
  if (!isDType(value)) {
    throw refused("dtype", `expected one of ${Object.keys(dtypes).join(", ")}, got ${display(value)}`);
  }
}

/**
 * Bytes per element: 8 for `u64` and `i64`, 4 for `f32`, `u32` and `i32`, 2 for `f16`, `bf16`, `u16` and `i16`, else 1.
 * Errors: `invalid-argument` for another name.
 */
export function dtypeSize(dtype: DType): number {
  checkDType(dtype);
  return dtypes[dtype].size;
}
