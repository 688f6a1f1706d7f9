import { checkLength, checkObject, refused } from "../../checks.ts";
import { Pass } from "../../device/pass.ts";
import { Tensor, type TensorRange } from "../../device/tensor.ts";
import { Block } from "../../ffi/block.ts";
import { packMAClassifyMaskTilesArgs, structSizes } from "../../ffi/generated/structs.ts";
import { checkStatus } from "../../ffi/status.ts";
import { OptionNames } from "../../optionNames.ts";
import { attentionTiles } from "../attention/attentionTiles.ts";
import { checkI32 } from "../shapes.ts";
import type { MaskDType } from "./buildMask.ts";
import { TileClasses } from "./tileClasses.ts";

/** Arguments of {@link classifyMaskTiles}. */
export interface ClassifyMaskTilesArgs {
  /**
   * [qL, kL] or [B, H, qL, kL], where B or H may be 1 to be shared: bf16 or f16
   * (0 attends, -infinity blocks) or bool (true attends).
   */
  readonly mask: Tensor<MaskDType>;
  /** Head size of the attention that will read the classes; it decides the tiles. */
  readonly headDim: number;
  /** Classes of an earlier mask of the same shape and tiles, whose memory is written again. */
  readonly reuse?: TileClasses | undefined;
}

const argNames = new OptionNames<ClassifyMaskTilesArgs>("classifyMaskTiles", {
  mask: true,
  headDim: true,
  reuse: true,
});

const block = new Block(structSizes.MAClassifyMaskTilesArgs);

/**
 * Finds which tiles of a mask block every key of every query, and which mask
 * nothing. {@link flashAttnPrefill} skips the former and does not read the mask
 * of the latter: the same result, sooner. Give it the classes in the same pass
 * or in one that is committed later; they are bound to the mask's memory as it
 * is then. Once an operation, a kernel or `set()` writes to it they are stale,
 * and attention refuses them, or `commit()` where the write came after the call.
 * (Writes through a view are not seen.)
 *
 * Errors: `invalid-argument` for a mask of another rank, or `reuse` of another
 * shape or head size; `unsupported` for a mask of another dtype or a head size
 * without a kernel; `out-of-memory`.
 *
 * @example
 * using mask = device.tensor("bool", [qL, kL]);
 * buildSlidingWindowMask(pass, { mask, window: 256 });
 * using tileClasses = classifyMaskTiles(pass, { mask, headDim: 128 });
 * flashAttnPrefill(pass, { q, k, v, out, mask, tileClasses });
 */
export function classifyMaskTiles(pass: Pass, args: ClassifyMaskTilesArgs): TileClasses {
  const { native, handle, device } = Pass.use(pass);
  argNames.check(checkObject(args, "args"));
  const mask = Tensor.use(args.mask, device, "mask");
  const headDim = checkLength(args.headDim, "headDim");
  const given = args.reuse;
  const reuse = given === undefined ? undefined : TileClasses.use(given, device, "reuse");

  const { shape } = mask;
  const rank = shape.length;
  if (rank !== 2 && rank !== 4) throw refused("mask", `expected shape [qL, kL] or [B, H, qL, kL], got [${shape}]`);
  const [batches, heads] = rank === 2 ? [1, 1] : (shape as readonly [number, number]);
  const qL = checkI32(shape[rank - 2] as number, "mask", "qL");
  const kL = checkI32(shape[rank - 1] as number, "mask", "kL");
  checkI32(batches, "mask", "B");
  checkI32(heads, "mask", "H");
  const { queryTile, keyTile } = attentionTiles(headDim);
  const [NQ, NK] = [Math.ceil(qL / queryTile), Math.ceil(kL / keyTile)];
  const reused = reuse === undefined ? undefined : TileClasses.rangeFor(reuse, mask, headDim, "reuse");
  if (qL === 0 || kL === 0 || batches === 0 || heads === 0) throw refused("mask", `[${shape}] has no elements`);
  const tensor = reuse === undefined ? pass.device.tensor("u8", [...shape.slice(0, -2), NQ, NK]) : reuse.tensor;
  const range = reused ?? Tensor.use(tensor, device, "tileClasses");
  const M_strides = [batches === 1 ? 0 : heads * qL * kL, heads === 1 ? 0 : qL * kL, kL];
  packMAClassifyMaskTilesArgs(block, 0, {
    mask,
    tileClasses: range,
    params: { B: batches, H: heads, qL, kL, M_strides },
    headDim,
  });
  try {
    checkStatus(native, native.ma_classify_mask_tiles(handle, block.address));
  } catch (error) {
    if (reuse === undefined) tensor.dispose();
    throw error;
  }
  return reuse ?? new TileClasses(tensor, range, mask as TensorRange, queryTile, keyTile);
}
