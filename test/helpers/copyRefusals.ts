import { kvCacheCopy, kvCacheCopyBatch, kvCacheCopyHeadMajor, kvCacheCopySeq, type Tensor } from "../../src/index.ts";
import { type Fields, type OpRefusal, refusedBy, untyped, WatchedTensors } from "./watched.ts";

export const copyOps = {
  kvCacheCopy: untyped(kvCacheCopy),
  kvCacheCopyBatch: untyped(kvCacheCopyBatch),
  kvCacheCopySeq: untyped(kvCacheCopySeq),
  kvCacheCopyHeadMajor: untyped(kvCacheCopyHeadMajor),
} as const;

export type CopyOp = keyof typeof copyOps;

export type RefusalCase = OpRefusal<CopyOp>;
export const refused = refusedBy<CopyOp>;

/** Arguments that each copy takes, among tensors that no refusal may touch. */
export class RefusalScene extends WatchedTensors {
  readonly valid: Readonly<Record<CopyOp, Fields & { readonly src: Tensor; readonly cache: Tensor }>>;

  constructor() {
    super();
    const span = { seqPosStart: 1, nTokens: 3, srcTokOffset: 2 };
    this.valid = {
      kvCacheCopy: { src: this.tensor("f32", [4, 8]), cache: this.tensor("f32", [6, 8]), writePos: 1, nNew: 2 },
      kvCacheCopyBatch: { src: this.tensor("f32", [2, 8]), cache: this.tensor("f16", [2, 5, 8]), seqPos: 1 },
      kvCacheCopySeq: { src: this.tensor("f32", [7, 2, 8]), cache: this.tensor("f16", [2, 5, 8]), ...span },
      kvCacheCopyHeadMajor: { src: this.tensor("bf16", [2, 7, 8]), cache: this.tensor("bf16", [2, 5, 8]), ...span },
    };
  }

  readonly check = (refusal: RefusalCase): void => {
    const valid = this.valid[refusal.op];
    this.checkRefusal(copyOps[refusal.op], valid, [valid.cache], refusal);
  };
}
