import type { Device } from "../device/device.ts";
import type { Tensor } from "../device/tensor.ts";
import type { KvMemory } from "./memory.ts";
import type { KvCacheConfig } from "./options.ts";
import { quantizedAt } from "./state.ts";
import type { StepEntry } from "./step.ts";
import { Store } from "./store.ts";
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
      this.#copyRing(state.slot, Math.max(keep, state.length - window + 1), state.length, true);
      this.#copyTail(state.slot, state.quantized, state.length, true);
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
      this.#copyRing(state.slot, Math.max(keep, first, end - pageTokens), end, false);
      this.#copyTail(state.slot, Math.max(state.length, to - tailSlots), to, false);
    }
  }

  /** Gives the memory back; passes that use it go on. */
  dispose(): void {
    this.#ring?.dispose();
    this.#tail?.dispose();
    this.#table?.dispose();
  }

  /** Copies positions `from` up to `to` of a ring, in or out. */
  #copyRing(slot: number, from: number, to: number, isIn: boolean): void {
    const [ring, base] = [this.#ring, this.#base.store];
    if (ring === undefined) return;
    const [source, target] = isIn ? [base, ring] : [ring, base];
    const { keep } = this.#base.config;
    const targets: Tensor[] = [];
    target.forEachTensor((tensor) => targets.push(tensor));
    let i = 0;
    source.forEachTensor((tensor) => {
      const [a, b] = [source.rowsOf(tensor, slot), target.rowsOf(targets[i++] as Tensor, slot)];
      const heads = tensor.shape[1] as number;
      for (let head = 0; head < heads; head++) {
        copyRun(
          { ...a, slots: source.pageTokens, first: head * source.pageTokens },
          { ...b, slots: target.pageTokens, first: head * target.pageTokens },
          [from - keep, to - keep],
        );
      }
    });
  }

  /** The same of a tail. */
  #copyTail(slot: number, from: number, to: number, isIn: boolean): void {
    const [tail, base] = [this.#tail, this.#base.tail];
    if (tail === undefined || base === undefined) return;
    const [source, target] = isIn ? [base, tail] : [tail, base];
    const targets: Tensor[] = [];
    target.forEachTensor((tensor) => targets.push(tensor));
    let i = 0;
    source.forEachTensor((tensor) => {
      const [a, b] = [source.slotBytes(tensor, slot), target.slotBytes(targets[i++] as Tensor, slot)];
      const rowLength = a.length / source.slots;
      copyRun(
        { bytes: a, rowLength, slots: source.slots, first: 0 },
        { bytes: b, rowLength, slots: target.slots, first: 0 },
        [from, to],
      );
    });
  }
}

/** Rows of a ring: position p lies in row first + p mod slots. */
interface RingRows {
  readonly bytes: Uint8Array;
  readonly rowLength: number;
  readonly slots: number;
  readonly first: number;
}

/** Copies positions from one ring to another, in runs that wrap in neither. */
function copyRun(from: RingRows, to: RingRows, [start, end]: readonly [number, number]): void {
  const { rowLength } = from;
  for (let at = start; at < end; ) {
    const [a, b] = [at % from.slots, at % to.slots];
    const count = Math.min(end - at, from.slots - a, to.slots - b);
    const source = (from.first + a) * rowLength;
    to.bytes.set(from.bytes.subarray(source, source + count * rowLength), (to.first + b) * rowLength);
    at += count;
  }
}
