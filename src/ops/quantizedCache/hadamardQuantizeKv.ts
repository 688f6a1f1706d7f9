import { checkFlag, checkObject, checkU32, refused } from "../../checks.ts";
import type { DeviceLifetime } from "../../device/lifetime.ts";
import { Pass } from "../../device/pass.ts";
import { Tensor, type TensorRange } from "../../device/tensor.ts";
import { Block } from "../../ffi/block.ts";
import { packMAHadamardQuantizeKvArgs, structSizes } from "../../ffi/generated/structs.ts";
import { checkStatus } from "../../ffi/status.ts";
import { OptionNames } from "../../optionNames.ts";
import { fromEnd } from "../shapes.ts";
import { normsPerPosition, type QuantizedFormatArgs, useFormat } from "./quantizedFormat.ts";
import {
  cacheParams,
  checkScaleFactor,
  encodedTensors,
  type QuantizeStreams,
  quantizedNames,
  quantizeStreamNames,
  type StreamsInUse,
  useStreams,
  type VectorsArgument,
} from "./quantizedStreams.ts";

/**
 * Arguments of {@link hadamardQuantizeKv}. Each `src` is f32 [nKvHeads, headDim],
 * each `packed` u8 [nKvHeads, capacity, bytesPerRow], each `norms` f32 [nKvHeads, capacity, normsPerPos], or all
 * with a batch axis before these.
 */
export type HadamardQuantizeKvArgs = QuantizeStreams &
  QuantizedFormatArgs & {
    /** Position to write, before wrapping. */
    readonly writePos: number;
    /** True for a ring: slot = position mod capacity. False (the default) for a linear cache: slot = position. */
    readonly isSliding?: boolean;
    /** Factor of the coordinates of head sizes above 256, finite and above 0; 1 unless given. Smaller ones ignore it. */
    readonly scaleFactorD512?: number;
    /**
     * Gets scaled coordinates, for one stream of 4 bits: f32 [nKvHeads, headDim] all of them,
     * [nKvHeads, normsPerPos, 16] the first 16 of each norm; with a batch before it where `src` has one.
     */
    readonly rmsScratch?: Tensor<"f32">;
  };

const argNames = new OptionNames<HadamardQuantizeKvArgs>("hadamardQuantizeKv", {
  src: true,
  writePos: true,
  rmsScratch: true,
  ...quantizedNames,
});

const source: VectorsArgument = {
  name: "src",
  axes: ["nKvHeads", "headDim"],
  headAxis: 2,
  names: quantizeStreamNames,
};
const block = new Block(structSizes.MAHadamardQuantizeKvArgs);

/**
 * Writes one token of all heads into a Hadamard-quantized cache: the decode
 * step. With `k` and `v` both go in one dispatch.
 *
 * A head vector x is rotated by a Hadamard transform with random signs, so that
 * its coordinates y look normal whatever outliers x has: of order D = headDim,
 * or for the sizes that are no power of two of the largest that divides it.
 * Each coordinate is stored as the nearest centroid of the Lloyd-Max quantizer
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
  argNames.check(checkObject(args, "args"));
  const format = useFormat(args.bits, args.packing);
  const write_pos = checkU32(args.writePos, "writePos");
  const isSliding = checkFlag(args.isSliding, "isSliding");
  const scaleFactorD512 = checkScaleFactor(args.scaleFactorD512);
  const givenScratch = args.rmsScratch;
  const streams = useStreams(args, device, format, source);
  const rmsScratch = givenScratch === undefined ? undefined : useScratch(givenScratch, device, streams);

  const isNibble = format.packing === "nibble";
  const params = { ...cacheParams(streams, isSliding, scaleFactorD512), write_pos };
  packMAHadamardQuantizeKvArgs(block, 0, {
    ...encodedTensors(streams),
    rmsScratch,
    params: isNibble ? params : undefined,
    hbParams: isNibble ? undefined : { ...params, codebook_bits: format.bits },
    packing: format.packingCode,
    batch: streams.batch,
    rmsCoordinates: rmsScratch !== undefined && fromEnd(rmsScratch, 1) !== streams.headDim ? probeCoordinates : 0,
  });
  checkStatus(native, native.ma_hadamard_quantize_kv(handle, block.address));
}

/** Coordinates of each norm that the reference's form of the scratch tensor holds. */
const probeCoordinates = 16;

/** The scratch tensor, in one of its two forms. */
function useScratch(value: unknown, device: DeviceLifetime, { batch, nKvHeads, headDim }: StreamsInUse): TensorRange {
  const scratch = Tensor.use(value, device, "rmsScratch");
  const forms = [
    [nKvHeads, headDim],
    [nKvHeads, normsPerPosition(headDim), probeCoordinates],
  ];
  const accepted = forms.flatMap((form) => (batch === 1 ? [form, [1, ...form]] : [[batch, ...form]]));
  if (!accepted.some((form) => `${form}` === `${scratch.shape}`)) {
    const expected = accepted.map((form) => `[${form.join(", ")}]`).join(" or ");
    throw refused("rmsScratch", `expected shape ${expected}, got [${scratch.shape.join(", ")}]`);
  }
  return scratch;
}
