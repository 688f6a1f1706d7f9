import { refused } from "./checks.ts";
import type { PassState } from "./ffi/records.ts";

// A number that each run of a recorded pass gives. Operations take it for a number: `checkU32` knows it.

/** What is being recorded: told of what the operation that is being encoded takes. */
export interface Recorder {
  /** Notes a tensor that it uses. */
  noteTensor(tensor: object): void;
  /** Notes that it takes its argument from a parameter. */
  noteUse(parameter: Parameter, argument: string): void;
  /** Asks for notice of every run. */
  observe(observer: RunObserver): void;
}

/** Who wants to know of the runs of a recorded pass. */
export interface RunObserver {
  /** The recording has ended well: there is a pass to run. */
  noteRecorded(): void;
  /** A run with these values is asked for; what this throws refuses it. */
  beforeRun(values: Readonly<Record<string, unknown>>): void;
  /** A run was committed. */
  noteRun(run: Run): void;
}

/** A run of a recorded pass, by what becomes of it. */
export interface Run {
  readonly state: PassState | undefined;
  readonly disposed: boolean;
  /** Refuses a commit that is still to come. */
  withdraw?(reason: string): void;
}

/** Of the pass that the operation at work encodes into; undefined where that is not recorded. */
export let recorder: Recorder | undefined;

/** To be called when an operation begins. */
export function setRecorder(next: Recorder | undefined): void {
  recorder = next;
}

/** A number that is given with each run. */
export class Parameter {
  readonly name: string;
  /** Its place among those of the pass. */
  readonly place: number;
  /** What stands for it while recording. */
  readonly initial: number;
  readonly #recorder: Recorder;

  constructor(name: string, place: number, initial: number, owner: Recorder) {
    this.name = name;
    this.place = place;
    this.initial = initial;
    this.#recorder = owner;
  }

  /** The number that stands for it, once it is noted that the operation at work takes it as `argument`. */
  take(argument: string): number {
    if (recorder !== this.#recorder) {
      throw refused(argument, `parameter ${this.name} belongs to another pass; use it where it is recorded`);
    }
    recorder.noteUse(this, argument);
    return this.initial;
  }

  /** There is no number yet to compute with. */
  [Symbol.toPrimitive](): never {
    throw refused(this.name, "a parameter has no value while recording; give what is computed from it with each run");
  }
}
