import { checkFlag, checkPositive, refused } from "../../checks.ts";
import type { FloatDType } from "../../device/dtypes.ts";
import type { DeviceLifetime } from "../../device/lifetime.ts";
import type { Tensor, TensorRange } from "../../device/tensor.ts";
import { OptionNames } from "../../optionNames.ts";
import { batchOf, checkAxis, checkHeadAxis, fromEnd, useBatched } from "../shapes.ts";
import { isDual, type OneOrBoth } from "../streams.ts";
import {
  bytesPerRow,
  normsPerPosition,
  type QuantizedFormat,
  type QuantizedFormatArgs,
  useFormat,
} from "./quantizedFormat.ts";

/** The tensors of a quantized cache; both may have a batch axis before those named. */
export interface QuantizedCache {
  /** Codes: u8 [nKvHeads, capacity, bytesPerRow]. */
  readonly packed: Tensor<"u8">;
  /** Norms: f32 [nKvHeads, capacity, normsPerPos], with normsPerPos = max(1, headDim / 256). */
  readonly norms: Tensor<"f32">;
}

/** Head vectors and the cache that they go to. */
export interface QuantizeStream extends QuantizedCache {
  /**
   * [nKvHeads, headDim] for one token, [nSrcTokens, nKvHeads, headDim] for a run, with a batch before it or not. f32, or
   * f16 or bf16, which are encoded as the f32 values that they are.
   */
  readonly src: Tensor<FloatDType>;
}

/** Head vectors of a run and the cache that they go to, whose `bits` and `packing` are those of the call unless given. */
export interface QuantizeRunStream extends QuantizeStream, Partial<QuantizedFormatArgs> {}

/** A cache and where its head vectors go. */
export interface DequantizeStream extends QuantizedCache {
  /** [nKvHeads, nTokens, headDim] or with a batch before it, f32, f16 or bf16. */
  readonly out: Tensor<FloatDType>;
}

/** One stream to encode, or K and V of the same shapes and dtypes in one dispatch. */
export type QuantizeStreams = OneOrBoth<QuantizeStream>;

/** K and V of a run, in one dispatch. */
export type QuantizeRunPair<Stream> = { readonly k: Stream; readonly v: Stream } & {
  readonly [Name in keyof QuantizeStream]?: undefined;
};

/** One run to encode, or K and V in one dispatch, each in a format of its own or in that of the call. */
export type QuantizeRuns =
  | (QuantizeStream & QuantizedFormatArgs & { readonly k?: undefined; readonly v?: undefined })
  | (QuantizeRunPair<QuantizeRunStream> & QuantizedFormatArgs)
  | (QuantizeRunPair<QuantizeStream & QuantizedFormatArgs> & Partial<QuantizedFormatArgs>);

/** One stream to decode, or K and V of the same shapes and dtypes in one dispatch. */
export type DequantizeStreams = OneOrBoth<DequantizeStream>;

/** How the cache of a call is walked, and its coordinates are scaled. */
export interface QuantizedWalkArgs {
  /** True for a ring: slot = position mod capacity. False (the default) for a linear cache: slot = position. */
  readonly isSliding?: boolean | undefined;
  /**
   * Factor of the coordinates of head sizes above 256, finite and above 0; 1 unless given. Smaller ones ignore it.
   * Decoding applies the reciprocal of the encoding's.
   */
  readonly scaleFactorD512?: number;
}

/** How the cache of a call is quantized and walked. */
export interface QuantizedCacheArgs extends QuantizedFormatArgs, QuantizedWalkArgs {}

/** The argument of an operation that holds head vectors, and the axes it has. */
interface VectorsArgument {
  readonly name: "src" | "out";
  readonly axes: readonly string[];
  /** Which of them is nKvHeads, counted from the last, which is headDim and 1. */
  readonly headAxis: number;
  /** The names inside `k` and `v`. */
  readonly names: OptionNames<QuantizeStream> | OptionNames<QuantizeRunStream> | OptionNames<DequantizeStream>;
}

/** The argument `name` with such axes, batch apart. */
export function vectorsArgument(
  name: VectorsArgument["name"],
  axes: readonly string[],
  names: VectorsArgument["names"],
): VectorsArgument {
  return { name, axes, headAxis: axes.length - axes.indexOf("nKvHeads"), names };
}

