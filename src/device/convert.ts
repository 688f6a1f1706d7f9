import { display, refused } from "../checks.ts";
import { MetalAttentionError } from "../errors.ts";
import { type DType, type DTypeViews, dtypes } from "./dtypes.ts";

/** Values that a tensor takes: numbers, or booleans where it is of `bool`, or bigints where of `u64` or `i64`. */
export type TensorValues = ArrayLike<number> | ArrayLike<boolean> | ArrayLike<number | bigint>;

/**
 * Bit patterns of `values` as IEEE half precision, round to nearest even.
 * From 65,520 in magnitude on they become infinities; NaN stays NaN.
 *
 * @example
 * float32ToFloat16(new Float32Array([1, -2])); // Uint16Array [0x3c00, 0xc000]
 */
export function float32ToFloat16(values: Float32Array): Uint16Array<ArrayBuffer> {
  checkArray(values, Float32Array, "values");
  return new Uint16Array(new Float16Array(values).buffer);
}

/** Exact values of half-precision bit patterns, subnormals included. */
export function float16ToFloat32(bits: Uint16Array): Float32Array<ArrayBuffer> {
  checkArray(bits, Uint16Array, "bits");
  const values = new Float32Array(bits.length);
  const words = new Uint32Array(values.buffer);
  for (let i = 0; i < bits.length; i++) {
    const half = bits[i] as number;
    const magnitude = half & 0x7fff;
    // Exponent and fraction go to their float places; 2^112 mends the bias, for subnormals too.
    words[i] = magnitude << 13;
    values[i] = (values[i] as number) * 2 ** 112;
    if (magnitude >= 0x7c00) words[i] = 0x7f80_0000 | (magnitude << 13);
    words[i] = (words[i] as number) | ((half & 0x8000) << 16);
  }
  return values;
}

/**
 * Bit patterns of `values` as bfloat16 (the upper half of a float), round to
 * nearest even. NaN stays NaN and keeps its sign.
 */
export function float32ToBfloat16(values: Float32Array): Uint16Array<ArrayBuffer> {
  checkArray(values, Float32Array, "values");
  const bits = new Uint16Array(values.length);
  roundToBfloat16(values, bits);
  return bits;
}

/** Exact values of bfloat16 bit patterns. */
export function bfloat16ToFloat32(bits: Uint16Array): Float32Array<ArrayBuffer> {
  checkArray(bits, Uint16Array, "bits");
  const values = new Float32Array(bits.length);
  const words = new Uint32Array(values.buffer);
  for (let i = 0; i < bits.length; i++) words[i] = (bits[i] as number) << 16;
  return values;
}

/** Refuses what is no array of a class, and one whose memory is gone. */
function checkArray(value: unknown, Class: typeof Float32Array | typeof Uint16Array, argument: string): void {
  if (!(value instanceof Class)) throw refused(argument, `expected a ${Class.name}, got ${display(value)}`);
  checkAttached(value, argument);
}

/** Refuses an array whose memory was transferred to somebody else. */
export function checkAttached(values: ArrayBufferView, argument: string): void {
  const { buffer } = values;
  if (!(buffer instanceof ArrayBuffer) || !buffer.detached) return;
  throw refused(argument, "expected an array with memory, got one whose ArrayBuffer was transferred");
}

function roundToBfloat16(values: Float32Array, target: Uint16Array): void {
  const words = new Uint32Array(values.buffer, values.byteOffset, values.length);
  for (let i = 0; i < words.length; i++) {
    const word = words[i] as number;
    // A NaN gets its quiet bit, lest rounding turn it into an infinity.
    if ((word & 0x7fff_ffff) > 0x7f80_0000) target[i] = (word >>> 16) | 0x40;
    else target[i] = (word + 0x7fff + ((word >>> 16) & 1)) >>> 16;
  }
}

const plainPrototypes = new Set<unknown>([
  Float64Array.prototype,
  Float32Array.prototype,
  Float16Array.prototype,
  Int32Array.prototype,
  Uint32Array.prototype,
  Int16Array.prototype,
  Uint16Array.prototype,
  Int8Array.prototype,
  Uint8Array.prototype,
  Uint8ClampedArray.prototype,
  BigInt64Array.prototype,
  BigUint64Array.prototype,
]);

/** What all typed arrays inherit: works on those of other realms too, whatever properties they were given. */
const inherited: PropertyDescriptorMap = Object.getOwnPropertyDescriptors(Object.getPrototypeOf(Uint8Array.prototype));

/** The name of a typed array's class; undefined for anything else. */
export function typedArrayName(values: unknown): string | undefined {
  return inherited[Symbol.toStringTag]?.get?.call(values);
}

/** Elements of an array or a typed array. */
export function countOf(values: TensorValues): number {
  return ArrayBuffer.isView(values) ? inherited["length"]?.get?.call(values) : values.length;
}

