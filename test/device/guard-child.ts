/** Writes one byte behind a buffer, by the address that the C ABI gives, and releases the buffer. */
import { toArrayBuffer } from "bun:ffi";
import { Block } from "../../src/ffi/block.ts";
import { loadLibrary } from "../../src/ffi/library.ts";
import type { Pointer } from "../../src/ffi/memory.ts";

const native = loadLibrary();
const out = new Block(16);
native.ma_device_open(out.bytes);
native.ma_buffer_create(out.u32[0] ?? 0, 16n, 0, out.bytes, out.bytes.subarray(8));
new Uint8Array(toArrayBuffer(out.getU64(2) as Pointer, 0, 17))[16] = 1;
console.log("written");
native.ma_buffer_release(out.u32[0] ?? 0);
console.log("released");
