import { checkObject, checkU32, refused } from "../../checks.ts";
import type { DeviceLifetime, PassLifetime } from "../../device/lifetime.ts";
import { Pass } from "../../device/pass.ts";
import { Tensor, type TensorRange } from "../../device/tensor.ts";
import { Block } from "../../ffi/block.ts";
import { packMAHadamardQuantizeKvArgs, structSizes } from "../../ffi/generated/structs.ts";
import { checkStatus } from "../../ffi/status.ts";
import { OptionNames } from "../../optionNames.ts";
import { fromEnd } from "../shapes.ts";
import { normsPerPosition } from "./quantizedFormat.ts";
import {
  cacheParams,
  encodedTensors,
  type QuantizedCacheArgs,
  type QuantizedCall,
  type QuantizeStreams,
  quantizedNames,
  quantizeStreamNames,
  useQuantizedCall,
  vectorsArgument,
} from "./quantizedStreams.ts";

/**
 * Arguments of {@link hadamardQuantizeKv}. Each `src` is f32, f16 or bf16 [nKvHeads, headDim],
 * each `packed` u8 [nKvHeads, capacity, bytesPerRow], each `norms` f32 [nKvHeads, capacity, normsPerPos], or all
 * with a batch axis before these.
 */
export type HadamardQuantizeKvArgs = QuantizeStreams &
  QuantizedCacheArgs & {
    /** Position to write, before wrapping. */
    readonly writePos: number;
    /**
     * Gets scaled coordinates, for one stream of 4 bits: f32 [nKvHeads, headDim] all of them,
     * [nKvHeads, normsPerPos, 16] the first 16 of each norm; with a batch before it where `src` has one.
     */
    readonly rmsScratch?: Tensor<"f32"> | undefined;
  };

const argNames = new OptionNames<HadamardQuantizeKvArgs>("hadamardQuantizeKv", {
  src: true,
  writePos: true,
  rmsScratch: true,
  ...quantizedNames,
});

const source = vectorsArgument("src", ["nKvHeads", "headDim"], quantizeStreamNames);
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
 * serves, with those that are, for sources of two dtypes, and for `rmsScratch`
 * beside K and V or with another width than 4; `overflow` when a linear cache ends
 * before writePos; `invalid-argument` when shapes disagree, tensors overlap or the capacity is 0.
 *
 * @example
 * const { bytesPerRow, normsPerPos } = kvCacheBytes({ headDim: 128, nKvHeads: 8, capacity: 4096, bits: 4 });
 * using packed = device.tensor("u8", [8, 4096, bytesPerRow]);
 * using norms = device.tensor("f32", [8, 4096, normsPerPos]);
 * hadamardQuantizeKv(pass, { src: newK, packed, norms, bits: 4, writePos: 17 });
 */
export function hadamardQuantizeKv(pass: Pass, args: HadamardQuantizeKvArgs): void {
  Pass.encode(pass, args, encode);
}

function encode({ native, handle, device }: PassLifetime, args: HadamardQuantizeKvArgs): void {
  argNames.check(checkObject(args, "args"));
  const write_pos = checkU32(args.writePos, "writePos");
  const givenScratch = args.rmsScratch;
  const call = useQuantizedCall(args, device, source);
  const rmsScratch = givenScratch === undefined ? undefined : useScratch(givenScratch, device, call);

  const isNibble = call.k.format.packing === "nibble";
  const params = { ...cacheParams(call), write_pos };
  packMAHadamardQuantizeKvArgs(block, 0, {
    ...encodedTensors(call),
    rmsScratch,
    params: isNibble ? params : undefined,
    hbParams: isNibble ? undefined : { ...params, codebook_bits: call.k.format.bits },
    packing: call.k.format.packingCode,
    batch: call.batch,
    rmsCoordinates: rmsScratch !== undefined && fromEnd(rmsScratch, 1) !== call.headDim ? probeCoordinates : 0,
  });
  checkStatus(native, native.ma_hadamard_quantize_kv(handle, block.address));
}

/** Coordinates of each norm that the reference's form of the scratch tensor holds. */
const probeCoordinates = 16;

/** The scratch tensor, in one of its two forms. */
function useScratch(value: unknown, device: DeviceLifetime, { batch, nKvHeads, headDim }: QuantizedCall): TensorRange {
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
