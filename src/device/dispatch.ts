import { checkObject, checkU32, display, refused } from "../checks.ts";
import { Block } from "../ffi/block.ts";
import { structSizes } from "../ffi/generated/structs.ts";
import {
  accessBits,
  type BindingRecord,
  type DispatchForm,
  type Extent3,
  packBindings,
  packKernelDispatch,
} from "../ffi/records.ts";
import { checkStatus } from "../ffi/status.ts";
import { OptionNames } from "../optionNames.ts";
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
  /** Small constants by `[[buffer(index)]]` in place of tensors, copied: 1 to 4,096 bytes each. */
  readonly bytes?: Readonly<Record<number, ArrayBufferView | ArrayBuffer>>;
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
  threadgroupMemory: true,
  grid: true,
  threads: true,
  form: true,
});

const bufferNames = new OptionNames<Exclude<BufferArgument, Tensor>>("a buffer argument", {
  tensor: true,
  access: true,
});

/** The highest index of an attribute. */
const maxIndex = 30;
/** Buffers, bytes and threadgroup memory, each at every index. */
const maxBindings = 3 * (maxIndex + 1);
const maxBytes = 4096;

// Packed again for each call, once all that the caller gave has been read: a getter of the caller's may dispatch too.
const bindingBlock = new Block(maxBindings * structSizes.MABinding);
const dispatchBlock = new Block(structSizes.MAKernelDispatch);
/** Copies of `bytes` by index, which the library reads before the call returns. */
const byteBlocks: Block[] = [];

/** The options that hold arguments. */
type ArgumentList = "buffers" | "bytes" | "threadgroupMemory";

/** An argument as the caller gave it. */
interface Entry<T> {
  readonly list: ArgumentList;
  /** Of the kernel's attribute. */
  readonly index: number;
  readonly value: T;
}

/** @internal Encodes one dispatch of `pipeline`. */
export function encodeDispatch(pass: PassLifetime, pipeline: Pipeline, options: DispatchOptions): void {
  const handle = Pipeline.use(pipeline, pass.device);
  optionNames.check(checkObject(options, "options"));
  const form = options.form ?? "threads";
  if (form !== "threads" && form !== "threadgroups") {
    throw refused("form", `expected "threads" or "threadgroups", got ${display(form)}`);
  }
  const grid = checkExtent(options.grid, "grid");
  const threadsPerThreadgroup = checkExtent(options.threads, "threads");
  const entries: Entry<unknown>[] = [];
  const buffers = readList(options.buffers, "buffers", entries).map((entry) => readBuffer(pass, entry));
  const bytes = readList(options.bytes, "bytes", entries).map(readBytes);
  const threadgroups = readList(options.threadgroupMemory, "threadgroupMemory", entries).map(readThreadgroup);

  const records: BindingRecord[] = [...buffers, ...bytes.map(packBytes), ...threadgroups];
  packBindings(records, bindingBlock);
  const record = { pipeline: handle, form, grid, threadsPerThreadgroup, bindingCount: records.length };
  packKernelDispatch({ ...record, bindings: bindingBlock }, dispatchBlock);
  checkStatus(pass.native, pass.native.ma_encode_kernel(pass.handle, dispatchBlock.address));
}

function pathOf({ list, index }: Entry<unknown>): string {
  return `${list}[${index}]`;
}

/** The arguments of one list, which are appended to those of all lists as well. */
function readList<T>(
  given: Readonly<Record<number, T>> | readonly T[] | undefined,
  list: ArgumentList,
  all: Entry<unknown>[],
): Entry<T>[] {
  if (given === undefined) return [];
  const entries: Entry<T>[] = [];
  for (const key of Object.keys(checkObject(given, list))) {
    const index = Number(key);
    if (index >>> 0 !== index || index > maxIndex || String(index) !== key) {
      throw refused(`${list}[${key}]`, `expected an index from 0 to ${maxIndex}, got ${key}`);
    }
    entries.push({ list, index, value: (given as Readonly<Record<number, T>>)[index] as T });
  }
  all.push(...entries);
  return entries;
}

function readBuffer(pass: PassLifetime, entry: Entry<BufferArgument>): BindingRecord {
  const { index, value } = entry;
  const argument = pathOf(entry);
  let tensor: unknown = checkObject(value, argument);
  let access: BufferAccess = "read-write";
  if (!isTensor(value)) {
    // Of an object that is neither, such as an array, the error is that it is no tensor.
    if ("tensor" in value || Object.getPrototypeOf(value) === Object.prototype) {
      bufferNames.check(value, `${argument}.`);
    }
    tensor = value.tensor;
    access = value.access ?? access;
    if (!Object.hasOwn(accessBits, access)) {
      throw refused(`${argument}.access`, `expected "read", "write" or "read-write", got ${display(access)}`);
    }
  }
  const range = Tensor.use(tensor, pass.device, argument);
  return {
    kind: "buffer",
    index,
    buffer: range.buffer,
    access: accessBits[access],
    offset: range.offsetLow + range.offsetHigh * 2 ** 32,
    length: range.lengthLow + range.lengthHigh * 2 ** 32,
  };
}

interface BytesEntry {
  readonly entry: Entry<unknown>;
  readonly source: Uint8Array;
}

function readBytes(entry: Entry<ArrayBufferView | ArrayBuffer>): BytesEntry {
  const { value } = entry;
  if (ArrayBuffer.isView(value)) {
    return { entry, source: new Uint8Array(value.buffer, value.byteOffset, value.byteLength) };
  }
  if (value instanceof ArrayBuffer) return { entry, source: new Uint8Array(value) };
  throw refused(pathOf(entry), `expected a typed array or an ArrayBuffer, got ${display(value)}`);
}

function packBytes({ entry, source }: BytesEntry): BindingRecord {
  const { index } = entry;
  const { length } = source;
  if (length < 1 || length > maxBytes) {
    throw refused(pathOf(entry), `expected 1 to ${maxBytes} bytes, got ${length}`);
  }
  byteBlocks[index] ??= new Block(maxBytes);
  const block = byteBlocks[index];
  block.bytes.set(source);
  return { kind: "bytes", index, length, bytes: block.address };
}

function readThreadgroup(entry: Entry<number>): BindingRecord {
  return { kind: "threadgroup", index: entry.index, length: checkU32(entry.value, pathOf(entry)) };
}

function checkExtent(value: Extent, argument: string): Extent3 {
  const axes: readonly unknown[] = Array.isArray(value) ? value : [value];
  if (axes.length < 1 || axes.length > 3) throw refused(argument, `expected 1 to 3 extents, got ${axes.length}`);
  const [x, y = 1, z = 1] = axes;
  return [checkU32(x, argument), checkU32(y, argument), checkU32(z, argument)];
}
