import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import * as z from "zod";
import { checkPath, display, failed, refused } from "../checks.ts";
import {
  byteLengthOf,
  elementSizes,
  lengthBytes,
  malformed,
  maxAxes,
  maxFileLength,
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
 * Reads a safetensors file, its header first. The tensors' bytes are views into one array.
 *
 * Errors: `invalid-argument` naming the path, for a file that cannot be read, is no regular file, or that
 * {@link decodeSafetensors} refuses; `unsupported` for one of more than 4 GiB.
 *
 * @example
 * const { tensors } = await readSafetensors("layer.safetensors");
 * console.log(tensors.get("q")?.shape);
 */
export async function readSafetensors(path: string): Promise<Safetensors> {
  return await useFile(path, async (file, fileLength) => {
    const header = await headerOf(file, fileLength, path);
    if (fileLength > maxFileLength) {
      throw refused(
        path,
        `the file has ${fileLength} bytes, and no more than ${maxFileLength} are read at once; read its tensors one by ` +
          "one, from where readSafetensorsHeader says that they are",
        "unsupported",
      );
    }
    return contentOf(header, await bytesOf(file, header.dataStart, fileLength, path));
  });
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
  if (typeof label !== "string") throw refused("label", `expected a string, got ${display(label)}`);
  const header = readHeader(bytes, bytes.length, label);
  return contentOf(header, bytes.subarray(header.dataStart));
}

/**
 * Reads the header of a safetensors file and leaves the data where it is: for files that are larger than memory, or whose
 * tensors go elsewhere. `start` and `end` of a tensor are bytes of the file.
 *
 * Errors: `invalid-argument` as of {@link readSafetensors}.
 *
 * @example
 * const { tensors } = await readSafetensorsHeader("model.safetensors");
 * const { start, end } = tensors.get("lm_head.weight") ?? { start: 0, end: 0 };
 * const bytes = await Bun.file("model.safetensors").slice(start, end).bytes();
 */
export async function readSafetensorsHeader(path: string): Promise<SafetensorsHeader> {
  const { dataStart, tensors: places, metadata } = await useFile(path, (file, length) => headerOf(file, length, path));
  const tensors = new Map<string, SafetensorsPlace>();
  for (const [name, { dtype, shape, start, end }] of places) {
    tensors.set(name, { dtype, shape, start: dataStart + start, end: dataStart + end });
  }
  return { tensors, metadata };
}

/** Calls `use` with an open file and its length; whatever goes wrong is an error that names the path. */
async function useFile<T>(path: string, use: (file: FileHandle, length: number) => Promise<T>): Promise<T> {
  checkPath(path);
  try {
    // Otherwise a FIFO is waited for until someone writes.
    const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const status = await file.stat();
      if (!status.isFile()) throw malformed(path, "it is no regular file");
      return await use(file, status.size);
    } finally {
      await file.close();
    }
  } catch (error) {
    throw failed(path, error);
  }
}

async function headerOf(file: FileHandle, fileLength: number, path: string): Promise<Header> {
  const first = await bytesOf(file, 0, Math.min(lengthBytes, fileLength), path);
  const end = Math.min(lengthBytes + declaredLength(first, path), fileLength);
  return readHeader(await bytesOf(file, 0, end, path), fileLength, path);
}

/** Bytes `start` to `end` of a file, which are there unless it becomes shorter meanwhile. */
async function bytesOf(file: FileHandle, start: number, end: number, path: string): Promise<Uint8Array> {
  const bytes = new Uint8Array(end - start);
  let count = 0;
  // The system reads 2 GiB at most at once.
  while (count < bytes.length) {
    const { bytesRead } = await file.read(bytes, count, bytes.length - count, start + count);
    if (bytesRead === 0)
      throw malformed(path, `it had more than ${start + count} bytes, and became shorter as it was read`);
    count += bytesRead;
  }
  return bytes;
}

/** The tensors of a file whose data is `data`. */
function contentOf({ tensors: places, metadata }: SafetensorsHeader, data: Uint8Array): Safetensors {
  const tensors = new Map<string, SafetensorsTensor>();
  for (const [name, { dtype, shape, start, end }] of places) {
    tensors.set(name, { dtype, shape, bytes: data.subarray(start, end) });
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

/** What a header says, with places counted from where the data starts. */
interface Header extends SafetensorsHeader {
  readonly dataStart: number;
}

/** The header of a file of `fileLength` bytes, of which `bytes` are the first, checked against that length. */
function readHeader(bytes: Uint8Array, fileLength: number, label: string): Header {
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
  const dataStart = lengthBytes + byteLength;
  return { dataStart, ...placesOf(value, fileLength - dataStart, label) };
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
