import { checkObject, checkU32, display, refused } from "../checks.ts";
import { Block } from "../ffi/block.ts";
import { bindingCodes, dispatchCodes } from "../ffi/generated/codes.ts";
import { structSizes } from "../ffi/generated/structs.ts";
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
export type BufferArgument = Tensor | { readonly tensor: Tensor; readonly access?: BufferAccess };

/** One, two or three extents; those left out are 1. */
export type Extent = number | readonly [number] | readonly [number, number] | Extent3;

/** Arguments and size of a dispatch of any kernel. Keys are the indices of the kernel's attributes. */
export interface DispatchOptions {
  /**
   * Tensors by `[[buffer(index)]]`, one for each argument that the kernel
   * uses. Say `access: "read"` where it holds, and dispatches overlap more; it
   * is refused where the argument's type lets the kernel write.
   */
  readonly buffers?: Readonly<Record<number, BufferArgument>> | readonly BufferArgument[];
  /**
   * Small constants by `[[buffer(index)]]` in place of tensors, copied: 1 to
   * 4,096 bytes each. A number is a parameter of a recorded pass, as 4 bytes.
   */
  readonly bytes?: Readonly<Record<number, ArrayBufferView | ArrayBuffer | number>>;
  /**
   * Tensors that the kernel reaches by their `gpuAddress`, in memory of other arguments: they live until the pass has
   * ended, and dispatches are ordered by them as by `buffers`.
   */
  readonly uses?: readonly BufferArgument[];
  /** Threadgroup memory by `[[threadgroup(index)]]`, in bytes: multiples of 16. */
  readonly threadgroupMemory?: Readonly<Record<number, number>>;
  /** Size of the grid, in threads or threadgroups as `form` says. */
  readonly grid: Extent;
  /** Threads per threadgroup. */
  readonly threads: Extent;
  /** What `grid` counts; `threads` unless given. */
  readonly form?: DispatchForm;
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

/** The options that hold arguments. */
type ArgumentList = "buffers" | "bytes" | "uses" | "threadgroupMemory";

/** The highest index of an attribute. */
const maxIndex = 30;
const maxUses = 512;
/** Buffers, bytes and threadgroup memory, each at every index, and uses. */
const maxBindings = 3 * (maxIndex + 1) + maxUses;
const maxBytes = 4096;

const bindingWords = structSizes.MABinding / 4;
const formWord = 1;
const gridWord = 2;
const threadsWord = 5;
const countWord = 8;
const bindingsWord = 10;

/**
 * One dispatch as it is packed. Nothing is allocated for it: a getter of the
 * caller's may dispatch too, and takes the next of these.
 */
class Packer {
  readonly #dispatch = new Block(structSizes.MAKernelDispatch);
  readonly #bindings = new Block(maxBindings * structSizes.MABinding);
  /** What `bytes` were given, kept until the library has read them. */
  readonly #sources: (ArrayBufferView | ArrayBuffer)[] = [];
  /** Where their addresses go. */
  readonly #sourceWords: number[] = [];
  readonly #scalars = new Block(8 * (maxIndex + 1));
  #count = 0;
  #sourceCount = 0;

  constructor() {
    this.#dispatch.setU64(bindingsWord, this.#bindings.address);
  }

