import { afterAll, expect } from "bun:test";
import {
  Device,
  type DType,
  kvCacheCopy,
  kvCacheCopyBatch,
  kvCacheCopyHeadMajor,
  kvCacheCopySeq,
  type MetalAttentionErrorCode,
  type Pass,
  type Tensor,
} from "../../src/index.ts";
import { fillPattern } from "../helpers/elements.ts";
import { expectRefusal } from "../helpers/errors.ts";

/** Arguments of a caller in plain JavaScript, whom no types stop. */
export type Fields = Record<string, unknown>;

const untyped = (op: (pass: Pass, args: never) => void) => (pass: Pass, args: Fields) => op(pass, args as never);

export const copyOps = {
  kvCacheCopy: untyped(kvCacheCopy),
  kvCacheCopyBatch: untyped(kvCacheCopyBatch),
  kvCacheCopySeq: untyped(kvCacheCopySeq),
  kvCacheCopyHeadMajor: untyped(kvCacheCopyHeadMajor),
} as const;

export type CopyOp = keyof typeof copyOps;

export interface RefusalCase {
  readonly name: string;
  readonly op: CopyOp;
  /** What to change in valid arguments. */
  readonly spoil: Fields;
  readonly code: MetalAttentionErrorCode;
  readonly argument: string | undefined;
  /** Numbers and words that the message must hold. */
  readonly says: readonly (string | number)[];
}

export function refused(
  op: CopyOp,
  name: string,
  spoil: Fields,
  code: MetalAttentionErrorCode,
  argument: string | undefined,
  ...says: readonly (string | number)[]
): RefusalCase {
  return { name: `${op}: ${name}`, op, spoil, code, argument, says };
}

/** Two devices, arguments that each copy takes, and the bytes that no refusal may touch. */
export class RefusalScene {
  readonly device = Device.open();
  readonly otherDevice = Device.open();
  readonly valid: Readonly<Record<CopyOp, Fields & { readonly src: Tensor; readonly cache: Tensor }>>;
  readonly #watched: Tensor[] = [];

  constructor() {
    afterAll(() => {
      this.device.dispose();
      this.otherDevice.dispose();
    });
    const span = { seqPosStart: 1, nTokens: 3, srcTokOffset: 2 };
    this.valid = {
      kvCacheCopy: { src: this.tensor("f32", [4, 8]), cache: this.tensor("f32", [6, 8]), writePos: 1, nNew: 2 },
      kvCacheCopyBatch: { src: this.tensor("f32", [2, 8]), cache: this.tensor("f16", [2, 5, 8]), seqPos: 1 },
      kvCacheCopySeq: { src: this.tensor("f32", [7, 2, 8]), cache: this.tensor("f16", [2, 5, 8]), ...span },
      kvCacheCopyHeadMajor: { src: this.tensor("bf16", [2, 7, 8]), cache: this.tensor("bf16", [2, 5, 8]), ...span },
    };
  }

  /** A watched tensor full of a pattern. */
  tensor(dtype: DType, shape: readonly number[], device = this.device): Tensor {
    const made: Tensor = device.tensor(dtype, shape);
    const { buffer, byteLength } = made.bytes;
    fillPattern(new Uint16Array(buffer, 0, byteLength >> 1), this.#watched.length);
    this.#watched.push(made);
    return made;
  }

  /** A tensor without elements. */
  empty(dtype: DType, shape: readonly number[]): Tensor {
    return this.tensor(dtype, [2]).slice(0, 0).reshape(shape);
  }

  disposed(dtype: DType, shape: readonly number[]): Tensor {
    const gone: Tensor = this.device.tensor(dtype, shape);
    gone.dispose();
    return gone;
  }

  #snapshot(): Uint8Array[] {
    return this.#watched.map((tensor) => tensor.bytes.slice());
  }

  /** Refused before and after a valid call of the same pass, which runs, and is all that runs. */
  readonly check = ({ op, spoil, code, argument, says }: RefusalCase): void => {
    const before = this.#snapshot();
    const args = { ...this.valid[op], ...spoil };
    using pass = this.device.pass();
    expectRefusal(() => copyOps[op](pass, args), code, argument, ...says);
    expect(pass.describe()).toEqual([]);
    copyOps[op](pass, this.valid[op]);
    expectRefusal(() => copyOps[op](pass, args), code, argument, ...says);
    expect(pass.describe().length).toBe(1);
    pass.commitAndWait();

    const { bytes } = this.valid[op].cache;
    const written = bytes.slice();
    const index = this.#watched.indexOf(this.valid[op].cache);
    bytes.set(before[index] as Uint8Array);
    expect(written).not.toEqual(bytes);
    expect(this.#snapshot()).toEqual(before);
  };
}
