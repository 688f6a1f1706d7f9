import { checkObject, checkU32, display, refused } from "../checks.ts";
import { Block } from "../ffi/block.ts";
import {
  accessBits,
  type BindingRecord,
  type DispatchForm,
  type Extent3,
  packBindings,
  packKernelDispatch,
} from "../ffi/records.ts";
import { nativeError } from "../ffi/status.ts";
import { Pipeline } from "./kernels.ts";
import type { PassLifetime } from "./lifetime.ts";
import { Tensor } from "./tensor.ts";

/** What a kernel does with a buffer. */
export type BufferAccess = keyof typeof accessBits;

/** A tensor for a `[[buffer(index)]]` argument; `access` is `read-write` unless given. */
export type BufferArgument = Tensor | { readonly tensor: Tensor; readonly access?: BufferAccess };

/** One, two or three extents; those left out are 1. */
export type Extent = number | readonly [number] | readonly [number, number] | Extent3;

/** Arguments and size of a dispatch of any kernel. Keys are the indices of the kernel's attributes. */
export interface DispatchOptions {
  /** Tensors by `[[buffer(index)]]`. Say `access: "read"` where it holds, and dispatches overlap more. */
  readonly buffers?: Readonly<Record<number, BufferArgument>> | readonly BufferArgument[];
  /** Small constants by `[[buffer(index)]]`, copied: 1 to 4,096 bytes each. */
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

/** Memory that the packed structs of the current call point to; an address alone keeps nothing alive. */
const held: Block[] = [];

/** Encodes one dispatch of `pipeline`. */
export function encodeDispatch(pass: PassLifetime, pipeline: Pipeline, options: DispatchOptions): void {
  const handle = Pipeline.use(pipeline, pass.device);
  checkObject(options, "options");
  const form = options.form ?? "threads";
  if (form !== "threads" && form !== "threadgroups") {
    throw refused("form", `expected "threads" or "threadgroups", got ${display(form)}`);
  }
  const grid = checkExtent(options.grid, "grid");
  const threadsPerThreadgroup = checkExtent(options.threads, "threads");
  try {
    const buffers = entries(options.buffers, "buffers");
    const bytes = entries(options.bytes, "bytes");
    const threadgroups = entries(options.threadgroupMemory, "threadgroupMemory");
    const records = [
      ...buffers.map((entry) => bindBuffer(pass, entry)),
      ...bytes.map(bindBytes),
      ...threadgroups.map(bindThreadgroup),
    ];
    const bindings = packBindings(records);
    const dispatch = packKernelDispatch({
      pipeline: handle,
      form,
      grid,
      threadsPerThreadgroup,
      bindingCount: records.length,
      bindings,
    });
    held.push(bindings, dispatch);
    const status = pass.native.ma_encode_kernel(pass.handle, dispatch.address);
    if (status === 0) return;
    throw nativeError(pass.native, status);
  } finally {
    held.length = 0;
  }
}

interface Entry<T> {
  readonly index: number;
  readonly argument: string;
  readonly value: T;
}

function entries<T>(record: Readonly<Record<number, T>> | readonly T[] | undefined, name: string): Entry<T>[] {
  if (record === undefined) return [];
  return Object.entries<T>(checkObject(record, name)).map(([key, value]) => {
    const argument = `${name}[${key}]`;
    const index = key.trim() === "" ? Number.NaN : Number(key);
    return { index: checkU32(index, argument), argument, value };
  });
}

function bindBuffer(pass: PassLifetime, { index, argument, value }: Entry<BufferArgument>): BindingRecord {
  checkObject(value, argument);
  const given = value instanceof Tensor ? { tensor: value } : value;
  const tensor: Tensor = given.tensor;
  const access = given.access ?? "read-write";
  if (!Object.hasOwn(accessBits, access)) {
    throw refused(`${argument}.access`, `expected "read", "write" or "read-write", got ${display(access)}`);
  }
  const { buffer } = Tensor.use(tensor, pass.device, argument);
  return {
    kind: "buffer",
    index,
    buffer,
    access: accessBits[access],
    offset: tensor.byteOffset,
    length: tensor.byteLength,
  };
}

function bindBytes({ index, argument, value }: Entry<ArrayBufferView | ArrayBuffer>): BindingRecord {
  let source: Uint8Array;
  if (ArrayBuffer.isView(value)) source = new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  else if (value instanceof ArrayBuffer) source = new Uint8Array(value);
  else throw refused(argument, `expected a typed array or an ArrayBuffer, got ${display(value)}`);
  if (source.length === 0) throw refused(argument, "expected 1 to 4096 bytes, got 0");
  const copy = new Block(source.length);
  copy.bytes.set(source);
  held.push(copy);
  return { kind: "bytes", index, length: source.length, bytes: copy.address };
}

function bindThreadgroup({ index, argument, value }: Entry<number>): BindingRecord {
  return { kind: "threadgroup", index, length: checkU32(value, argument) };
}

function checkExtent(value: Extent, argument: string): Extent3 {
  const axes: readonly unknown[] = Array.isArray(value) ? value : [value];
  if (axes.length < 1 || axes.length > 3) throw refused(argument, `expected 1 to 3 extents, got ${axes.length}`);
  const [x, y = 1, z = 1] = axes;
  return [checkU32(x, argument), checkU32(y, argument), checkU32(z, argument)];
}
