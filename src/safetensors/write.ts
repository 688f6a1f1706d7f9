import { rename, rm } from "node:fs/promises";
import { checkPath } from "../checks.ts";
import {
  byteLengthOf,
  elementSizes,
  lengthBytes,
  malformed,
  maxAxes,
  maxHeaderLength,
  metadataKey,
  type SafetensorsTensor,
} from "./format.ts";

/** Tensors and metadata by name, in any order. */
export interface SafetensorsContent {
  readonly tensors: ReadonlyMap<string, SafetensorsTensor>;
  readonly metadata?: ReadonlyMap<string, string>;
}

/**
 * The bytes of a safetensors file. The same content gives the same bytes,
 * whatever the order of the maps: tensors are sorted by element size, the
 * largest first, and then by name, so that each begins at a multiple of its
 * element size.
 *
 * Errors: `invalid-argument` for extents that are no whole numbers, more than 32
 * axes, bytes that do not fit the shape, a tensor named `__metadata__`, or a
 * header beyond 100 MB.
 */
export function encodeSafetensors({ tensors, metadata }: SafetensorsContent): Uint8Array<ArrayBuffer> {
  const sorted = [...tensors].sort(
    ([nameA, a], [nameB, b]) => elementSizes[b.dtype] - elementSizes[a.dtype] || compare(nameA, nameB),
  );
  const entries: [string, unknown][] = [];
  if (metadata !== undefined && metadata.size > 0) {
    entries.push([metadataKey, Object.fromEntries([...metadata].sort(([a], [b]) => compare(a, b)))]);
  }
  let end = 0;
  for (const [name, { dtype, shape, bytes }] of sorted) {
    if (name === metadataKey) throw malformed(name, "the name is taken by the file's metadata");
    if (shape.length > maxAxes || !shape.every((extent) => Number.isSafeInteger(extent) && extent >= 0)) {
      throw malformed(name, `the shape [${shape}] is not at most ${maxAxes} whole numbers`);
    }
    const needed = byteLengthOf(dtype, shape);
    if (needed !== bytes.length) {
      throw malformed(name, `${dtype} [${shape}] takes ${needed ?? "too many"} bytes, got ${bytes.length}`);
    }
    entries.push([name, { dtype, shape, data_offsets: [end, end + bytes.length] }]);
    end += bytes.length;
  }
  const header = headerBytes(entries);
  const file = new Uint8Array(lengthBytes + header.length + end);
  new DataView(file.buffer).setBigUint64(0, BigInt(header.length), true);
  file.set(header, lengthBytes);
  let start = lengthBytes + header.length;
  for (const [, { bytes }] of sorted) {
    file.set(bytes, start);
    start += bytes.length;
  }
  return file;
}

/**
 * Writes a safetensors file, under a temporary name until it is whole.
 *
 * @example
 * const bytes = new Uint8Array(new Float32Array([1, 2]).buffer);
 * await writeSafetensors("x.safetensors", { tensors: new Map([["x", { dtype: "F32", shape: [2], bytes }]]) });
 */
export async function writeSafetensors(path: string, content: SafetensorsContent): Promise<void> {
  checkPath(path);
  const bytes = encodeSafetensors(content);
  const temporary = `${path}.${process.pid}.tmp`;
  try {
    await Bun.write(temporary, bytes);
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw malformed(path, error instanceof Error ? error.message : String(error), error);
  }
}

/** JSON, padded with spaces so that the data begins at a multiple of 8 bytes. */
function headerBytes(entries: readonly [string, unknown][]): Uint8Array {
  // One entry at a time: an object would put names that look like numbers first.
  const text = `{${entries.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`).join(",")}}`;
  const bytes = new TextEncoder().encode(text);
  const padded = new Uint8Array(Math.ceil(bytes.length / 8) * 8).fill(0x20);
  padded.set(bytes);
  if (padded.length > maxHeaderLength) {
    throw malformed("tensors", `their header takes ${padded.length} bytes, more than ${maxHeaderLength}`);
  }
  return padded;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
