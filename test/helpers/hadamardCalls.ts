import { Block } from "../../src/ffi/block.ts";
import { packingCodes } from "../../src/ffi/generated/codes.ts";
import {
  type MATensor,
  packMAHadamardDequantizeKvArgs,
  packMAHadamardQuantizeKvArgs,
  packMAHadamardQuantizeKvSeqArgs,
  structSizes,
} from "../../src/ffi/generated/structs.ts";
import { loadLibrary } from "../../src/ffi/library.ts";

/** Head vectors and the quantized cache that they go to or come from. */
export interface StreamRecords {
  readonly vectors: MATensor;
  readonly packed: MATensor;
  readonly norms: MATensor;
}

/** A cache, and the first position of a call in it. */
export interface CacheExtents {
  readonly headDim: number;
  readonly nKvHeads: number;
  readonly position: number;
  readonly capacity: number;
  readonly isSliding: number;
  readonly scaleFactorD512: number;
}

/** What the argument structs hold; a call packs what its own has. */
export interface CallArgs {
  readonly k: StreamRecords;
  readonly v: Partial<StreamRecords>;
  readonly rmsScratch: MATensor | undefined;
  readonly rmsCoordinates: number;
  readonly cache: CacheExtents;
  readonly batch: number;
  readonly bits: number;
  readonly packing: number;
  /** Of V, where it has a format of its own; 0 unless given. */
  readonly bitsV?: number;
  readonly packingV?: number;
  readonly nTokens: number;
  readonly srcTokOffset: number;
  readonly nSrcTokens: number;
}

const native = loadLibrary();

/** Packs the arguments of a call, makes it on `pass`, and gives its status. `poke` changes the bytes before. */
export type Send = (pass: number, args: CallArgs, poke?: (block: Block) => void) => number;

/** The tensors of K and V under their names in the C structs, but for the vectors. */
const stored = ({ k, v }: CallArgs) => ({
  packedK: k.packed,
  normsK: k.norms,
  packedV: v.packed,
  normsV: v.norms,
});

/** The parameters that all calls have. */
const common = ({ cache }: CallArgs) => ({
  head_dim: cache.headDim,
  num_kv_heads: cache.nKvHeads,
  cache_capacity: cache.capacity,
  is_sliding: cache.isSliding,
  scale_factor_d512: cache.scaleFactorD512,
});

/** The three calls of the C ABI: one token, a run of tokens, decoding. */
export const hadamardCalls: Readonly<Record<"token" | "tokens" | "decode", Send>> = {
  token: (pass, args, poke) => {
    const { k, v, rmsScratch, rmsCoordinates, bits, packing, batch } = args;
    const block = new Block(structSizes.MAHadamardQuantizeKvArgs);
    const params = { ...common(args), write_pos: args.cache.position };
    const isNibble = packing === packingCodes.nibble;
    packMAHadamardQuantizeKvArgs(block, 0, {
      ...{ ...stored(args), srcK: k.vectors, srcV: v.vectors, rmsScratch, rmsCoordinates, packing, batch },
      params: isNibble ? params : undefined,
      hbParams: isNibble ? undefined : { ...params, codebook_bits: bits },
    });
    poke?.(block);
    return native.ma_hadamard_quantize_kv(pass, block.bytes);
  },
  tokens: (pass, args, poke) => {
    const { k, v, packing, batch, packingV = 0, bitsV = 0 } = args;
    const block = new Block(structSizes.MAHadamardQuantizeKvSeqArgs);
    const params = {
      ...common(args),
      write_pos_start: args.cache.position,
      codebook_bits: args.bits,
      n_tokens: args.nTokens,
      src_tok_offset: args.srcTokOffset,
      n_src_tokens: args.nSrcTokens,
      positions_per_batch: 0,
      page_tokens: 0,
      n_pages: 0,
      has_positions: 0,
      ...{ rotaryDim: 0, ropeOffset: 0, attentionScale: 0 },
    };
    const tensors = { ...stored(args), srcK: k.vectors, srcV: v.vectors, positions: undefined, blockTable: undefined };
    const still = { pairing: 0, invFreq: 0, invFreqCount: 0 };
    packMAHadamardQuantizeKvSeqArgs(block, 0, { ...tensors, params, packing, packingV, bitsV, batch, ...still });
    poke?.(block);
    return native.ma_hadamard_quantize_kv_seq(pass, block.bytes);
  },
  decode: (pass, args, poke) => {
    const { k, v, packing, batch } = args;
    const block = new Block(structSizes.MAHadamardDequantizeKvArgs);
    const params = {
      ...common(args),
      read_pos_start: args.cache.position,
      codebook_bits: args.bits,
      n_tokens: args.nTokens,
    };
    const tensors = { ...stored(args), outK: k.vectors, outV: v.vectors };
    packMAHadamardDequantizeKvArgs(block, 0, { ...tensors, params, packing, batch });
    poke?.(block);
    return native.ma_hadamard_dequantize_kv(pass, block.bytes);
  },
};

export type CallName = keyof typeof hadamardCalls;
export const allCalls = Object.keys(hadamardCalls) as CallName[];
