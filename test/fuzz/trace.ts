import { writeFileSync } from "node:fs";

/** The first holds the count, the second the session. */
const headSlots = 2;
const slots = 32;
const slotBytes = 2048;
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/**
 * The last calls of a process, in a file that both it and its parent have
 * mapped, so that they can be read after a crash or while it hangs.
 */
export class Trace {
  readonly #bytes: Uint8Array<ArrayBuffer>;
  readonly #count: Uint32Array<ArrayBuffer>;

  private constructor(path: string) {
    this.#bytes = Bun.mmap(path);
    this.#count = new Uint32Array(this.#bytes.buffer, this.#bytes.byteOffset, 1);
  }

  static create(path: string): Trace {
    writeFileSync(path, new Uint8Array(slotBytes * (headSlots + slots)));
    return new Trace(path);
  }

  static open(path: string): Trace {
    return new Trace(path);
  }

  /** Calls begun so far. */
  get count(): number {
    return this.#count[0] ?? 0;
  }

  /** Notes a call that is about to be made. */
  begin(text: string): void {
    const number = this.count;
    this.#write(headSlots + (number % slots), `#${number} ${text}`);
    this.#count[0] = number + 1;
  }

  /** The number of the session that the calls belong to. */
  get session(): number {
    return Number(this.#read(1));
  }

  set session(number: number) {
    this.#write(1, String(number));
  }

  /** The last `limit` calls; the last of them may not have returned. */
  last(limit: number): string[] {
    const calls: string[] = [];
    for (let number = Math.max(0, this.count - Math.min(limit, slots)); number < this.count; number++) {
      calls.push(this.#read(headSlots + (number % slots)));
    }
    return calls;
  }

  #slot(index: number): Uint8Array<ArrayBuffer> {
    return this.#bytes.subarray(slotBytes * index, slotBytes * (index + 1));
  }

  #write(index: number, text: string): void {
    const slot = this.#slot(index);
    const { written } = encoder.encodeInto(text, slot.subarray(0, slotBytes - 1));
    slot[written] = 0;
  }

  #read(index: number): string {
    const slot = this.#slot(index);
    return decoder.decode(slot.subarray(0, slot.indexOf(0)));
  }
}
