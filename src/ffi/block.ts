import { type Pointer, ptr } from "bun:ffi";

/**
 * A fixed piece of memory that is packed again for each call. The views lie
 * over an explicit ArrayBuffer, because the storage of a small typed array can
 * move, and the address is taken once. `address` keeps nothing alive: hold the
 * block for as long as the library may read it.
 */
export class Block {
  readonly buffer: ArrayBuffer;
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly u32: Uint32Array<ArrayBuffer>;
  readonly f32: Float32Array<ArrayBuffer>;
  readonly f64: Float64Array<ArrayBuffer>;
  readonly address: Pointer;

  /** `byteLength` is rounded up to a multiple of 8. */
  constructor(byteLength: number) {
    this.buffer = new ArrayBuffer(Math.ceil(byteLength / 8) * 8);
    this.bytes = new Uint8Array(this.buffer);
    this.u32 = new Uint32Array(this.buffer);
    this.f32 = new Float32Array(this.buffer);
    this.f64 = new Float64Array(this.buffer);
    this.address = ptr(this.buffer);
  }

  /** Stores an integer below 2^53 as 64 bits at 32-bit word `word`. */
  setU64(word: number, value: number): void {
    this.u32[word] = value;
    this.u32[word + 1] = value / 0x1_0000_0000;
  }

  /** Reads 64 bits at 32-bit word `word`; exact below 2^53. */
  getU64(word: number): number {
    return (this.u32[word + 1] as number) * 0x1_0000_0000 + (this.u32[word] as number);
  }

  /** Reads a NUL-terminated UTF-8 string in the field of `size` bytes at `offset`. */
  getString(offset: number, size: number): string {
    const field = this.bytes.subarray(offset, offset + size);
    const end = field.indexOf(0);
    return new TextDecoder().decode(end < 0 ? field : field.subarray(0, end));
  }
}
