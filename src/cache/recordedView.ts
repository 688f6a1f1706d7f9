import type { Pass } from "../device/pass.ts";
import type { RecordingPass } from "../device/recording.ts";
import type { Tensor } from "../device/tensor.ts";
import { type FlashAttnDecodeArgs, flashAttnDecode } from "../ops/decode/flashAttnDecode.ts";
import { type AttentionPart, mergeAttention } from "../ops/decode/mergeAttention.ts";
import type { AttendCall } from "./attend.ts";
import type { KvMemory } from "./memory.ts";
import { mostPositions } from "./options.ts";
import { distanceTo, segmentsOf } from "./segments.ts";
import { quantizedAt } from "./state.ts";
import type { Step, StepEntry } from "./step.ts";

/** A part of the keys that a row may see, of which there may be none at a position. */
type Part = "keep" | "main" | "tailOfKept" | "tail";

/** What a run gives, by the name of its parameter. */
interface Given {
  readonly name: string;
  readonly parameter: number;
}

/** One row of a recorded step. */
interface Row {
  readonly entry: StepEntry;
  /** Its place among the entry's tokens. */
  readonly at: number;
}

/**
 * What the rows of a recorded step see of a cache of several parts, through a window: lengths of the parts, in device
 * memory, the tables of the tail, and parameters for what is left of the window before the tail and for distances that
 * ALiBi asks for.
 */
export class RecordedView {
  readonly tensors: Tensor<"i32">[] = [];
  readonly #memory: KvMemory;
  readonly #window: number;
  readonly #rows: readonly Row[];
  readonly #parts: readonly Part[];
  /** Of each part: keys of each row, i32 [rows]. */
  readonly #lengths = new Map<Part, Tensor<"i32">>();
  /** Of each part of the tail: the slots of each row, i32 [rows, tailSlots]. */
  readonly #tables = new Map<Part, Tensor<"i32">>();
  /** First positions that the tables were written for. */
  readonly #starts = new Map<Part, Int32Array>();
  /** Of each row: what the main part and the tail have of the window; none where that is the same at all positions. */
  readonly #windows: readonly { readonly main: Given; readonly tail: Given }[];
  /** Of each row: positions from the last key of a part to the row, but of the last part; none without slopes. */
  readonly #distances: readonly ReadonlyMap<Part, Given>[];

  /** @param name Names of its parameters begin so. */
  constructor(memory: KvMemory, pass: RecordingPass, step: Step, window: number, hasSlopes: boolean, name: string) {
    this.#memory = memory;
    this.#window = window;
    this.#rows = step.entries.flatMap((entry) => Array.from({ length: entry.count }, (_, at) => ({ entry, at })));
    const { tail, keep, tailSlots } = memory.config;
    const parts: Part[] = keep > 0 ? ["keep", "main"] : ["main"];
    if (tail > 0) parts.push(...(keep > 0 ? (["tailOfKept", "tail"] as const) : (["tail"] as const)));
    this.#parts = parts;
    const make = (shape: readonly number[]) => {
      const tensor = pass.device.tensor("i32", shape);
      this.tensors.push(tensor);
      return tensor;
    };
    for (const part of parts) {
      this.#lengths.set(part, make([this.#rows.length]));
      if (part !== "tail" && part !== "tailOfKept") continue;
      this.#tables.set(part, make([this.#rows.length, tailSlots]));
      this.#starts.set(part, new Int32Array(this.#rows.length).fill(-1));
    }
    const given = (what: string, min: number): Given => {
      const own = `${name}.${what}`;
      return { name: own, parameter: pass.parameter(own, { min, max: mostPositions }) };
    };
    const hasWindows = tail > 0 && window > 0;
    this.#windows = hasWindows
      ? this.#rows.map((_, i) => ({ main: given(`${i}.main`, 1), tail: given(`${i}.tail`, 1) }))
      : [];
    const early = parts.slice(0, -1);
    this.#distances = hasSlopes
      ? this.#rows.map((_, i) => new Map(early.map((part) => [part, given(`${i}.${part}.distance`, 0)])))
      : [];
  }

