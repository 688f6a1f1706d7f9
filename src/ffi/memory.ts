import { type Pointer, ptr, toArrayBuffer } from "bun:ffi";
import { Block } from "./block.ts";
import type { Native } from "./library.ts";
import { checkStatus } from "./status.ts";

export type { Pointer };

/** A function of the library as Bun gives it, with its address. */
interface FunctionWithAddress {
  readonly ptr: Pointer;
}

/**
 * `toArrayBuffer` with its last two parameters, which its types leave out: what
 * is called when the contents go, on any thread, and with what.
 */
const adopt = toArrayBuffer as (
  address: Pointer,
  byteOffset: number,
  byteLength: number,
  context: number,
  release: Pointer,
) => ArrayBuffer;

/**
 * A buffer's memory as an ArrayBuffer that owns the buffer: both go together,
 * and the collector counts its bytes as its own. Only for use while the buffer
 * is there, which `ma_device_close` ends.
 */
export function ownMemory(native: Native, buffer: number, address: Pointer, byteLength: number): ArrayBuffer {
  const { ptr } = native.ma_buffer_collected as unknown as FunctionWithAddress;
  return adopt(address, 0, byteLength, buffer, ptr);
}

/** A buffer's memory as an ArrayBuffer that keeps the memory, whatever becomes of the buffer and its device. */
export function holdMemory(native: Native, buffer: number, address: Pointer, byteLength: number): ArrayBuffer {
  const hold = new Block(8);
  checkStatus(native, native.ma_buffer_hold(buffer, hold.bytes));
  const { ptr } = native.ma_hold_release as unknown as FunctionWithAddress;
  return adopt(address, 0, byteLength, hold.getU64(0), ptr);
}

const held = new Set<unknown>();

/** Runs `call`, during which `blocks` stay alive: what the library reads by an address that lies in memory. */
export function holding<T>(blocks: unknown, call: () => T): T {
  held.add(blocks);
  try {
    return call();
  } finally {
    held.delete(blocks);
  }
}

/** Where the bytes of a view or a buffer lie, for a call that is made before any other code runs. */
export function addressOf(bytes: ArrayBufferView | ArrayBuffer): Pointer {
  return ptr(bytes as Uint8Array);
}
