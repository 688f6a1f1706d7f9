import type { KvSequence } from "metal-attention";
import { type Model, type ModelOptions, pageTokens } from "../model/model.ts";

/** Sequences of the cache for each of the requests that run at once: those of ended ones lend their beginnings. */
const sequencesPerSlot = 4;

/** How the model of so many requests at once keeps its sequences; nothing is shared between the rings of a window. */
export function memoryOfSlots(slots: number, window: number | undefined): Pick<ModelOptions, "sequences" | "pool"> {
  return window === undefined ? { sequences: slots * sequencesPerSlot, pool: slots } : { sequences: slots };
}

/**
 * The sequences of requests: those that run, and those of ended requests, whose beginnings new requests take until their
 * room is needed. The model has the room for all that run.
 */
export class SharedSequences {
  readonly #model: Model;
  /** Sequences of ended requests, the one longest unused first. */
  readonly #ended = new Set<KvSequence>();

  constructor(model: Model) {
    this.#model = model;
  }

  /** A sequence that has as much of a prompt as another one does. */
  open(prompt: readonly number[]): KvSequence {
    const { cache, isShared } = this.#model;
    const found = isShared ? this.#model.match(prompt) : undefined;
    const isEnded = found !== undefined && this.#ended.delete(found.sequence);
    if (cache.sequences.length === this.#model.sequences) this.#dropOldest();
    // A fork copies a page that is not full.
    this.#makeRoom(1);
    if (found === undefined) return cache.sequence();
    const { sequence, length } = found;
    if (isEnded && cache.freePages === 0) {
      sequence.crop(length);
      return sequence;
    }
    if (isEnded) this.#ended.add(sequence);
    return sequence.fork(length);
  }

  /** Frees pages for the tokens of a step. */
  reserve(parts: readonly { readonly sequence: KvSequence; readonly tokens: readonly number[] }[]): void {
    const pages = (tokens: number) => Math.ceil(tokens / pageTokens);
    const grown = parts.map(({ sequence: { length }, tokens }) => pages(length + tokens.length) - pages(length));
    // And one each, where the last page is another's too.
    this.#makeRoom(grown.reduce((sum, count) => sum + count + 1, 0));
  }

  /** Ends a request; the beginning of its sequence that new ones can take stays. */
  end(sequence: KvSequence, kept: number): void {
    if (!this.#model.isShared) sequence.drop();
    else {
      sequence.crop(Math.min(sequence.length, kept));
      this.#ended.add(sequence);
    }
  }

  /** Frees pages, as far as ended requests have them. */
  #makeRoom(pages: number): void {
    while (this.#model.cache.freePages < pages && this.#ended.size > 0) this.#dropOldest();
  }

  #dropOldest(): void {
    const [oldest] = this.#ended;
    if (oldest === undefined) return;
    this.#ended.delete(oldest);
    oldest.drop();
  }
}
