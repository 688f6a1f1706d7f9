import { display, refused } from "../checks.ts";
import { Block } from "../ffi/block.ts";
import { passCodes, storageCodes } from "../ffi/generated/codes.ts";
import { structSizes } from "../ffi/generated/structs.ts";
import { loadLibrary, provideKernels } from "../ffi/library.ts";
import type { Pointer } from "../ffi/memory.ts";
import { type DeviceInfo, readDeviceInfo } from "../ffi/records.ts";
import { checkStatus } from "../ffi/status.ts";
import { encodeText } from "../ffi/text.ts";
import { deviceState, markVersion, notOurs } from "../identity.ts";
import { setRecorder } from "../parameter.ts";
import { checkDType, type DType, dtypes } from "./dtypes.ts";
import { byteText, inspectSymbol } from "./inspect.ts";
import {
  createPipeline,
  kernelNames,
  type Pipeline,
  type PipelineOptions,
  registerSource,
  type SourceOptions,
} from "./kernels.ts";
import { BufferMemory, checkMade, DeviceLifetime, disposedError, net, PassLifetime } from "./lifetime.ts";
import { deviceOptions, parseOptions, passOptions, recordOptions, tensorOptions } from "./options.ts";
import { Pass, type PassOptions } from "./pass.ts";
import { type RecordedPass, RecordingPass } from "./recording.ts";
import { adoptTensor, type SharedTensor } from "./share.ts";
import { checkShape, elementCount, Tensor, type TensorOptions } from "./tensor.ts";

/** A `URL` of a file. */
export interface FileUrl {
  readonly href: string;
  readonly protocol: string;
}

/**
 * Options of `Device.open`. Each names a file by its path, or by a URL as a
 * bundler's imports give it: `new URL(imported, import.meta.url)`.
 */
export interface DeviceOptions {
  /** The native library, in place of the search for it. */
  readonly library?: string | FileUrl | undefined;
  /**
   * Built-in kernels compiled ahead of time for the software device, in place
   * of the `kernels.tar` beside the library: for a program that carries both.
   * For the whole process; an Apple GPU does without.
   */
  readonly kernels?: string | FileUrl | undefined;
  /**
   * Another device than the default one: an index in the system's list or, on
   * Linux, `"cpu"`, which has index 0, or `"nvidia"` for the first NVIDIA GPU,
   * which has index 1. `SOFTMETAL_DEVICE` in the environment says which is the
   * default, the CPU unless given.
   */
  readonly device?: "cpu" | "nvidia" | number | undefined;
}

/** Options of `Device.record`: `mode` as of `Device.pass`. */
export type RecordOptions = Pick<PassOptions, "mode">;

/**
 * The Apple GPU; on Linux the CPU, or an NVIDIA GPU, running the same shaders.
 * Tensors, passes and pipelines belong to the device that made them.
 *
 * Disposing a device waits for its committed passes and ends the use of all
 * that it made. Zero-copy views stay valid.
 *
 * @example
 * using device = Device.open();
 * console.log(device.info.name);
 */
export class Device {
  readonly #lifetime: DeviceLifetime;

  private constructor(lifetime: DeviceLifetime) {
    this.#lifetime = checkMade(lifetime, DeviceLifetime, "Device.open()");
    net.register(this, lifetime, this);
  }

  /** @internal */
  get [deviceState](): DeviceLifetime | undefined {
    return #lifetime in this ? this.#lifetime : undefined;
  }

  /** @internal Returns `value` when it is a device. */
  static use(value: Device): Device {
    const lifetime =
      typeof value === "object" && value !== null
        ? (value as { readonly [deviceState]?: DeviceLifetime })[deviceState]
        : undefined;
    if (lifetime === undefined) throw notOurs(value, "a Device", "device");
    return value;
  }

