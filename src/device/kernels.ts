import { checkText, display, refused } from "../checks.ts";
import { MetalAttentionError } from "../errors.ts";
import { Block } from "../ffi/block.ts";
import { type ConstantScalar, packConstants } from "../ffi/constants.ts";
import { mathCodes, optimizationCodes } from "../ffi/generated/codes.ts";
import { packMAMacro, packMASourceOptions, readMAPipelineInfo, structSizes } from "../ffi/generated/structs.ts";
import { holding } from "../ffi/memory.ts";
import type { PipelineInfo } from "../ffi/records.ts";
import { checkStatus, nativeError } from "../ffi/status.ts";
import { encodeText, readText } from "../ffi/text.ts";
import { markVersion, notOurs, pipelineState } from "../identity.ts";
import { didYouMean } from "../optionNames.ts";
import type { Device } from "./device.ts";
import type { DType } from "./dtypes.ts";
import { byteText, inspectSymbol } from "./inspect.ts";
import { checkMade, type DeviceLifetime, disposedError, net, PipelineLifetime } from "./lifetime.ts";
import { parseOptions, pipelineOptions, sourceOptions } from "./options.ts";

/** Which function constant: by `[[function_constant(index)]]`, or by its name in the source. */
type ConstantPlace =
  | { readonly index: number; readonly name?: undefined }
  | { readonly name: string; readonly index?: undefined };

/** A value of a type for a function constant, or the 2 to 4 values of a vector. */
type ConstantOf<D extends DType, V extends ConstantScalar> = ConstantPlace & {
  readonly dtype: D;
  readonly value: V | readonly V[];
};

type LongDType = "u64" | "i64";

/**
 * A value for `[[function_constant(index)]]`: its type by the name of a tensor's, its `value` a scalar or the 2 to 4
 * components of a vector.
 */
export type FunctionConstant =
  | ConstantOf<"bool", boolean>
  | ConstantOf<LongDType, number | bigint>
  | ConstantOf<Exclude<DType, "bool" | LongDType>, number>;

/**
 * Options of `Device.pipeline`: `constants` lists values for `[[function_constant(index)]]`, each by its `index` or by
 * its `name`, which is the only way where the source computes the index. A vector of the shader's,
 * such as `uint2` or `half4`, takes an array of 2 to 4; 64-bit integers take a bigint, or a number that is exact.
 * `builtIn` asks for the library's own kernel, also where a registered source has one of its name.
 */
export interface PipelineOptions {
  readonly constants?: readonly FunctionConstant[] | undefined;
  readonly builtIn?: boolean | undefined;
}

