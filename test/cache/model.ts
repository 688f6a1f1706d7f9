/**
 * What a cache does, in the plainest way: every token's number in an array, and a memory of slots that says which
 * position was written there last.
 */
import type { KvCacheOptions } from "../../src/index.ts";

export interface ModelSequence {
  /** Numbers of the tokens, by position. */
  ids: number[];
  /** Tokens that are quantized, where there is a tail. */
  quantized: number;
  /** The position that each slot of a ring, and of the tail, was written for last. */
  ring: number[];
  tail: number[];
}

/** A page by what it is; undefined where it was given back. */
type Page = Set<number> | undefined;

/** Why a call is refused. */
export type Refusal = "overflow" | "invalid-state" | "invalid-argument";

/** Tokens that are quantized together. */
const block = 32;

export class Model {
  readonly options: KvCacheOptions;
  readonly live: ModelSequence[] = [];
  /** Pages by number, with the sequences that have them. */
  readonly pages = new Map<ModelSequence, Page[]>();
  readonly ringSlots: number;
  readonly tailLength: number;
  readonly tailSlots: number;

  constructor(options: KvCacheOptions) {
    this.options = options;
    const { capacity, keep = 0, rollback = 0, tail = 0, maxAppend = 256 } = options;
    this.ringSlots = capacity - keep + rollback;
    this.tailLength = tail === 0 ? 0 : tail + rollback;
    const size = Math.min(block, tail);
    const slots = this.tailLength + size - 1 + maxAppend + rollback;
    this.tailSlots = tail === 0 ? 0 : Math.ceil(slots / size) * size;
  }

  open(): ModelSequence | Refusal {
    if (this.live.length >= (this.options.sequences ?? 1)) return "overflow";
    const sequence = { ids: [], quantized: 0, ring: [], tail: [] };
    this.live.push(sequence);
    this.pages.set(sequence, []);
    return sequence;
  }

  drop(sequence: ModelSequence): void {
    this.live.splice(this.live.indexOf(sequence), 1);
    this.pages.delete(sequence);
  }

  /** Pages in use, each counted once. */
  get usedPages(): number {
    const used = new Set([...this.pages.values()].flat());
    used.delete(undefined);
    return used.size;
  }

  /** Quantized tokens that a row at `position` finds. */
  quantizedFor(sequence: ModelSequence, position: number): number {
    const { tail = 0 } = this.options;
    if (tail === 0) return position + 1;
    const size = Math.min(block, tail);
    const wanted = Math.floor(Math.max(0, position + 1 - this.tailLength) / size) * size;
    return Math.max(sequence.quantized, wanted);
  }

  /** Positions that a row at `position` sees, by the cache's window or a smaller one. */
  seenFrom(position: number, window = this.options.window): number[] {
    const { keep = 0 } = this.options;
    const all = Array.from({ length: position + 1 }, (_, j) => j);
    return window === undefined ? all : all.filter((j) => j < keep || j > position - window);
  }

