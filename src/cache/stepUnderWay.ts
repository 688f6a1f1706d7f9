import type { Device } from "../device/device.ts";
import { checkRoom } from "./appendArgs.ts";
import { invalidState } from "./invalidState.ts";
import { LongStep } from "./longStep.ts";
import type { KvMemory } from "./memory.ts";
import type { Sequences } from "./sequences.ts";
import { advanceState, checkCounts, Step, type StepEntry } from "./step.ts";

/** The step of a cache that is under way, if any: its beginning, and how it ends. */
export class StepUnderWay {
  readonly #device: Device;
  readonly #memory: KvMemory;
  readonly #sequences: Sequences;
  #step: Step | undefined;

  constructor(device: Device, memory: KvMemory, sequences: Sequences) {
    this.#device = device;
    this.#memory = memory;
    this.#sequences = sequences;
  }

  get current(): Step | undefined {
    return this.#step;
  }

  /** Of its own memory, where it has some. */
  get bytes(): number {
    return this.#step?.long?.bytes ?? 0;
  }

  /** Begins a step with pages and memory for its tokens, or refuses it. */
  begin(entries: readonly StepEntry[]): Step {
    for (const entry of entries) checkRoom(this.#memory.config, entry);
    const step = new Step(entries, false);
    step.long = LongStep.of(this.#device, this.#memory, entries);
    try {
      this.#sequences.reserve(entries);
    } catch (error) {
      step.long?.dispose();
      throw error;
    }
    this.#step = step;
    return step;
  }

  /** Begins one that a run of a recorded pass does. */
  beginRecorded(step: Step): void {
    this.#step = step;
  }

  /** Forgets a step of which nothing can be done any more. */
  endDead(): void {
    if (this.#step?.isDead) this.end();
  }

  /**
   * Forgets the step, and gives back its pages. What it has written lies beyond the lengths; what it would write is
   * refused, since that memory may be another step's by then.
   */
  end(): void {
    const { entries = [], long, reachedDevice = false } = this.#step ?? {};
    this.#step?.withdraw();
    long?.dispose();
    for (const { state, count } of entries) {
      // What is longer than usual has written nothing that a sequence has.
      if (reachedDevice && long === undefined) state.high = Math.max(state.high, state.length + count);
      this.#sequences.trimPages(state);
    }
    this.#step = undefined;
  }

  /** Makes the tokens of a step that is done those of the sequences. */
  advance(nTokens: number | undefined, tokens: ArrayLike<number> | undefined): void {
    const step = this.#step;
    if (step === undefined) throw invalidState("no step is under way; append first");
    const ids = checkCounts(step, nTokens, tokens);
    if (this.#step !== step) throw invalidState("the step ended while the ids of its tokens were read");
    const { config } = this.#memory;
    const { layers } = config;
    if (step.layers.size < layers) {
      const missing = Array.from({ length: layers }, (_, i) => i).find((layer) => !step.layers.has(layer));
      throw invalidState(`${step.layers.size} of ${layers} layers were appended to, layer ${missing} was not`);
    }
    const { pending } = step;
    if (pending !== undefined) {
      throw invalidState(`a pass of the step is ${pending}, not completed: commit and await it, or abandon() the step`);
    }
    step.long?.finish();
    step.long?.dispose();
    for (const entry of step.entries) {
      advanceState(config, entry, ids);
      this.#sequences.releasePassed(entry.state);
    }
    this.#step = undefined;
  }

  /** Forgets the step as its caller wants it. */
  abandon(): void {
    if (this.#step?.isInFlight) throw invalidState("a pass of the step is on the device; wait for it first");
    this.end();
  }

  dispose(): void {
    this.#step?.long?.dispose();
  }
}
