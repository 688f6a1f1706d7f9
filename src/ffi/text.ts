import type { Pointer } from "bun:ffi";
import { Block } from "./block.ts";

/** UTF-8 bytes with a NUL after them, and their length without it. */
export function encodeText(text: string): { block: Block; byteLength: number } {
  const bytes = new TextEncoder().encode(text);
  const block = new Block(bytes.length + 1);
  block.bytes.set(bytes);
  return { block, byteLength: bytes.length };
}

/**
 * Reads text from a function that writes up to `capacity` bytes and a NUL and
 * says how many it needed. `write` throws for a failed status.
 */
export function readText(write: (buffer: Pointer, capacity: bigint, needed: Pointer) => void): string {
  const needed = new Block(8);
  let capacity = 4096;
  for (;;) {
    // One byte more than `capacity`, so that the NUL fits whichever way it is counted.
    const text = new Block(capacity + 1);
    write(text.address, BigInt(capacity), needed.address);
    const length = needed.getU64(0);
    if (length < capacity) return new TextDecoder().decode(text.bytes.subarray(0, length));
    capacity = length + 1;
  }
}
