import type { Device } from "../device/device.ts";
import type { Tensor } from "../device/tensor.ts";
import type { AppendCall } from "./append.ts";
import type { KvMemory } from "./memory.ts";
import { keepPlace, mainPlace, type WriteGroup } from "./places.ts";
import { leavesFrom, quantizedAt, staysFrom } from "./state.ts";
import type { Store } from "./store.ts";
import { writeRows } from "./write.ts";

/** Memory that tokens leave the tail for, and where in it they go. */
interface Target {
  readonly store: Store;
  /** Its place of a position; below 0 where the position is elsewhere. */
  readonly place: (position: number, keep: number) => number;
  readonly isPool: boolean;
  /** The places of the tokens in the slots of the tails, or -1: i32 [sequences, tailSlots]. */
  readonly places: Tensor<"i32">;
}

/**
 * What a recorded step does about tokens that leave the tails of a group: a dispatch over all slots of these, which writes
 * nothing while no token leaves, as places in device memory say.
 */
export class RecordedFlush {
  readonly tensors: readonly Tensor<"i32">[];
  readonly #memory: KvMemory;
  readonly #group: WriteGroup;
  readonly #targets: readonly Target[];
  #isEmpty = false;

  constructor(device: Device, memory: KvMemory, group: WriteGroup) {
    this.#memory = memory;
    this.#group = group;
    const { tailSlots } = memory.config;
    const target = (store: Store, place: Target["place"], isPool: boolean): Target => {
      return { store, place, isPool, places: device.tensor("i32", [group.entries.length, tailSlots]) };
    };
    const targets = [target(memory.store, mainPlace, true)];
    if (memory.keepStore !== undefined) targets.push(target(memory.keepStore, keepPlace, false));
    this.#targets = targets;
    this.tensors = targets.map(({ places }) => places);
  }

  /** Writes which tokens leave with the next run. */
  fill(): void {
    const { config } = this.#memory;
    const { entries, count } = this.#group;
    const { keep, tailSlots } = config;
    const ranges = entries.map(
      ({ state }) => [leavesFrom(config, state), quantizedAt(config, state, state.length + count)] as const,
    );
    const isEmpty = ranges.every(([from, to]) => from >= to);
    if (isEmpty && this.#isEmpty) return;
    this.#isEmpty = isEmpty;
    for (const { place, isPool, places } of this.#targets) {
      const values = new Int32Array(places.length).fill(-1);
      for (const [i, [from, to]] of ranges.entries()) {
        const first = isPool ? staysFrom(config, from, to) : from;
        for (let position = first; position < to; position++) {
          values[i * tailSlots + (position % tailSlots)] = place(position, keep);
        }
      }
      places.set(values);
    }
  }

  /** Encodes it for a layer. */
  encode({ pass, layer, views }: AppendCall): void {
    const { config, tail, table } = this.#memory;
    if (tail === undefined) return;
    const { entries, slot } = this.#group;
    const { tailSlots, kind } = config;
    const sequences = entries.length;
    const { k, v } = tail.layer(layer);
    const rows = (tensor: Tensor<"f16" | "bf16">) => ({ tensor, first: slot * tailSlots });
    for (const { store, isPool, places } of this.#targets) {
      writeRows(pass, views, rows(k.tokens), rows(v.tokens), {
        view: isPool ? store.layer(layer) : store.pages(layer, slot, sequences),
        at: places,
        ...(isPool && { table: views.slice(table, slot, slot + sequences) }),
        count: tailSlots,
        isRing: isPool && kind === "ring",
      });
    }
  }
}
