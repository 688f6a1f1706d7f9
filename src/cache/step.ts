import { checkLength, display, refused } from "../checks.ts";
import type { Run } from "../parameter.ts";
import type { LongStep } from "./longStep.ts";
import type { KvCacheConfig } from "./options.ts";
import type { Places } from "./places.ts";
import { quantizedAt, type SequenceState } from "./state.ts";

/** @internal The tokens of one sequence in a step. */
export interface StepEntry {
  readonly state: SequenceState;
  /** Its first row among those of all sequences. */
  readonly row: number;
  readonly count: number;
}

/** What is appended between two calls of `advance`: the same tokens in every layer. */
export class Step {
  readonly entries: readonly StepEntry[];
  readonly rows: number;
  /** Layers that have been appended to. */
  readonly layers = new Set<number>();
  /** What it was encoded into, or the runs that do it. */
  readonly passes = new Set<Run>();
  /** Of a recorded one, how the keys of each layer are turned. */
  readonly ropeNotes: string[] = [];
  /** Where tokens go, by the first slot of the sequences that are written together. */
  readonly places = new Map<number, Places>();
  /** Memory of its own, where it has more tokens than that of the cache takes at once. */
  long: LongStep | undefined;
  /** A run of a recorded pass does it. */
  readonly isRecorded: boolean;

  constructor(entries: readonly StepEntry[], isRecorded: boolean) {
    this.entries = entries;
    this.rows = entries.reduce((sum, { count }) => sum + count, 0);
    this.isRecorded = isRecorded;
  }

  /** Whether other tokens are meant by `entries`. */
  isOther(entries: readonly StepEntry[]): boolean {
    return (
      entries.length !== this.entries.length ||
      entries.some(({ state, count }, i) => state !== this.entries[i]?.state || count !== this.entries[i]?.count)
    );
  }

  /** A pass of it that the device has not done yet, by its state. */
  get pending(): string | undefined {
    if (this.isRecorded && this.passes.size === 0) return "not committed";
    for (const { state } of this.passes) if (state !== undefined && state !== "completed") return state;
    return undefined;
  }

  /** Whether nothing of it can still be done: each pass has failed, or was disposed before it was committed. */
  get isDead(): boolean {
    if (this.passes.size === 0) return false;
    for (const { state, disposed } of this.passes) {
      if (state !== "failed" && !(state === "encoding" && disposed)) return false;
    }
    return true;
  }

  get isInFlight(): boolean {
    for (const { state } of this.passes) if (state === "committed") return true;
    return false;
  }

  /** Whether the device may have done some of it. */
  get reachedDevice(): boolean {
    for (const { state } of this.passes) if (state !== "encoding") return true;
    return false;
  }

  /** Refuses the passes of it that are still to be committed. */
  withdraw(): void {
    for (const run of this.passes) {
      run.withdraw?.(
        "it writes tokens of a step of a KvCache that was abandoned; encode what is wanted into a new pass",
      );
    }
  }

  get text(): string {
    return this.entries.map(({ state, count }) => `${count} in sequence ${state.slot}`).join(", ");
  }
}

/** Refuses what a caller says of a step that is not so: the number of its tokens, and their ids, which it gives. */
export function checkCounts(
  step: Step,
  nTokens: number | undefined,
  tokens: ArrayLike<number> | undefined,
): readonly number[] | undefined {
  if (nTokens !== undefined && checkLength(nTokens, "nTokens") !== step.rows) {
    throw refused("nTokens", `${nTokens}, but the step has ${step.rows}; trim what should not stay`);
  }
  if (tokens === undefined) return undefined;
  return idsOf(tokens, step.rows);
}

/** The ids of tokens that a caller gave; refused unless there are `rows`, where that is given. */
export function idsOf(tokens: ArrayLike<number>, rows?: number): number[] {
  const length: unknown = typeof tokens === "object" && tokens !== null ? tokens.length : undefined;
  if (typeof length !== "number" || !Number.isSafeInteger(length) || length < 0) {
    throw refused("tokens", `expected an array or a typed array of ids, got ${display(tokens)}`);
  }
  if (rows !== undefined && length !== rows) {
    throw refused("tokens", `${length} ids for the ${rows} tokens of the step`);
  }
  const ids: number[] = [];
  for (let i = 0; i < length; i++) {
    const id: unknown = tokens[i];
    // Of a value that equals itself, and that a file can hold.
    if (!Number.isSafeInteger(id)) throw refused(`tokens[${i}]`, `expected an integer, got ${display(id)}`);
    ids.push(id as number);
  }
  return ids;
}

/** Makes the tokens of a step those of a sequence; `tokens` are the ids of all rows. */
export function advanceState(config: KvCacheConfig, entry: StepEntry, tokens: readonly number[] | undefined): void {
  const { state, row, count } = entry;
  const knowsAll = state.ids.length === state.length;
  state.quantized = quantizedAt(config, state, state.length + count);
  state.length += count;
  state.high = Math.max(state.high, state.length);
  if (tokens !== undefined && knowsAll) for (let i = 0; i < count; i++) state.ids.push(tokens[row + i] as number);
}
