import { checkObject, display } from "../checks.ts";
import { MetalAttentionError } from "../errors.ts";

/** Element types of a file, and bytes per element. */
export const elementSizes = {
  F64: 8,
  I64: 8,
  U64: 8,
  F32: 4,
  I32: 4,
  U32: 4,
  I16: 2,
  U16: 2,
  F16: 2,
  BF16: 2,
  I8: 1,
  U8: 1,
  BOOL: 1,
} as const;

/** Element types that are read and written here. */
export type SafetensorsDType = keyof typeof elementSizes;

/** A row-major tensor. */
export interface SafetensorsTensor {
  readonly dtype: SafetensorsDType;
  /** Elements along each axis, the slowest first; [] is a scalar. */
  readonly shape: readonly number[];
  /** Little-endian elements. The start has no alignment of its own. */
  readonly bytes: Uint8Array;
}

/** What a file holds. */
export interface Safetensors {
  /** By name. */
  readonly tensors: ReadonlyMap<string, SafetensorsTensor>;
  /** Free text by key. */
  readonly metadata: ReadonlyMap<string, string>;
}

/** Where a tensor lies in a file. */
export interface SafetensorsPlace {
  readonly dtype: SafetensorsDType;
  /** Elements along each axis, the slowest first; [] is a scalar. */
  readonly shape: readonly number[];
  /** Its first byte. */
  readonly start: number;
  /** The byte after its last. */
  readonly end: number;
}

/** What a file says that it holds. */
export interface SafetensorsHeader {
  /** By name. */
  readonly tensors: ReadonlyMap<string, SafetensorsPlace>;
  /** Free text by key. */
  readonly metadata: ReadonlyMap<string, string>;
}

/** Longest header that is read, in bytes: the limit of the format's own library. */
export const maxHeaderLength = 100_000_000;

/** Longest file that is read or written as a whole, in bytes: no ArrayBuffer holds more. */
export const maxFileLength = 2 ** 32;

/** Most axes of a tensor. */
export const maxAxes = 32;

/** The header's key for metadata, which no tensor can have as its name. */
export const metadataKey = "__metadata__";

/** Bytes before the header: its length, a little-endian u64. */
export const lengthBytes = 8;

/** Bytes of `shape` elements; undefined where the product is not exact as a number. */
export function byteLengthOf(dtype: SafetensorsDType, shape: readonly number[]): number | undefined {
  const length = shape.reduce((product, extent) => product * extent, elementSizes[dtype]);
  return Number.isSafeInteger(length) ? length : undefined;
}

/** A tensor whose fields are what they are declared to be, each read once; `name` stands for it in messages. */
export function checkTensor(name: string, tensor: SafetensorsTensor): SafetensorsTensor {
  const { dtype, shape, bytes } = checkObject(tensor, name);
  if (typeof dtype !== "string" || !Object.hasOwn(elementSizes, dtype)) {
    throw malformed(name, `expected a dtype of ${Object.keys(elementSizes).join(", ")}, got ${display(dtype)}`);
  }
  if (!Array.isArray(shape)) throw malformed(name, `expected a shape that is an array, got ${display(shape)}`);
  // A copy, in which missing elements are undefined.
  const axes: readonly number[] = Array.from({ length: Math.min(shape.length, maxAxes + 1) }, (_, axis) => shape[axis]);
  if (axes.length > maxAxes || !axes.every((extent) => Number.isSafeInteger(extent) && extent >= 0)) {
    throw malformed(name, `the shape [${axes.map(display)}] is not at most ${maxAxes} whole numbers`);
  }
  if (!(bytes instanceof Uint8Array)) {
    throw malformed(name, `expected bytes that are a Uint8Array, got ${display(bytes)}`);
  }
  const needed = byteLengthOf(dtype, axes);
  if (needed !== bytes.length) {
    throw malformed(name, `${dtype} [${axes}] takes ${needed ?? "too many"} bytes, got ${bytes.length}`);
  }
  return { dtype, shape: axes, bytes };
}

/** A name out of a file for messages: quoted, and cut where it is long. */
export function quoted(name: string): string {
  const longest = 100;
  return JSON.stringify(name.length > longest ? `${name.slice(0, longest)}...` : name);
}

/** The error for a file or tensor that breaks the format. */
export function malformed(where: string, reason: string, cause?: unknown): MetalAttentionError {
  return new MetalAttentionError("invalid-argument", `${where}: ${reason}`, { argument: where, cause });
}
