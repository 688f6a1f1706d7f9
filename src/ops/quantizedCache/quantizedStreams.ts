import { display, refused } from "../../checks.ts";
import type { DeviceLifetime } from "../../device/lifetime.ts";
import type { Tensor, TensorRange } from "../../device/tensor.ts";
import type { MetalAttentionError } from "../../errors.ts";
import type { Native } from "../../ffi/library.ts";
import { nativeError } from "../../ffi/status.ts";
import { isDual } from "../cacheCopy/streams.ts";
import { checkAxis, useTensor } from "../shapes.ts";
import { bytesPerRow, normsPerPosition, type QuantizedFormat } from "./quantizedFormat.ts";

/** The tensors of a quantised cache. */
export interface QuantizedCache {
  /** Codes: u8 [nKvHeads, capacity, bytesPerRow]. */
  readonly packed: Tensor;
  /** Norms: f32 [nKvHeads, capacity, normsPerPos], with normsPerPos = max(1, headDim / 256). */
  readonly norms: Tensor;
}

/** Head vectors and the cache that they go to. */
export interface QuantizeStream extends QuantizedCache {
  /** f32: [nKvHeads, headDim] for one token, [nSrcTokens, nKvHeads, headDim] for a run of them. */
  readonly src: Tensor;
}

/** A cache and where its head vectors go. */
export interface DequantizeStream extends QuantizedCache {
  /** [nKvHeads, nTokens, headDim], f32, f16 or bf16. */
  readonly out: Tensor;
}

/** One stream, or K and V in one dispatch. */
type OneOrBoth<Stream> =
  | (Stream & { readonly k?: undefined; readonly v?: undefined })
  | ({ readonly k: Stream; readonly v: Stream } & { readonly [Name in keyof Stream]?: undefined });

/** One stream to encode, or K and V of the same shapes in one dispatch. */
export type QuantizeStreams = OneOrBoth<QuantizeStream>;

/** One stream to decode, or K and V of the same shapes and dtypes in one dispatch. */
export type DequantizeStreams = OneOrBoth<DequantizeStream>;

/** The argument of an operation that holds head vectors, and the axes it has. */
export interface VectorsArgument {
  readonly name: "src" | "out";
  readonly axes: readonly string[];
  /** Which of them is nKvHeads; headDim is the last. */
  readonly headAxis: number;
}

/** A stream's tensors, checked. */
interface StreamRanges {
  readonly vectors: TensorRange;
  readonly packed: TensorRange;
  readonly norms: TensorRange;
}

/** The tensors of a call, checked, and what their shapes say. */
export interface StreamsInUse {
  readonly k: StreamRanges;
  readonly v: StreamRanges | undefined;
  /** Whether K and V were given. */
  readonly dual: boolean;
  readonly nKvHeads: number;
  readonly headDim: number;
  readonly capacity: number;
}

/** Checks the tensors that `args` names. */
export function useStreams(
  args: QuantizeStreams | DequantizeStreams,
  device: DeviceLifetime,
  format: QuantizedFormat,
  argument: VectorsArgument,
): StreamsInUse {
  // A field is read once, so that a getter can neither change it nor call in between.
  const { name } = argument;
  const { k, v, [name]: vectors, packed, norms } = args as Fields;
  const hasSingle = vectors !== undefined || packed !== undefined || norms !== undefined;
  const dual = isDual(k, v, hasSingle, name, `${name}, packed and norms`);
  const rangesOfK = useStream(k ?? { [name]: vectors, packed, norms }, device, dual ? "k." : "", format, argument);
  const { shape } = rangesOfK.vectors;
  const capacity = rangesOfK.packed.shape[1] as number;
  let rangesOfV: StreamRanges | undefined;
  if (v !== undefined) {
    rangesOfV = useStream(v, device, "v.", format, argument);
    for (const [axis, label] of argument.axes.entries()) {
      checkAxis(`v.${name}`, label, rangesOfV.vectors.shape[axis] as number, shape[axis] as number, `k.${name}`);
    }
    checkAxis("v.packed", "capacity", rangesOfV.packed.shape[1] as number, capacity, "k.packed");
  }
  const nKvHeads = shape[argument.headAxis] as number;
  return { k: rangesOfK, v: rangesOfV, dual, nKvHeads, headDim: shape.at(-1) as number, capacity };
}

/** The tensors of a call before they are checked. */
interface Fields {
  readonly src?: unknown;
  readonly out?: unknown;
  readonly packed?: unknown;
  readonly norms?: unknown;
  readonly k?: Fields;
  readonly v?: Fields;
}

/** Checks the tensors of one stream; `prefix` is "", "k." or "v.". */
function useStream(
  stream: Fields,
  device: DeviceLifetime,
  prefix: string,
  format: QuantizedFormat,
  { name, axes, headAxis }: VectorsArgument,
): StreamRanges {
  const [packedName, normsName] = [`${prefix}packed`, `${prefix}norms`];
  const vectors = useTensor(stream[name], device, `${prefix}${name}`, axes.length, `[${axes.join(", ")}]`);
  const [nKvHeads, headDim] = [vectors.shape[headAxis] as number, vectors.shape.at(-1) as number];

  const packed = useTensor(stream.packed, device, packedName, 3, "[nKvHeads, capacity, bytesPerRow]");
  checkAxis(packedName, "nKvHeads", packed.shape[0] as number, nKvHeads, `${prefix}${name}`);
  const rowBytes = bytesPerRow(headDim, format);
  const row = `a headDim of ${headDim} at ${format.bits} bits, packing ${format.packing}`;
  checkAxis(packedName, "bytesPerRow", packed.shape[2] as number, rowBytes, row);

  const norms = useTensor(stream.norms, device, normsName, 3, "[nKvHeads, capacity, normsPerPos]");
  checkAxis(normsName, "nKvHeads", norms.shape[0] as number, nKvHeads, `${prefix}${name}`);
  checkAxis(normsName, "capacity", norms.shape[1] as number, packed.shape[1] as number, packedName);
  checkAxis(normsName, "normsPerPos", norms.shape[2] as number, normsPerPosition(headDim), `a headDim of ${headDim}`);
  return { vectors, packed, norms };
}

/** The factor for head sizes above 256, as a number; 1 unless given. */
export function checkScaleFactor(value: unknown): number {
  if (value === undefined) return 1;
  if (typeof value !== "number") throw refused("scaleFactorD512", `expected a number, got ${display(value)}`);
  return value;
}

/** The caller's names for fields of the parameter structs. */
const callersNames: Readonly<Record<string, string>> = {
  head_dim: "headDim",
  num_kv_heads: "nKvHeads",
  cache_capacity: "capacity",
  write_pos: "writePos",
  write_pos_start: "writePosStart",
  read_pos_start: "readPosStart",
  n_tokens: "nTokens",
  src_tok_offset: "srcTokOffset",
  scale_factor_d512: "scaleFactorD512",
};
const fieldNames = new RegExp(`\\b(?:${Object.keys(callersNames).join("|")})\\b`, "g");

/** The library's error about a quantised cache, with everything named as the caller wrote it. */
export function quantizedError(native: Native, status: number, dual: boolean): MetalAttentionError {
  const first = dual ? "k." : "";
  return nativeError(native, status, (message) =>
    message
      .replace(fieldNames, (name) => callersNames[name] as string)
      // The capacity comes from the shape of a cache.
      .replace(/^(ma_\w+: )(?=capacity is )/, `$1${first}packed: `)
      .replace(/\b(src|packed|norms|out)K\b/g, `${first}$1`)
      .replace(/\b(src|packed|norms|out)V\b/g, "v.$1"),
  );
}
