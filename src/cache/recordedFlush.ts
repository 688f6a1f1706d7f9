import type { Device } from "../device/device.ts";
import type { Tensor } from "../device/tensor.ts";
import { kvCacheAppend } from "../ops/cacheCopy/kvCacheAppend.ts";
import type { AppendCall } from "./append.ts";
import type { KvMemory } from "./memory.ts";
import { keepPlace, mainPlace, type WriteGroup } from "./places.ts";
import { quantizedAt } from "./state.ts";
import type { Store, StreamView } from "./store.ts";
import { write } from "./write.ts";

/** Memory that tokens leave the tail for, and where in it they go. */
interface Target {
  readonly store: Store;
  /** Its place of a position; below 0 where the position is elsewhere. */
  readonly place: (position: number, keep: number) => number;
  readonly isPool: boolean;
  /** Of each slot of the tails, i32 [sequences, tailSlots], for streams that are not quantized. */
  readonly ofSlots: Tensor<"i32">;
  /** Of each token of the stage, i32 [sequences, tokens]. */
  readonly ofStage: Tensor<"i32">;
}

/**
 * What a recorded step does about tokens that leave the tails of a group: dispatches that write nothing while no token
 * leaves, as their places in device memory say.
 */
export class RecordedFlush {
  readonly tensors: Tensor<"i32">[] = [];
  readonly #memory: KvMemory;
  readonly #group: WriteGroup;
  /** Tokens of a sequence that leave in one step at most. */
  readonly #most: number;
  /** The place in the stage of each slot of the tails, or -1: i32 [sequences, tailSlots]. */
  readonly #staged: Tensor<"i32">;
  readonly #targets: readonly Target[];
  #isEmpty = false;

  constructor(device: Device, memory: KvMemory, group: WriteGroup) {
    this.#memory = memory;
    this.#group = group;
    const { tailBlock, tailSlots, keep } = memory.config;
    const sequences = group.entries.length;
    this.#most = (Math.floor((group.count - 1) / tailBlock) + 1) * tailBlock;
    const make = (count: number) => {
      const tensor = device.tensor("i32", [sequences, count]);
      this.tensors.push(tensor);
      return tensor;
    };
    this.#staged = make(tailSlots);
    const target = (store: Store, place: Target["place"], isPool: boolean): Target => {
      return { store, place, isPool, ofSlots: make(tailSlots), ofStage: make(this.#most) };
    };
    const targets = [target(memory.store, mainPlace, true)];
    if (keep > 0 && memory.keepStore !== undefined) targets.push(target(memory.keepStore, keepPlace, false));
    this.#targets = targets;
  }

  /** Writes which tokens leave with the next run. */
  fill(): void {
    const { config } = this.#memory;
    const { entries, count } = this.#group;
    const { keep, tailSlots } = config;
    const ranges = entries.map(
      ({ state }) => [state.quantized, quantizedAt(config, state, state.length + count)] as const,
    );
    const isEmpty = ranges.every(([from, to]) => from === to);
    if (isEmpty && this.#isEmpty) return;
    this.#isEmpty = isEmpty;
    const fill = (tensor: Tensor<"i32">, at: (position: number, from: number) => [index: number, value: number]) => {
      const values = new Int32Array(tensor.length).fill(-1);
      const length = tensor.length / entries.length;
      for (const [i, [from, to]] of ranges.entries()) {
        for (let position = from; position < to; position++) {
          const [index, value] = at(position, from);
          values[i * length + index] = value;
        }
      }
      tensor.set(values);
    };
    fill(this.#staged, (position, from) => [position % tailSlots, position - from]);
    for (const { place, ofSlots, ofStage } of this.#targets) {
      fill(ofSlots, (position) => [position % tailSlots, place(position, keep)]);
      fill(ofStage, (position, from) => [position - from, place(position, keep)]);
    }
  }

  /** Encodes it for a layer. */
  encode({ pass, layer, views }: AppendCall): void {
    const { config, tail, table, scratch } = this.#memory;
    if (tail === undefined) return;
    const { entries, slot } = this.#group;
    const { tailSlots, nKvHeads, headDim, kind } = config;
    const sequences = entries.length;
    const all = tail.layer(layer);
    const streams = (["k", "v"] as const).map((name) => ({ name, format: config[name], tokens: all[name].tokens }));
    const coded = streams.filter(({ format }) => format.codes !== undefined);
    const stages = coded.map(({ name }) => {
      const shape = [sequences * this.#most, nKvHeads, headDim];
      return scratch.tensor(name === "k" ? "stageK" : "stageV", "f32", shape);
    });
    const axes = [sequences, 1, this.#most, nKvHeads * headDim];
    const [first, second] = coded.map(({ name }, i) => ({
      src: views.reshape(tail.rings(layer, slot, sequences)[name === "k" ? 0 : 1], [
        sequences,
        tailSlots,
        1,
        axes[3] as number,
      ]),
      cache: views.reshape(stages[i] as Tensor<"f32">, axes),
    }));
    if (first !== undefined) {
      kvCacheAppend(pass, {
        ...(second === undefined ? first : { k: first, v: second }),
        positions: this.#staged,
      });
    }
    for (const { store, isPool, ofSlots, ofStage } of this.#targets) {
      const view = isPool ? store.layer(layer) : store.pages(layer, slot, sequences);
      const places = isPool ? { table: views.slice(table, slot, slot + sequences) } : {};
      const isRing = isPool && kind === "ring";
      for (const { name, format, tokens } of streams) {
        if (format.codes !== undefined) continue;
        const rows = { tensor: tokens, first: slot * tailSlots };
        const at = { positions: ofSlots, ...places };
        write(pass, views, { view, at, count: tailSlots, isRing }, [rows, view[name]]);
      }
      const stream = (i: number): [{ tensor: Tensor<"f32">; first: number }, StreamView] => [
        { tensor: stages[i] as Tensor<"f32">, first: 0 },
        view[(coded[i] as (typeof coded)[number]).name],
      ];
      const target = { view, at: { positions: ofStage, ...places }, count: this.#most, isRing };
      const [a, b] = coded;
      if (a !== undefined && b !== undefined && a.format.text === b.format.text) {
        write(pass, views, target, stream(0), stream(1));
      } else for (let i = 0; i < coded.length; i++) write(pass, views, target, stream(i));
    }
  }
}