/** The names inside `k` and `v` of an encoding. */
export const quantizeStreamNames = new OptionNames<QuantizeStream>("a stream", {
  src: true,
  packed: true,
  norms: true,
});

/** The names inside `k` and `v` of the encoding of a run. */
export const quantizeRunNames = new OptionNames<QuantizeRunStream>("a stream", {
  src: true,
  packed: true,
  norms: true,
  bits: true,
  packing: true,
});

/** The names inside `k` and `v` of a decoding. */
export const dequantizeStreamNames = new OptionNames<DequantizeStream>("a stream", {
  out: true,
  packed: true,
  norms: true,
});

/** The names that every call of the quantized cache has, beside those of its vectors and positions. */
export const quantizedNames = {
  packed: true,
  norms: true,
  k: true,
  v: true,
  bits: true,
  packing: true,
  isSliding: true,
  scaleFactorD512: true,
} as const;

/** @internal A stream's format and tensors, checked. */
interface StreamRanges {
  readonly format: QuantizedFormat;
  readonly vectors: TensorRange;
  readonly packed: TensorRange;
  readonly norms: TensorRange;
}

/** @internal The formats and the tensors of a call, checked, and what their shapes say. */
export interface QuantizedCall {
  readonly isSliding: number;
  readonly scaleFactorD512: number;
  readonly k: StreamRanges;
  readonly v: StreamRanges | undefined;
  /** Whether K and V were given. */
  readonly dual: boolean;
  readonly batch: number;
  readonly nKvHeads: number;
  readonly headDim: number;
  readonly capacity: number;
}

/** @internal Checks the formats and the tensors that `args` names. */
export function useQuantizedCall(
  args: (QuantizeStreams | QuantizeRuns | DequantizeStreams) & QuantizedWalkArgs,
  device: DeviceLifetime,
  argument: VectorsArgument,
  hasPages = false,
): QuantizedCall {
  const isSliding = checkFlag(args.isSliding, "isSliding");
  const { scaleFactorD512: factor } = args;
  const scaleFactorD512 = factor === undefined ? 1 : checkPositive(factor, "scaleFactorD512");
  // A field is read once, so that a getter can neither change it nor call in between.
  const { name } = argument;
  const { k, v, [name]: vectors, packed, norms, bits, packing } = args as Fields;
  const hasSingle = vectors !== undefined || packed !== undefined || norms !== undefined;
  const dual = isDual(k, v, hasSingle, name, `${name}, packed and norms`);
  if (k !== undefined) argument.names.check(k, "k.");
  const rangesOfK = useStream(
    k ?? { [name]: vectors, packed, norms },
    device,
    dual ? "k." : "",
    k === undefined ? useFormat(bits, packing) : formatOf(k, "k.", bits, packing),
    argument,
    hasPages,
  );
  const first = rangesOfK.vectors;
  const rank = argument.axes.length;
  const batch = batchOf(first, rank);
  const capacity = fromEnd(rangesOfK.packed, 2);
  let rangesOfV: StreamRanges | undefined;
  if (v !== undefined) {
    argument.names.check(v, "v.");
    rangesOfV = useStream(v, device, "v.", formatOf(v, "v.", bits, packing), argument, hasPages);
    checkAxis(`v.${name}`, "B", batchOf(rangesOfV.vectors, rank), batch, `k.${name}`);
    for (const [axis, label] of argument.axes.entries()) {
      const got = fromEnd(rangesOfV.vectors, rank - axis);
      checkAxis(`v.${name}`, label, got, fromEnd(first, rank - axis), `k.${name}`);
    }
    checkAxis("v.packed", hasPages ? "pageTokens" : "capacity", fromEnd(rangesOfV.packed, 2), capacity, "k.packed");
    if (hasPages)
      checkAxis("v.packed", "nPages", batchOf(rangesOfV.packed, 3), batchOf(rangesOfK.packed, 3), "k.packed");
  }
  const nKvHeads = fromEnd(first, argument.headAxis);
  const headDim = fromEnd(first, 1);
  return { isSliding, scaleFactorD512, k: rangesOfK, v: rangesOfV, dual, batch, nKvHeads, headDim, capacity };
}

