import { checkLength, display, refused } from "../checks.ts";
import { MetalAttentionError } from "../errors.ts";
import { Block } from "../ffi/block.ts";
import type { MATensor } from "../ffi/generated/structs.ts";
import { checkStatus } from "../ffi/status.ts";
import { markVersion, notOurs, tensorState } from "../identity.ts";
import { atWork } from "../parameter.ts";
import {
  checkAttached,
  countOf,
  decodeValues,
  encodeValues,
  isBigArray,
  ownValues,
  type TensorValues,
  typedArrayName,
} from "./convert.ts";
import type { Device } from "./device.ts";
import { type DType, type DTypeViews, dtypes } from "./dtypes.ts";
import { inspectSymbol, previewOf } from "./inspect.ts";
import { BufferMemory, checkMade, type DeviceLifetime, disposedError, maxArrayBuffer } from "./lifetime.ts";
import { type SharedTensor, shareTensor } from "./share.ts";

const maxRank = 8;
/** So that a length in bytes is exact as a number. */
const maxElements = 2 ** 50;

/** Floats of the largest ArrayBuffer. */
const mostFloats = maxArrayBuffer / 4;

/** @internal What an operation needs of a tensor: its place in a buffer, and its shape. */
export interface TensorRange extends Readonly<MATensor> {
  readonly shape: readonly number[];
}

/**
 * Options of `Device.tensor`. In `shared` storage (the default) CPU and GPU see
 * the same bytes. Storage that is `private` is the device's own, on a GPU with
 * memory of its own that memory: kernels alone see it, and `Pass.copy` moves
 * what goes in and out.
 */
export interface TensorOptions {
  readonly storage?: "shared" | "private" | undefined;
}

/** @internal Stands in a record that is filled again by each call, until the first one. */
export const noRange: TensorRange = {
  buffer: 0,
  dtype: 0,
  offsetLow: 0,
  offsetHigh: 0,
  lengthLow: 0,
  lengthHigh: 0,
  shape: [],
};

/** What a tensor shows of itself to operations. */
interface TensorState extends TensorRange {
  readonly owner: DeviceLifetime;
  disposed: boolean;
}

/** The state of a tensor of this module's class or of a former one's; undefined for anything else. */
function stateOf(value: unknown): TensorState | undefined {
  return typeof value === "object" && value !== null
    ? (value as { readonly [tensorState]?: TensorState })[tensorState]
    : undefined;
}

/** @internal Whether a value is a tensor. */
export function isTensor(value: unknown): value is Tensor {
  return stateOf(value) !== undefined;
}

/**
 * A row-major array in memory that CPU and GPU share, or in the device's own.
 *
 * `slice` and `reshape` give further tensors over the same memory, which lives
 * until the last of them is disposed. A zero-copy view (`bytes`, `view()`)
 * stays valid for as long as it is reachable, after `dispose` too: the memory
 * is then released when the view, or whoever its ArrayBuffer was transferred
 * to, is collected.
 *
 * The device runs while JavaScript goes on: read and write a tensor only when
 * no committed pass that uses it is still running.
 *
 * @example
 * using device = Device.open();
 * using x = device.tensor("bf16", [2, 4]);
 * x.set([0, 1, 2, 3, 4, 5, 6, 7]);
 * using row = x.slice(1, 2);      // shape [1, 4], the same memory
 * row.toFloat32Array();           // Float32Array [4, 5, 6, 7]
 */
export class Tensor<T extends DType = DType> {
  /** The device that made it, which it keeps open. */
  readonly device: Device;
  /** Element type. */
  readonly dtype: T;
  /** Elements along each axis, the slowest first. */
  readonly shape: readonly number[];
  /** Elements in all. */
  readonly length: number;
  /** Bytes from the start of the buffer that this tensor shares with its slices. */
  readonly byteOffset: number;
  /** Bytes in all. */
  readonly byteLength: number;
  readonly #memory: BufferMemory;
  readonly #state: TensorState;

