import type { PassLifetime } from "../device/lifetime.ts";
import type { SequenceState } from "./state.ts";

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
  /** What it was encoded into. */
  readonly passes = new Set<PassLifetime>();
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
    for (const { state } of this.passes) if (state !== undefined && state !== "completed") return state;
    return undefined;
  }

  /** Whether nothing of it can still be done: each pass has failed, or was disposed before it was committed. */
  get isDead(): boolean {
    if (this.isRecorded || this.passes.size === 0) return false;
    for (const { state, disposed } of this.passes) {
      if (state !== "failed" && !(state === "encoding" && disposed)) return false;
    }
    return true;
  }

  get isInFlight(): boolean {
    for (const { state } of this.passes) if (state === "committed") return true;
    return false;
  }

  get text(): string {
    return this.entries.map(({ state, count }) => `${count} in sequence ${state.slot}`).join(", ");
  }
}
