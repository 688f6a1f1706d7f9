import { refused } from "../checks.ts";
import { MetalAttentionError } from "../errors.ts";
import type { SavedSequence } from "./file.ts";
import type { KvMemory } from "./memory.ts";
import type { KvCacheConfig } from "./options.ts";
import { PagePool } from "./pagePool.ts";
import { cutTo, isPossible, reasonAgainst, type SequenceState } from "./state.ts";

/** The sequences of a cache, and which pages each has. */
export class Sequences {
  readonly #config: KvCacheConfig;
  readonly #memory: KvMemory;
  readonly #pool: PagePool;
  readonly #states: (SequenceState | undefined)[];

  constructor(config: KvCacheConfig, memory: KvMemory) {
    this.#config = config;
    this.#memory = memory;
    this.#pool = new PagePool(config.kind === "paged" ? config.pageCount : 0);
    this.#states = Array.from({ length: config.sequences }, () => undefined);
    // Where the cache has no pool, a sequence's page is its own.
    if (config.kind !== "paged") memory.table.set(Int32Array.from({ length: config.sequences }, (_, i) => i));
  }

  get live(): SequenceState[] {
    return this.#states.filter((state) => state !== undefined);
  }

  get freePages(): number {
    return this.#pool.free;
  }

  /** A new, empty sequence. */
  open(slot = this.#states.indexOf(undefined)): SequenceState {
    const { sequences, kind } = this.#config;
    if (slot < 0) {
      throw refused("sequences", `all ${sequences} are in use; drop one, or make the cache with more`, "overflow");
    }
    const pages = kind === "paged" ? [] : [slot];
    const state = { slot, length: 0, high: 0, quantized: 0, denseFrom: 0, pages, released: 0, ids: [], isLive: true };
    this.#states[slot] = state;
    return state;
  }

  drop(state: SequenceState): void {
    if (!state.isLive) return;
    state.isLive = false;
    this.#states[state.slot] = undefined;
    this.#releaseFrom(state, 0);
  }

