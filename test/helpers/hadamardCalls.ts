import { Block } from "../../src/ffi/block.ts";
import {
  type HadamardCacheRecord,
  packHadamardQuantizeKv,
  packHadamardRun,
  packQuantizedStreams,
} from "../../src/ffi/hadamardLayout.ts";
import { structSizes, type TensorRecord } from "../../src/ffi/layout.ts";
import { loadLibrary } from "../../src/ffi/library.ts";

/** Head vectors and the quantised cache that they go to or come from. */
export interface StreamRecords {
  readonly vectors: TensorRecord;
  readonly packed: TensorRecord;
  readonly norms: TensorRecord;
}

/** What the argument structs hold; a call packs what its own has. */
export interface CallArgs {
  readonly k: StreamRecords;
  readonly v: Partial<StreamRecords>;
  readonly rmsScratch: TensorRecord | undefined;
  readonly cache: HadamardCacheRecord;
  readonly bits: number;
  readonly packing: number;
  readonly nTokens: number;
  readonly srcTokOffset: number;
  readonly outDtype: number;
}

const native = loadLibrary();

/** Packs the arguments of a call, makes it on `pass`, and gives its status. `poke` changes the bytes before. */
export type Send = (pass: number, args: CallArgs, poke?: (block: Block) => void) => number;

const encode = (block: Block, { k: ofK, v: ofV }: CallArgs) =>
  packQuantizedStreams(block, ofK.vectors, ofK.packed, ofK.norms, ofV.vectors, ofV.packed, ofV.norms);

/** The three calls of the C ABI: one token, a run of tokens, decoding. */
export const hadamardCalls: Readonly<Record<"token" | "tokens" | "decode", Send>> = {
  token: (pass, args, poke) => {
    const block = new Block(structSizes.MAHadamardQuantizeKvArgs);
    encode(block, args);
    packHadamardQuantizeKv(block, args.rmsScratch, args.cache, args.bits, args.packing);
    poke?.(block);
    return native.ma_hadamard_quantize_kv(pass, block.bytes);
  },
  tokens: (pass, args) => {
    const block = new Block(structSizes.MAHadamardQuantizeKvSeqArgs);
    encode(block, args);
    packHadamardRun(block, args.cache, args.bits, args.nTokens, args.srcTokOffset, args.packing);
    return native.ma_hadamard_quantize_kv_seq(pass, block.bytes);
  },
  decode: (pass, args) => {
    const block = new Block(structSizes.MAHadamardDequantizeKvArgs);
    const { k: ofK, v: ofV } = args;
    packQuantizedStreams(block, ofK.packed, ofK.norms, ofK.vectors, ofV.packed, ofV.norms, ofV.vectors);
    packHadamardRun(block, args.cache, args.bits, args.nTokens, args.outDtype, args.packing);
    return native.ma_hadamard_dequantize_kv(pass, block.bytes);
  },
};

export type CallName = keyof typeof hadamardCalls;
export const allCalls = Object.keys(hadamardCalls) as CallName[];
