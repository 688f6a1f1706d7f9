import type { Device } from "../device/device.ts";
import type { Tensor } from "../device/tensor.ts";
import type { KvMemory } from "./memory.ts";
import type { KvCacheConfig } from "./options.ts";
import { copyRuns, type Run } from "./runs.ts";
import { quantizedAt } from "./state.ts";
import type { StepEntry } from "./step.ts";
import { type RingRows, Store } from "./store.ts";
import { Tail } from "./tail.ts";

/** Tokens of a sequence that a ring takes at once without losing what the first of them sees; any number where there is none. */
export function mostOfRing({ kind, pageTokens, window }: KvCacheConfig): number {
  return kind === "ring" ? pageTokens - window + 1 : Number.POSITIVE_INFINITY;
}

/** Tokens of a sequence that a tail takes at once; any number where there is none. */
export function mostOfTail({ tail, maxAppend }: KvCacheConfig): number {
  return tail > 0 ? maxAppend : Number.POSITIVE_INFINITY;
}

/**
 * A ring and tails for the time of a step that is longer than those of the cache take at once: of the window and all
 * tokens of the step. What the step sees is copied into them, and what stays out of them once the step has succeeded, so
 * that the cache is as it was until then.
 */
export class LongStep {
  /** What the step's dispatches take for the memory of the cache. */
  readonly memory: KvMemory;
  readonly #base: KvMemory;
  readonly #entries: readonly StepEntry[];
  readonly #ring: Store | undefined;
  readonly #tail: Tail | undefined;
  readonly #table: Tensor<"i32"> | undefined;

  /** undefined where the memory of the cache does. */
  static of(device: Device, base: KvMemory, entries: readonly StepEntry[]): LongStep | undefined {
    const count = Math.max(...entries.map((entry) => entry.count));
    const isLong = count > mostOfRing(base.config) || count > mostOfTail(base.config);
    return isLong ? new LongStep(device, base, entries, count) : undefined;
  }

  private constructor(device: Device, base: KvMemory, entries: readonly StepEntry[], count: number) {
    this.#base = base;
    this.#entries = entries;
    const { config } = base;
    const slots = entries.map(({ state }) => state.slot);
    const first = Math.min(...slots);
    const sequences = Math.max(...slots) - first + 1;
    const pageTokens = count > mostOfRing(config) ? config.window - 1 + count : config.pageTokens;
    const maxAppend = Math.max(config.maxAppend, count);
    const tailSlots = config.tailSlots + maxAppend - config.maxAppend;
    const long = { ...config, pageTokens, maxAppend, tailSlots };
    try {
      if (pageTokens > config.pageTokens) this.#ring = new Store(device, long, sequences, pageTokens, first);
      if (tailSlots > config.tailSlots) this.#tail = new Tail(device, { ...long, sequences }, first);
      if (this.#ring !== undefined) {
        this.#table = device.tensor("i32", [config.sequences, 1]);
        this.#table.set(Int32Array.from({ length: config.sequences }, (_, slot) => slot - first));
      }
    } catch (error) {
      this.dispose();
      throw error;
    }
    this.memory = base.with({
      config: { ...long, pageTokens: this.#ring === undefined ? config.pageTokens : pageTokens },
      store: this.#ring ?? base.store,
      tail: this.#tail ?? base.tail,
      table: this.#table ?? base.table,
    });
    for (const { state } of entries) {
      const { window, keep } = config;
      const seen = Math.max(0, state.length - keep - window + 1);
      copyRings(base.store, this.#ring, state.slot, [seen, state.length - keep]);
      copyRings(base.tail, this.#tail, state.slot, [state.quantized, state.length]);
    }
  }

  get bytes(): number {
    const ring = this.#ring === undefined ? 0 : this.#ring.rowBytes + this.#ring.normBytes;
    return ring + (this.#tail?.bytes ?? 0) + (this.#table?.byteLength ?? 0);
  }

  /** Copies to the cache what it keeps of the step, whose passes have completed. */
  finish(): void {
    const { config } = this.#base;
    const { keep, pageTokens, tail, tailSlots } = config;
    for (const { state, count } of this.#entries) {
      const to = state.length + count;
      // The ring has what is not in the tail.
      const [first, end] = tail > 0 ? [state.quantized, quantizedAt(config, state, to)] : [state.length, to];
      const kept = Math.max(keep, first, end - pageTokens);
      copyRings(this.#ring, this.#base.store, state.slot, [kept - keep, end - keep]);
      copyRings(this.#tail, this.#base.tail, state.slot, [Math.max(state.length, to - tailSlots), to]);
    }
  }

  /** Gives the memory back; passes that use it go on. */
  dispose(): void {
    this.#ring?.dispose();
    this.#tail?.dispose();
    this.#table?.dispose();
  }
}

/** What holds positions in rings: the ring of a cache, or the tails. */
interface Rings {
  forEachTensor(visit: (tensor: Tensor) => void): void;
  /** Those of a sequence in one of the tensors, a head each where heads have their own. */
  ringsOf(tensor: Tensor, slot: number): readonly RingRows[];
}

/** Copies positions of a sequence, as rings count them, between memories of the same tensors; without a source nothing. */
function copyRings(
  source: Rings | undefined,
  target: Rings | undefined,
  slot: number,
  range: readonly [start: number, end: number],
): void {
  if (source === undefined || target === undefined) return;
  const targets: Tensor[] = [];
  target.forEachTensor((tensor) => targets.push(tensor));
  let next = 0;
  const pairs: (readonly [Run, Run])[] = [];
  source.forEachTensor((tensor) => {
    const to = target.ringsOf(targets[next++] as Tensor, slot);
    for (const [i, ring] of source.ringsOf(tensor, slot).entries())
      pairs.push(...runsOf(ring, to[i] as RingRows, range));
  });
  copyRuns(pairs);
}

/** Positions of one ring and of another, in runs that wrap in neither. */
function runsOf(from: RingRows, to: RingRows, [start, end]: readonly [number, number]): (readonly [Run, Run])[] {
  const pairs: (readonly [Run, Run])[] = [];
  for (let at = start; at < end; ) {
    const [a, b] = [at % from.slots, at % to.slots];
    const count = Math.min(end - at, from.slots - a, to.slots - b);
    const length = count * from.rowLength;
    pairs.push([
      { tensor: from.tensor, start: from.start + (from.first + a) * from.rowLength, length },
      { tensor: to.tensor, start: to.start + (to.first + b) * to.rowLength, length },
    ]);
    at += count;
  }
  return pairs;
}