/** Whether `values` is a typed array of 64-bit integers. */
export function isBigArray(values: unknown): values is BigInt64Array | BigUint64Array {
  const name = typedArrayName(values);
  return name === "BigInt64Array" || name === "BigUint64Array";
}

/**
 * `values`, or a copy of them, that runs no code of the caller's when it is
 * read: an array may have getters, and a typed array members of its own, which
 * could free the tensor that is being written.
 */
export function ownValues(values: TensorValues): TensorValues {
  if (!ArrayBuffer.isView(values)) return Array.from({ length: values.length }, (_, i) => values[i]) as TensorValues;
  const isPlain =
    plainPrototypes.has(Object.getPrototypeOf(values)) &&
    !Object.hasOwn(values, "length") &&
    !Object.hasOwn(values, "buffer") &&
    !Object.hasOwn(values, "byteOffset");
  if (isPlain) return values;
  if (isBigArray(values))
    return typedArrayName(values) === "BigInt64Array" ? new BigInt64Array(values) : new BigUint64Array(values);
  // Every other element type is exact in it.
  return new Float64Array(values as unknown as ArrayLike<number>);
}

/**
 * Writes `values` into the view of a tensor. Float types round each value to
 * f32 first, as a Float32Array of them does, and then to the type. Integer
 * types and `bool` take whole numbers in their range, and refuse all others.
 * Nothing is written when a value is refused. `values` are those of `ownValues`.
 */
export function encodeValues<T extends DType>(dtype: T, values: TensorValues, view: DTypeViews[T]): void {
  const range = dtypes[dtype].range;
  if (range === undefined) {
    // A source in the tensor's own memory may lie anywhere over it, so it is read before anything is written.
    const isApart = values instanceof Float32Array && values.buffer !== view.buffer;
    const floats = isApart ? values : new Float32Array(numbers(values));
    if (dtype === "bf16") roundToBfloat16(floats, view as Uint16Array);
    else (view as Float32Array | Float16Array).set(floats);
    return;
  }
  if (dtype === "u64" || dtype === "i64") {
    (view as BigInt64Array | BigUint64Array).set(bigints(values, range[0] as bigint, range[1] as bigint));
    return;
  }
  const takesBooleans = dtype === "bool";
  for (let i = 0; i < values.length; i++) {
    const value: unknown = values[i];
    if (takesBooleans && typeof value === "boolean") continue;
    if (typeof value !== "number" || !Number.isInteger(value) || value < range[0] || value > range[1]) {
      throw refusedValue(`a whole number from ${range[0]} to ${range[1]}`, value, i);
    }
  }
  // Reads a source in the same memory before it writes, and takes booleans for 1 and 0.
  (view as Exclude<DTypeViews[DType], Float16Array | BigInt64Array | BigUint64Array>).set(values as ArrayLike<number>);
}

/** The values of a tensor's view as floats. Integers beyond 2^24 are rounded; `bool` gives 0 and 1. */
export function decodeValues<T extends DType>(dtype: T, view: DTypeViews[T]): Float32Array<ArrayBuffer> {
  switch (dtype) {
    case "bf16":
      return bfloat16ToFloat32(view as Uint16Array);
    case "f16":
      return float16ToFloat32(new Uint16Array(view.buffer, view.byteOffset, view.length));
    case "u64":
    case "i64":
      return Float32Array.from(view as BigInt64Array | BigUint64Array, toDouble);
    default:
      return new Float32Array(view as Exclude<DTypeViews[DType], Float16Array | BigInt64Array | BigUint64Array>);
  }
}

/** A 64-bit integer, rounded to odd where a double cannot hold it, so that what a float makes of it is rounded once. */
function toDouble(value: bigint): number {
  const size = value < 0n ? -value : value;
  if (size < 2n ** 53n) return Number(value);
  const odd = Number((size >> 11n) | (size & 0x7ffn ? 1n : 0n)) * 2 ** 11;
  return value < 0n ? -odd : odd;
}

/** The values of a tensor of 64-bit integers. */
function bigints(values: TensorValues, min: bigint, max: bigint): bigint[] {
  return Array.from({ length: values.length }, (_, i) => {
    const value: unknown = values[i];
    if ((typeof value === "bigint" || isSafe(value)) && value >= min && value <= max) return BigInt(value);
    throw refusedValue(`a whole number from ${min} to ${max}, as a bigint beyond 2^53`, value, i);
  });
}

function isSafe(value: unknown): value is number {
  return Number.isSafeInteger(value);
}

function numbers(values: TensorValues): ArrayLike<number> {
  if (ArrayBuffer.isView(values)) return values as ArrayLike<number>;
  for (let i = 0; i < values.length; i++) {
    if (typeof values[i] !== "number") throw refusedValue("a number", values[i], i);
  }
  return values as ArrayLike<number>;
}

function refusedValue(expected: string, value: unknown, index: number): MetalAttentionError {
  return new MetalAttentionError("invalid-argument", `values[${index}]: expected ${expected}, got ${display(value)}`, {
    argument: "values",
  });
}