  /**
   * Opens the system's default device, or the one that is asked for, loading the native library on first use.
   *
   * Errors: `library-not-found`, `abi-mismatch`, `device-unavailable`;
   * `invalid-argument` for a file of kernels that is none.
   */
  static open(options: DeviceOptions = {}): Device {
    const { library, kernels, device } = parseOptions(deviceOptions, options, "options");
    const native = loadLibrary(library);
    if (kernels !== undefined) provideKernels(native, kernels);
    const out = new Block(8);
    const status =
      device === undefined
        ? native.ma_device_open(out.bytes)
        : native.ma_device_open_named(encodeText(String(device)).block.bytes, out.bytes);
    checkStatus(native, status);
    return new Device(new DeviceLifetime(native, out.u32[0] as number));
  }

  /** Name, backend and limits. `currentAllocatedSize` changes from one reading to the next. */
  get info(): DeviceInfo {
    const { native, handle } = this.#usable();
    const block = new Block(structSizes.MADeviceInfo);
    checkStatus(native, native.ma_device_info(handle, block.bytes));
    return readDeviceInfo(block);
  }

  /** Whether the device has been disposed. */
  get disposed(): boolean {
    return this.#lifetime.disposed;
  }

  /**
   * A zero-filled tensor of 1 to 8 axes.
   *
   * Errors: `invalid-argument` for an unknown dtype, an axis that is no whole
   * number or above 2^32 - 1, an empty tensor or one beyond `info.maxBufferLength`;
   * `overflow` for more than 2^50 elements; `out-of-memory`.
   *
   * @example
   * using q = device.tensor("f16", [nHeads, nTokens, headDim]);
   * @example
   * // Only kernels read and write it: on a GPU with memory of its own it lies there.
   * using cache = device.tensor("f16", [nHeads, capacity, headDim], { storage: "private" });
   */
  tensor<T extends DType>(dtype: T, shape: readonly number[], options: TensorOptions = {}): Tensor<T> {
    const lifetime = this.#usable();
    const { storage } = parseOptions(tensorOptions, options, "options");
    checkDType(dtype);
    const axes = checkShape(shape);
    const byteLength = elementCount(axes) * dtypes[dtype].size;
    if (byteLength === 0) throw refused("shape", `[${axes}] has no elements; a tensor holds at least one`);
    const out = new Block(16);
    const { native } = lifetime;
    const code = storageCodes[storage];
    checkStatus(
      native,
      native.ma_buffer_create(lifetime.handle, BigInt(byteLength), code, out.bytes, out.bytes.subarray(8)),
    );
    const address = storage === "private" ? undefined : (out.getU64(2) as Pointer);
    const memory = new BufferMemory(lifetime, out.u32[0] as number, address, byteLength);
    return new Tensor(this, memory, dtype, axes, 0);
  }

