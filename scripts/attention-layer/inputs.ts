import { readFile } from "node:fs/promises";
import { floatValues, readSafetensors, type Safetensors } from "../../src/safetensors/index.ts";
import { projectText } from "./layer.ts";

/** Tokens of the prompt, at most. */
export const maxTokens = 2048;
/** Tokens appended after the prompt. */
export const decodeTokens = 32;
/** Tokens that the ring holds. */
export const ringSlots = 1024;
/** The head size of the layer. */
const headDim = 256;

/** What goes into the layer, in f32. */
export interface LayerInputs {
  /** What it was made from, for the reader. */
  readonly description: string;
  /** Tokens of the prompt. */
  readonly tokens: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  /** [tokens, heads, headDim] */
  readonly q: Float32Array<ArrayBuffer>;
  /** [tokens + decodeTokens, kvHeads, headDim] */
  readonly k: Float32Array<ArrayBuffer>;
  /** [tokens + decodeTokens, kvHeads, headDim] */
  readonly v: Float32Array<ArrayBuffer>;
}

/** The bytes of a file, of which there is at least one. */
export async function readText(path: string): Promise<Uint8Array> {
  const bytes = await readFile(path).catch((error: NodeJS.ErrnoException) => {
    throw new Error(`${path} cannot be read: ${error.message}`, { cause: error });
  });
  if (bytes.length === 0) throw new Error(`${path} is empty; a text of at least one byte is needed`);
  return bytes;
}

/** The bytes of a file as tokens. */
export async function inputsFromText(path: string): Promise<LayerInputs> {
  const bytes = await readText(path);
  const tokens = Math.min(bytes.length, maxTokens);
  const decoded = Uint8Array.from({ length: decodeTokens }, (_, i) => bytes[(tokens + i) % bytes.length] ?? 0);
  const shape = { heads: 8, kvHeads: 4, headDim };
  const { q, k, v } = projectText(Buffer.concat([bytes.subarray(0, tokens), decoded]), shape);
  return {
    description: `${tokens} of the ${bytes.length} bytes of ${path}`,
    tokens,
    ...shape,
    q: q.subarray(0, tokens * shape.heads * headDim),
    k,
    v,
  };
}

/** Tensors q, k and v of a safetensors file, head-major. */
export async function inputsFromSafetensors(path: string): Promise<LayerInputs> {
  const file = await readSafetensors(path);
  const q = headMajor(file, path, "q");
  const k = headMajor(file, path, "k");
  const v = headMajor(file, path, "v");
  const { heads, tokens } = q;
  const kvHeads = k.heads;
  for (const { name, shape } of [k, v]) {
    if (shape[0] !== kvHeads || shape[1] !== tokens) {
      throw new Error(`${path}: ${name} is [${shape}], but k and q ask for [${kvHeads}, ${tokens}, ${headDim}]`);
    }
  }
  if (heads % kvHeads !== 0)
    throw new Error(`${path}: the ${kvHeads} heads of k do not divide the ${heads} heads of q`);
  return {
    description: `q, k and v of ${path}, ${tokens} tokens`,
    tokens,
    heads,
    kvHeads,
    headDim,
    q: tokenMajor(q.values, heads, tokens),
    k: repeatRows(tokenMajor(k.values, kvHeads, tokens), kvHeads * headDim, tokens + decodeTokens),
    v: repeatRows(tokenMajor(v.values, kvHeads, tokens), kvHeads * headDim, tokens + decodeTokens),
  };
}

interface HeadMajor {
  readonly name: string;
  /** [heads, tokens, headDim] */
  readonly shape: readonly number[];
  readonly heads: number;
  readonly tokens: number;
  readonly values: Float32Array;
}

function headMajor({ tensors }: Safetensors, path: string, name: string): HeadMajor {
  const tensor = tensors.get(name);
  if (tensor === undefined) {
    throw new Error(`${path}: no tensor ${name}; it holds ${[...tensors.keys()].join(", ") || "none"}`);
  }
  const { shape } = tensor;
  const axes = shape.length === 4 && shape[0] === 1 ? shape.slice(1) : shape;
  const [heads = 0, tokens = 0, size] = axes;
  if (axes.length !== 3 || size !== headDim) {
    throw new Error(
      `${path}: ${name} is [${shape}]; expected [heads, tokens, ${headDim}] or [1, heads, tokens, ${headDim}]`,
    );
  }
  if (heads < 1 || tokens < 1 || tokens > maxTokens) {
    throw new Error(`${path}: ${name} is [${shape}]; expected at least 1 head and 1 to ${maxTokens} tokens`);
  }
  const values = floatValues(tensor, `${path}: ${name}`);
  const bad = values.findIndex((value) => !Number.isFinite(value));
  if (bad >= 0)
    throw new Error(`${path}: ${name} holds ${values[bad]} at element ${bad}; the results could not be checked`);
  return { name, shape: axes, heads, tokens, values };
}

/** [heads, tokens, headDim] to [tokens, heads, headDim]. */
function tokenMajor(values: Float32Array, heads: number, tokens: number): Float32Array<ArrayBuffer> {
  return swapAxes(values, heads, tokens, headDim);
}

/** [outer, inner, size] to [inner, outer, size], for elements of any type. */
export function swapAxes<T extends Float32Array | Uint16Array>(
  values: T,
  outer: number,
  inner: number,
  size: number,
): T extends Float32Array ? Float32Array<ArrayBuffer> : Uint16Array<ArrayBuffer>;
export function swapAxes(values: Float32Array | Uint16Array, outer: number, inner: number, size: number) {
  const swapped = values.slice();
  for (let a = 0; a < outer; a++) {
    for (let b = 0; b < inner; b++) {
      const row = (a * inner + b) * size;
      swapped.set(values.subarray(row, row + size), (b * outer + a) * size);
    }
  }
  return swapped;
}

/** `rows` rows, starting again at the first when they run out. */
function repeatRows(values: Float32Array, rowSize: number, rows: number): Float32Array<ArrayBuffer> {
  const repeated = new Float32Array(rows * rowSize);
  for (let start = 0; start < repeated.length; start += values.length) {
    repeated.set(values.subarray(0, repeated.length - start), start);
  }
  return repeated;
}
