import { type KvCacheConfig, mostPositions } from "./options.ts";

/** @internal Where a sequence stands. */
export interface SequenceState {
  /** Its place among the sequences of the cache. */
  readonly slot: number;
  length: number;
  /** Positions below it may have been written, which in a ring are gone behind it. */
  high: number;
  /** Tokens that are quantized, where a tail keeps the others. */
  quantized: number;
  /** Of the pool, in order; the sequence's own one where the cache is not paged. */
  pages: number[];
  /** So many pages, from the first on, were given back, since no token to come sees them; -1 in `pages`. */
  released: number;
  /** The tail has the positions from here on, as far as they are not too many for it. */
  denseFrom: number;
  /** Ids of the first tokens, as far as they were told. */
  ids: number[];
  isLive: boolean;
}

/** Tokens that are quantized in a sequence of `length`: a matter of the length alone, but that none comes back. */
export function quantizedAt(
  { tail, tailBlock }: KvCacheConfig,
  { quantized }: Pick<SequenceState, "quantized">,
  length: number,
): number {
  if (tail === 0) return length;
  return Math.max(quantized, Math.floor(Math.max(0, length - tail) / tailBlock) * tailBlock);
}

/**
 * The first token that a longer sequence quantizes. Tokens that came back to the tail may be of pages that were given
 * back, since nobody sees them any more: those pages are another sequence's by now.
 */
export function leavesFrom({ pageTokens }: KvCacheConfig, { quantized, released }: SequenceState): number {
  return Math.max(quantized, released * pageTokens);
}

/** Of positions `from` up to `to` outside of the kept tokens, the first that stays: a ring has slots for the last ones. */
export function staysFrom({ kind, pageTokens }: KvCacheConfig, from: number, to: number): number {
  return kind === "ring" ? Math.max(from, to - pageTokens) : from;
}

/** What of a sequence is in the way of having `length` tokens alone; undefined where nothing is. */
export function reasonAgainst(
  config: KvCacheConfig,
  state: Pick<SequenceState, "length" | "high" | "released">,
  length: number,
): string | undefined {
  const { kind, keep, window, pageTokens } = config;
  if (window === 0 || length <= keep) return undefined;
  const oldestSeen = Math.max(keep, length - window + 1);
  if (kind === "paged") {
    const first = state.released * pageTokens;
    if (oldestSeen >= first) return undefined;
    return (
      `token ${length} would see positions from ${oldestSeen}, and the pages of those below ${first} were given back; at ` +
      `least ${first + window - 1} tokens have to stay of ${state.length}, \`rollback\` reserves room for more`
    );
  }
  const oldest = state.high - pageTokens;
  if (oldestSeen >= oldest) return undefined;
  const least = Math.min(state.length, oldest + window - 1);
  return (
    `the ring has wrapped: token ${length} would see positions from ${oldestSeen}, and those below ${oldest} are ` +
    `overwritten; at least ${least} tokens have to stay of ${state.length}, \`rollback\` reserves room for more`
  );
}

/** Whether steps, trims and forks can lead to a state, its pages aside. */
export function isPossible(config: KvCacheConfig, state: Omit<SequenceState, "isLive">): boolean {
  const { kind, capacity, window, tail, tailBlock } = config;
  const { length, high, quantized, denseFrom, released, ids } = state;
  if (ids.length > length || length > high || high > (kind === "ring" ? mostPositions : capacity)) return false;
  if (quantized > length || quantized < quantizedAt(config, { quantized: 0 }, length)) return false;
  // What is not quantized by blocks was cut where the tail begins.
  if (denseFrom > length || (tail > 0 && quantized % tailBlock > 0 && quantized > denseFrom)) return false;
  if (released > 0 && (kind !== "paged" || window === 0)) return false;
  return reasonAgainst(config, state, length) === undefined;
}

/** Makes a sequence one of its first `length` tokens; `reasonAgainst` has nothing against it. */
export function cutTo(config: KvCacheConfig, state: SequenceState, length: number): void {
  const { kind, keep, tailSlots } = config;
  // Tokens whose slots of the tail were taken by others stay quantized.
  const denseFrom = Math.max(state.denseFrom, state.high - tailSlots);
  const wanted = quantizedAt(config, { quantized: 0 }, length);
  state.quantized = Math.min(length, state.quantized, Math.max(wanted, denseFrom));
  state.denseFrom = Math.min(length, denseFrom);
  state.length = length;
  if (kind !== "ring" || length <= keep) state.high = length;
  if (state.ids.length > length) state.ids.length = length;
}

/** @internal A run of positions that lies in one page. */
interface Piece {
  readonly store: "main" | "keep";
  readonly page: number;
  /** Slot of the first in the page; of a ring, before wrapping. */
  readonly offset: number;
  readonly from: number;
  readonly count: number;
}

/** Where the positions `from` up to `to` of a sequence lie; of more than a ring has slots for, the last ones. */
export function piecesOf(config: KvCacheConfig, { slot, pages }: SequenceState, from: number, to: number): Piece[] {
  const { kind, keep, pageTokens } = config;
  const pieces: Piece[] = [];
  let at = from;
  if (at < keep) {
    const count = Math.min(to, keep) - at;
    pieces.push({ store: "keep", page: slot, offset: at, from: at, count });
    at += count;
  }
  at = staysFrom(config, at, to);
  while (at < to) {
    const place = at - keep;
    const page = kind === "paged" ? Math.floor(place / pageTokens) : 0;
    const offset = place - page * pageTokens;
    const count = kind === "ring" ? to - at : Math.min(to - at, pageTokens - offset);
    pieces.push({ store: "main", page: pages[page] as number, offset, from: at, count });
    at += count;
  }
  return pieces;
}