  encode(pass: PassLifetime, pipeline: Pipeline, options: DispatchOptions): void {
    const { u32 } = this.#dispatch;
    this.#count = 0;
    this.#sourceCount = 0;
    u32[0] = Pipeline.use(pipeline, pass.device);
    optionNames.check(checkObject(options, "options"));
    const form = options.form ?? "threads";
    if (form !== "threads" && form !== "threadgroups") {
      throw refused("form", `expected "threads" or "threadgroups", got ${display(form)}`);
    }
    u32[formWord] = dispatchCodes[form];
    packExtent(u32, gridWord, options.grid, "grid");
    packExtent(u32, threadsWord, options.threads, "threads");
    this.#packList(pass, options.buffers, "buffers");
    this.#packList(pass, options.bytes, "bytes");
    this.#packList(pass, options.uses, "uses");
    this.#packList(pass, options.threadgroupMemory, "threadgroupMemory");
    u32[countWord] = this.#count;
    // From here on no code of the caller runs, which could move or free what was given.
    for (let i = 0; i < this.#sourceCount; i++) {
      this.#bindings.setU64(this.#sourceWords[i] as number, addressOf(this.#sources[i] as ArrayBuffer));
    }
    checkStatus(pass.native, pass.native.ma_encode_kernel(pass.handle, this.#dispatch.address));
  }

  #packList(pass: PassLifetime, given: DispatchOptions[ArgumentList], list: ArgumentList): void {
    if (given === undefined) return;
    const values = checkObject(given, list) as Readonly<Record<number, unknown>>;
    if (Array.isArray(given)) {
      // Many times faster than by its keys.
      const { length } = given;
      if (length > countOf(list)) throw badIndex(list, String(length - 1));
      for (let index = 0; index < length; index++) {
        if (values[index] !== undefined || index in values) this.#packValue(pass, list, index, values[index]);
      }
      return;
    }
    for (const key in values) {
      const index = Number(key);
      if (index >>> 0 !== index || index >= countOf(list) || String(index) !== key) throw badIndex(list, key);
      this.#packValue(pass, list, index, values[index]);
    }
  }

  #packValue(pass: PassLifetime, list: ArgumentList, index: number, value: unknown): void {
    if (list === "buffers" || list === "uses") this.#packBuffer(pass, list, index, value);
    else if (list === "bytes") this.#packBytes(index, value);
    else this.#pack(bindingCodes.threadgroup, index, checkU32(value, pathOf(list, index)));
  }

  /** Packs what all kinds have; gives the first word of the record. */
  #pack(kind: number, index: number, length: number): number {
    const { u32 } = this.#bindings;
    const at = this.#count++ * bindingWords;
    u32[at] = index;
    u32[at + 1] = kind;
    u32[at + 2] = 0;
    u32[at + 3] = 0;
    u32[at + 4] = 0;
    u32[at + 5] = 0;
    u32[at + 6] = length;
    u32[at + 7] = 0;
    u32[at + 8] = 0;
    u32[at + 9] = 0;
    return at;
  }

  #packBuffer(pass: PassLifetime, list: "buffers" | "uses", index: number, value: unknown): void {
    const path = list === "buffers" ? (bufferPaths[index] as string) : pathOf(list, index);
    let tensor = value;
    let access: number = accessBits["read-write"];
    if (!isTensor(value)) {
      const record = checkObject(value as Exclude<BufferArgument, Tensor>, path);
      // Of an object that is neither, such as an array, the error is that it is no tensor.
      if ("tensor" in record || Object.getPrototypeOf(record) === Object.prototype) {
        bufferNames.check(record, list === "buffers" ? (bufferPrefixes[index] as string) : `${path}.`);
      }
      tensor = record.tensor;
      access = bitsOf(record.access, path);
    }
    const range = Tensor.use(tensor, pass.device, path);
    const at = this.#pack(list === "buffers" ? bindingCodes.buffer : bindingCodes.use, index, range.lengthLow);
    const { u32 } = this.#bindings;
    u32[at + 2] = range.buffer;
    u32[at + 3] = access;
    u32[at + 4] = range.offsetLow;
    u32[at + 5] = range.offsetHigh;
    u32[at + 7] = range.lengthHigh;
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
    const at = this.#pack(bindingCodes.bytes, index, byteLength);
    this.#sources[this.#sourceCount] = source;
    this.#sourceWords[this.#sourceCount++] = at + 8;
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
    depth--;
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

function badIndex(list: ArgumentList, key: string): Error {
  return refused(`${list}[${key}]`, `expected an index from 0 to ${countOf(list) - 1}, got ${key}`);
}

/** How many arguments a list may have. */
function countOf(list: ArgumentList): number {
  return list === "uses" ? maxUses : maxIndex + 1;
}

/** Packs one, two or three extents at `word`. */
function packExtent(u32: Uint32Array, word: number, value: Extent, argument: string): void {
  if (typeof value === "number") {
    u32[word] = checkU32(value, argument);
    u32[word + 1] = 1;
    u32[word + 2] = 1;
    return;
  }
  const axes: readonly unknown[] = Array.isArray(value) ? value : [value];
  if (axes.length < 1 || axes.length > 3) throw refused(argument, `expected 1 to 3 extents, got ${axes.length}`);
  for (let axis = 0; axis < 3; axis++) {
    const extent = axes[axis];
    u32[word + axis] = extent === undefined && axis > 0 ? 1 : checkU32(extent, argument);
  }
}
