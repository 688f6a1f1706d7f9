import * as z from "zod";
import { checkPath, display, refused } from "../checks.ts";
import { MetalAttentionError } from "../errors.ts";
import {
  byteLengthOf,
  elementSizes,
  lengthBytes,
  malformed,
  maxAxes,
  maxHeaderLength,
  metadataKey,
  quoted,
  type Safetensors,
  type SafetensorsDType,
  type SafetensorsHeader,
  type SafetensorsPlace,
  type SafetensorsTensor,
} from "./format.ts";
import { repeatedKey } from "./jsonKeys.ts";

const extent = z.int().min(0);
const dtypeNames = Object.keys(elementSizes) as [SafetensorsDType, ...SafetensorsDType[]];
const tensorEntry = z.strictObject({
  dtype: z.enum(dtypeNames),
  shape: z.array(extent).max(maxAxes),
  data_offsets: z.tuple([extent, extent]),
});
const metadataEntries = z.map(z.string(), z.string());

/**
 * Reads a safetensors file. The tensors' bytes are views into the file's.
 *
 * Errors: `invalid-argument` naming the path, for a file that cannot be read
 * or that {@link decodeSafetensors} refuses.
 *
 * @example
 * const { tensors } = await readSafetensors("layer.safetensors");
 * console.log(tensors.get("q")?.shape);
 */
export async function readSafetensors(path: string): Promise<Safetensors> {
  checkPath(path);
  let bytes: Uint8Array;
  try {
    bytes = await Bun.file(path).bytes();
  } catch (error) {
    throw malformed(path, error instanceof Error ? error.message : String(error), error);
  }
  return decodeSafetensors(bytes, path);
}

/**
 * Reads the bytes of a safetensors file: an 8-byte length, a JSON header, then
 * the data of all tensors without gap or overlap. `label` stands for the file
 * in messages.
 *
 * Errors: `invalid-argument` for a file that is cut, a header beyond 100 MB or
 * not JSON, a key given twice, an unknown dtype, a shape that does not fit its
 * bytes, and data that overlaps, leaves a gap or leaves the file.
 */
export function decodeSafetensors(bytes: Uint8Array, label = "safetensors"): Safetensors {
  if (!(bytes instanceof Uint8Array)) throw refused("bytes", `expected a Uint8Array, got ${display(bytes)}`);
  const header = readHeader(bytes, bytes.length, label);
  const data = bytes.subarray(lengthBytes + header.byteLength);
  const { tensors: places, metadata } = placesOf(header.entries, data.length, label);
  const tensors = new Map<string, SafetensorsTensor>();
  for (const [name, { dtype, shape, start, end }] of places) {
    tensors.set(name, { dtype, shape, bytes: data.subarray(start, end) });
  }
  return { tensors, metadata };
}

/**
 * Reads the header of a safetensors file and leaves the data where it is: for files that are larger than memory, or whose
 * tensors go elsewhere. `start` and `end` of a tensor are bytes of the file.
 *
 * Errors: as of {@link readSafetensors}.
 *
 * @example
 * const { tensors } = await readSafetensorsHeader("model.safetensors");
 * const { start, end } = tensors.get("lm_head.weight") ?? { start: 0, end: 0 };
 * const bytes = await Bun.file("model.safetensors").slice(start, end).bytes();
 */
export async function readSafetensorsHeader(path: string): Promise<SafetensorsHeader> {
  checkPath(path);
  let bytes: Uint8Array;
  let fileLength: number;
  try {
    const file = Bun.file(path);
    fileLength = (await file.stat()).size;
    const first = await file.slice(0, lengthBytes).bytes();
    const declared = declaredLength(first, path);
    bytes = await file.slice(0, Math.min(lengthBytes + declared, fileLength)).bytes();
  } catch (error) {
    if (error instanceof MetalAttentionError) throw error;
    throw malformed(path, error instanceof Error ? error.message : String(error), error);
  }
  const header = readHeader(bytes, fileLength, path);
  const dataStart = lengthBytes + header.byteLength;
  const { tensors: places, metadata } = placesOf(header.entries, fileLength - dataStart, path);
  const tensors = new Map<string, SafetensorsPlace>();
  for (const [name, { dtype, shape, start, end }] of places) {
    tensors.set(name, { dtype, shape, start: dataStart + start, end: dataStart + end });
  }
  return { tensors, metadata };
}

