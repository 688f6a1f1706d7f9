import type { Device } from "../device/device.ts";
import type { Tensor } from "../device/tensor.ts";
import { type StreamFormat, useKvFormat } from "./format.ts";
import { type KvCacheConfig, tailBytesPerToken } from "./options.ts";
import { copyRuns, type Run } from "./runs.ts";
import type { PageView, RingRows, StreamView } from "./store.ts";

/** The tail of one layer, K or V, under the shapes that operations want. */
interface TailStream {
  /** [all slots, nKvHeads, headDim]. */
  readonly tokens: Tensor<"f16" | "bf16">;
  /** As pages of one token: [all slots, nKvHeads, 1, headDim]. */
  readonly pages: Tensor<"f16" | "bf16">;
}

/**
 * The newest tokens of each sequence in full precision, token-major: slot position mod tailSlots of the sequence's own.
 */
export class Tail {
  readonly bytes: number;
  /** Slots of a sequence. */
  readonly slots: number;
  readonly #config: KvCacheConfig;
  readonly #format: StreamFormat;
  /** Slot of the first sequence. */
  readonly #first: number;
  readonly #layers: { readonly k: TailStream; readonly v: TailStream }[] = [];
  /** Slots by position, twice over for each sequence: a run of positions that wraps is a run of it. */
  readonly #slots: Tensor<"i32">;
  /** Runs of it by their first, and those of whole sequences by the first of these and their number. */
  readonly #runs = new Map<number, Tensor<"i32">>();
  readonly #tables = new Map<number, Tensor<"i32">>();
  readonly #tensors: Tensor[] = [];

  constructor(device: Device, config: KvCacheConfig, first = 0) {
    this.#config = config;
    this.#first = first;
    this.slots = config.tailSlots;
    const { layers, sequences, tailSlots, nKvHeads, headDim, tailDtype, storage } = config;
    this.#format = useKvFormat(tailDtype, "tailDtype", headDim);
    const all = sequences * tailSlots;
    this.bytes = layers * all * tailBytesPerToken(config) + 8 * all;
    const allocate = (): TailStream => {
      const tokens = this.#keep(device.tensor(tailDtype, [all, nKvHeads, headDim], { storage }));
      return { tokens, pages: this.#keep(tokens.reshape([all, nKvHeads, 1, headDim])) };
    };
    try {
      for (let i = 0; i < layers; i++) this.#layers.push({ k: allocate(), v: allocate() });
      this.#slots = this.#keep(device.tensor("i32", [sequences * 2 * tailSlots]));
    } catch (error) {
      this.dispose();
      throw error;
    }
    this.#slots.set(
      Int32Array.from({ length: 2 * all }, (_, i) => Math.floor(i / (2 * tailSlots)) * tailSlots + (i % tailSlots)),
    );
  }

  layer(layer: number): { readonly k: TailStream; readonly v: TailStream } {
    // What has one layer is that of whichever is asked for.
    const index = this.#layers.length === 1 ? 0 : layer;
    return this.#layers[index] as { readonly k: TailStream; readonly v: TailStream };
  }

  /** The pages of all sequences, of a token each; a sequence's slots are twice as many by {@link tables} as it has. */
  view(layer: number): PageView {
    const format = this.#format;
    const stream = ({ pages }: TailStream): StreamView => ({ rows: pages, norms: undefined, format, cache: pages });
    const { k, v } = this.layer(layer);
    return { k: stream(k), v: stream(v) };
  }

  /** The block tables of `count` sequences from `slot` on, by which position p of a ring lies in its slot. */
  tables(slot: number, count: number): Tensor<"i32"> {
    const { sequences, tailSlots } = this.#config;
    const start = slot - this.#first;
    const key = start * (sequences + 1) + count;
    let table = this.#tables.get(key);
    if (table === undefined) {
      using part = this.#slots.slice(2 * tailSlots * start, 2 * tailSlots * (start + count));
      table = this.#keep(part.reshape([count, 2 * tailSlots]));
      this.#tables.set(key, table);
    }
    return table;
  }

  /** The block table of a sequence's tokens from `position` on. */
  table(slot: number, position: number): Tensor<"i32"> {
    const { tailSlots } = this.#config;
    const start = (slot - this.#first) * 2 * tailSlots + (position % tailSlots);
    let run = this.#runs.get(start);
    if (run === undefined) {
      run = this.#keep(this.#slots.slice(start, start + tailSlots));
      this.#runs.set(start, run);
    }
    return run;
  }

  /** The first token slot of `position`, and how many positions follow it without a gap. */
  place(slot: number, position: number): { readonly start: number; readonly room: number } {
    const { tailSlots } = this.#config;
    const offset = position % tailSlots;
    return { start: (slot - this.#first) * tailSlots + offset, room: tailSlots - offset };
  }

  /** Copies the tail of a sequence to that of another. No pass may be using either. */
  copy(from: number, to: number): void {
    const pairs: (readonly [Run, Run])[] = [];
    this.forEachTensor((tensor) => pairs.push([this.runOf(tensor, from), this.runOf(tensor, to)]));
    copyRuns(pairs);
  }

  /** A sequence's tail in one of the tensors. */
  runOf(tensor: Tensor, slot: number): Run {
    const length = tensor.length / this.#config.sequences;
    return { tensor, start: (slot - this.#first) * length, length };
  }

  /** The same as the ring that it is, of all heads. */
  ringsOf(tensor: Tensor, slot: number): RingRows[] {
    const { start, length } = this.runOf(tensor, slot);
    return [{ tensor, start, rowLength: length / this.slots, slots: this.slots, first: 0 }];
  }

  /** The tensors that hold tokens of a layer, or of all. */
  tensorsOf(layer?: number): Tensor[] {
    const layers = layer === undefined ? this.#layers : [this.layer(layer)];
    return layers.flatMap(({ k, v }) => [k.tokens, v.tokens]);
  }

  forEachTensor(visit: (tensor: Tensor, name: string) => void): void {
    for (const [layer, { k, v }] of this.#layers.entries()) {
      visit(k.tokens, `${layer}.k.tail`);
      visit(v.tokens, `${layer}.v.tail`);
    }
  }

  dispose(): void {
    for (const tensor of this.#tensors) tensor.dispose();
  }

  #keep<T extends Tensor>(tensor: T): T {
    this.#tensors.push(tensor);
    return tensor;
  }
}