/** How a source is registered, and compiled. */
export interface SourceOptions {
  /** Put it in the place of the one of the same name. Pipelines that there are go on as they are. */
  readonly replace?: boolean | undefined;
  /** Macros defined before its first line: a number as its digits, a boolean as 1 or 0. */
  readonly macros?: Readonly<Record<string, string | number | boolean | bigint>> | undefined;
  /**
   * `safe`, unless given: IEEE 754. With `fast` the compiler may take it that there are no infinities and no NaN, and
   * may change the order of sums; `relaxed` keeps infinities and NaN. Metal itself is fast unless told.
   */
  readonly mathMode?: "safe" | "relaxed" | "fast" | undefined;
  /** Version of the Metal Shading Language, `__METAL_VERSION__` in the source; `3.1` unless given. */
  readonly languageVersion?: "2.4" | "3.0" | "3.1" | undefined;
  /** `size`: little code, compiled in less time; the same results. `default` is speed. */
  readonly optimizationLevel?: "default" | "size" | undefined;
}

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
   * What runs the kernel: `GPU`, or on the software device `loop`, `vectors`, or `threads` with the reason why its lanes
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
    net.register(this, lifetime, this);
  }

  /** @internal */
  get [pipelineState](): PipelineLifetime | undefined {
    return #lifetime in this ? this.#lifetime : undefined;
  }

  /** @internal The handle of a pipeline of `device` that a caller passed. */
  static use(value: unknown, device: DeviceLifetime): number {
    const lifetime =
      typeof value === "object" && value !== null
        ? (value as { readonly [pipelineState]?: PipelineLifetime })[pipelineState]
        : undefined;
    if (lifetime === undefined) throw notOurs(value, "a Pipeline", "pipeline");
    if (lifetime.disposed) throw disposedError("the pipeline", "pipeline");
    if (lifetime.device !== device) {
      throw refused("pipeline", "the pipeline belongs to another device than the pass", "invalid-handle");
    }
    return lifetime.handle;
  }

  /** Ends the use of the pipeline. A second call does nothing. */
  dispose(): void {
    net.unregister(this);
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

markVersion(Pipeline);

/** @internal Registers shader source on a device. */
export function registerSource(device: DeviceLifetime, name: string, source: string, options: SourceOptions): void {
  const { native, handle } = device;
  device.builtInKernels ??= kernelNames(device);
  const label = encodeText(checkText(name, "name"));
  const text = encodeText(checkText(source, "source"));
  const { replace, macros, mathMode, languageVersion, optimizationLevel } = parseOptions(
    sourceOptions,
    options,
    "options",
  );
  const [major = 0, minor = 0] = languageVersion.split(".").map(Number);
  const packed = packMacros(macros);
  const block = new Block(structSizes.MASourceOptions);
  packMASourceOptions(block, 0, {
    macros: packed.list.address,
    macroCount: packed.texts.length / 2,
    mathMode: mathCodes[mathMode],
    languageMajor: major,
    languageMinor: minor,
    replace: Number(replace),
    optimizationLevel: optimizationCodes[optimizationLevel],
  });
  const { ma_source_register: register } = native;
  const status = holding(packed, () =>
    register(handle, label.block.bytes, text.block.bytes, BigInt(text.byteLength), block.bytes),
  );
  checkStatus(native, status);
}

/** A list of `MAMacro`, and the texts that it points to. */
function packMacros(macros: Readonly<Record<string, string | number | boolean | bigint>>): {
  list: Block;
  texts: Block[];
} {
  const entries = Object.entries(macros);
  const list = new Block(Math.max(1, entries.length) * structSizes.MAMacro);
  const texts: Block[] = [];
  entries.forEach(([name, value], position) => {
    if (!/^[A-Za-z_]\w*$/.test(name)) {
      throw refused(`options.macros.${name}`, `expected an identifier as the name of a macro, got ${display(name)}`);
    }
    const [label, text] = [name, String(typeof value === "boolean" ? Number(value) : value)].map(
      (part) => encodeText(part).block,
    ) as [Block, Block];
    texts.push(label, text);
    packMAMacro(list, (position * structSizes.MAMacro) / 4, { name: label.address, value: text.address });
  });
  return { list, texts };
}

/** @internal Compiles a kernel of a device, or finds it compiled. */
export function createPipeline(
  owner: Device,
  device: DeviceLifetime,
  kernel: string,
  options: PipelineOptions,
): Pipeline {
  const { native } = device;
  const label = encodeText(checkText(kernel, "kernel"));
  const { constants, builtIn } = parseOptions(pipelineOptions, options, "options");
  constants.forEach(({ index, name }, position) => {
    if ((index === undefined) === (name === undefined)) {
      throw refused(`options.constants.${position}`, "expected either an index or a name of a function constant");
    }
  });
  const packed = packConstants(constants);
  const out = new Block(8);
  const { bytes } = label.block;
  const create = builtIn ? native.ma_pipeline_create_built_in : native.ma_pipeline_create;
  const status = holding(packed, () => create(device.handle, bytes, packed.list.bytes, constants.length, out.bytes));
  if (status !== 0) throw pipelineError(device, status, kernel, builtIn);
  const lifetime = new PipelineLifetime(device, out.u32[0] as number);
  const info = new Block(structSizes.MAPipelineInfo);
  checkStatus(native, native.ma_pipeline_info(lifetime.handle, info.bytes));
  const executor = readText((buffer, capacity, needed) =>
    checkStatus(native, native.ma_pipeline_executor(lifetime.handle, buffer, capacity, needed)),
  );
  return new Pipeline(owner, lifetime, kernel, readMAPipelineInfo(info), executor);
}

/** @internal The names of all kernels of a device. */
export function kernelNames({ native, handle }: DeviceLifetime): string[] {
  const names = readText((buffer, capacity, needed) =>
    checkStatus(native, native.ma_kernel_names(handle, buffer, capacity, needed)),
  );
  return names.split("\n").filter((name) => name !== "");
}

/** The library's error about a pipeline; where no kernel has its name, with the name that is nearest. */
function pipelineError(device: DeviceLifetime, status: number, kernel: string, builtIn: boolean): MetalAttentionError {
  const error = nativeError(device.native, status);
  if (error.code !== "kernel-not-found") return error;
  const known = (builtIn ? device.builtInKernels : undefined) ?? kernelNames(device);
  const message = `kernel: none ${builtIn ? "of the library's " : ""}is named ${display(kernel)}${didYouMean(kernel, known)}; known: ${known.join(", ")}`;
  return new MetalAttentionError("kernel-not-found", message, { argument: "kernel" });
}
