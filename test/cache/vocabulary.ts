import {
  applyRope,
  type Device,
  dequantizeKv,
  hadamardQuantizeKvSeq,
  type KvFormat,
  type KvRope,
  kvCacheBytes,
  type Tensor,
} from "../../src/index.ts";
import { roundTo } from "../../src/reference/index.ts";
import { normalDraws } from "../helpers/random.ts";

/** Tokens that programs append: their keys and values, [vocabularySize, nKvHeads, headDim]. */
export const vocabularySize = 24;

/** A stream of the vocabulary as attention sees it, by how it is kept. */
export interface Words {
  readonly source: Float32Array;
  /** Rounded to a dtype, or encoded and decoded. */
  as(format: KvFormat): Float32Array;
}

/** The keys or the values of all tokens. */
export function wordsOf(device: Device, seed: number, nKvHeads: number, headDim: number): Words {
  const draw = normalDraws(seed);
  return wordsFrom(device, Float32Array.from({ length: vocabularySize * nKvHeads * headDim }, draw), nKvHeads, headDim);
}

/** Keys as they are at a position, turned by it. */
export function wordsAt(
  { source }: Words,
  device: Device,
  rope: KvRope,
  position: number,
  [nKvHeads, headDim]: readonly [number, number],
): Words {
  // All as heads of one token.
  using x = device.tensor("f32", [1, vocabularySize * nKvHeads, headDim]).set(source);
  using pass = device.pass();
  applyRope(pass, { x, start: position, layout: "sequence-major", ...rope });
  pass.commitAndWait();
  return wordsFrom(device, x.toFloat32Array(), nKvHeads, headDim);
}

function wordsFrom(device: Device, source: Float32Array, nKvHeads: number, headDim: number): Words {
  const known = new Map<string, Float32Array>();
  const as = (format: KvFormat) => {
    const key = JSON.stringify(format);
    let values = known.get(key);
    if (values === undefined) {
      values = typeof format === "string" ? rounded(source, format) : coded(device, source, format, nKvHeads, headDim);
      known.set(key, values);
    }
    return values;
  };
  return { source, as };
}

/** The source as kept in `dtype` first, and from there in `format`. */
export function wordsThrough(
  words: Words,
  device: Device,
  dtype: "f16" | "bf16",
  format: KvFormat,
  shape: readonly [number, number],
): Float32Array {
  const through = words.as(dtype);
  if (typeof format === "string") return rounded(through, format);
  return coded(device, through, format, ...shape);
}

function rounded(values: Float32Array, dtype: "f32" | "f16" | "bf16"): Float32Array {
  return dtype === "f32" ? values : values.map((value) => roundTo(dtype, value));
}

function coded(
  device: Device,
  values: Float32Array,
  format: Exclude<KvFormat, string>,
  nKvHeads: number,
  headDim: number,
): Float32Array {
  const { bytesPerRow, normsPerPos } = kvCacheBytes({ headDim, nKvHeads, capacity: vocabularySize, ...format });
  using src = device.tensor("f32", [vocabularySize, nKvHeads, headDim]).set(values);
  using packed = device.tensor("u8", [nKvHeads, vocabularySize, bytesPerRow]);
  using norms = device.tensor("f32", [nKvHeads, vocabularySize, normsPerPos]);
  using out: Tensor<"f32"> = device.tensor("f32", [nKvHeads, vocabularySize, headDim]);
  using pass = device.pass();
  hadamardQuantizeKvSeq(pass, { src, packed, norms, ...format, writePosStart: 0 });
  dequantizeKv(pass, { packed, norms, out, ...format });
  pass.commitAndWait();
  const headMajor = out.toFloat32Array();
  return values.map((_, i) => {
    const token = Math.floor(i / (nKvHeads * headDim));
    const head = Math.floor(i / headDim) % nKvHeads;
    return headMajor[(head * vocabularySize + token) * headDim + (i % headDim)] as number;
  });
}
