import {
  type Device,
  dequantizeKv,
  hadamardQuantizeKvSeq,
  type KvCacheBytes,
  kvCacheBytes,
  kvCacheCopySeq,
  type Pass,
  type QuantizedFormatArgs,
  type StridedLayout,
  type Tensor,
} from "../../src/index.ts";
import { headMajorStrides, sequenceMajorStrides } from "../../src/reference/index.ts";
import type { AttentionDType, KeyValue, KvFormat } from "./choice.ts";
import type { LayerInputs } from "./inputs.ts";

/** Bits and packing of a quantized cache. */
export type KvCodes = { readonly [Name in keyof QuantizedFormatArgs]-?: NonNullable<QuantizedFormatArgs[Name]> };

/** The codes of each width, without gaps. */
const kvCodes: Readonly<Record<Exclude<KvFormat, "f16" | "f32">, KvCodes>> = {
  2: { bits: 2, packing: "dense" },
  3: { bits: 3, packing: "dense" },
  4: { bits: 4, packing: "nibble" },
  5: { bits: 5, packing: "dense" },
  6: { bits: 6, packing: "dense" },
  8: { bits: 8, packing: "byte" },
};

/** One of K and V in a quantized cache: codes and norms, [kvHeads, tokens, ..]. */
export interface QuantizedRows {
  readonly packed: Tensor<"u8">;
  readonly norms: Tensor<"f32">;
}

/** K and V as codes. */
export interface QuantizedKeyValue {
  readonly codes: KvCodes;
  readonly k: QuantizedRows;
  readonly v: QuantizedRows;
}

/** K and V as they are, [kvHeads, tokens, headDim]. */
export interface PlainKeyValue extends KeyValue<"f16" | "f32"> {
  readonly codes: undefined;
}

/** K and V of the prompt as they are kept, read back, and attended again. */
export interface RoundTrip {
  readonly format: KvFormat;
  readonly cost: KvCacheBytes;
  readonly cache: QuantizedKeyValue | PlainKeyValue;
  /** [kvHeads, tokens, headDim] */
  readonly readBack: KeyValue<AttentionDType>;
  /** Attention over it, [1, tokens, heads, headDim]. */
  readonly out: Tensor<AttentionDType>;
  /** Of attention with these keys and values. */
  readonly layout: StridedLayout;
}

/** Makes the tensors. */
export function makeRoundTrip(device: Device, format: KvFormat, dtype: AttentionDType, inputs: LayerInputs): RoundTrip {
  const { tokens, heads, kvHeads, headDim } = inputs;
  const shape = { headDim, nKvHeads: kvHeads, capacity: tokens };
  const rows = [kvHeads, tokens, headDim];
  const keys = headMajorStrides(kvHeads, tokens, headDim);
  const queries = sequenceMajorStrides(heads, tokens, headDim);
  const common = {
    format,
    readBack: { k: device.tensor(dtype, rows), v: device.tensor(dtype, rows) },
    out: device.tensor(dtype, [1, tokens, heads, headDim]),
    layout: { batch: 1, heads, kvHeads, seqLenQ: tokens, headDim, q: queries, k: keys, v: keys, out: queries },
  };
  if (format === "f16" || format === "f32") {
    const cache = { codes: undefined, k: device.tensor(format, rows), v: device.tensor(format, rows) };
    return { ...common, cost: kvCacheBytes({ ...shape, dtype: format }), cache };
  }
  const codes = kvCodes[format];
  const cost = kvCacheBytes({ ...shape, ...codes });
  const quantized = (): QuantizedRows => ({
    packed: device.tensor("u8", [kvHeads, tokens, cost.bytesPerRow]),
    norms: device.tensor("f32", [kvHeads, tokens, cost.normsPerPos]),
  });
  return { ...common, cost, cache: { codes, k: quantized(), v: quantized() } };
}

/** Encodes the writing of the prompt's K and V, f32 [tokens, kvHeads, headDim]. */
export function encodeWrite(pass: Pass, { cache }: RoundTrip, { k, v }: KeyValue<"f32">): void {
  if (cache.codes === undefined) {
    kvCacheCopySeq(pass, { k: { src: k, cache: cache.k }, v: { src: v, cache: cache.v }, seqPosStart: 0 });
  } else {
    hadamardQuantizeKvSeq(pass, {
      k: { src: k, ...cache.k },
      v: { src: v, ...cache.v },
      ...cache.codes,
      writePosStart: 0,
    });
  }
}

/** Encodes the reading; a plain cache needs no kernel, and is converted here and now. */
export function encodeReadBack(pass: Pass, { cache, readBack }: RoundTrip): void {
  if (cache.codes === undefined) {
    readBack.k.set(cache.k.toFloat32Array());
    readBack.v.set(cache.v.toFloat32Array());
  } else {
    dequantizeKv(pass, { k: { ...cache.k, out: readBack.k }, v: { ...cache.v, out: readBack.v }, ...cache.codes });
  }
}
