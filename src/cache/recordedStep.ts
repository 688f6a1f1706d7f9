import { refused } from "../checks.ts";
import type { RecordingPass, RunValues } from "../device/recording.ts";
import type { Tensor } from "../device/tensor.ts";
import type { Recorder } from "../parameter.ts";
import { type AppendCall, appendGroup } from "./append.ts";
import { type AttendCall, attendStep } from "./attend.ts";
import type { KvMemory } from "./memory.ts";
import { fillPlaces, groupsOf, type Places, placesOf, type WriteGroup } from "./places.ts";
import { RecordedFlush } from "./recordedFlush.ts";
import { RecordedView } from "./recordedView.ts";
import { mostRows } from "./segments.ts";
import { Step, type StepEntry } from "./step.ts";

/** Sequences of a recorded step that are written together. */
interface RecordedGroup {
  readonly group: WriteGroup;
  readonly places: Places;
  readonly flush: RecordedFlush | undefined;
}

/**
 * A step that is recorded once and run again: where it writes, how many keys there are, and what leaves the tail, lies
 * in device memory.
 */
export class RecordedStep {
  readonly step: Step;
  readonly recorder: Recorder;
  readonly #memory: KvMemory;
  readonly #pass: RecordingPass;
  readonly #name: string;
  readonly #groups: readonly RecordedGroup[];
  /** What rows see of a cache of several parts, by window, and whether there are slopes. */
  readonly #views = new Map<string, RecordedView>();
  /** Tensors of its own. */
  readonly #tensors: Tensor[] = [];
  /** Views of others that the pass goes on using. */
  readonly kept: Tensor[] = [];

  constructor(memory: KvMemory, pass: RecordingPass, recorder: Recorder, name: string, entries: readonly StepEntry[]) {
    this.step = new Step(entries, true);
    this.recorder = recorder;
    this.#memory = memory;
    this.#pass = pass;
    this.#name = name;
    const { config } = memory;
    const { device } = pass;
    this.#groups = groupsOf(entries).map((group) => ({
      group,
      places: placesOf(config, group, (_, shape) => this.#own([device.tensor("i32", shape)])[0] as Tensor<"i32">),
      flush: config.tail > 0 ? new RecordedFlush(device, memory, group) : undefined,
    }));
    for (const { flush } of this.#groups) this.#own(flush?.tensors ?? []);
  }

  /** Bytes on the device, beside those of the cache. */
  get bytes(): number {
    return this.#tensors.reduce((sum, { byteLength }) => sum + byteLength, 0);
  }

  /** Encodes the writes of a layer. */
  append(call: AppendCall): void {
    for (const { group, places, flush } of this.#groups) {
      appendGroup(this.#memory, call, group, places);
      flush?.encode(call);
    }
    this.step.layers.add(call.layer);
  }

  /** Encodes attention over a layer. */
  attend(call: AttendCall): void {
    const { tail, keep } = this.#memory.config;
    if (tail === 0 && keep === 0) {
      attendStep(this.#memory, call, this.step);
      return;
    }
    const hasSlopes = call.scores.alibiSlopes !== undefined;
    const key = `${call.window}${hasSlopes ? ".alibi" : ""}`;
    let view = this.#views.get(key);
    if (view === undefined) {
      const name = `${this.#name}.window${key}`;
      view = new RecordedView(this.#memory, this.#pass, this.step, call.window, hasSlopes, name);
      this.#own(view.tensors);
      this.#views.set(key, view);
    }
    view.attend(call, this.step);
  }

  /** Writes what a run finds in device memory, and gives its values. */
  prepare(): RunValues {
    const { config, lengths } = this.#memory;
    for (const { state, count } of this.step.entries) lengths.set([state.length + count], state.slot);
    for (const { group, places, flush } of this.#groups) {
      fillPlaces(config, group, places);
      flush?.fill();
    }
    const values: Record<string, number> = {};
    for (const view of this.#views.values()) view.fill(values);
    return values;
  }

  /** Gives its memory back; runs in flight go on. */
  dispose(): void {
    for (const tensor of [...this.#tensors, ...this.kept]) tensor.dispose();
  }

  #own<T extends readonly Tensor[]>(tensors: T): T {
    this.#tensors.push(...tensors);
    return tensors;
  }
}

/** Refuses to record what a run could not repeat. */
export function checkRecordable(entries: readonly StepEntry[]): void {
  const most = Math.max(...entries.map(({ count }) => count));
  if (most > mostRows) {
    throw refused("k", `${most} tokens of a sequence; a recorded step has at most ${mostRows} of each`, "unsupported");
  }
}
