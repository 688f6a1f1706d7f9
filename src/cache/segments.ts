import type { KvCacheConfig } from "./options.ts";
import { quantizedAt, type SequenceState } from "./state.ts";

/** @internal Keys of one memory that the rows of a run see. */
export interface Segment {
  readonly store: "main" | "keep" | "tail";
  /** Position of the first key. */
  readonly start: number;
  /** Keys in use. */
  readonly length: number;
  /** Whether all rows see all of them; the last rows being at the last keys unless so. */
  readonly isSeenByAll: boolean;
  /** 0 for none. */
  readonly window: number;
}

/** Positions from the last key of a segment to the last row of a run that ends at `to`; 0 for a segment not reached yet. */
export function distanceTo(to: number, { start, length }: Segment): number {
  return Math.max(0, to - start - length);
}

/** @internal Rows of one sequence, at positions `from` up to `to`, that one set of segments serves. */
export interface Run {
  readonly from: number;
  readonly to: number;
  /** The first position in the tail; `to` where there is none. */
  readonly quantized: number;
}

/** Query rows that decode attention takes at once. */
export const mostRows = 16;

/** Cuts the rows at `from` up to `to` so that each run sees one set of segments. */
export function runsOf(config: KvCacheConfig, state: SequenceState, from: number, to: number, window: number): Run[] {
  const { tail, keep } = config;
  const runs: Run[] = [];
  const boundary = (position: number) => quantizedAt(config, state, position + 1);
  for (let at = from; at < to; ) {
    const quantized = boundary(at);
    // The window's end moves on with each row, and a quantized segment does not know the row's position.
    const isCut = tail > 0 && window > 0;
    const most = isCut ? 1 : mostRows;
    let end = at + 1;
    while (end < to && end - at < most && end !== keep && (tail === 0 || boundary(end) === quantized)) end++;
    runs.push({ from: at, to: end, quantized: tail === 0 ? end : quantized });
    at = end;
  }
  return runs;
}

/** What the rows of a run see, in the order of positions. */
export function segmentsOf({ tail, keep }: KvCacheConfig, { from, to, quantized }: Run, window: number): Segment[] {
  const segments: Segment[] = [];
  const hasTail = tail > 0;
  // Kept tokens are outside of any window, wherever they are.
  const isBehindKept = from >= keep;
  const kept = Math.min(quantized, keep);
  if (kept > 0) {
    segments.push({ store: "keep", start: 0, length: kept, isSeenByAll: hasTail || isBehindKept, window: 0 });
  }
  const main = quantized - keep;
  if (main > 0) {
    // Of a window that ends in the tail, this reaches back into what comes before that.
    const left = hasTail && window > 0 ? window - (to - quantized) : window;
    if (left > 0 || window === 0) {
      segments.push({ store: "main", start: keep, length: main, isSeenByAll: hasTail, window: left });
    }
  } else if (!hasTail) {
    // As a recorded step, which always has it, so that both have the same bits.
    segments.push({ store: "main", start: keep, length: 0, isSeenByAll: false, window });
  }
  if (!hasTail) return segments;
  const start = isBehindKept ? Math.max(quantized, keep) : quantized;
  if (start > quantized) {
    segments.push({ store: "tail", start: quantized, length: start - quantized, isSeenByAll: true, window: 0 });
  }
  segments.push({ store: "tail", start, length: to - start, isSeenByAll: false, window: isBehindKept ? window : 0 });
  return segments;
}
