import { version } from "../package.json";
import { refused, u32Max } from "./checks.ts";
import type { PassState } from "./ffi/records.ts";

// A number that each run of a recorded pass gives. Operations take it for a number: `checkU32` knows it.

/** What is being recorded: told of what the operation that is being encoded takes. */
export interface Recorder {
  /** Notes a tensor that it uses. */
  noteTensor(tensor: object): void;
  /** Notes that it takes its argument from a parameter. */
  noteUse(parameter: Parameter, argument: string): void;
  /** Notes that the operation at work was encoded or refused. */
  settle(): void;
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
  /** There will be no further run: the pass was disposed or collected, or its recording failed. */
  noteEnd(): void;
}

/** A run of a recorded pass, by what becomes of it. */
export interface Run {
  readonly state: PassState | undefined;
  readonly disposed: boolean;
  /** Refuses a commit that is still to come. */
  withdraw?(reason: string): void;
}

/** The operation at work. */
interface AtWork {
  /** Of the pass that it encodes into; undefined where that is not recorded. */
  recorder: Recorder | undefined;
}

const parameterKey: unique symbol = Symbol.for(`metal-attention@${version}.parameter`);
const atWorkKey = Symbol.for(`metal-attention@${version}.atWork`);
const processWide = globalThis as { [atWorkKey]?: AtWork };
processWide[atWorkKey] ??= { recorder: undefined };

/** One a process: a device of a former evaluation records what functions of this module's encode. */
export const atWork = processWide[atWorkKey];

/** To be called when an operation begins. */
export function setRecorder(next: Recorder | undefined): void {
  atWork.recorder = next;
}

/** A number that is given with each run. */
export class Parameter {
  /** Also true of a parameter of a former evaluation of this module, as `bun --hot` leaves them behind. */
  static [Symbol.hasInstance](value: unknown): boolean {
    return (
      typeof value === "object" &&
      value !== null &&
      (value as { readonly [parameterKey]?: unknown })[parameterKey] === true
    );
  }

  readonly name: string;
  /** Its place among those of the pass. */
  readonly place: number;
  /** What stands for it while recording. */
  readonly initial: number;
  /** What a run may give. */
  readonly min: number;
  readonly max: number;
  readonly #recorder: Recorder;

  constructor(name: string, place: number, initial: number, min: number, max: number, owner: Recorder) {
    this.name = name;
    this.place = place;
    this.initial = initial;
    this.min = min;
    this.max = max;
    this.#recorder = owner;
  }

  /** Marks parameters for `instanceof`. */
  get [parameterKey](): true {
    return true;
  }

  /**
   * The number that stands for it, once it is noted that the operation at work takes it as `argument`; refused where a
   * run may give what the argument, of `least` to `most`, is not given directly.
   */
  take(argument: string, least = 0, most = u32Max): number {
    if (this.min < least || this.max > most) {
      throw refused(
        argument,
        `expected ${least} to ${most}, and parameter ${this.name} is ${this.min} to ${this.max}; declare it with a ` +
          "smaller range",
      );
    }
    if (atWork.recorder !== this.#recorder) {
      throw refused(argument, `parameter ${this.name} belongs to another pass; use it where it is recorded`);
    }
    this.#recorder.noteUse(this, argument);
    return this.initial;
  }

  /** There is no number yet to compute with. */
  [Symbol.toPrimitive](): never {
    throw refused(this.name, "a parameter has no value while recording; give what is computed from it with each run");
  }
}
