import type * as z from "zod/mini";
import { display, refused } from "../checks.ts";
import { MetalAttentionError } from "../errors.ts";
import { Block } from "../ffi/block.ts";
import { packConstants } from "../ffi/constants.ts";
import { readMAPipelineInfo, structSizes } from "../ffi/generated/structs.ts";
import type { PipelineInfo } from "../ffi/records.ts";
import { checkStatus, nativeError } from "../ffi/status.ts";
import { encodeText, readText } from "../ffi/text.ts";
import { didYouMean } from "../optionNames.ts";
import type { Device } from "./device.ts";
import { byteText, inspectSymbol } from "./inspect.ts";
import { checkMade, type DeviceLifetime, disposedError, PipelineLifetime, pipelineNet } from "./lifetime.ts";
import { parseOptions, pipelineOptions } from "./options.ts";

/**
 * Options of `Device.pipeline`: `constants` lists values for `[[function_constant(index)]]`. A vector of the shader's,
 * such as `uint2` or `half4`, takes an array of 2 to 4; 64-bit integers take a bigint, or a number that is exact.
 */
export type PipelineOptions = z.input<typeof pipelineOptions>;

/**
 * A compiled kernel with its function constants, ready for `Pass.dispatch`.
 * Made by `Device.pipeline`.
 */
export class Pipeline {
  /** The device that made it, which it keeps open. */
  readonly device: Device;
  /** Name of the kernel. */
  readonly kernel: string;
  /** Threads and threadgroup memory that it allows. */
  readonly info: PipelineInfo;
  /**
   * What runs the kernel: `GPU`, or on the software device `loop`, `vectors`, or `fibres` with the reason why its lanes
   * run one by one.
   */
  readonly executor: string;
  readonly #lifetime: PipelineLifetime;

  /** @internal Use `Device.pipeline`. */
  constructor(device: Device, lifetime: PipelineLifetime, kernel: string, info: PipelineInfo, executor: string) {
    this.device = device;
    this.kernel = kernel;
    this.info = info;
    this.executor = executor;
    this.#lifetime = checkMade(lifetime, PipelineLifetime, "Device.pipeline()");
    pipelineNet.register(this, lifetime, this);
  }

  /** @internal The handle of a pipeline of `device` that a caller passed. */
  static use(value: unknown, device: DeviceLifetime): number {
    if (typeof value !== "object" || value === null || !(#lifetime in value)) {
      throw refused("pipeline", `expected a Pipeline, got ${display(value)}`);
    }
    if (value.#lifetime.disposed) throw disposedError("the pipeline", "pipeline");
    if (value.#lifetime.device !== device) {
      throw refused("pipeline", "the pipeline belongs to another device than the pass", "invalid-handle");
    }
    return value.#lifetime.handle;
  }

  /** Ends the use of the pipeline. A second call does nothing. */
  dispose(): void {
    pipelineNet.unregister(this);
    this.#lifetime.dispose();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  /** What `console.log` shows: the kernel and what it allows. */
  [inspectSymbol](): string {
    if (!(#lifetime in this)) return "Pipeline";
    if (this.#lifetime.disposed || this.#lifetime.device.disposed) return `Pipeline ${this.kernel} (disposed)`;
    const { maxTotalThreadsPerThreadgroup, staticThreadgroupMemoryLength } = this.info;
    const memory = `${byteText(staticThreadgroupMemoryLength)} of threadgroup memory`;
    return `Pipeline ${this.kernel} (at most ${maxTotalThreadsPerThreadgroup} threads a threadgroup, ${memory})`;
  }
}

/** Registers shader source on a device. */
export function registerSource({ native, handle }: DeviceLifetime, name: string, source: string): void {
  const label = encodeText(checkText(name, "name"));
  const text = encodeText(checkText(source, "source"));
  checkStatus(native, native.ma_source_register(handle, label.block.bytes, text.block.bytes, BigInt(text.byteLength)));
}

/** Compiles a kernel of a device, or finds it compiled. */
export function createPipeline(
  owner: Device,
  device: DeviceLifetime,
  kernel: string,
  options: PipelineOptions,
): Pipeline {
  const { native } = device;
  const label = encodeText(checkText(kernel, "kernel"));
  const { constants } = parseOptions(pipelineOptions, options, "options");
  const packed = packConstants(constants);
  const out = new Block(8);
  const { bytes } = label.block;
  const status = native.ma_pipeline_create(device.handle, bytes, packed.bytes, constants.length, out.bytes);
  if (status !== 0) throw pipelineError(device, status, kernel);
  const lifetime = new PipelineLifetime(device, out.u32[0] as number);
  const info = new Block(structSizes.MAPipelineInfo);
  checkStatus(native, native.ma_pipeline_info(lifetime.handle, info.bytes));
  const executor = readText((buffer, capacity, needed) =>
    checkStatus(native, native.ma_pipeline_executor(lifetime.handle, buffer, capacity, needed)),
  );
  return new Pipeline(owner, lifetime, kernel, readMAPipelineInfo(info), executor);
}

/** The names of all kernels of a device. */
export function kernelNames({ native, handle }: DeviceLifetime): string[] {
  const names = readText((buffer, capacity, needed) =>
    checkStatus(native, native.ma_kernel_names(handle, buffer, capacity, needed)),
  );
  return names.split("\n").filter((name) => name !== "");
}

/** The library's error about a pipeline; where no kernel has its name, with the name that is nearest. */
function pipelineError(device: DeviceLifetime, status: number, kernel: string): MetalAttentionError {
  const error = nativeError(device.native, status);
  if (error.code !== "kernel-not-found") return error;
  const known = kernelNames(device);
  const message = `kernel: none is named ${display(kernel)}${didYouMean(kernel, known)}; known: ${known.join(", ")}`;
  return new MetalAttentionError("kernel-not-found", message, { argument: "kernel" });
}

/** A C string ends at its first NUL, so a text with one inside would arrive cut. */
function checkText(value: string, argument: string): string {
  if (typeof value !== "string" || value.length === 0 || value.includes("\0")) {
    throw refused(argument, `expected a non-empty string without NUL, got ${display(value)}`);
  }
  return value;
}
