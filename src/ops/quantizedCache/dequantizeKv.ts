import { checkLength, checkObject, checkOptionalU32 } from "../../checks.ts";
import type { PassLifetime } from "../../device/lifetime.ts";
import { Pass } from "../../device/pass.ts";
import { Block } from "../../ffi/block.ts";
import { packMAHadamardDequantizeKvArgs, structSizes } from "../../ffi/generated/structs.ts";
import { checkStatus } from "../../ffi/status.ts";
import { OptionNames } from "../../optionNames.ts";
import { checkAxis, fromEnd } from "../shapes.ts";
import {
  cacheParams,
  type DequantizeStreams,
  dequantizeStreamNames,
  type QuantizedCacheArgs,
  quantizedNames,
  useQuantizedCall,
  vectorsArgument,
} from "./quantizedStreams.ts";

/**
 * Arguments of {@link dequantizeKv}. Each `packed` is u8 [nKvHeads, capacity, bytesPerRow], each `norms` f32
 * [nKvHeads, capacity, normsPerPos], each `out` [nKvHeads, nTokens, headDim] in f32, f16 or bf16, or all with a
 * batch axis before these.
 */
export type DequantizeKvArgs = DequantizeStreams &
  QuantizedCacheArgs & {
    /** Position of the first token read, before wrapping; 0 unless given. */
    readonly readPosStart?: number | undefined;
    /** Tokens to read, at most capacity: what `out` has, unless given; no other number fits. */
    readonly nTokens?: number | undefined;
  };

const argNames = new OptionNames<DequantizeKvArgs>("dequantizeKv", {
  out: true,
  readPosStart: true,
  nTokens: true,
  ...quantizedNames,
});

const result = vectorsArgument("out", ["nKvHeads", "nTokens", "headDim"], dequantizeStreamNames);
const block = new Block(structSizes.MAHadamardDequantizeKvArgs);

/**
 * Reads a run of tokens of all heads out of a Hadamard-quantized cache, with
 * `k` and `v` both in one dispatch: the inverse of {@link hadamardQuantizeKv},
 * centroids for coordinates. Computed in f32; f16 and bf16 round to nearest even.
 * Reading no token does nothing.
 *
 * Errors: `unsupported` for a width, packing, head size or dtype that no kernel
 * serves, with those that are, and for results of two dtypes; `overflow` when
 * nTokens exceeds the capacity, a linear cache ends before readPosStart + nTokens,
 * or that sum leaves 32 bits (wrap it first); `invalid-argument` when shapes
 * disagree, tensors overlap or the capacity is 0.
 *
 * @example
 * using out = device.tensor("bf16", [nKvHeads, 100, headDim]);
 * dequantizeKv(pass, { packed, norms, out, bits: 4, readPosStart: 28 }); // positions 28 to 127
 */
export function dequantizeKv(pass: Pass, args: DequantizeKvArgs): void {
  Pass.encode(pass, args, encode);
}

function encode({ native, handle, device }: PassLifetime, args: DequantizeKvArgs): void {
  argNames.check(checkObject(args, "args"));
  const position = checkOptionalU32(args.readPosStart, 0, "readPosStart");
  const givenTokens = args.nTokens;
  const call = useQuantizedCall(args, device, result);
  const { k, v, dual } = call;
  const nTokens = fromEnd(k.vectors, 2);
  const out = dual ? "k.out" : "out";
  // No parameter: the axis of `out` is this number.
  if (givenTokens !== undefined) {
    checkAxis(out, "nTokens", nTokens, checkLength(givenTokens, "nTokens"), "the argument nTokens");
  }

  packMAHadamardDequantizeKvArgs(block, 0, {
    packedK: k.packed,
    normsK: k.norms,
    outK: k.vectors,
    packedV: v?.packed,
    normsV: v?.norms,
    outV: v?.vectors,
    params: {
      ...cacheParams(call),
      read_pos_start: position,
      codebook_bits: call.k.format.bits,
      n_tokens: nTokens,
    },
    packing: call.k.format.packingCode,
    batch: call.batch,
  });
  checkStatus(native, native.ma_hadamard_dequantize_kv(handle, block.address));
}
