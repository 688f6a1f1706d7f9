import type { Device, Pipeline, Tensor } from "../../src/index.ts";
import type { CodeFormat, CodePacking } from "../../src/reference/index.ts";
import { wholeShaderText } from "./shaders.ts";

/** Head sizes with kernels of their own. */
export const headSizes = [64, 80, 96, 112, 128, 192, 256, 512];

/** Every format, by name. */
export const codeFormats: readonly CodeFormat[] = [
  { bits: 4, packing: "nibble" },
  { bits: 5, packing: "byte" },
  { bits: 6, packing: "byte" },
  { bits: 8, packing: "byte" },
  { bits: 2, packing: "dense" },
  { bits: 3, packing: "dense" },
  { bits: 5, packing: "dense" },
  { bits: 6, packing: "dense" },
];

const sizedNames: Readonly<Record<CodePacking, string>> = { nibble: "fast_", byte: "hb_", dense: "dense_" };
const anySizeNames: Readonly<Record<CodePacking, string>> = { nibble: "", byte: "_hb", dense: "_dense" };
const dtypeCodes = { f32: 1, f16: 2, bf16: 3 } as const;

/** A cache and the extents of a dispatch on it. */
export interface HadamardDispatch {
  readonly format: CodeFormat;
  readonly headDim: number;
  readonly nKvHeads: number;
  readonly capacity: number;
  readonly posStart: number;
  readonly isSliding: boolean;
  readonly scaleFactorD512?: number;
  /** Kernels for any size where there are some for this one. */
  readonly anySize?: boolean;
}

/** Source, codes and norms of K, or of V. */
export interface HadamardStream {
  readonly src: Tensor<"f32">;
  readonly packed: Tensor<"u8">;
  readonly norms: Tensor<"f32">;
}

/** Lanes that share a head vector in the kernels for one size: a SIMD group for one token, fewer in bulk. */
const simdWidth = 32;
const bulkLanes = (headDim: number): number => Math.max(1, 2 ** Math.ceil(Math.log2(headDim / 64)));

/** Runs the kernels of a device, compiled on first use. */
export class HadamardKernels {
  readonly #device: Device;
  readonly #edit: (text: string) => string;
  readonly #pipelines = new Map<string, Pipeline>();

  /** `edit` changes the text of a shader, headers included. */
  constructor(device: Device, edit: (text: string) => string = (text) => text) {
    this.#device = device;
    this.#edit = edit;
  }

