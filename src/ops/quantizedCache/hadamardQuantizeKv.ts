import { checkFlag, checkObject, checkU32 } from "../../checks.ts";
import { Pass } from "../../device/pass.ts";
import type { Tensor } from "../../device/tensor.ts";
import { Block } from "../../ffi/block.ts";
import { packHadamardQuantizeKv, packQuantizedStreams } from "../../ffi/hadamardLayout.ts";
import { structSizes } from "../../ffi/layout.ts";
import { checkAxis, useTensor } from "../shapes.ts";
import { type QuantizedFormatArgs, useFormat } from "./quantizedFormat.ts";
import {
  checkScaleFactor,
  type QuantizeStreams,
  quantizedError,
  useStreams,
  type VectorsArgument,
} from "./quantizedStreams.ts";

/**
 * Arguments of {@link hadamardQuantizeKv}. Each `src` is f32 [nKvHeads, headDim],
 * each `packed` u8 [nKvHeads, capacity, bytesPerRow], each `norms` f32 [nKvHeads, capacity, normsPerPos].
 */
export type HadamardQuantizeKvArgs = QuantizeStreams &
  QuantizedFormatArgs & {
    /** Position to write, before wrapping. */
    readonly writePos: number;
    /** True for a ring: slot = position mod capacity. False (the default) for a linear cache: slot = position. */
    readonly isSliding?: boolean;
    /** Factor of the coordinates of head sizes above 256, finite and above 0; 1 unless given. Smaller ones ignore it. */
    readonly scaleFactorD512?: number;
    /** f32 [nKvHeads, headDim] that gets the scaled coordinates: for one stream of 4 bits. */
    readonly rmsScratch?: Tensor;
  };

const source: VectorsArgument = { name: "src", axes: ["nKvHeads", "headDim"], headAxis: 0 };
const block = new Block(structSizes.MAHadamardQuantizeKvArgs);

/**
 * Writes one token of all heads into a Hadamard-quantised cache: the decode
 * step. With `k` and `v` both go in one dispatch.
 *
 * A head vector x is rotated by a Hadamard transform with random signs, so that
 * its coordinates y look normal whatever outliers x has: of order D = headDim,
 * or for the sizes that are no power of two of the largest that divides it.
 * Each coordinate is stored as the nearest centroid of the Lloyd-Max quantiser
 * of N(0, 1) (Max 1960, "Quantizing for minimum distortion"; Lloyd 1982):
 * - D up to 256: norm = |y|, codes of y sqrt(D) / norm
 * - above: for each 256 coordinates the root of their mean square as norm, codes of y scaleFactorD512 / norm
 *
 * A norm of at most 1e-10 is stored as 0, and the vector reads as zeros. A
 * vector with a NaN or an infinity is stored as codes 0 with norm NaN, and reads
 * as NaN; so is one of length 1e19 and more, whose squares leave f32.
 *
 * Errors: `unsupported` for a width, packing, head size or dtype that no kernel
 * serves, with those that are, and for `rmsScratch` beside K and V or with
 * another width than 4; `overflow` when a linear cache ends before writePos;
 * `invalid-argument` when shapes disagree, tensors overlap or the capacity is 0.
 *
 * @example
 * const { bytesPerRow, normsPerPos } = kvCacheBytes({ headDim: 128, nKvHeads: 8, capacity: 4096, bits: 4 });
 * using packed = device.tensor("u8", [8, 4096, bytesPerRow]);
 * using norms = device.tensor("f32", [8, 4096, normsPerPos]);
 * hadamardQuantizeKv(pass, { src: newK, packed, norms, bits: 4, writePos: 17 });
 */
export function hadamardQuantizeKv(pass: Pass, args: HadamardQuantizeKvArgs): void {
  const { native, handle, device } = Pass.use(pass);
  checkObject(args, "args");
  const format = useFormat(args.bits, args.packing);
  const position = checkU32(args.writePos, "writePos");
  const isSliding = checkFlag(args.isSliding, "isSliding");
  const scaleFactorD512 = checkScaleFactor(args.scaleFactorD512);
  const givenScratch = args.rmsScratch;
  const { k, v, dual, nKvHeads, headDim, capacity } = useStreams(args, device, format, source);
  const rmsScratch =
    givenScratch === undefined ? undefined : useTensor(givenScratch, device, "rmsScratch", 2, "[nKvHeads, headDim]");
  if (rmsScratch !== undefined) {
    checkAxis("rmsScratch", "nKvHeads", rmsScratch.shape[0] as number, nKvHeads, dual ? "k.src" : "src");
    checkAxis("rmsScratch", "headDim", rmsScratch.shape[1] as number, headDim, dual ? "k.src" : "src");
  }

  packQuantizedStreams(block, k.vectors, k.packed, k.norms, v?.vectors, v?.packed, v?.norms);
  const cache = { headDim, nKvHeads, position, capacity, isSliding, scaleFactorD512 };
  packHadamardQuantizeKv(block, rmsScratch, cache, format.bits, format.packingCode);
  const status = native.ma_hadamard_quantize_kv(handle, block.address);
  if (status !== 0) throw quantizedError(native, status, dual);
}