  /** Why these tokens cannot be appended. */
  refuses(wanted: readonly (readonly [ModelSequence, number])[]): Refusal | undefined {
    const { capacity, window, pages } = this.options;
    const isBounded = window === undefined || pages !== undefined;
    for (const [{ ids }, count] of wanted) if (isBounded && ids.length + count > capacity) return "overflow";
    if (pages === undefined) return undefined;
    let needed = 0;
    for (const [sequence, count] of wanted) {
      const { length } = sequence.ids;
      const own = this.pages.get(sequence) as Page[];
      needed += Math.ceil((length + count) / pages.tokens) - own.length;
      if (length % pages.tokens > 0 && this.#isShared(own.at(-1))) needed++;
    }
    return needed > pages.count - this.usedPages ? "overflow" : undefined;
  }

  /** The pages that a step takes, whether it ends well or not. */
  reserve(sequence: ModelSequence): void {
    const { pages } = this.options;
    if (pages === undefined) return;
    const own = this.pages.get(sequence) as Page[];
    if (sequence.ids.length % pages.tokens > 0 && this.#isShared(own.at(-1))) own.splice(-1, 1, new Set());
  }

  /** Whether a step of these numbers of tokens has memory of its own, and what is in that counts once it has succeeded. */
  isLong(counts: readonly number[]): boolean {
    const { window, tail = 0, maxAppend = 256, pages } = this.options;
    const most = Math.max(...counts);
    return (
      (window !== undefined && pages === undefined && most > this.ringSlots - window + 1) ||
      (tail > 0 && most > maxAppend)
    );
  }

  /** Marks the slots that a step has written. */
  write(sequence: ModelSequence, count: number): void {
    const { keep = 0, window } = this.options;
    const from = sequence.ids.length;
    for (let position = from; position < from + count; position++) {
      if (window !== undefined && this.options.pages === undefined && position >= keep)
        sequence.ring[(position - keep) % this.ringSlots] = position;
      if (this.tailSlots > 0) sequence.tail[position % this.tailSlots] = position;
    }
  }

  advance(sequence: ModelSequence, ids: readonly number[]): void {
    this.reserve(sequence);
    this.write(sequence, ids.length);
    sequence.quantized = this.quantizedFor(sequence, sequence.ids.length + ids.length - 1);
    sequence.ids.push(...ids);
    this.#fitPages(sequence);
    const { window, rollback = 0, tail = 0, pages } = this.options;
    if (pages === undefined || window === undefined) return;
    const seen = sequence.ids.length - rollback - window + 1;
    const own = this.pages.get(sequence) as Page[];
    for (let i = 0; (i + 1) * pages.tokens <= Math.min(seen, tail > 0 ? sequence.quantized : seen); i++)
      own[i] = undefined;
  }

  refusesCut(sequence: ModelSequence, length: number): Refusal | undefined {
    const { window, keep = 0, pages } = this.options;
    if (length > sequence.ids.length) return "invalid-argument";
    if (window === undefined || length <= keep) return undefined;
    if (pages !== undefined) {
      const own = this.pages.get(sequence) as Page[];
      const seen = Math.max(0, length - window + 1);
      return own[Math.floor(seen / pages.tokens)] === undefined && seen < sequence.ids.length
        ? "invalid-state"
        : undefined;
    }
    for (let j = Math.max(keep, length - window + 1); j < length; j++) {
      if (sequence.ring[(j - keep) % this.ringSlots] !== j) return "invalid-state";
    }
    return undefined;
  }

  cut(sequence: ModelSequence, length: number): void {
    const { tail = 0 } = this.options;
    if (tail > 0 && length < sequence.ids.length) {
      let dense = length;
      while (dense > 0 && sequence.tail[(dense - 1) % this.tailSlots] === dense - 1) dense--;
      const wanted = this.quantizedFor({ ...sequence, quantized: 0 }, length - 1);
      sequence.quantized = Math.min(length, sequence.quantized, Math.max(wanted, dense));
    }
    sequence.ids.length = length;
    this.#fitPages(sequence);
  }

  fork(sequence: ModelSequence, length: number): ModelSequence | Refusal {
    const refusal = this.refusesCut(sequence, length);
    if (refusal !== undefined) return refusal;
    const { pages } = this.options;
    const isFull = pages !== undefined && length % pages.tokens > 0 && this.usedPages >= pages.count;
    const next = isFull ? "overflow" : this.open();
    if (typeof next === "string") return next;
    Object.assign(next, { ...sequence, ids: [...sequence.ids], ring: [...sequence.ring], tail: [...sequence.tail] });
    if (pages !== undefined) {
      const shared = (this.pages.get(sequence) as Page[]).slice(0, Math.floor(length / pages.tokens));
      this.pages.set(next, shared);
      next.ids.length = length;
      this.#fitPages(next);
      next.ids.splice(0, next.ids.length, ...sequence.ids);
    }
    this.cut(next, length);
    return next;
  }

  #isShared(page: Page): boolean {
    return [...this.pages.values()].filter((own) => page !== undefined && own.includes(page)).length > 1;
  }

  #fitPages(sequence: ModelSequence): void {
    const { pages } = this.options;
    if (pages === undefined) return;
    const own = this.pages.get(sequence) as Page[];
    const count = Math.ceil(sequence.ids.length / pages.tokens);
    own.length = Math.min(own.length, count);
    while (own.length < count) own.push(new Set());
  }
}