/** The tensors of a call before they are checked. */
interface Fields {
  readonly src?: unknown | undefined;
  readonly out?: unknown | undefined;
  readonly packed?: unknown | undefined;
  readonly norms?: unknown | undefined;
  readonly bits?: unknown | undefined;
  readonly packing?: unknown | undefined;
  readonly k?: Fields | undefined;
  readonly v?: Fields | undefined;
}

/** The format of K or V: each field of its own, or the call's. */
function formatOf(stream: Fields, path: string, bits: unknown, packing: unknown): QuantizedFormat {
  const { bits: ownBits, packing: ownPacking } = stream;
  return useFormat(
    ownBits === undefined ? bits : ownBits,
    ownPacking === undefined ? packing : ownPacking,
    ownBits === undefined ? "" : path,
    ownPacking === undefined ? "" : path,
  );
}

/** Checks the tensors of one stream; `prefix` is "", "k." or "v.". */
function useStream(
  stream: Fields,
  device: DeviceLifetime,
  prefix: string,
  format: QuantizedFormat,
  { name, axes, headAxis }: VectorsArgument,
  hasPages: boolean,
): StreamRanges {
  const [packedName, normsName] = [`${prefix}packed`, `${prefix}norms`];
  const vectors = useBatched(stream[name], device, `${prefix}${name}`, axes.length, `[${axes.join(", ")}]`);
  const batch = batchOf(vectors, axes.length);
  const nKvHeads = fromEnd(vectors, headAxis);
  const headDim = fromEnd(vectors, 1);

  const packed = useBatched(stream.packed, device, packedName, 3, "[nKvHeads, capacity, bytesPerRow]");
  if (axes.length === 3) {
    checkHeadAxis(`${prefix}${name}`, vectors, headAxis, fromEnd(packed, 3), `[${axes.join(", ")}]`);
  }
  if (hasPages) checkPool(packedName, packed, "bytesPerRow");
  else checkAxis(packedName, "B", batchOf(packed, 3), batch, `${prefix}${name}`);
  checkAxis(packedName, "nKvHeads", fromEnd(packed, 3), nKvHeads, `${prefix}${name}`);
  const rowBytes = bytesPerRow(headDim, format);
  const row = `a headDim of ${headDim} at ${format.bits} bits, packing ${format.packing}`;
  checkAxis(packedName, "bytesPerRow", fromEnd(packed, 1), rowBytes, row);

  const norms = useBatched(stream.norms, device, normsName, 3, "[nKvHeads, capacity, normsPerPos]");
  if (hasPages) {
    checkPool(normsName, norms, "normsPerPos");
    checkAxis(normsName, "nPages", batchOf(norms, 3), batchOf(packed, 3), packedName);
  } else checkAxis(normsName, "B", batchOf(norms, 3), batch, `${prefix}${name}`);
  checkAxis(normsName, "nKvHeads", fromEnd(norms, 3), nKvHeads, `${prefix}${name}`);
  checkAxis(normsName, hasPages ? "pageTokens" : "capacity", fromEnd(norms, 2), fromEnd(packed, 2), packedName);
  checkAxis(normsName, "normsPerPos", fromEnd(norms, 1), normsPerPosition(headDim), `a headDim of ${headDim}`);
  return { format, vectors, packed, norms };
}

/** Refuses what is no pool of pages. */
function checkPool(argument: string, { shape }: TensorRange, lastAxis: string): void {
  if (shape.length !== 4) {
    throw refused(argument, `expected pages [nPages, nKvHeads, pageTokens, ${lastAxis}], got [${shape}]`);
  }
}

/** @internal The tensors of an encoding, as its argument struct has them. */
export function encodedTensors({ k, v }: QuantizedCall) {
  return {
    srcK: k.vectors,
    packedK: k.packed,
    normsK: k.norms,
    srcV: v?.vectors,
    packedV: v?.packed,
    normsV: v?.norms,
  };
}

/** @internal What the parameters of every kernel of the quantized cache have. */
export function cacheParams({ headDim, nKvHeads, capacity, isSliding, scaleFactorD512 }: QuantizedCall) {
  return {
    head_dim: headDim,
    num_kv_heads: nKvHeads,
    cache_capacity: capacity,
    is_sliding: isSliding,
    scale_factor_d512: scaleFactorD512,
  };
}
