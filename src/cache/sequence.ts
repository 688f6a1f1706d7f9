import { checkLength, display, refused } from "../checks.ts";
import { disposedError } from "../device/lifetime.ts";
import type { KvCache } from "./kvCache.ts";
import type { Sequences } from "./sequences.ts";
import type { SequenceState } from "./state.ts";

/** @internal What a handle needs of its cache. */
export interface SequenceOwner {
  readonly cache: KvCache;
  readonly sequences: Sequences;
  /** Refuses whatever is wanted of a cache that is disposed. */
  checkUsable(): void;
  /** Refuses `what` while a step is under way, or the cache is disposed. */
  checkIdle(what: string): void;
  handle(state: SequenceState): KvSequence;
}

const made = Symbol("made by a cache");

/**
 * One sequence of a {@link KvCache}: a handle that stays good until `drop()`.
 *
 * @example
 * const prompt = cache.sequence();
 * // ... append the prompt ...
 * using answer = prompt.fork(); // the same tokens, without computing them again
 */
export class KvSequence {
  /** The cache that it is one of. */
  readonly cache: KvCache;
  readonly #owner: SequenceOwner;
  readonly #state: SequenceState;

  /** @internal Use `KvCache.sequence`. */
  constructor(owner: SequenceOwner, state: SequenceState, mark: symbol) {
    if (mark !== made) throw refused("sequence", "not made by new; use cache.sequence()");
    this.cache = owner.cache;
    this.#owner = owner;
    this.#state = state;
  }

  /** @internal */
  static of(owner: SequenceOwner, state: SequenceState): KvSequence {
    return new KvSequence(owner, state, made);
  }

  /** @internal The state of a handle that a caller gave; refused unless it is one of `cache` and live. */
  static use(value: unknown, cache: KvCache, argument: string): SequenceState {
    if (typeof value !== "object" || value === null || !(#state in value)) {
      throw refused(argument, `expected a sequence, got ${display(value)}`);
    }
    if (value.cache !== cache) throw refused(argument, "the sequence belongs to another cache", "invalid-handle");
    if (!value.#state.isLive) throw disposedError("the sequence", argument);
    return value.#state;
  }

  /** Tokens that it has, those of a step under way not among them: the position of the next one. */
  get length(): number {
    return this.#live().length;
  }

  /** Whether it was dropped. May be asked of a disposed cache too. */
  get dropped(): boolean {
    return !this.#state.isLive;
  }

  /**
   * A new sequence of the first `length` tokens, all unless given. Full pages are shared and the last partial one is
   * copied; without pages all is.
   *
   * Errors: `invalid-argument` for more than there are; `overflow` where no sequence or no page is free; `invalid-state`
   * during a step, and where a ring has overwritten what the shorter sequence would see.
   */
  fork(length: number = this.#live().length): KvSequence {
    const state = this.#change("fork");
    checkCrop(length, state.length);
    const { sequences } = this.#owner;
    sequences.checkCut(state, length, "length");
    return this.#owner.handle(sequences.fork(state, length));
  }

  /**
   * Takes back the last `n` tokens, all where there are fewer; gives the number taken back.
   *
   * Errors: `invalid-state` during a step, and with the reason where a ring has wrapped: option `rollback` reserves room.
   */
  trim(n: number): number {
    const state = this.#change("trim");
    const count = Math.min(checkLength(n, "n"), state.length);
    if (count > 0) this.#owner.sequences.cut(state, state.length - count, "n");
    return count;
  }

  /**
   * Leaves the first `length` tokens; of 0 none.
   *
   * Errors: `invalid-argument` for more than there are; `invalid-state` as of `trim`.
   */
  crop(length: number): void {
    const state = this.#change("crop");
    checkCrop(length, state.length);
    if (length < state.length) this.#owner.sequences.cut(state, length, "length");
  }

  /** Ends its use and gives back what it held. Does nothing a second time, nor after the cache. */
  drop(): void {
    if (!this.#state.isLive || this.cache.disposed) return;
    this.#owner.checkIdle("drop");
    this.#owner.sequences.drop(this.#state);
  }

  [Symbol.dispose](): void {
    this.drop();
  }

  #live(): SequenceState {
    this.#owner.checkUsable();
    if (!this.#state.isLive) throw disposedError("the sequence");
    return this.#state;
  }

  #change(what: string): SequenceState {
    const state = this.#live();
    this.#owner.checkIdle(what);
    return state;
  }
}

function checkCrop(length: unknown, most: number): void {
  if (checkLength(length, "length") > most) {
    throw refused("length", `${length} is more than the ${most} tokens that there are`);
  }
}
