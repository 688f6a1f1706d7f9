import * as z from "zod/mini";
import { checkPath, display, refused } from "../checks.ts";
import { type DType, dtypeSize } from "../device/dtypes.ts";
import { elementCount } from "../device/tensor.ts";
import type { MetalAttentionError } from "../errors.ts";
import { CODEBOOKS } from "../reference/codebooks.ts";
import { hadamardSign } from "../reference/hadamard.ts";
import { maxFileLength } from "../safetensors/format.ts";
import {
  readSafetensors,
  type SafetensorsDType,
  type SafetensorsTensor,
  writeSafetensors,
} from "../safetensors/index.ts";
import type { KvMemory } from "./memory.ts";
import { type KvCacheOptions, optionsOf, useOptions } from "./options.ts";
import { readRuns, writeRuns } from "./runs.ts";
import { savedTensors } from "./savedTensors.ts";
import type { SequenceState } from "./state.ts";

const format = "metal-attention KvCache";
/** Of the layout that this file describes. */
const version = "1";

const dtypes: Partial<Record<DType, SafetensorsDType>> = { f32: "F32", f16: "F16", bf16: "BF16", u8: "U8" };

/** What a file says of itself beside the tensors: each text under its key. */
interface Header {
  readonly format: string;
  readonly version: string;
  /** The options that the cache was made with, as JSON. */
  readonly options: string;
  /** Hashes of what codes mean: centroids, and the signs of the transform. */
  readonly codebooks: string;
  readonly signs: string;
  /** How the keys of each layer are turned, as JSON. */
  readonly rope: string;
  /** Lengths, pages and ids of the sequences, as JSON. */
  readonly sequences: string;
}

const count = z.int().check(z.gte(0));
const savedSequences = z.array(
  z.strictObject({
    slot: count,
    length: count,
    high: count,
    quantized: count,
    denseFrom: count,
    pages: z.array(z.int().check(z.gte(-1))),
    released: count,
    ids: z.array(z.int()),
  }),
);
const savedNotes = z.array(z.nullable(z.string()));
const savedOptions = z.record(z.string(), z.unknown());

/** @internal A sequence as a file has it. */
export type SavedSequence = z.output<typeof savedSequences>[number];

/** @internal A file that was read, and fits this library. */
interface SavedCache {
  readonly options: KvCacheOptions;
  readonly ropeNotes: readonly (string | undefined)[];
  readonly sequences: readonly SavedSequence[];
  readonly tensors: ReadonlyMap<string, SafetensorsTensor>;
}

/** Writes the sequences of a cache. */
export async function saveCache(
  path: string,
  memory: KvMemory,
  states: readonly SequenceState[],
  ropeNotes: readonly (string | undefined)[],
): Promise<void> {
  checkPath(path);
  const wanted = savedTensors(memory, states);
  const length = wanted.reduce((sum, { tensor, shape }) => sum + elementCount(shape) * dtypeSize(tensor.dtype), 0);
  // Before all of it is copied.
  if (length > maxFileLength) {
    throw refused(
      "cache",
      `its sequences take ${length} bytes, and a file has ${maxFileLength} at most; drop or crop some first`,
      "unsupported",
    );
  }
  const tensors = new Map<string, SafetensorsTensor>();
  for (const { name, tensor, shape, runs } of wanted) {
    const bytes = runs.length === 0 ? new Uint8Array(0) : readRuns(runs);
    tensors.set(name, { dtype: dtypes[tensor.dtype] as SafetensorsDType, shape, bytes });
  }
  const { layers } = memory.config;
  const header: Header = {
    format,
    version,
    options: JSON.stringify(optionsOf(memory.config)),
    codebooks: codebookHash(),
    signs: signHash(),
    rope: JSON.stringify(Array.from({ length: layers }, (_, layer) => ropeNotes[layer] ?? null)),
    sequences: JSON.stringify(states.map(({ isLive: _, ...state }) => state)),
  };
  const metadata = new Map([...Object.entries(header), ["sha256", contentHash(header, tensors)]]);
  await writeSafetensors(path, { tensors, metadata });
}

