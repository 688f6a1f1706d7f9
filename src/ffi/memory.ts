import { type Pointer, ptr, toArrayBuffer } from "bun:ffi";

export type { Pointer };

/**
 * The library's memory as an ArrayBuffer, without a copy. It does not own the
 * memory: whoever creates it keeps the buffer handle until it is collected.
 */
export function wrapMemory(address: Pointer, byteLength: number): ArrayBuffer {
  return toArrayBuffer(address, 0, byteLength);
}

/** Where the bytes of a view or a buffer lie, for a call that is made before any other code runs. */
export function addressOf(bytes: ArrayBufferView | ArrayBuffer): Pointer {
  return ptr(bytes as Uint8Array);
}