  /**
   * A tensor over the memory of one that another worker of this process has
   * shared (or another device of this one): the same bytes, not a copy. The
   * memory stays until both are disposed.
   *
   * Nothing orders the devices of several workers: write what another reads
   * only before or after, or to slots that it does not read; tell it by a
   * message once the pass has completed. Tile classes count for the device
   * that made them alone.
   *
   * Errors: `invalid-handle` for one that was disposed before it was adopted, or
   * that another process has shared; `invalid-argument` for what is no description.
   *
   * @example
   * self.onmessage = ({ data }) => {
   *   using cache = device.adopt(data);
   * };
   */
  adopt(description: SharedTensor): Tensor {
    const { memory, dtype, shape, byteOffset } = adoptTensor(this.#usable(), description);
    return new Tensor(this, memory, dtype, shape, byteOffset);
  }

  /**
   * A pass that takes operations until it is committed.
   *
   * Errors: `invalid-state` where 60 passes of the device are open, neither committed nor disposed; `out-of-memory`.
   *
   * @example
   * using pass = device.pass({ mode: "serial" });
   */
  pass(options: PassOptions = {}): Pass {
    const lifetime = this.#usable();
    const { mode, profile } = parseOptions(passOptions, options, "options");
    const out = new Block(8);
    const flags = passCodes[mode] | (profile ? passCodes.profiled : 0);
    checkStatus(lifetime.native, lifetime.native.ma_pass_create(lifetime.handle, flags, out.bytes));
    return new Pass(this, new PassLifetime(lifetime, out.u32[0] as number));
  }

  /**
   * Records a pass: `encode` is called once, at once, with a pass that takes
   * operations, parameters and named tensors; what it returns is ignored. An
   * error that it throws ends the recording.
   *
   * @example
   * using step = device.record((pass) => {
   *   const seqPos = pass.parameter("seqPos", { min: 0, max: capacity - 1 });
   *   kvCacheCopyBatch(pass, { src, cache, seqPos });
   * });
   * await step.commit({ seqPos: 17 });
   */
  record(encode: (pass: RecordingPass) => void, options: RecordOptions = {}): RecordedPass {
    const lifetime = this.#usable();
    if (typeof encode !== "function") throw refused("encode", `expected a function, got ${display(encode)}`);
    const { mode } = parseOptions(recordOptions, options, "options");
    const out = new Block(8);
    const flags = passCodes[mode] | passCodes.recorded;
    checkStatus(lifetime.native, lifetime.native.ma_pass_create(lifetime.handle, flags, out.bytes));
    const pass = new RecordingPass(this, new PassLifetime(lifetime, out.u32[0] as number));
    try {
      const result: unknown = encode(pass);
      if (typeof (result as PromiseLike<unknown> | null | undefined)?.then === "function") {
        // Nobody waits for what it does.
        Promise.resolve(result).catch(() => {});
        throw refused("encode", "expected a function that records at once, got one that returns a promise");
      }
      return RecordingPass.finish(pass);
    } catch (error) {
      pass.dispose();
      throw error;
    } finally {
      setRecorder(undefined);
    }
  }

  /**
   * Adds Metal Shading Language source, compiled when a kernel of it is first
   * asked for. `name` stands for the file in compiler messages.
   *
   * Errors: `invalid-argument` when another registered source has a kernel of the same name.
   *
   * @example
   * device.registerSource("scale.metal", await Bun.file("scale.metal").text());
   * @example
   * // Again, when the file has changed.
   * device.registerSource("scale.metal", await Bun.file("scale.metal").text(), { replace: true });
   */
  registerSource(name: string, source: string, options: SourceOptions = {}): void {
    registerSource(this.#usable(), name, source, options);
  }

  /** Names of all kernels, built in and registered. */
  get kernelNames(): string[] {
    return kernelNames(this.#usable());
  }

  /**
   * A kernel by name with its function constants, compiled or found compiled: one of a registered source, or else a
   * built-in one; with `builtIn` that alone.
   *
   * Errors: `kernel-not-found` with the known names; `shader-compilation` with
   * the compiler's log, and for a constant of another type than the source's, of an unknown name, or not given;
   * `invalid-argument` for a value that its dtype cannot hold.
   *
   * @example
   * using pipeline = device.pipeline("scale", { constants: [{ index: 0, dtype: "u32", value: 4 }] });
   * @example
   * // constant float2 weights [[function_constant(1)]];
   * using pipeline = device.pipeline("blend", { constants: [{ index: 1, dtype: "f32", value: [0.25, 0.75] }] });
   */
  pipeline(kernel: string, options: PipelineOptions = {}): Pipeline {
    return createPipeline(this, this.#usable(), kernel, options);
  }

  /** Waits for committed passes and frees the device. A second call does nothing. */
  dispose(): void {
    net.unregister(this);
    this.#lifetime.dispose();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  /** What `console.log` shows: name and limits. */
  [inspectSymbol](): string {
    if (!(#lifetime in this)) return "Device";
    if (this.disposed) return "Device (disposed)";
    const { name, backend, maxBufferLength, maxThreadgroupMemoryLength, maxThreadsPerThreadgroup } = this.info;
    const limits = [
      `buffers of ${byteText(maxBufferLength)}`,
      `${maxThreadsPerThreadgroup.join(" x ")} threads`,
      `${byteText(maxThreadgroupMemoryLength)} of threadgroup memory`,
    ];
    return `Device ${JSON.stringify(name)} (${backend}; up to ${limits.join(", ")})`;
  }

  #usable(): DeviceLifetime {
    if (this.#lifetime.disposed) throw disposedError("the device");
    return this.#lifetime;
  }
}

markVersion(Device);
