import { dequantizeKv, hadamardQuantizeKv, hadamardQuantizeKvSeq, type Tensor } from "../../src/index.ts";
import { type Fields, type OpRefusal, refusedBy, untyped, WatchedTensors } from "./watched.ts";

export const quantizedOps = {
  hadamardQuantizeKv: untyped(hadamardQuantizeKv),
  hadamardQuantizeKvSeq: untyped(hadamardQuantizeKvSeq),
  dequantizeKv: untyped(dequantizeKv),
} as const;

export type QuantizedOp = keyof typeof quantizedOps;
export const allOps = Object.keys(quantizedOps) as QuantizedOp[];

export type RefusalCase = OpRefusal<QuantizedOp>;
export const refused = refusedBy<QuantizedOp>;

/** Extents of the caches that are valid. */
export const [nKvHeads, capacity, headDim] = [2, 5, 64];
export const maxU32 = 2 ** 32 - 1;

/** Shape of the head vectors of each operation. */
export const vectorShapes = {
  hadamardQuantizeKv: (heads: number, size: number) => [heads, size],
  hadamardQuantizeKvSeq: (heads: number, size: number) => [7, heads, size],
  dequantizeKv: (heads: number, size: number) => [heads, 3, size],
} as const;

/** The argument that holds head vectors. */
export const vectorName = (op: QuantizedOp) => (op === "dequantizeKv" ? "out" : "src");

/** The argument that is the first position. */
export const position = {
  hadamardQuantizeKv: "writePos",
  hadamardQuantizeKvSeq: "writePosStart",
  dequantizeKv: "readPosStart",
} as const;

const numbers = {
  hadamardQuantizeKv: { writePos: 1 },
  hadamardQuantizeKvSeq: { writePosStart: 1, nTokens: 3, srcTokOffset: 2 },
  dequantizeKv: { readPosStart: 1 },
} as const;

/** Arguments that each operation takes, among tensors that no refusal may touch. */
export class QuantizedScene extends WatchedTensors {
  readonly valid: Readonly<Record<QuantizedOp, Fields>>;

  constructor() {
    super();
    const args = (op: QuantizedOp): Fields => ({ ...this.stream(op), bits: 4, ...numbers[op] });
    this.valid = {
      hadamardQuantizeKv: args("hadamardQuantizeKv"),
      hadamardQuantizeKvSeq: args("hadamardQuantizeKvSeq"),
      dequantizeKv: args("dequantizeKv"),
    };
  }

  packed(shape: readonly number[]): Fields {
    return { packed: this.tensor("u8", shape) };
  }

  norms(shape: readonly number[]): Fields {
    return { norms: this.tensor("f32", shape) };
  }

  vectors(op: QuantizedOp, shape: readonly number[]): Fields {
    return { [vectorName(op)]: this.tensor("f32", shape) };
  }

  /** Tensors of one stream of nibbles. */
  stream(op: QuantizedOp, size = headDim, normsPerPos = 1): Fields {
    return {
      ...this.vectors(op, vectorShapes[op](nKvHeads, size)),
      ...this.packed([nKvHeads, capacity, Math.ceil(size / 2)]),
      ...this.norms([nKvHeads, capacity, normsPerPos]),
    };
  }

  readonly check = (refusal: RefusalCase): void => {
    const { op } = refusal;
    const { packed, norms, out } = this.valid[op];
    const written = (op === "dequantizeKv" ? [out] : [packed, norms]) as Tensor[];
    this.checkRefusal(quantizedOps[op], this.valid[op], written, refusal);
  };
}
