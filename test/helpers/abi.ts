import { type Pointer, toArrayBuffer } from "bun:ffi";
import { Block } from "../../src/ffi/block.ts";
import { errorCodes, failureCodes } from "../../src/ffi/generated/codes.ts";
import type { MATensor } from "../../src/ffi/generated/structs.ts";
import { loadLibrary, type Native } from "../../src/ffi/library.ts";
import { checkStatus } from "../../src/ffi/status.ts";
import { readText } from "../../src/ffi/text.ts";

export { dtypeCodes } from "../../src/ffi/generated/codes.ts";

/** Values of the statuses that tests expect. */
export const statusCodes = {
  ok: 0,
  invalidArgument: errorCodes["invalid-argument"],
  invalidHandle: errorCodes["invalid-handle"],
  invalidState: errorCodes["invalid-state"],
  bufferTooSmall: errorCodes["buffer-too-small"],
  overflow: errorCodes.overflow,
  unsupported: errorCodes.unsupported,
} as const;

/** The parts of a thread's last failure. */
export type Failure = Readonly<Record<keyof typeof failureCodes, string>>;

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
    checkStatus(this.native, status);
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
    const handle = this.#take(
      this.native.ma_buffer_create(this.device, BigInt(byteLength), 0, this.#out.bytes, contents),
    );
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
    const json = readText((buffer, capacity, needed) =>
      checkStatus(this.native, this.native.ma_pass_describe(pass, buffer, capacity, needed)),
    );
    return JSON.parse(json) as { kernel: string }[];
  }

  /** The last failure. */
  lastFailure(): Failure {
    const part = (code: number) => {
      const text = new Block(this.native.ma_last_error(code, null, 0) + 1);
      this.native.ma_last_error(code, text.bytes, text.bytes.length);
      return text.getString(0, text.bytes.length);
    };
    const { message, argument, function: name } = failureCodes;
    return { message: part(message), argument: part(argument), function: part(name) };
  }

  /** The message of the last failure. */
  lastError(): string {
    return this.lastFailure().message;
  }

  /** What a dispatch of a pass hands to its kernel as argument `index`. */
  argumentBytes(pass: number, dispatch: number, index: number): Uint8Array<ArrayBuffer> {
    return argumentBytes(this.native, pass, dispatch, index);
  }

  commitAndWait(pass: number): void {
    checkStatus(this.native, this.native.ma_pass_commit(pass));
    checkStatus(this.native, this.native.ma_pass_wait(pass));
  }

  close(): void {
    this.native.ma_device_close(this.device);
  }
}

/** What a dispatch of a pass, both by their numbers, hands to its kernel as argument `index`. */
export function argumentBytes(native: Native, pass: number, dispatch: number, index: number): Uint8Array<ArrayBuffer> {
  const needed = new Block(8);
  checkStatus(native, native.ma_pass_argument_bytes(pass, dispatch, index, null, 0n, needed.bytes));
  const bytes = new Uint8Array(needed.getU64(0));
  if (bytes.length > 0) {
    const capacity = BigInt(bytes.length);
    checkStatus(native, native.ma_pass_argument_bytes(pass, dispatch, index, bytes, capacity, needed.bytes));
  }
  return bytes;
}

/** A byte range of a buffer as the C ABI takes it. */
export function tensorRecord(buffer: number, dtype: number, offset: number, length: number): MATensor {
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

/** The arguments of a prefill that has none of its options. */
export const noAttentionOptions = {
  packedKeys: 0,
  lse: undefined,
  sinks: undefined,
  alibiSlopes: undefined,
  seqLens: undefined,
  seqOffsets: undefined,
  blockTable: undefined,
  options: undefined,
  normsK: undefined,
  normsV: undefined,
  codes: undefined,
  packingK: 0,
  bitsK: 0,
  packingV: 0,
  bitsV: 0,
  tailK: undefined,
  tailV: undefined,
  tail: undefined,
} as const;
