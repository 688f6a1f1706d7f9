import { type Pointer, toArrayBuffer } from "bun:ffi";
import { Block } from "../../src/ffi/block.ts";
import type { TensorRecord } from "../../src/ffi/layout.ts";
import { loadLibrary, type Native } from "../../src/ffi/library.ts";
import { nativeError } from "../../src/ffi/status.ts";
import { readText } from "../../src/ffi/text.ts";

/** Values of `MA_DTYPE_*`. */
export const dtypeCodes = { f32: 1, f16: 2, bf16: 3, u8: 4, i8: 5, u32: 6, i32: 7, bool: 8 } as const;

/** Values of the statuses that tests expect. */
export const statusCodes = {
  ok: 0,
  invalidArgument: -1,
  invalidHandle: -2,
  invalidState: -3,
  bufferTooSmall: -4,
  overflow: -5,
  unsupported: -6,
} as const;

/** A buffer, and its memory. */
export interface NativeBuffer {
  readonly handle: number;
  readonly bytes: Uint8Array;
}

/** The C ABI without the TypeScript above it: what another caller can do wrong. */
export class NativeScene {
  readonly native: Native = loadLibrary();
  readonly device: number;
  readonly #out = new Block(16);

  constructor() {
    this.device = this.#take(this.native.ma_device_open(this.#out.bytes));
  }

  #take(status: number): number {
    if (status !== 0) throw nativeError(this.native, status);
    return this.#out.u32[0] as number;
  }

  buffer(byteLength: number): NativeBuffer {
    const { handle, part } = this.largeBuffer(byteLength);
    return { handle, bytes: part(0, byteLength) };
  }

  /** A buffer that may be too long for one ArrayBuffer, and any part of its memory. */
  largeBuffer(byteLength: number): {
    readonly handle: number;
    readonly part: (offset: number, length: number) => Uint8Array<ArrayBuffer>;
  } {
    const contents = this.#out.bytes.subarray(8);
    const handle = this.#take(this.native.ma_buffer_create(this.device, BigInt(byteLength), this.#out.bytes, contents));
    const address = this.#out.getU64(2);
    return {
      handle,
      part: (offset, length) => new Uint8Array(toArrayBuffer((address + offset) as Pointer, 0, length)),
    };
  }

  pass(): number {
    return this.#take(this.native.ma_pass_create(this.device, 0, this.#out.bytes));
  }

  /** Dispatches that a pass holds. */
  describe(pass: number): readonly { readonly kernel: string }[] {
    const json = readText((buffer, capacity, needed) => {
      const status = this.native.ma_pass_describe(pass, buffer, capacity, needed);
      if (status !== 0) throw nativeError(this.native, status);
    });
    return JSON.parse(json) as { kernel: string }[];
  }

  /** The message of the last failure. */
  lastError(): string {
    return nativeError(this.native, statusCodes.invalidArgument).message;
  }

  commitAndWait(pass: number): void {
    for (const status of [this.native.ma_pass_commit(pass), this.native.ma_pass_wait(pass)]) {
      if (status !== 0) throw nativeError(this.native, status);
    }
  }

  close(): void {
    this.native.ma_device_close(this.device);
  }
}

/** A byte range of a buffer as the C ABI takes it. */
export function tensorRecord(buffer: number, dtype: number, offset: number, length: number): TensorRecord {
  const high = (value: number) => Math.floor(value / 2 ** 32);
  return {
    buffer,
    dtype,
    offsetLow: offset >>> 0,
    offsetHigh: high(offset),
    lengthLow: length >>> 0,
    lengthHigh: high(length),
  };
}
