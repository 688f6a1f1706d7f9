import { checkObject, checkOptionalU32, checkU32 } from "../../checks.ts";
import { Pass } from "../../device/pass.ts";
import { Block } from "../../ffi/block.ts";
import { packMAHadamardQuantizeKvSeqArgs, structSizes } from "../../ffi/generated/structs.ts";
import { checkStatus } from "../../ffi/status.ts";
import { OptionNames } from "../../optionNames.ts";
import { checkTokens, fromEnd } from "../shapes.ts";
import {
  cacheParams,
  encodedTensors,
  type QuantizedCacheArgs,
  type QuantizeStreams,
  quantizedNames,
  quantizeStreamNames,
  useQuantizedCall,
  vectorsArgument,
} from "./quantizedStreams.ts";

/**
 * Arguments of {@link hadamardQuantizeKvSeq}. Each `src` is f32 [nSrcTokens, nKvHeads, headDim],
 * each `packed` u8 [nKvHeads, capacity, bytesPerRow], each `norms` f32 [nKvHeads, capacity, normsPerPos], or all
 * with a batch axis before these.
 */
export type HadamardQuantizeKvSeqArgs = QuantizeStreams &
  QuantizedCacheArgs & {
    /** Position of the first token written, before wrapping. */
    readonly writePosStart: number;
    /** Tokens to write, at most capacity: all from srcTokOffset on unless given. */
    readonly nTokens?: number;
    /** First token read from the source; 0 unless given. */
    readonly srcTokOffset?: number;
  };

const argNames = new OptionNames<HadamardQuantizeKvSeqArgs>("hadamardQuantizeKvSeq", {
  src: true,
  writePosStart: true,
  nTokens: true,
  srcTokOffset: true,
  ...quantizedNames,
});

const source = vectorsArgument("src", ["nSrcTokens", "nKvHeads", "headDim"], quantizeStreamNames);
const block = new Block(structSizes.MAHadamardQuantizeKvSeqArgs);

/**
 * Writes a run of tokens of all heads into a Hadamard-quantized cache in one
 * dispatch, with `k` and `v` both in it: the prefill step. The bytes are those
 * of {@link hadamardQuantizeKv} called for each token, whose formats and method these are.
 *
 * A prompt longer than a ring keeps its last `capacity` tokens: pass
 * srcTokOffset = writePosStart = nSrcTokens - capacity and nTokens = capacity.
 * Writing no token does nothing.
 *
 * Errors: `unsupported` for a width, packing, head size or dtype that no kernel
 * serves, with those that are; `overflow` when nTokens exceeds the capacity, a
 * linear cache ends before writePosStart + nTokens, or that sum leaves 32 bits
 * (wrap it first); `buffer-too-small` when the source ends before srcTokOffset +
 * nTokens; `invalid-argument` when shapes disagree or tensors overlap. (The
 * probe `rmsScratch` is of one token: {@link hadamardQuantizeKv}.)
 *
 * @example
 * const { bytesPerRow, normsPerPos } = kvCacheBytes({ headDim, nKvHeads, capacity, bits: 4 });
 * const cache = () => ({
 *   packed: device.tensor("u8", [nKvHeads, capacity, bytesPerRow]),
 *   norms: device.tensor("f32", [nKvHeads, capacity, normsPerPos]),
 * });
 * const [cacheK, cacheV] = [cache(), cache()];
 * hadamardQuantizeKvSeq(pass, {
 *   k: { src: promptK, ...cacheK },
 *   v: { src: promptV, ...cacheV },
 *   bits: 4,
 *   writePosStart: 0,
 * });
 */
export function hadamardQuantizeKvSeq(pass: Pass, args: HadamardQuantizeKvSeqArgs): void {
  const { native, handle, device } = Pass.use(pass);
  argNames.check(checkObject(args, "args"));
  const position = checkU32(args.writePosStart, "writePosStart");
  const srcTokOffset = checkOptionalU32(args.srcTokOffset, 0, "srcTokOffset");
  const givenTokens = args.nTokens;
  const call = useQuantizedCall(args, device, source);
  const nSrcTokens = fromEnd(call.k.vectors, 3);
  const nTokens = checkTokens(givenTokens, nSrcTokens, srcTokOffset);

  packMAHadamardQuantizeKvSeqArgs(block, 0, {
    ...encodedTensors(call),
    params: {
      ...cacheParams(call),
      write_pos_start: position,
      codebook_bits: call.format.bits,
      n_tokens: nTokens,
      src_tok_offset: srcTokOffset,
      n_src_tokens: nSrcTokens,
    },
    packing: call.format.packingCode,
    batch: call.batch,
  });
  checkStatus(native, native.ma_hadamard_quantize_kv_seq(handle, block.address));
}