/** Reads a file; refused where it was changed, or means something else than here. */
export async function readCache(path: string): Promise<SavedCache> {
  checkPath(path);
  const { tensors, metadata } = await readSafetensors(path);
  const texts = Object.fromEntries(metadata);
  const expect = (key: keyof Header, expected: string, what: string) => {
    if (texts[key] !== expected) throw unlike(path, what, texts[key] ?? "nothing", expected);
  };
  expect("format", format, "format");
  expect("version", version, "version");
  expect("codebooks", codebookHash(), "hash of the codebooks");
  expect("signs", signHash(), "hash of the signs");
  const { options = "", rope = "", sequences = "", codebooks = "", signs = "", sha256 = "" } = texts;
  const found = contentHash({ format, version, options, codebooks, signs, rope, sequences }, tensors);
  if (found !== sha256) throw unlike(path, "SHA-256 of the content", found, `${sha256}, as it says itself`);
  return {
    options: parse(savedOptions, options, path, "options") as unknown as KvCacheOptions,
    ropeNotes: parse(savedNotes, rope, path, "rope").map((note) => note ?? undefined),
    sequences: parse(savedSequences, sequences, path, "sequences"),
    tensors,
  };
}

/** Refuses a file whose cache has other options than the caller expects, with both values. */
export function checkOptions(path: string, saved: KvCacheOptions, expected: Partial<KvCacheOptions>): void {
  for (const name of Object.keys(expected) as (keyof KvCacheOptions)[]) {
    const found = saved[name];
    const wanted = withDefaults(saved, name, expected[name]);
    if (!Bun.deepEquals(found, wanted)) throw unlike(path, name, textOf(found), textOf(wanted));
  }
}

/** An option with all that has a default, as it would be of the saved cache; as it was given where it fits no such. */
function withDefaults(saved: KvCacheOptions, name: keyof KvCacheOptions, given: unknown): unknown {
  try {
    return optionsOf(useOptions({ ...saved, [name]: given }))[name];
  } catch {
    return given;
  }
}

function textOf(value: unknown): string {
  try {
    return JSON.stringify(value) ?? "nothing";
  } catch {
    return display(value);
  }
}

/** Puts the contents of a file into the memory of the sequences that it names. */
export function fillMemory(
  path: string,
  memory: KvMemory,
  states: readonly SequenceState[],
  { tensors }: SavedCache,
): void {
  const wanted = savedTensors(memory, states);
  if (wanted.length !== tensors.size) throw unlike(path, "number of tensors", `${tensors.size}`, `${wanted.length}`);
  for (const { name, tensor, shape } of wanted) {
    const saved = tensors.get(name);
    const text = (dtype: unknown, axes: readonly number[]) => `${dtype} [${axes}]`;
    const expected = text(dtypes[tensor.dtype], shape);
    const found = saved === undefined ? "nothing" : text(saved.dtype, saved.shape);
    if (found !== expected) throw unlike(path, `tensor ${name}`, found, expected);
  }
  for (const { name, runs } of wanted) {
    if (runs.length > 0) writeRuns(runs, (tensors.get(name) as SafetensorsTensor).bytes);
  }
}

/** The error for a file that has one thing where another is expected. */
export function unlike(path: string, what: string, found: string, expected: string): MetalAttentionError {
  return refused(path, `its ${what} is ${found}, and here ${expected}`);
}

function parse<S extends z.ZodMiniType>(schema: S, text: string, path: string, what: string): z.output<S> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = undefined;
  }
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  throw unlike(path, what, JSON.stringify(text.slice(0, 100)), "the JSON that save() writes");
}

function contentHash(header: Header, tensors: ReadonlyMap<string, SafetensorsTensor>): string {
  const hash = new Bun.CryptoHasher("sha256");
  for (const text of Object.values(header)) hash.update(`${text}\0`);
  for (const [name, { dtype, shape, bytes }] of [...tensors].sort(([a], [b]) => (a < b ? -1 : 1))) {
    hash.update(`${name} ${dtype} ${shape}\0`);
    hash.update(bytes);
  }
  return hash.digest("hex");
}

function codebookHash(): string {
  return new Bun.CryptoHasher("sha256").update(JSON.stringify(CODEBOOKS)).digest("hex");
}

function signHash(): string {
  const signs = Array.from({ length: 512 }, (_, j) => hadamardSign(j));
  return new Bun.CryptoHasher("sha256").update(signs.join()).digest("hex");
}
