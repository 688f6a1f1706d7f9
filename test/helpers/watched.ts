import { afterAll, expect } from "bun:test";
import { Device, type DType, type MetalAttentionErrorCode, type Pass, type Tensor } from "../../src/index.ts";
import { fillPattern } from "./elements.ts";
import { expectRefusal } from "./errors.ts";

/** Arguments of a caller in plain JavaScript, whom no types stop. */
export type Fields = Record<string, unknown>;

/** An operation as such a caller sees it. */
export type UntypedOp = (pass: Pass, args: Fields) => void;

/** An operation without its types. */
export const untyped =
  (op: (pass: Pass, args: never) => void): UntypedOp =>
  (pass, args) =>
    op(pass, args as never);

/** A call that must be refused. */
export interface Refusal {
  readonly name: string;
  /** What to change in valid arguments. */
  readonly spoil: Fields;
  readonly code: MetalAttentionErrorCode;
  readonly argument: string | undefined;
  /** Numbers and words that the message must hold. */
  readonly says: readonly (string | number)[];
}

/** A call that must be refused; `says` are numbers and words that the message must hold. */
export function refused(
  name: string,
  spoil: Fields,
  code: MetalAttentionErrorCode,
  argument: string | undefined,
  ...says: Refusal["says"]
): Refusal {
  return { name, spoil, code, argument, says };
}

/** A refusal by one of several operations. */
export interface OpRefusal<Op extends string> extends Refusal {
  readonly op: Op;
}

/** As {@link refused}, by the operation `op`. */
export function refusedBy<Op extends string>(op: Op, ...[name, ...rest]: Parameters<typeof refused>): OpRefusal<Op> {
  return { ...refused(`${op}: ${name}`, ...rest), op };
}

/** Two devices, and tensors whose bytes no refusal may touch. */
export class WatchedTensors {
  readonly device = Device.open();
  readonly otherDevice = Device.open();
  readonly #watched: Tensor[] = [];

  constructor() {
    afterAll(() => {
      this.device.dispose();
      this.otherDevice.dispose();
    });
  }

  /** A watched tensor full of a pattern. */
  tensor<T extends DType>(dtype: T, shape: readonly number[], device = this.device): Tensor<T> {
    const made = device.tensor(dtype, shape);
    const { buffer, byteLength } = made.bytes;
    fillPattern(new Uint16Array(buffer, 0, byteLength >> 1), this.#watched.length);
    this.#watched.push(made);
    return made;
  }

  /** A tensor without elements. */
  empty<T extends DType>(dtype: T, shape: readonly number[]): Tensor<T> {
    return this.tensor(dtype, [2]).slice(0, 0).reshape(shape);
  }

  disposed<T extends DType>(dtype: T, shape: readonly number[]): Tensor<T> {
    const gone = this.device.tensor(dtype, shape);
    gone.dispose();
    return gone;
  }

  #snapshot(): Uint8Array[] {
    return this.#watched.map((tensor) => tensor.bytes.slice());
  }

  /**
   * Refused before and after a valid call of the same pass, which runs, and is
   * all that runs: it changes `written`, its own results, and nothing else.
   */
  checkRefusal(op: UntypedOp, valid: Fields, written: readonly Tensor[], refusal: Refusal): void {
    const { spoil, code, argument, says } = refusal;
    const before = this.#snapshot();
    const args = { ...valid, ...spoil };
    using pass = this.device.pass();
    expectRefusal(() => op(pass, args), code, argument, ...says);
    expect(pass.describe()).toEqual([]);
    op(pass, valid);
    expectRefusal(() => op(pass, args), code, argument, ...says);
    expect(pass.describe().length).toBe(1);
    pass.commitAndWait();
    for (const tensor of written) {
      const { bytes } = tensor;
      const result = bytes.slice();
      bytes.set(before[this.#watched.indexOf(tensor)] as Uint8Array);
      expect(result).not.toEqual(bytes);
    }
    expect(this.#snapshot()).toEqual(before);
  }
}