  /** A sequence of the first `length` tokens of another: full pages are shared, the rest is copied. */
  fork(state: SequenceState, length: number): SequenceState {
    const { kind, pageTokens, keep } = this.#config;
    const { store, keepStore, tail } = this.#memory;
    const rest = kind === "paged" ? length % pageTokens : 0;
    if (rest > 0 && this.#pool.free === 0)
      throw this.#exhausted(1, "a fork, which copies the last page where it is not full,");
    const next = this.open();
    try {
      if (kind === "paged") {
        const full = Math.floor(length / pageTokens);
        for (const page of state.pages.slice(0, full)) this.#addPage(next, page);
        if (rest > 0) store.copyPage(state.pages[full] as number, this.#addPage(next), rest);
      } else {
        store.copyPage(state.slot, next.slot, Math.min(pageTokens, Math.max(0, state.high - keep)));
      }
      keepStore?.copyPage(state.slot, next.slot, Math.min(keep, state.length));
      tail?.copy(state.slot, next.slot);
    } catch (error) {
      this.drop(next);
      throw error;
    }
    const { high, quantized, denseFrom, released, ids } = state;
    Object.assign(next, { length: state.length, high, quantized, denseFrom, released, ids: [...ids] });
    cutTo(this.#config, next, length);
    next.released = Math.min(released, next.pages.length);
    return next;
  }

  /** Refuses, with the reason, to leave a sequence its first `length` tokens where a ring cannot. */
  checkCut(state: SequenceState, length: number, argument: string): void {
    const reason = reasonAgainst(this.#config, state, length);
    if (reason !== undefined) throw new MetalAttentionError("invalid-state", `${argument}: ${reason}`, { argument });
  }

  /** Leaves a sequence its first `length` tokens. */
  cut(state: SequenceState, length: number, argument: string): void {
    this.checkCut(state, length, argument);
    cutTo(this.#config, state, length);
    this.trimPages(state);
  }

  /** Gives back pages that no token is in. */
  trimPages(state: SequenceState): void {
    if (this.#config.kind === "paged") this.#releaseFrom(state, Math.ceil(state.length / this.#config.pageTokens));
  }

  /** Gives back the pages that lie before the window of any token to come. */
  releasePassed(state: SequenceState): void {
    const { kind, window, rollback, tail, pageTokens } = this.#config;
    if (kind !== "paged" || window === 0) return;
    const seen = state.length - rollback - window + 1;
    const first = Math.floor((tail > 0 ? Math.min(seen, state.quantized) : seen) / pageTokens);
    for (; state.released < first; state.released++) {
      this.#pool.release(state.pages[state.released] as number);
      state.pages[state.released] = -1;
    }
  }

  /** Gives each sequence the pages for so many more tokens, or refuses them all. */
  reserve(wanted: readonly { readonly state: SequenceState; readonly count: number }[]): void {
    if (this.#config.kind !== "paged") return;
    const { pageTokens } = this.#config;
    let needed = 0;
    // Of a page that several of them share, the last one keeps it if no other sequence has it.
    const users = new Map<number, number>();
    for (const { state, count } of wanted) {
      needed += Math.ceil((state.length + count) / pageTokens) - state.pages.length;
      const page = this.#partialPage(state);
      if (page === undefined) continue;
      const uses = users.get(page) ?? this.#pool.uses(page);
      if (uses > 1) needed++;
      users.set(page, uses - 1);
    }
    if (needed > this.#pool.free) throw this.#exhausted(needed, "the append");
    // What may fail comes first: a copy of the device.
    for (const { state } of wanted) {
      const page = this.#partialPage(state);
      if (page !== undefined && this.#pool.uses(page) > 1) this.#unshare(state, page);
    }
    for (const { state, count } of wanted) {
      const pages = Math.ceil((state.length + count) / pageTokens);
      while (state.pages.length < pages) this.#addPage(state);
    }
  }

  /** A sequence as a file has it; undefined where it cannot be one of this cache. */
  restore({ pages, ...saved }: SavedSequence): SequenceState | undefined {
    const { kind, sequences, pageCount, pageTokens } = this.#config;
    const { slot, length, released } = saved;
    if (slot >= sequences || this.#states[slot] !== undefined) return undefined;
    if (!isPossible(this.#config, { pages, ...saved })) return undefined;
    const wanted = kind === "paged" ? Math.ceil(length / pageTokens) : 1;
    const own = pages.slice(released);
    const arePages = own.every((page) => (kind === "paged" ? page >= 0 && page < pageCount : page === slot));
    if (pages.length !== wanted || released > wanted || !arePages || new Set(own).size < own.length) return undefined;
    if (pages.slice(0, released).some((page) => page !== -1)) return undefined;
    const state = this.open(slot);
    if (kind === "paged") for (const page of pages) this.#addPage(state, page);
    return Object.assign(state, saved);
  }

  /** The longest beginning of `tokens` that a sequence has and can go back to; undefined where none has the first. */
  match(tokens: readonly number[]): { readonly state: SequenceState; readonly length: number } | undefined {
    let best: { state: SequenceState; length: number } | undefined;
    for (const state of this.live) {
      let length = 0;
      while (length < state.ids.length && length < tokens.length && state.ids[length] === tokens[length]) length++;
      if (length > (best?.length ?? 0) && this.canCut(state, length)) best = { state, length };
    }
    return best;
  }

  /** Whether a sequence can have its first `length` tokens alone. */
  canCut(state: SequenceState, length: number): boolean {
    return reasonAgainst(this.#config, state, length) === undefined;
  }

  /** The page that the next token goes into, where it has tokens already. */
  #partialPage({ length, pages }: SequenceState): number | undefined {
    const { pageTokens } = this.#config;
    return length % pageTokens > 0 ? pages[Math.floor(length / pageTokens)] : undefined;
  }

  /** Puts a copy in the place of the last page, which another sequence goes on having. */
  #unshare(state: SequenceState, shared: number): void {
    const { pageTokens, maxPages } = this.#config;
    const { store, table } = this.#memory;
    const own = this.#pool.take();
    try {
      store.copyPage(shared, own, state.length % pageTokens);
    } catch (error) {
      this.#pool.release(own);
      throw error;
    }
    const last = state.pages.length - 1;
    state.pages[last] = own;
    table.set([own], state.slot * maxPages + last);
    this.#pool.release(shared);
  }

  /** Appends a free page, or one that other sequences may have. */
  #addPage(state: SequenceState, known?: number): number {
    const page = known ?? this.#pool.take();
    if (known !== undefined && known >= 0) this.#pool.claim(known);
    const { table } = this.#memory;
    table.set([page], state.slot * this.#config.maxPages + state.pages.length);
    state.pages.push(page);
    return page;
  }

  #releaseFrom(state: SequenceState, first: number): void {
    if (this.#config.kind !== "paged") return;
    for (const page of state.pages.splice(first)) if (page >= 0) this.#pool.release(page);
    state.released = Math.min(state.released, state.pages.length);
  }

  #exhausted(needed: number, what: string): MetalAttentionError {
    const { pageCount } = this.#config;
    return refused(
      "pages",
      `${what} needs ${needed} more, and of ${pageCount} only ${this.#pool.free} are free; drop or trim a sequence, or ` +
        `make the cache with at least ${pageCount + needed - this.#pool.free}`,
      "overflow",
    );
  }
}
