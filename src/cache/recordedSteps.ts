import { display, refused } from "../checks.ts";
import { disposedError } from "../device/lifetime.ts";
import type { RecordingPass, RunValues } from "../device/recording.ts";
import type { Recorder, Run } from "../parameter.ts";
import { checkRoom, checkTurned, checkUsual } from "./appendArgs.ts";
import { invalidState } from "./invalidState.ts";
import type { KvMemory } from "./memory.ts";
import { checkRecordable, RecordedStep } from "./recordedStep.ts";
import { noRope } from "./ropeNote.ts";
import type { SequenceState } from "./state.ts";
import { Step, type StepEntry } from "./step.ts";
import type { StepUnderWay } from "./stepUnderWay.ts";

/** Caches of this process: their parameters have names of their own. */
let count = 0;

/** The steps of a cache that were recorded, and which of them a run does. */
export class RecordedSteps {
  readonly #memory: KvMemory;
  readonly #underWay: StepUnderWay;
  readonly #name = `kvCache${++count}`;
  /** The newest last. */
  readonly #all: RecordedStep[] = [];
  /** Those whose pass is there to be run. */
  readonly #whole = new Set<RecordedStep>();
  /** What `prepare` gave values for. */
  #prepared: { readonly recorded: RecordedStep; readonly step: Step; readonly values: RunValues } | undefined;

  constructor(memory: KvMemory, underWay: StepUnderWay) {
    this.#memory = memory;
    this.#underWay = underWay;
  }

  /** Bytes on the device, beside those of the cache. */
  get bytes(): number {
    return this.#all.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** The step that is being recorded. */
  of(recorder: Recorder): RecordedStep | undefined {
    return this.#all.find((known) => known.recorder === recorder);
  }

  /** The same, begun where there is none yet. */
  open(pass: RecordingPass, recorder: Recorder, entries: readonly StepEntry[]): RecordedStep {
    checkRecordable(entries);
    for (const entry of entries) checkUsual(this.#memory.config, entry);
    const known = this.of(recorder);
    if (known !== undefined) return known;
    const recorded = new RecordedStep(this.#memory, pass, recorder, this.#name, entries);
    recorder.observe({
      noteRecorded: () => {
        // Its pass may have been disposed while it was recorded.
        if (this.#all.includes(recorded)) this.#whole.add(recorded);
      },
      noteEnd: () => this.#forget(recorded),
      beforeRun: (values) => this.#beforeRun(recorded, values),
      noteRun: (run) => this.#noteRun(run),
    });
    this.#all.push(recorded);
    return recorded;
  }

  /**
   * The newest whole step of so many tokens in all, or of any number, and of these sequences, or of any, that fits; where
   * none does, throws why the newest does not.
   */
  find(nTokens: number | undefined, states: readonly SequenceState[] | undefined): RecordedStep {
    const { layers } = this.#memory.config;
    const meant = this.#all.filter(({ step }) => {
      if (nTokens !== undefined && step.rows !== nTokens) return false;
      const { entries } = step;
      return (
        states === undefined || (states.length === entries.length && states.every((s, i) => s === entries[i]?.state))
      );
    });
    const refusals: unknown[] = [];
    for (const recorded of meant.toReversed()) {
      if (!this.#whole.has(recorded) || recorded.step.layers.size < layers) continue;
      try {
        this.#checkFits(recorded);
        return recorded;
      } catch (refusal) {
        refusals.push(refusal);
      }
    }
    if (refusals.length > 0) throw refusals[0];
    const newest = meant.at(-1);
    const what =
      newest === undefined || newest.step.layers.size === layers
        ? `nothing such was recorded (${this.#choice(nTokens, states)})`
        : `${newest.step.layers.size} of ${layers} layers was recorded`;
    throw invalidState(`${what}; append to all layers in device.record() first`);
  }

  /** What was asked for, and what there is. */
  #choice(nTokens: number | undefined, states: readonly SequenceState[] | undefined): string {
    const { layers } = this.#memory.config;
    const wanted = [
      ...(nTokens === undefined ? [] : [`${nTokens} tokens in all`]),
      ...(states === undefined ? [] : [`sequences ${states.map(({ slot }) => slot).join(", ")}`]),
    ];
    const whole = [...this.#whole].filter(({ step }) => step.layers.size === layers);
    const known = whole.map(({ step: { rows, text, entries } }) => {
      return `${rows} in all, ${text}${entries.every(({ state }) => state.isLive) ? "" : " (dropped)"}`;
    });
    return [
      ...(wanted.length === 0 ? [] : [`asked for: ${wanted.join(" of ")}`]),
      `recorded: ${known.length === 0 ? "none" : known.join("; ")}`,
    ].join("; ");
  }

  /** Gives the memory of all of them back; runs in flight go on. */
  dispose(): void {
    for (const recorded of this.#all) recorded.dispose();
  }

  /** Refuses a step that its sequences cannot take now. */
  #checkFits({ step }: RecordedStep): void {
    for (const entry of step.entries) {
      if (!entry.state.isLive) throw disposedError(`sequence ${entry.state.slot} of the recorded step`);
      checkRoom(this.#memory.config, entry);
    }
    if (step.ropeNotes.some((note) => note !== noRope)) checkTurned(step.entries);
  }

  /** Of one whose pass can run no more. */
  #forget(recorded: RecordedStep): void {
    const index = this.#all.indexOf(recorded);
    if (index < 0) return;
    this.#all.splice(index, 1);
    this.#whole.delete(recorded);
    recorded.dispose();
  }

  /** The step that a run will do, and the values for it. */
  prepare(recorded: RecordedStep): { readonly step: Step; readonly values: RunValues } {
    const step = new Step(recorded.step.entries, true);
    for (const layer of recorded.step.layers) step.layers.add(layer);
    const values = recorded.prepare();
    this.#prepared = { recorded, step, values };
    return { step, values };
  }

  /** Refuses a run that would not do the step under way. */
  #beforeRun(recorded: RecordedStep, given: Readonly<Record<string, unknown>>): void {
    const step = this.#underWay.current;
    if (step === undefined || step !== this.#prepared?.step) {
      throw invalidState("a run of a recorded step that is not prepared; call prepare() before each run");
    }
    if (recorded !== this.#prepared.recorded) {
      throw invalidState(
        `the run does ${recorded.step.text}, but prepare() meant a recorded step of ${step.text}; abandon() that step, and ` +
          "give prepare() the number of tokens and the sequences of this one",
      );
    }
    if (step.passes.size > 0 && !step.isDead) {
      throw invalidState("the step was run already; end it by advance(), or by abandon()");
    }
    for (const [name, value] of Object.entries(this.#prepared.values)) {
      if (given[name] === value) continue;
      throw refused(
        name,
        `${display(given[name])}, but prepare() gave ${value}; give the run the values of its own prepare()`,
      );
    }
  }

  #noteRun(run: Run): void {
    const passes = this.#prepared?.step.passes;
    // A run that has failed may be done again.
    passes?.clear();
    passes?.add(run);
  }
}