  /** Writes what the rows of the next run see, and gives the values for it. */
  fill(values: Record<string, number>): void {
    const { config } = this.#memory;
    const { keep } = config;
    const lengths = new Map(this.#parts.map((part) => [part, new Int32Array(this.#rows.length)]));
    for (const [i, { entry, at }] of this.#rows.entries()) {
      const { state } = entry;
      const from = state.length + at;
      const quantized = config.tail > 0 ? quantizedAt(config, state, from + 1) : from + 1;
      let [left, ofTail] = [1, mostPositions];
      const distances = this.#distances[i];
      for (const { name } of distances?.values() ?? []) values[name] = 0;
      for (const segment of segmentsOf(config, { from, to: from + 1, quantized }, this.#window)) {
        const isOfKept = segment.store === "tail" && segment.start < keep && from >= keep;
        const part = isOfKept ? "tailOfKept" : segment.store;
        (lengths.get(part) as Int32Array)[i] = segment.length;
        const distance = distances?.get(part);
        if (distance !== undefined) values[distance.name] = distanceTo(from + 1, segment);
        if (segment.store === "tail") {
          this.#fillTable(part, i, state.slot, segment.start);
          if (part === "tail" && segment.window > 0) ofTail = segment.window;
        } else if (segment.store === "main" && segment.window > 0) left = segment.window;
      }
      const window = this.#windows[i];
      if (window === undefined) continue;
      values[window.main.name] = left;
      values[window.tail.name] = ofTail;
    }
    for (const [part, counts] of lengths) this.#lengths.get(part)?.set(counts);
  }

  /** Encodes attention of all rows for a layer. */
  attend(call: AttendCall, step: Step): void {
    const first = (step.entries[0] as StepEntry).state.slot;
    const isInOrder = this.#rows.every(({ entry }, i) => entry.count === 1 && entry.state.slot === first + i);
    const count = this.#rows.length;
    // A parameter is of one row.
    const isAlike = this.#windows.length === 0 && this.#distances.length === 0;
    if (isInOrder && isAlike) this.#attendRows(call, 0, count, first);
    else for (const [i, { entry }] of this.#rows.entries()) this.#attendRows(call, i, 1, entry.state.slot);
  }

  /** Rows of sequences one slot after another, each as a batch of its own. */
  #attendRows(call: AttendCall, row: number, count: number, slot: number): void {
    const { scratch, config } = this.#memory;
    const { pass, views, lse } = call;
    const [, heads, headDim] = call.q.shape as readonly [number, number, number];
    const of = (x: Tensor, ...axes: number[]) =>
      views.reshape(views.slice(x, row, row + count), [count, heads, ...axes]);
    const q = of(call.q, 1, headDim) as AttendCall["q"];
    const out = of(call.out, 1, headDim) as AttendCall["out"];
    const outLse = lse && (of(lse, 1) as Tensor<"f32">);
    const { sinks, ...scores } = call.scores;
    const parts = this.#parts.map((part, i): AttentionPart => {
      const result = {
        out: scratch.tensor(`part ${i}`, "f32", [count, heads, 1, config.headDim]),
        lse: scratch.tensor(`part ${i} lse`, "f32", [count, heads, 1]),
      };
      const seqLens = views.slice(this.#lengths.get(part) as Tensor<"i32">, row, row + count);
      // The last part has always a key, the row's own, or is what an encoded step has last.
      const sink = i === this.#parts.length - 1 && sinks !== undefined ? { sinks } : {};
      const keys = this.#keys(call, part, row, count, slot);
      const distance = this.#distances[row]?.get(part);
      const alibi = distance === undefined ? {} : { alibiDistance: distance.parameter };
      flashAttnDecode(pass as Pass, { ...keys, seqLens, q, ...result, ...scores, ...sink, ...alibi });
      return result;
    });
    mergeAttention(pass, { parts, out, ...(outLse && { lse: outLse }) });
  }

  /** The memory of a part, and the window over it. */
  #keys(
    { layer, views }: AttendCall,
    part: Part,
    row: number,
    count: number,
    slot: number,
  ): Pick<FlashAttnDecodeArgs, "k" | "v" | "isSliding" | "blockTable" | "window"> {
    const { config, store, keepStore, tail, table } = this.#memory;
    const tailTable = this.#tables.get(part);
    if (tailTable !== undefined && tail !== undefined) {
      const { k, v } = tail.layer(layer);
      const own = this.#windows[row]?.tail.parameter;
      const window = part === "tail" && own !== undefined ? { window: own } : {};
      return { k: k.pages, v: v.pages, blockTable: views.slice(tailTable, row, row + count), ...window };
    }
    if (part === "keep" && keepStore !== undefined) {
      const { k, v } = keepStore.pages(layer, slot, count);
      return { k: k.cache, v: v.cache };
    }
    const left = this.#windows[row]?.main.parameter ?? this.#window;
    const window = left === 0 ? {} : { window: left };
    if (config.kind === "paged") {
      const { k, v } = store.layer(layer);
      return { k: k.cache, v: v.cache, blockTable: views.slice(table, slot, slot + count), ...window };
    }
    const { k, v } = store.pages(layer, slot, count);
    return { k: k.cache, v: v.cache, isSliding: config.kind === "ring", ...window };
  }

  /** Writes the slots of a row's part of the tail, which stay until tokens leave it. */
  #fillTable(part: Part, row: number, slot: number, start: number): void {
    const { tailSlots } = this.#memory.config;
    const starts = this.#starts.get(part) as Int32Array;
    if (starts[row] === start) return;
    starts[row] = start;
    const slots = Int32Array.from({ length: tailSlots }, (_, i) => slot * tailSlots + ((start + i) % tailSlots));
    this.#tables.get(part)?.set(slots, row * tailSlots);
  }
}