  /** @internal Use `Device.tensor`. Takes over one tensor count of `memory`. */
  constructor(device: Device, memory: BufferMemory, dtype: T, shape: readonly number[], byteOffset: number) {
    this.#memory = checkMade(memory, BufferMemory, "Device.tensor()");
    this.device = device;
    this.dtype = dtype;
    this.shape = Object.freeze([...shape]);
    this.length = elementCount(shape);
    this.byteOffset = byteOffset;
    this.byteLength = this.length * dtypes[dtype].size;
    this.#state = {
      buffer: memory.handle,
      dtype: dtypes[dtype].code,
      offsetLow: byteOffset >>> 0,
      offsetHigh: Math.floor(byteOffset / 2 ** 32),
      lengthLow: this.byteLength >>> 0,
      lengthHigh: Math.floor(this.byteLength / 2 ** 32),
      // A copy for the hot path: JavaScriptCore reads a frozen array several times slower.
      shape: [...shape],
      owner: memory.device,
      disposed: false,
    };
  }

  /** @internal */
  get [tensorState](): TensorState | undefined {
    return #state in this ? this.#state : undefined;
  }

  /**
   * @internal The tensor that a caller passed as `argument`, once it is known
   * to be one, undisposed and of `device`.
   */
  static use(value: unknown, device: DeviceLifetime, argument: string): TensorRange {
    const state = stateOf(value);
    if (state === undefined) throw notOurs(value, "a Tensor", argument);
    if (state.disposed) throw disposedError("the tensor", argument);
    if (state.owner !== device) {
      throw refused(argument, "the tensor belongs to another device than the pass", "invalid-handle");
    }
    atWork.recorder?.noteTensor(value as object);
    return state;
  }

  /** @internal Whether its values can be read and written here. */
  static isVisible(tensor: Tensor): boolean {
    return tensor.#memory.isVisible;
  }

  /** @internal The bytes, for use inside one synchronous call: they keep nothing alive. */
  static bytesOf(tensor: Tensor): Uint8Array<ArrayBuffer> {
    tensor.#checkUsable();
    return new Uint8Array(tensor.#memory.arrayBuffer, tensor.byteOffset, tensor.byteLength);
  }

  /** Whether this tensor, or its device, has been disposed. */
  get disposed(): boolean {
    return this.#state.disposed || this.#memory.device.disposed;
  }

  /**
   * Who sees its memory: CPU and GPU, or the GPU alone. What reads or writes values here is `unsupported` then, as it is
   * in memory of more than 4 GiB, which no ArrayBuffer holds.
   */
  get storage(): "shared" | "private" {
    return this.#memory.isPrivate ? "private" : "shared";
  }

  /** The tensor's bytes, without a copy. Errors: `unsupported` in private storage, and in memory beyond 4 GiB. */
  get bytes(): Uint8Array<ArrayBuffer> {
    this.#checkUsable();
    return new Uint8Array(this.#memory.expose(), this.byteOffset, this.byteLength);
  }

  /**
   * The tensor's elements, without a copy, as the typed array of its dtype:
   * `bf16` as bit patterns in a Uint16Array, `bool` as bytes. Errors: `unsupported` in private storage,
   * and in memory beyond 4 GiB.
   */
  view(): DTypeViews[T] {
    this.#checkUsable();
    return this.#elements(this.#memory.expose());
  }

  /**
   * Writes every element, or with `offset` as many as there are values, from
   * element `offset` on (in row-major order). Converts from numbers: to nearest, ties to even,
   * for the float types. Integer types take whole numbers in their range, those of 64 bits
   * bigints too; `bool` takes true and false, or 1 and 0.
   *
   * Errors (`invalid-argument`, nothing written): another count than `length`,
   * or values beyond the end; a value that the type cannot hold, a source that is no array.
   * `unsupported` in private storage, and in memory beyond 4 GiB.
   *
   * @example
   * tensor.set(new Float32Array(tensor.length).fill(0.5));
   * tensor.set([1, 2, 3], 16); // elements 16, 17 and 18
   */
  set(values: TensorValues, offset?: number): this {
    this.#checkUsable();
    if (!isNumericArray(values, this.dtype)) {
      const bigints = this.dtype === "u64" || this.dtype === "i64" ? " or bigints" : "";
      throw refused("values", `expected an array or a typed array of numbers${bigints}, got ${display(values)}`);
    }
    // Before all of them are copied.
    if (offset === undefined) this.#checkCount(countOf(values));
    if (ArrayBuffer.isView(values)) checkAttached(values, "values");
    const own = ownValues(values);
    if (offset === undefined) this.#checkCount(own.length);
    const start = offset === undefined ? 0 : this.#checkOffset(offset, own.length);
    // A getter of the caller's may have disposed it meanwhile.
    this.#checkUsable();
    const { size } = dtypes[this.dtype];
    encodeValues(this.dtype, own, this.#elements(this.#memory.arrayBuffer, start, own.length));
    this.#memory.noteWrite(this.byteOffset + start * size, own.length * size);
    return this;
  }

  /**
   * A copy of the values as floats. Integers beyond 2^24 are rounded; `bool` gives 0 and 1. Errors: `unsupported` in
   * private storage, in memory beyond 4 GiB, and for more than 2^30 floats.
   */
  toFloat32Array(): Float32Array<ArrayBuffer> {
    this.#checkUsable();
    const elements = this.#elements(this.#memory.arrayBuffer);
    if (this.length > mostFloats) {
      throw new MetalAttentionError(
        "unsupported",
        `${this.length} floats are more than the ${mostFloats} of an ArrayBuffer; take them slice by slice`,
      );
    }
    return decodeValues(this.dtype, elements);
  }

  /**
   * Elements `start` up to `end` along the first axis, sharing the memory.
   * Errors: `invalid-argument` unless 0 <= start <= end <= shape[0].
   *
   * @example
   * using lastTwo = tokens.slice(tokens.shape[0] - 2);
   */
  slice(start: number, end?: number): Tensor<T> {
    this.#checkUsable();
    const [count = 0, ...rest] = this.shape;
    const stop = end === undefined ? count : checkLength(end, "end");
    checkLength(start, "start");
    if (stop > count) throw refused("end", `${stop} is beyond the first axis of shape [${this.shape}]`);
    if (start > stop) throw refused("start", `${start} is beyond the end ${stop}`);
    const rowBytes = elementCount(rest) * dtypes[this.dtype].size;
    return this.#share([stop - start, ...rest], this.byteOffset + start * rowBytes);
  }

  /**
   * The same elements under another shape of the same count, sharing the memory.
   * Errors: `invalid-argument` where the counts differ, and for an axis above 2^32 - 1; `overflow` for more than 2^50
   * elements.
   *
   * @example
   * using heads = rows.reshape([nTokens, nHeads, headDim]);
   */
  reshape(shape: readonly number[]): Tensor<T> {
    this.#checkUsable();
    const axes = checkShape(shape);
    // A getter of the caller's may have disposed it meanwhile.
    this.#checkUsable();
    const count = elementCount(axes);
    if (count !== this.length) {
      throw refused("shape", `[${axes}] has ${count} elements, the tensor of shape [${this.shape}] has ${this.length}`);
    }
    return this.#share(axes, this.byteOffset);
  }

  /**
   * Where a device of another worker of this process finds the memory: plain
   * data to be sent by `postMessage`, for `Device.adopt`. Keep the tensor until
   * it has been adopted; from then on the memory stays until both are disposed.
   * Errors: `unsupported` in private storage, which is its device's alone.
   *
   * @example
   * worker.postMessage(cache.share());
   */
  share(): SharedTensor {
    this.#checkUsable();
    this.#memory.checkShared();
    return shareTensor(this.#memory, this.dtype, this.shape, this.byteOffset);
  }

  /**
   * Where kernels find the first element: for pointers that lie in other memory, as `device float *` members of a
   * struct do (`struct({ data: "u64" })`, or a tensor of `u64`). Name the tensor in `uses` of each dispatch that
   * follows the address. Of a disposed tensor it leads nowhere: a kernel that follows it fails its pass, or reads
   * what lies there by then.
   *
   * @example
   * pass.dispatch(pipeline, { bytes: [BigUint64Array.of(x.gpuAddress)], uses: [x], grid: n, threads: 32 });
   */
  get gpuAddress(): bigint {
    this.#checkUsable();
    const { native } = this.#memory.device;
    const out = new Block(8);
    checkStatus(native, native.ma_buffer_address(this.#memory.handle, out.bytes));
    return (new BigUint64Array(out.buffer)[0] as bigint) + BigInt(this.byteOffset);
  }

  /** Ends the use of this tensor; the memory goes when nothing shares it. A second call does nothing. */
  dispose(): void {
    if (this.#state.disposed) return;
    this.#state.disposed = true;
    this.#memory.removeTensor();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  /** What `console.log` shows: dtype, shape and the first values. */
  [inspectSymbol](): string {
    if (!(#state in this)) return "Tensor";
    const head = `Tensor ${this.dtype} [${this.shape.join(", ")}]`;
    if (this.disposed) return `${head} (disposed)`;
    if (this.#memory.isPrivate) return `${head} (private)`;
    if (!this.#memory.isVisible) return `${head} (${this.#memory.byteLength} bytes)`;
    return `${head} ${previewOf(this.dtype, this.#elements(this.#memory.arrayBuffer))}`;
  }

  #share(shape: readonly number[], byteOffset: number): Tensor<T> {
    this.#memory.addTensor();
    return new Tensor(this.device, this.#memory, this.dtype, shape, byteOffset);
  }

  #elements(buffer: ArrayBuffer, start = 0, length = this.length): DTypeViews[T] {
    const { View, size } = dtypes[this.dtype];
    return new View(buffer, this.byteOffset + start * size, length);
  }

  #checkCount(count: number): void {
    if (count === this.length) return;
    throw refused("values", `expected ${this.length} values for shape [${this.shape}], got ${count}`);
  }

  /** The element that `count` values begin at. */
  #checkOffset(offset: number, count: number): number {
    if (!Number.isInteger(offset) || offset < 0 || offset > this.length) {
      throw refused("offset", `expected an integer from 0 to the length ${this.length}, got ${display(offset)}`);
    }
    if (offset + count > this.length) {
      throw refused("values", `${count} values from element ${offset} end beyond the length ${this.length}`);
    }
    return offset;
  }

  #checkUsable(): void {
    if (this.#state.disposed) throw disposedError("the tensor");
    if (this.#memory.device.disposed) throw disposedError("the tensor's device");
  }
}

markVersion(Tensor);

/** A copy of `shape`, refused where it is not a list of 1 to 8 axis lengths. */
export function checkShape(shape: readonly number[], argument = "shape"): readonly number[] {
  if (!Array.isArray(shape) || shape.length < 1 || shape.length > maxRank) {
    const got = Array.isArray(shape) ? `${shape.length} axes` : display(shape);
    throw refused(argument, `expected an array of 1 to ${maxRank} axis lengths, got ${got}`);
  }
  const axes = Array.from(shape, (length: unknown, axis) => checkLength(length, `${argument}[${axis}]`));
  // Strides are products of axes, so they must stay exact where another axis is empty too.
  if (elementCount(axes.map((length) => length || 1)) > maxElements) {
    throw refused(argument, `[${axes}] spans more than ${maxElements} elements`, "overflow");
  }
  return axes;
}

/** The product of the axis lengths. */
export function elementCount(shape: readonly number[]): number {
  let count = 1;
  for (const length of shape) count *= length;
  return count;
}

function isNumericArray(values: unknown, dtype: DType): values is TensorValues {
  if (Array.isArray(values)) return true;
  if (isBigArray(values)) return dtype === "u64" || dtype === "i64";
  return typedArrayName(values) !== undefined;
}
