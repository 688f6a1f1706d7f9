import { checkFlag, checkObject, checkOptionalU32 } from "../../checks.ts";
import { Pass } from "../../device/pass.ts";
import { Block } from "../../ffi/block.ts";
import { packHadamardRun, packQuantizedStreams } from "../../ffi/hadamardLayout.ts";
import { structSizes } from "../../ffi/layout.ts";
import { checkAxis } from "../shapes.ts";
import { type QuantizedFormatArgs, useFormat } from "./quantizedFormat.ts";
import {
  checkScaleFactor,
  type DequantizeStreams,
  quantizedError,
  useStreams,
  type VectorsArgument,
} from "./quantizedStreams.ts";

/**
 * Arguments of {@link dequantizeKv}. Each `packed` is u8 [nKvHeads, capacity, bytesPerRow], each `norms` f32
 * [nKvHeads, capacity, normsPerPos], each `out` [nKvHeads, nTokens, headDim] in f32, f16 or bf16.
 */
export type DequantizeKvArgs = DequantizeStreams &
  QuantizedFormatArgs & {
    /** Position of the first token read, before wrapping; 0 unless given. */
    readonly readPosStart?: number;
    /** Tokens to read, at most capacity: what `out` has, unless given; no other number fits. */
    readonly nTokens?: number;
    /** True for a ring: slot = position mod capacity. False (the default) for a linear cache: slot = position. */
    readonly isSliding?: boolean;
    /** That of the encoding, whose reciprocal is applied; 1 unless given. */
    readonly scaleFactorD512?: number;
  };

const result: VectorsArgument = { name: "out", axes: ["nKvHeads", "nTokens", "headDim"], headAxis: 0 };
const block = new Block(structSizes.MAHadamardDequantizeKvArgs);

/**
 * Reads a run of tokens of all heads out of a Hadamard-quantised cache, with
 * `k` and `v` both in one dispatch: the inverse of {@link hadamardQuantizeKv},
 * centroids for coordinates. Computed in f32; f16 and bf16 round to nearest even.
 * Reading no token does nothing.
 *
 * Errors: `unsupported` for a width, packing, head size or dtype that no kernel
 * serves, with those that are; `overflow` when nTokens exceeds the capacity, a
 * linear cache ends before readPosStart + nTokens, or that sum leaves 32 bits
 * (wrap it first); `invalid-argument` when shapes or the dtypes of both results
 * disagree, tensors overlap or the capacity is 0.
 *
 * @example
 * using out = device.tensor("bf16", [nKvHeads, 100, headDim]);
 * dequantizeKv(pass, { packed, norms, out, bits: 4, readPosStart: 28 }); // positions 28 to 127
 */
export function dequantizeKv(pass: Pass, args: DequantizeKvArgs): void {
  const { native, handle, device } = Pass.use(pass);
  checkObject(args, "args");
  const format = useFormat(args.bits, args.packing);
  const position = checkOptionalU32(args.readPosStart, 0, "readPosStart");
  const givenTokens = args.nTokens;
  const isSliding = checkFlag(args.isSliding, "isSliding");
  const scaleFactorD512 = checkScaleFactor(args.scaleFactorD512);
  const { k, v, dual, nKvHeads, headDim, capacity } = useStreams(args, device, format, result);
  const nTokens = k.vectors.shape[1] as number;
  const out = dual ? "k.out" : "out";
  checkAxis(out, "nTokens", nTokens, checkOptionalU32(givenTokens, nTokens, "nTokens"), "the argument nTokens");

  packQuantizedStreams(block, k.packed, k.norms, k.vectors, v?.packed, v?.norms, v?.vectors);
  const cache = { headDim, nKvHeads, position, capacity, isSliding, scaleFactorD512 };
  packHadamardRun(block, cache, format.bits, nTokens, k.vectors.dtype, format.packingCode);
  const status = native.ma_hadamard_dequantize_kv(handle, block.address);
  if (status !== 0) throw quantizedError(native, status, dual);
}
