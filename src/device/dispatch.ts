import { checkObject, checkU32, display, refused } from "../checks.ts";
import { Block } from "../ffi/block.ts";
import { bindingCodes, dispatchCodes } from "../ffi/generated/codes.ts";
import {
  type MABinding,
  type MAKernelDispatch,
  packMABinding,
  packMAKernelDispatch,
  structSizes,
} from "../ffi/generated/structs.ts";
import { addressOf } from "../ffi/memory.ts";
import { accessBits, type DispatchForm, type Extent3 } from "../ffi/records.ts";
import { checkStatus } from "../ffi/status.ts";
import { OptionNames } from "../optionNames.ts";
import { Parameter } from "../parameter.ts";
import { Pipeline } from "./kernels.ts";
import type { PassLifetime } from "./lifetime.ts";
import { isTensor, Tensor } from "./tensor.ts";

/** What a kernel does with a buffer. */
export type BufferAccess = keyof typeof accessBits;

/** A tensor for a `[[buffer(index)]]` argument; `access` is `read-write` unless given. */
export type BufferArgument = Tensor | { readonly tensor: Tensor; readonly access?: BufferAccess | undefined };

/** One, two or three extents; those left out are 1. */
export type Extent = number | readonly [number] | readonly [number, number] | Extent3;

/** Arguments and size of a dispatch of any kernel. Keys are the indices of the kernel's attributes. */
export interface DispatchOptions {
  /**
   * Tensors by `[[buffer(index)]]`, one for each argument that the kernel
   * uses. Say `access: "read"` where it holds, and dispatches overlap more; it
   * is refused where the argument's type lets the kernel write.
   */
  readonly buffers?: Readonly<Record<number, BufferArgument>> | readonly BufferArgument[] | undefined;
  /**
   * Small constants by `[[buffer(index)]]` in place of tensors, copied: 1 to
   * 4,096 bytes each. A number is a parameter of a recorded pass, as 4 bytes.
   */
  readonly bytes?: Readonly<Record<number, ArrayBufferView | ArrayBuffer | number>> | undefined;
  /**
   * Tensors that the kernel reaches by their `gpuAddress`, in memory of other arguments: they live until the pass has
   * ended, and dispatches are ordered by them as by `buffers`.
   */
  readonly uses?: readonly BufferArgument[] | undefined;
  /** Threadgroup memory by `[[threadgroup(index)]]`, in bytes: multiples of 16. */
  readonly threadgroupMemory?: Readonly<Record<number, number>> | undefined;
  /** Size of the grid, in threads or threadgroups as `form` says. */
  readonly grid: Extent;
  /** Threads per threadgroup. */
  readonly threads: Extent;
  /** What `grid` counts; `threads` unless given. */
  readonly form?: DispatchForm | undefined;
}

const optionNames = new OptionNames<DispatchOptions>("Pass.dispatch", {
  buffers: true,
  bytes: true,
  uses: true,
  threadgroupMemory: true,
  grid: true,
  threads: true,
  form: true,
});

const bufferNames = new OptionNames<Exclude<BufferArgument, Tensor>>("a buffer argument", {
  tensor: true,
  access: true,
});

type Mutable3 = [x: number, y: number, z: number];

/** The options that hold arguments. */
type ArgumentList = "buffers" | "bytes" | "uses" | "threadgroupMemory";

/** The highest index of an attribute. */
const maxIndex = 30;
const maxUses = 512;
/** Buffers or bytes at every index, threadgroup memory at every index, and uses. */
const maxBindings = 2 * (maxIndex + 1) + maxUses;
const maxBytes = 4096;

const bindingWords = structSizes.MABinding / 4;

/** What every kind of binding starts from. */
const blank: Readonly<MABinding> = {
  index: 0,
  kind: 0,
  buffer: 0,
  access: 0,
  offsetLow: 0,
  offsetHigh: 0,
  lengthLow: 0,
  lengthHigh: 0,
  bytes: 0,
};

/** Bytes that were given, until the library has read them. */
interface Source {
  readonly binding: MABinding;
  position: number;
  bytes: ArrayBufferView | ArrayBuffer | undefined;
}

/**
 * One dispatch as it is packed. Nothing is allocated for it: a getter of the
 * caller's may dispatch too, and takes the next of these.
 */
