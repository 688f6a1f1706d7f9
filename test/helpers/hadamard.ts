import type { Device, Pipeline, Tensor } from "../../src/index.ts";
import type { CodeFormat, CodePacking } from "../../src/reference/index.ts";
import { shaderText } from "./shaders.ts";

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

/** Lanes that share a head vector in the kernels for one size. */
const lanesOf = (headDim: number): number => Math.max(1, 2 ** Math.ceil(Math.log2(headDim / 64)));

/** Runs the kernels of a device, compiled on first use. */
export class HadamardKernels {
  readonly #device: Device;
  readonly #edit: (text: string) => string;
  readonly #pipelines = new Map<string, Pipeline>();

  /** `edit` changes the text of `hadamard_quantize_kv.metal`. */
  constructor(device: Device, edit: (text: string) => string = (text) => text) {
    this.#device = device;
    this.#edit = edit;
  }

  /** The names that kernels get here: the library may know the plain ones already. */
  #pipeline(file: string, kernel: string): Pipeline {
    const known = this.#pipelines.get(kernel);
    if (known !== undefined) return known;
    const name = `${kernel}_tested_${HadamardKernels.#count++}`;
    this.#device.registerSource(`${name}.metal`, onlyKernel(this.#edit(shaderText(file)), kernel, name));
    const pipeline = this.#device.pipeline(name);
    this.#pipelines.set(kernel, pipeline);
    return pipeline;
  }
  static #count = 0;

  /** Writes one token with the kernels for single tokens; `scratch` turns the probe on. */
  quantize(dispatch: HadamardDispatch, stream: HadamardStream, token: number, scratch?: Tensor<"f32">): void {
    const { format, headDim, nKvHeads } = dispatch;
    const isSized = this.#isSized(dispatch);
    const name = isSized ? `_${sizedNames[format.packing]}d${headDim}` : anySizeNames[format.packing];
    const params = packParams(dispatch, [format.packing === "nibble" ? (scratch ? 1 : 0) : format.bits]);
    const first = token * nKvHeads;
    const rows = stream.src.reshape([stream.src.length / headDim, headDim]);
    const buffers = {
      0: { tensor: rows.slice(first, first + nKvHeads), access: "read" },
      1: stream.packed,
      2: stream.norms,
      ...(format.packing === "nibble" ? { 4: scratch ?? stream.norms } : {}),
    } as const;
    this.#run("hadamard_quantize_kv.metal", `hadamard_quantize_kv${name}`, buffers, params, dispatch, nKvHeads, 1);
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
    this.#run("hadamard_quantize_kv.metal", kernel, buffers, params, dispatch, rows, streams.length);
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
    this.#run("hadamard_dequantize_kv.metal", kernel, buffers, params, dispatch, rows, streams.length);
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
      grid: [sized ? Math.ceil((rows * lanesOf(headDim)) / 64) : rows, streams],
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

/** The shader with one entry point, under another name, and with the structs that it includes. */
function onlyKernel(text: string, kernel: string, renamed: string): string {
  const header = shaderText("ShaderTypes.h").replace("#pragma once", "");
  const plainName = kernel === plainKernel ? renamed : `${plainKernel}_unused_${renamed}`;
  return text
    .replace('#include "ShaderTypes.h"', () => header)
    .replace(instantiation, (statement, name: string) =>
      name === kernel ? statement.replace(`"${kernel}"`, `"${renamed}"`) : "",
    )
    .replace(`void ${plainKernel}(`, `void ${plainName}(`);
}