/** Where the tensors of a header lie in `dataLength` bytes of data, each checked, and the metadata. */
function placesOf(entries: Record<string, unknown>, dataLength: number, label: string): SafetensorsHeader {
  const places = new Map<string, SafetensorsPlace>();
  const ranges: Range[] = [];
  let metadata = new Map<string, string>();
  for (const [name, value] of Object.entries(entries)) {
    if (name === metadataKey) {
      // As a map: a record of zod's loses the key `__proto__`.
      const texts = isObject(value) ? new Map(Object.entries(value)) : value;
      metadata = check(metadataEntries, texts, `${label}: ${metadataKey}`);
      continue;
    }
    const where = `${label}: tensor ${quoted(name)}`;
    const { dtype, shape, data_offsets } = check(tensorEntry, value, where);
    const [start, end] = data_offsets;
    const needed = byteLengthOf(dtype, shape);
    if (start > end || end > dataLength) {
      throw malformed(where, `bytes ${start} to ${end} are outside the ${dataLength} bytes of data`);
    }
    if (needed !== end - start) {
      throw malformed(
        where,
        `${dtype} [${shape}] takes ${needed ?? "too many"} bytes, the offsets span ${end - start}`,
      );
    }
    places.set(name, { dtype, shape, start, end });
    ranges.push({ where, start, end });
  }
  checkCoverage(ranges, dataLength, label);
  return { tensors: places, metadata };
}

interface Range {
  readonly where: string;
  readonly start: number;
  readonly end: number;
}

/** Bytes of the header, as the file says. */
function declaredLength(bytes: Uint8Array, label: string): number {
  if (bytes.length < lengthBytes) {
    throw malformed(label, `${bytes.length} bytes are no safetensors file, which begins with an 8-byte length`);
  }
  const declared = new DataView(bytes.buffer, bytes.byteOffset, lengthBytes).getBigUint64(0, true);
  if (declared > BigInt(maxHeaderLength)) {
    throw malformed(
      label,
      `the header is said to have ${declared} bytes, more than ${maxHeaderLength}: no safetensors?`,
    );
  }
  return Number(declared);
}

/** The header of a file of `fileLength` bytes, of which `bytes` are the first. */
function readHeader(
  bytes: Uint8Array,
  fileLength: number,
  label: string,
): { byteLength: number; entries: Record<string, unknown> } {
  const byteLength = declaredLength(bytes, label);
  const present = fileLength - lengthBytes;
  if (byteLength > present) {
    throw malformed(label, `the header has ${byteLength} bytes, but only ${present} follow: the file is cut`);
  }
  let text: string;
  let value: unknown;
  try {
    // A mark of the byte order stays in the text, and is no JSON.
    const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
    text = decoder.decode(bytes.subarray(lengthBytes, lengthBytes + byteLength));
    value = JSON.parse(text);
  } catch (error) {
    throw malformed(label, `the header is not JSON: ${error instanceof Error ? error.message : String(error)}`, error);
  }
  if (!isObject(value) || !text.startsWith("{")) {
    throw malformed(label, "the header is no JSON object");
  }
  const repeated = repeatedKey(text);
  if (repeated !== undefined) throw malformed(label, `the header has the key ${quoted(repeated)} twice`);
  return { byteLength, entries: value };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Every byte of the data belongs to one tensor. */
function checkCoverage(ranges: Range[], length: number, label: string): void {
  let covered = 0;
  for (const { where, start, end } of ranges.toSorted((a, b) => a.start - b.start || a.end - b.end)) {
    if (start < covered)
      throw malformed(where, `its data begins at ${start}, inside the tensor that ends at ${covered}`);
    if (start > covered) throw malformed(where, `its data begins at ${start}, after a gap from ${covered}`);
    covered = end;
  }
  if (covered !== length) throw malformed(label, `${length - covered} bytes at the end belong to no tensor`);
}

function check<S extends z.ZodType>(schema: S, value: unknown, where: string): z.output<S> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  // A hostile header can make both as long as itself.
  const parts = [issue?.path.join("."), issue?.message].filter((part) => part !== undefined && part !== "");
  throw malformed(where, parts.map((part) => part?.slice(0, 200)).join(": "), result.error);
}
