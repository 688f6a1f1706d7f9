import type { Device } from "../device/device.ts";
import type { Tensor } from "../device/tensor.ts";
import { type AppendCall, appendStep } from "./append.ts";
import { type AttendCall, attendStep } from "./attend.ts";
import { invalidState } from "./invalidState.ts";
import type { KvMemory } from "./memory.ts";
import { type KvCacheConfig, tailSlotsOf } from "./options.ts";
import { copyRuns, encodeCopies, type Run } from "./runs.ts";
import { quantizedAt } from "./state.ts";
import type { Step, StepEntry } from "./step.ts";
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

/** Memory of a layer for the time between its append and the next layer's. */
interface Work {
  readonly memory: KvMemory;
  readonly ring: Store | undefined;
  readonly tail: Tail | undefined;
  layer: number | undefined;
  isAttended: boolean;
}

/**
 * A step that is longer than the rings and tails of a cache take at once. What its tokens see, the window and all tokens of
 * the step, lies in memory of one layer, which the next layer takes over. What stays of it is copied aside, and to the
 * cache once the step has succeeded, so that the cache is as it was until then.
 */
export class LongStep {
  readonly #device: Device;
  readonly #base: KvMemory;
  readonly #entries: readonly StepEntry[];
  readonly #config: KvCacheConfig;
  readonly #isRingLong: boolean;
  readonly #isTailLong: boolean;
  /** The first sequence that has tokens, and sequences from there on to the last. */
  readonly #first: number;
  readonly #sequences: number;
  readonly #work: Work[] = [];
  #ring: Store | undefined;
  #tail: Tail | undefined;
  #table: Tensor<"i32"> | undefined;

  /** undefined where the memory of the cache does. */
  static of(device: Device, base: KvMemory, entries: readonly StepEntry[]): LongStep | undefined {
    const count = Math.max(...entries.map((entry) => entry.count));
    const isLong = count > mostOfRing(base.config) || count > mostOfTail(base.config);
    return isLong ? new LongStep(device, base, entries, count) : undefined;
  }