class Packer {
  readonly #block = new Block(structSizes.MAKernelDispatch);
  readonly #bindings = new Block(maxBindings * structSizes.MABinding);
  readonly #grid: Mutable3 = [1, 1, 1];
  readonly #threads: Mutable3 = [1, 1, 1];
  readonly #dispatch: MAKernelDispatch = {
    pipeline: 0,
    form: 0,
    grid: this.#grid,
    threadsPerThreadgroup: this.#threads,
    bindingCount: 0,
    bindings: this.#bindings.address,
  };
  readonly #buffer: MABinding = { ...blank, kind: bindingCodes.buffer };
  readonly #use: MABinding = { ...blank, kind: bindingCodes.use };
  readonly #threadgroup: MABinding = { ...blank, kind: bindingCodes.threadgroup };
  readonly #sources: Source[] = [];
  readonly #scalars = new Block(8 * (maxIndex + 1));
  #count = 0;
  #sourceCount = 0;

  encode(pass: PassLifetime, pipeline: Pipeline, options: DispatchOptions): void {
    const dispatch = this.#dispatch;
    this.#count = 0;
    dispatch.pipeline = Pipeline.use(pipeline, pass.device);
    optionNames.check(checkObject(options, "options"));
    const { form = "threads" } = options;
    if (form !== "threads" && form !== "threadgroups") {
      throw refused("form", `expected "threads" or "threadgroups", got ${display(form)}`);
    }
    dispatch.form = dispatchCodes[form];
    readExtent(this.#grid, options.grid, "grid");
    readExtent(this.#threads, options.threads, "threads");
    this.#packList(pass, options.buffers, "buffers");
    this.#packList(pass, options.bytes, "bytes");
    this.#packList(pass, options.uses, "uses");
    this.#packList(pass, options.threadgroupMemory, "threadgroupMemory");
    dispatch.bindingCount = this.#count;
    packMAKernelDispatch(this.#block, 0, dispatch);
    // From here on no code of the caller runs, which could move or free what was given.
    for (let i = 0; i < this.#sourceCount; i++) {
      const { binding, bytes, position } = this.#sources[i] as Source;
      binding.bytes = addressOf(bytes as ArrayBuffer);
      packMABinding(this.#bindings, position * bindingWords, binding);
    }
    checkStatus(pass.native, pass.native.ma_encode_kernel(pass.handle, this.#block.address));
  }

  /** Lets go of what the caller gave. */
  clear(): void {
    for (let i = 0; i < this.#sourceCount; i++) (this.#sources[i] as Source).bytes = undefined;
    this.#sourceCount = 0;
  }

  #packList(pass: PassLifetime, given: DispatchOptions[ArgumentList], list: ArgumentList): void {
    if (given === undefined) return;
    if (Array.isArray(given)) {
      const values: readonly unknown[] = given;
      // Many times faster than by its keys.
      const { length } = given;
      if (length > countOf(list)) throw badIndex(list, String(length - 1));
      for (let index = 0; index < length; index++) {
        if (values[index] !== undefined || index in values) this.#packValue(pass, list, index, values[index]);
      }
      return;
    }
    const values = checkObject(given, list) as Readonly<Record<number, unknown>>;
    const prototype = Object.getPrototypeOf(values);
    if (prototype === Object.prototype || prototype === null) {
      const own = Object.values(values);
      const indices = indicesOf(values, own.length, list);
      for (let i = 0; i < own.length; i++) this.#packValue(pass, list, indices[i] as number, own[i]);
      return;
    }
    let isEmpty = true;
    for (const key in values) {
      const index = indexOf(key, list);
      this.#packValue(pass, list, index, values[index]);
      isEmpty = false;
    }
    // Such as a Date or an ArrayBuffer, which would be left out.
    if (isEmpty) throw refused(list, "expected an array, or an object by indices, got one without any");
  }

  #packValue(pass: PassLifetime, list: ArgumentList, index: number, value: unknown): void {
    if (list === "buffers" || list === "uses") this.#packBuffer(pass, list, index, value);
    else if (list === "bytes") this.#packBytes(index, value);
    else this.#packThreadgroup(index, value);
  }

  /** A record at the next position of the list. */
  #pack(binding: MABinding): void {
    packMABinding(this.#bindings, this.#count++ * bindingWords, binding);
  }

  #packThreadgroup(index: number, value: unknown): void {
    const binding = this.#threadgroup;
    binding.index = index;
    binding.lengthLow = checkU32(value, pathOf("threadgroupMemory", index));
    this.#pack(binding);
  }

  #packBuffer(pass: PassLifetime, list: "buffers" | "uses", index: number, value: unknown): void {
    const path = list === "buffers" ? (bufferPaths[index] as string) : pathOf(list, index);
    let tensor = value;
    let access: number = accessBits["read-write"];
    if (!isTensor(value)) {
      if (typeof value !== "object" || value === null) {
        throw refused(path, `expected a Tensor or an object with one, got ${display(value)}`);
      }
      const record = value as Exclude<BufferArgument, Tensor>;
      // Of an object that is neither, such as an array, the error is that it is no tensor.
      if ("tensor" in record || Object.getPrototypeOf(record) === Object.prototype) {
        bufferNames.check(record, list === "buffers" ? (bufferPrefixes[index] as string) : `${path}.`);
      }
      tensor = record.tensor;
      access = bitsOf(record.access, path);
    }
    const range = Tensor.use(tensor, pass.device, path);
    const binding = list === "buffers" ? this.#buffer : this.#use;
    binding.index = index;
    binding.buffer = range.buffer;
    binding.access = access;
    binding.offsetLow = range.offsetLow;
    binding.offsetHigh = range.offsetHigh;
    binding.lengthLow = range.lengthLow;
    binding.lengthHigh = range.lengthHigh;
    this.#pack(binding);
  }

  #packBytes(index: number, value: unknown): void {
    let source = value;
    if (value instanceof Parameter) {
      const { buffer, u32 } = this.#scalars;
      u32[2 * index] = value.take(pathOf("bytes", index));
      source = new Uint8Array(buffer, 8 * index, 4);
    }
    if (!ArrayBuffer.isView(source) && !(source instanceof ArrayBuffer)) {
      throw refused(pathOf("bytes", index), `expected a typed array or an ArrayBuffer, got ${display(value)}`);
    }
    const { byteLength } = source;
    if (byteLength < 1 || byteLength > maxBytes) {
      throw refused(pathOf("bytes", index), `expected 1 to ${maxBytes} bytes, got ${byteLength}`);
    }
    this.#sources[this.#sourceCount] ??= {
      binding: { ...blank, kind: bindingCodes.bytes },
      position: 0,
      bytes: undefined,
    };
    const entry = this.#sources[this.#sourceCount++] as Source;
    entry.binding.index = index;
    entry.binding.lengthLow = byteLength;
    entry.position = this.#count++;
    entry.bytes = source;
  }
}

