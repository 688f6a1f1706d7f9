import { refused } from "../checks.ts";
import type { RecordingPass, RunValues } from "../device/recording.ts";
import type { Tensor } from "../device/tensor.ts";
import type { Recorder } from "../parameter.ts";
import type { AppendCall } from "./append.ts";
import { isTaken, type StreamFormat } from "./format.ts";
import type { KvMemory } from "./memory.ts";
import { type KvCacheConfig, mostPositions } from "./options.ts";
import { mostRows } from "./segments.ts";
import { type Staged, stageRows } from "./stage.ts";
import { Step, type StepEntry } from "./step.ts";
import { type Rows, writeRows } from "./write.ts";

/**
 * A step that is recorded once and run again: where it writes are parameters of the pass, how many keys there are, and
 * for a rope the positions, lie in device memory.
 */
export class RecordedStep {
  readonly step: Step;
  readonly recorder: Recorder;
  readonly #memory: KvMemory;
  readonly #names: readonly string[];
  readonly #parameters: readonly number[];
  /** Of all rows. */
  readonly #positions: Tensor<"i32">;
  /** Of each sequence's rows. */
  readonly #parts: readonly Tensor<"i32">[];

  /** @param kept Gets the tensors that the pass goes on using. */
  constructor(
    memory: KvMemory,
    pass: RecordingPass,
    recorder: Recorder,
    name: string,
    entries: readonly StepEntry[],
    kept: Tensor[],
  ) {
    this.step = new Step(entries, true);
    this.recorder = recorder;
    this.#memory = memory;
    this.#names = entries.map(({ state }) => `${name}.${state.slot}`);
    const { kind, capacity } = memory.config;
    this.#parameters = entries.map(({ count }, i) =>
      pass.parameter(this.#names[i] as string, { min: 0, max: (kind === "ring" ? mostPositions : capacity) - count }),
    );
    this.#positions = pass.device.tensor("i32", [this.step.rows]);
    this.#parts = entries.map(({ row, count }) => this.#positions.slice(row, row + count));
    kept.push(this.#positions, ...this.#parts);
  }

  /** Bytes on the device, beside those of the cache. */
  get bytes(): number {
    return this.#positions.byteLength;
  }

  /** Encodes the writes of a layer. */
  append(call: AppendCall): void {
    const { pass, layer, views, k, v, rope } = call;
    const { config, store } = this.#memory;
    const isTurnedBefore = config.k.codes !== undefined;
    for (const [i, { state, row, count }] of this.step.entries.entries()) {
      const positions = this.#parts[i] as Tensor<"i32">;
      const rowsOf = (
        name: "stageK" | "stageV",
        format: StreamFormat,
        { x, turn }: Pick<Staged, "x" | "turn">,
      ): Rows =>
        turn === undefined && isTaken(x.dtype, format)
          ? { tensor: x, first: row }
          : stageRows(this.#memory, call, name, "f32", { x, first: row, count, turn });
      const turn = isTurnedBefore && rope !== undefined ? { rope, positions } : undefined;
      writeRows(pass, views, rowsOf("stageK", config.k, { x: k, turn }), rowsOf("stageV", config.v, { x: v }), {
        view: store.pages(layer, state.slot),
        offset: this.#parameters[i] as number,
        count,
        isRing: config.kind === "ring",
        rope: isTurnedBefore ? undefined : rope,
      });
    }
  }

  /** Writes lengths and positions for a run, and gives its values. */
  prepare(): RunValues {
    const { lengths } = this.#memory;
    for (const [i, { state, count }] of this.step.entries.entries()) {
      lengths.set([state.length + count], state.slot);
      this.#parts[i]?.set(Int32Array.from({ length: count }, (_, j) => state.length + j));
    }
    return Object.fromEntries(this.step.entries.map(({ state }, i) => [this.#names[i] as string, state.length]));
  }
}

/** Refuses to record what a run could not repeat. */
export function checkRecordable({ kind, tail, keep }: KvCacheConfig, entries: readonly StepEntry[]): void {
  const reason =
    kind === "paged"
      ? "its pages change from step to step; make the cache without `pages`"
      : tail > 0
        ? "its tail is quantized at some steps and not at others; make the cache without `tail`"
        : keep > 0
          ? "its kept tokens are written elsewhere; make the cache without `keep`"
          : undefined;
  if (reason !== undefined) throw refused("pass", `a step of this cache cannot be recorded: ${reason}`, "unsupported");
  const most = Math.max(...entries.map(({ count }) => count));
  if (most > mostRows) {
    throw refused("k", `${most} tokens of a sequence; a recorded step has at most ${mostRows} of each`, "unsupported");
  }
}
