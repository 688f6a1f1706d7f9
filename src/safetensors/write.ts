import { lstat, mkdir, open, realpath, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { checkObject, checkPath, display, failed, refused } from "../checks.ts";
import { OptionNames } from "../optionNames.ts";
import {
  checkTensor,
  elementSizes,
  lengthBytes,
  malformed,
  maxFileLength,
  maxHeaderLength,
  metadataKey,
  type SafetensorsTensor,
} from "./format.ts";

/** Tensors and metadata by name, in any order. */
export interface SafetensorsContent {
  readonly tensors: ReadonlyMap<string, SafetensorsTensor>;
  readonly metadata?: ReadonlyMap<string, string> | undefined;
}

const contentNames = new OptionNames<SafetensorsContent>("encodeSafetensors", { tensors: true, metadata: true });
const tensorNames = new OptionNames<SafetensorsTensor>("a tensor", { dtype: true, shape: true, bytes: true });

/**
 * The bytes of a safetensors file. The same content gives the same bytes,
 * whatever the order of the maps: tensors are sorted by element size, the
 * largest first, and then by name, so that each begins at a multiple of its
 * element size.
 *
 * Errors: `invalid-argument` for another type than is declared, an unknown name, extents that are
 * no whole numbers, more than 32 axes, bytes that do not fit the shape, a tensor
 * named `__metadata__`, or a header beyond 100 MB; `unsupported` for more than
 * 4 GiB in all.
 */
export function encodeSafetensors(content: SafetensorsContent): Uint8Array<ArrayBuffer> {
  contentNames.check(checkObject(content, "content"));
  const { tensors, metadata } = content;
  const sorted = [...checkMap(tensors, "tensors")]
    .map(([name, tensor]) => [name, useTensor(name, tensor)] as const)
    .sort(([nameA, a], [nameB, b]) => elementSizes[b.dtype] - elementSizes[a.dtype] || compare(nameA, nameB));
  const entries: [string, unknown][] = [];
  if (metadata !== undefined && checkMap(metadata, "metadata").size > 0) entries.push([metadataKey, textsOf(metadata)]);
  let end = 0;
  for (const [name, { dtype, shape, bytes }] of sorted) {
    entries.push([name, { dtype, shape, data_offsets: [end, end + bytes.length] }]);
    end += bytes.length;
  }
  const header = headerBytes(entries);
  const length = lengthBytes + header.length + end;
  if (length > maxFileLength) {
    throw refused(
      "tensors",
      `the file would have ${length} bytes, and ${maxFileLength} are the most; write several files`,
      "unsupported",
    );
  }
  const file = new Uint8Array(length);
  new DataView(file.buffer).setBigUint64(0, BigInt(header.length), true);
  file.set(header, lengthBytes);
  let start = lengthBytes + header.length;
  for (const [, { bytes }] of sorted) {
    file.set(bytes, start);
    start += bytes.length;
  }
  return file;
}

function checkMap<T extends ReadonlyMap<unknown, unknown>>(value: T, argument: string): T {
  if (!(value instanceof Map)) throw refused(argument, `expected a Map, got ${display(value)}`);
  return value;
}

/** A tensor under a name that a file can have. */
function useTensor(name: string, tensor: SafetensorsTensor): SafetensorsTensor {
  if (typeof name !== "string") throw refused("tensors", `expected names that are strings, got ${display(name)}`);
  if (name === metadataKey) throw malformed(name, "the name is taken by the file's metadata");
  tensorNames.check(checkObject(tensor, name), `${name}.`);
  return checkTensor(name, tensor);
}

/** Metadata as the header has it, sorted. */
function textsOf(metadata: ReadonlyMap<string, string>): Record<string, string> {
  for (const [key, text] of metadata) {
    if (typeof key === "string" && typeof text === "string") continue;
    throw refused("metadata", `expected strings by strings, got ${display(text)} by ${display(key)}`);
  }
  return Object.fromEntries([...metadata].sort(([a], [b]) => compare(a, b)));
}

/**
 * Writes a safetensors file, under a temporary name beside it until it is whole. A file that is there is replaced and
 * its permissions stay; of a symbolic link, the file that it leads to. Missing folders are made.
 *
 * Errors: as of {@link encodeSafetensors}; `invalid-argument` naming the path, with the system's reason, where the file
 * cannot be written, and where something else than a regular file is in its place.
 *
 * @example
 * const bytes = new Uint8Array(new Float32Array([1, 2]).buffer);
 * await writeSafetensors("x.safetensors", { tensors: new Map([["x", { dtype: "F32", shape: [2], bytes }]]) });
 */
export async function writeSafetensors(path: string, content: SafetensorsContent): Promise<void> {
  checkPath(path);
  const bytes = encodeSafetensors(content);
  try {
    const { file, mode } = await placeOf(path);
    await replace(file, mode, bytes);
  } catch (error) {
    throw failed(path, error);
  }
}

/** The file that `path` means, and its permissions where there is one. */
async function placeOf(path: string): Promise<{ file: string; mode?: number }> {
  const found = await lstat(path).catch((error) => {
    if (error.code !== "ENOENT") throw error;
  });
  if (found === undefined) {
    await mkdir(dirname(path), { recursive: true });
    return { file: path };
  }
  const file = await realpath(path);
  const status = await stat(file);
  if (!status.isFile()) throw malformed(path, "what is there is no regular file");
  return { file, mode: status.mode & 0o777 };
}

async function replace(file: string, mode: number | undefined, bytes: Uint8Array): Promise<void> {
  // Of each call its own, and short, since that of the file may be as long as the system allows.
  const temporary = join(dirname(file), `.ma-${crypto.randomUUID()}.tmp`);
  const handle = await open(temporary, "wx", mode);
  try {
    try {
      // What the umask takes away.
      if (mode !== undefined) await handle.chmod(mode);
      await handle.writeFile(bytes);
    } finally {
      await handle.close();
    }
    await rename(temporary, file);
  } catch (error) {
    // The reason is the first error.
    await rm(temporary, { force: true }).catch(() => undefined);
    throw error;
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