  private constructor(device: Device, base: KvMemory, entries: readonly StepEntry[], count: number) {
    this.#device = device;
    this.#base = base;
    this.#entries = entries;
    const { config } = base;
    const slots = entries.map(({ state }) => state.slot);
    this.#first = Math.min(...slots);
    this.#sequences = Math.max(...slots) - this.#first + 1;
    this.#isRingLong = count > mostOfRing(config);
    this.#isTailLong = count > mostOfTail(config);
    const pageTokens = this.#isRingLong ? config.window - 1 + count : config.pageTokens;
    const maxAppend = this.#isTailLong ? count : config.maxAppend;
    const tailSlots = this.#isTailLong
      ? tailSlotsOf(config.tail, config.tailBlock, maxAppend, config.rollback)
      : config.tailSlots;
    this.#config = { ...config, pageTokens, maxAppend, tailSlots };
    try {
      if (this.#isRingLong) {
        this.#ring = new Store(device, config, this.#sequences, config.pageTokens, this.#first);
        this.#table = device.tensor("i32", [config.sequences, 1]);
        this.#table.set(Int32Array.from({ length: config.sequences }, (_, slot) => slot - this.#first));
      }
      if (this.#isTailLong) this.#tail = new Tail(device, { ...config, sequences: this.#sequences }, this.#first);
      this.#allocate();
    } catch (error) {
      this.dispose();
      throw error;
    }
  }

  get bytes(): number {
    const of = (ring: Store | undefined, tail: Tail | undefined) =>
      (ring === undefined ? 0 : ring.rowBytes + ring.normBytes) + (tail?.bytes ?? 0);
    const ofWork = this.#work.reduce((sum, { ring, tail }) => sum + of(ring, tail), 0);
    return of(this.#ring, this.#tail) + ofWork + (this.#table?.byteLength ?? 0);
  }

  /** Encodes the writes of the step's tokens to a layer. */
  append(call: AppendCall, step: Step): void {
    const { pass, layer } = call;
    const work = this.#take(layer);
    const { config, store, tail } = this.#base;
    for (const { state } of this.#entries) {
      const { slot, length, quantized } = state;
      const seen = Math.max(0, length - config.keep - config.window + 1);
      encodeCopies(pass, ringPairs(store, work.ring, slot, [seen, length - config.keep], layer));
      encodeCopies(pass, ringPairs(tail, work.tail, slot, [quantized, length], layer));
    }
    appendStep(work.memory, call, step);
    for (const entry of this.#entries) {
      const { slot } = entry.state;
      encodeCopies(pass, ringPairs(work.ring, this.#ring, slot, this.#keptOfRing(entry), layer));
      encodeCopies(pass, ringPairs(work.tail, this.#tail, slot, this.#keptOfTail(entry), layer));
    }
  }

  /** Encodes attention of the step's tokens over a layer that was appended to. */
  attend(call: AttendCall, step: Step): void {
    const work = this.#work.find(({ layer }) => layer === call.layer);
    if (work === undefined) {
      const others = this.#work.map(({ layer }) => layer).join(" and ");
      throw invalidState(
        `layer ${call.layer} was attended, and its memory is that of layer ${others} now: a step of more tokens ` +
          `than the ring or the tail takes at once has memory of one layer; attend again before the next layer's append`,
      );
    }
    attendStep(work.memory, call, step);
    work.isAttended = true;
  }

  /** Copies to the cache what it keeps of the step, whose passes have completed. */
  finish(): void {
    // All at once: where the device refuses, the cache is as it was.
    const pairs = this.#entries.flatMap((entry) => [
      ...ringPairs(this.#ring, this.#base.store, entry.state.slot, this.#keptOfRing(entry)),
      ...ringPairs(this.#tail, this.#base.tail, entry.state.slot, this.#keptOfTail(entry)),
    ]);
    copyRuns(pairs);
  }

  /** Gives the memory back; passes that use it go on. */
  dispose(): void {
    for (const { ring, tail } of this.#work) {
      ring?.dispose();
      tail?.dispose();
    }
    this.#ring?.dispose();
    this.#tail?.dispose();
    this.#table?.dispose();
  }

  /** What the ring of the cache has after the step, as it counts positions. */
  #keptOfRing({ state, count }: StepEntry): Range {
    const { config } = this.#base;
    const { keep, pageTokens, tail } = config;
    const to = state.length + count;
    // The ring has what is not in the tail.
    const [first, end] = tail > 0 ? [state.quantized, quantizedAt(config, state, to)] : [state.length, to];
    return [Math.max(keep, first, end - pageTokens) - keep, end - keep];
  }

  #keptOfTail({ state, count }: StepEntry): Range {
    const to = state.length + count;
    return [Math.max(state.length, to - this.#base.config.tailSlots), to];
  }

  /** Memory that no layer waits for: an append of several layers before they are attended has as much of it. */
  #take(layer: number): Work {
    const mine = this.#work.find((work) => work.layer === layer);
    const work =
      mine ?? this.#work.find(({ layer, isAttended }) => layer === undefined || isAttended) ?? this.#allocate();
    work.layer = layer;
    work.isAttended = false;
    return work;
  }

  #allocate(): Work {
    const config = { ...this.#config, layers: 1 };
    const sequences = this.#sequences;
    const ring = this.#isRingLong
      ? new Store(this.#device, config, sequences, config.pageTokens, this.#first)
      : undefined;
    let tail: Tail | undefined;
    try {
      if (this.#isTailLong) tail = new Tail(this.#device, { ...config, sequences }, this.#first);
    } catch (error) {
      ring?.dispose();
      throw error;
    }
    const base = this.#base;
    const memory = base.with({
      config: this.#config,
      store: ring ?? base.store,
      tail: tail ?? base.tail,
      table: this.#table ?? base.table,
    });
    const work: Work = { memory, ring, tail, layer: undefined, isAttended: false };
    this.#work.push(work);
    return work;
  }
}

/** What holds positions in rings: the ring of a cache, or the tails. */
interface Rings {
  tensorsOf(layer?: number): readonly Tensor[];
  /** Those of a sequence in one of the tensors, a head each where heads have their own. */
  ringsOf(tensor: Tensor, slot: number): readonly RingRows[];
}

type Range = readonly [start: number, end: number];

/**
 * Positions of a sequence, as rings count them, in two memories of the same tensors: of one layer, or of all. None without
 * one of the memories.
 */
function ringPairs(
  source: Rings | undefined,
  target: Rings | undefined,
  slot: number,
  range: Range,
  layer?: number,
): (readonly [Run, Run])[] {
  if (source === undefined || target === undefined) return [];
  const targets = target.tensorsOf(layer);
  return source.tensorsOf(layer).flatMap((tensor, i) => {
    const to = target.ringsOf(targets[i] as Tensor, slot);
    return source.ringsOf(tensor, slot).flatMap((ring, head) => runsOf(ring, to[head] as RingRows, range));
  });
}

/** Positions of one ring and of another, in runs that wrap in neither. */
function runsOf(from: RingRows, to: RingRows, [start, end]: Range): (readonly [Run, Run])[] {
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