  /** The names that kernels get here: the library may know the plain ones already. */
  #pipeline(file: string, kernel: string): Pipeline {
    const known = this.#pipelines.get(kernel);
    if (known !== undefined) return known;
    const name = `${kernel}_tested_${HadamardKernels.#count++}`;
    this.#device.registerSource(`${name}.metal`, onlyKernel(this.#edit(wholeShaderText(file)), kernel, name));
    const pipeline = this.#device.pipeline(name);
    this.#pipelines.set(kernel, pipeline);
    return pipeline;
  }
  static #count = 0;

  /** Writes one token of each stream with the kernels for single tokens; `scratch` turns the probe on. */
  quantize(
    dispatch: HadamardDispatch,
    streams: readonly HadamardStream[],
    token: number,
    scratch?: Tensor<"f32">,
  ): void {
    const { format, headDim, nKvHeads } = dispatch;
    const isSized = this.#isSized(dispatch);
    const name = isSized ? `_${sizedNames[format.packing]}d${headDim}` : anySizeNames[format.packing];
    const params = packParams(dispatch, [format.packing === "nibble" ? (scratch ? 1 : 0) : format.bits]);
    const source = ({ src }: HadamardStream) => {
      const rows = src.reshape([src.length / headDim, headDim]);
      return { tensor: rows.slice(token * nKvHeads, (token + 1) * nKvHeads), access: "read" } as const;
    };
    const [k, v = k] = streams as [HadamardStream, HadamardStream?];
    const buffers = {
      0: source(k),
      1: k.packed,
      2: k.norms,
      ...(format.packing === "nibble" ? { 4: scratch ?? k.norms } : {}),
      5: source(v),
      6: v.packed,
      7: v.norms,
    } as const;
    const file = isSized ? "hadamard_quantize_kv.metal" : "hadamard_quantize_kv_any.metal";
    const kernel = `hadamard_quantize_kv${name}`;
    this.#run(file, kernel, buffers, params, dispatch, simdWidth, nKvHeads, streams.length);
  }

  /** Writes `nTokens` tokens of each stream in one dispatch. */
  quantizeSeq(
    dispatch: HadamardDispatch,
    streams: readonly HadamardStream[],
    nTokens: number,
    srcTokOffset: number,
  ): void {
    const { format, headDim } = dispatch;
    const isSized = this.#isSized(dispatch);
    const name = isSized ? `_${sizedNames[format.packing]}d${headDim}` : anySizeNames[format.packing];
    const params = packParams(dispatch, [format.bits, nTokens, srcTokOffset]);
    const [k, v = k] = streams as [HadamardStream, HadamardStream?];
    const buffers = {
      0: { tensor: k.src, access: "read" },
      1: k.packed,
      2: k.norms,
      4: { tensor: v.src, access: "read" },
      5: v.packed,
      6: v.norms,
    } as const;
    const rows = dispatch.nKvHeads * nTokens;
    const kernel = `hadamard_quantize_kv_seq${name}`;
    const file = isSized ? "hadamard_quantize_kv_seq.metal" : "hadamard_quantize_kv_any.metal";
    this.#run(file, kernel, buffers, params, dispatch, bulkLanes(headDim), rows, streams.length);
  }

  /** Reads `nTokens` positions of each stream into outs, [nKvHeads, nTokens, headDim]. */
  dequantize(
    dispatch: HadamardDispatch,
    streams: readonly Omit<HadamardStream, "src">[],
    outs: readonly Tensor<"f32" | "f16" | "bf16">[],
    nTokens: number,
  ): void {
    const { format, headDim } = dispatch;
    const isSized = this.#isSized(dispatch);
    const name = isSized ? `_${sizedNames[format.packing]}d${headDim}` : anySizeNames[format.packing];
    const [outK, outV = outK] = outs as [Tensor<"f32">, Tensor<"f32">?];
    const params = packParams(dispatch, [format.bits, nTokens, dtypeCodes[outK.dtype]]);
    const [k, v = k] = streams as [HadamardStream, HadamardStream?];
    const buffers = {
      0: { tensor: k.packed, access: "read" },
      1: { tensor: k.norms, access: "read" },
      2: outK,
      4: { tensor: v.packed, access: "read" },
      5: { tensor: v.norms, access: "read" },
      6: outV,
    } as const;
    const rows = dispatch.nKvHeads * nTokens;
    const kernel = `hadamard_dequantize_kv${name}`;
    const file = "hadamard_dequantize_kv.metal";
    this.#run(file, kernel, buffers, params, dispatch, bulkLanes(headDim), rows, streams.length);
  }

  #isSized({ headDim, anySize }: HadamardDispatch): boolean {
    return anySize !== true && headSizes.includes(headDim);
  }

  #run(
    file: string,
    kernel: string,
    buffers: NonNullable<Parameters<ReturnType<Device["pass"]>["dispatch"]>[1]["buffers"]>,
    params: Uint8Array,
    dispatch: HadamardDispatch,
    lanes: number,
    rows: number,
    streams: number,
  ): void {
    const { headDim } = dispatch;
    const pipeline = this.#pipeline(file, kernel);
    using pass = this.#device.pass();
    // Whole threadgroups, so that the last one has threads without a row.
    const sized = this.#isSized(dispatch);
    pass.dispatch(pipeline, {
      buffers,
      bytes: { 3: params },
      form: "threadgroups",
      grid: [sized ? Math.ceil((rows * lanes) / 64) : rows, streams],
      threads: [sized ? 64 : Math.min(headDim, 256), 1],
      ...(sized ? {} : { threadgroupMemory: { 0: Math.max(16, 8 * headDim) } }),
    });
    pass.commitAndWait();
  }
}

/** The seven words of every parameter struct and those of this one. */
function packParams(dispatch: HadamardDispatch, rest: readonly number[]): Uint8Array {
  const { headDim, nKvHeads, posStart, capacity, isSliding, scaleFactorD512 = 1 } = dispatch;
  const words = [headDim, nKvHeads, posStart, capacity, isSliding ? 1 : 0, 0, ...rest];
  const bytes = new Uint8Array(4 * words.length);
  const view = new DataView(bytes.buffer);
  for (const [i, word] of words.entries()) view.setUint32(4 * i, word, true);
  view.setFloat32(20, scaleFactorD512, true);
  return bytes;
}

const instantiation = /^template \[\[host_name\("(\w+)"\)\]\][^;]*;$/gm;
const plainKernel = "hadamard_quantize_kv";

/** The shader with one entry point, under another name. */
function onlyKernel(text: string, kernel: string, renamed: string): string {
  const plainName = kernel === plainKernel ? renamed : `${plainKernel}_unused_${renamed}`;
  return text
    .replace(instantiation, (statement, name: string) =>
      name === kernel ? statement.replace(`"${kernel}"`, `"${renamed}"`) : "",
    )
    .replace(`void ${plainKernel}(`, `void ${plainName}(`);
}