const packers = [new Packer()];
let depth = 0;

/** @internal Encodes one dispatch of `pipeline`. */
export function encodeDispatch(pass: PassLifetime, pipeline: Pipeline, options: DispatchOptions): void {
  packers[depth] ??= new Packer();
  const packer = packers[depth++] as Packer;
  try {
    packer.encode(pass, pipeline, options);
  } finally {
    packer.clear();
    depth--;
    pass.recorder?.settle();
  }
}

// Made once: to make a text for each dispatch would be half its cost.
const bufferPaths = Array.from({ length: maxIndex + 1 }, (_, index) => pathOf("buffers", index));
const bufferPrefixes = bufferPaths.map((path) => `${path}.`);

function bitsOf(access: BufferAccess | undefined, path: string): number {
  if (access === "read") return accessBits.read;
  if (access === "write") return accessBits.write;
  if (access === undefined || access === "read-write") return accessBits["read-write"];
  throw refused(`${path}.access`, `expected "read", "write" or "read-write", got ${display(access)}`);
}

function pathOf(list: ArgumentList, index: number): string {
  return `${list}[${index}]`;
}

/** The indices that each list had last, ascending: a call site mostly gives the same again. */
const lastIndices: Record<ArgumentList, readonly number[]> = {
  buffers: [],
  bytes: [],
  uses: [],
  threadgroupMemory: [],
};

/** The `count` keys of `values` as indices. To make texts of them is what costs: it is left out where they are the last ones. */
function indicesOf(values: object, count: number, list: ArgumentList): readonly number[] {
  const last = lastIndices[list];
  if (last.length === count && last.every((index) => index in values)) return last;
  const indices = Object.keys(values).map((key) => indexOf(key, list));
  if (indices.length !== count)
    throw refused(list, "it changed while it was read; a getter of it adds or removes keys");
  lastIndices[list] = indices;
  return indices;
}

function indexOf(key: string, list: ArgumentList): number {
  const index = Number(key);
  if (index >>> 0 !== index || index >= countOf(list) || String(index) !== key) throw badIndex(list, key);
  return index;
}

function badIndex(list: ArgumentList, key: string): Error {
  return refused(`${list}[${key}]`, `expected an index from 0 to ${countOf(list) - 1}, got ${key}`);
}

/** How many arguments a list may have. */
function countOf(list: ArgumentList): number {
  return list === "uses" ? maxUses : maxIndex + 1;
}

/** Reads one, two or three extents. */
function readExtent(extents: Mutable3, value: Extent, argument: string): void {
  if (typeof value === "number") {
    extents[0] = checkU32(value, argument);
    extents[1] = 1;
    extents[2] = 1;
    return;
  }
  const axes: readonly unknown[] = Array.isArray(value) ? value : [value];
  if (axes.length < 1 || axes.length > 3) throw refused(argument, `expected 1 to 3 extents, got ${axes.length}`);
  for (let axis = 0; axis < 3; axis++) {
    const extent = axes[axis];
    extents[axis] = extent === undefined && axis > 0 ? 1 : checkU32(extent, argument);
  }
}
