import { checkObject, checkOptionalU32, checkWindow, refused } from "../../checks.ts";
import type { DeviceLifetime, PassLifetime } from "../../device/lifetime.ts";
import { Pass } from "../../device/pass.ts";
import type { Tensor, TensorRange } from "../../device/tensor.ts";
import { Block } from "../../ffi/block.ts";
import { packMABuildMaskArgs, structSizes } from "../../ffi/generated/structs.ts";
import type { Native } from "../../ffi/library.ts";
import { checkStatus } from "../../ffi/status.ts";
import { OptionNames } from "../../optionNames.ts";
import { checkI32, useTensor } from "../shapes.ts";

/** Element types of a mask. */
export type MaskDType = "bf16" | "f16" | "bool";

/** Arguments of {@link buildCausalMask}. */
export interface BuildCausalMaskArgs {
  /** Written: [qL, kL], bf16 or f16 (0 attends, -infinity blocks) or bool (true attends). */
  readonly mask: Tensor<MaskDType>;
  /** Position of query 0 among the keys; 0 unless given. */
  readonly qOffsetInK?: number | undefined;
}

/** Arguments of {@link buildSlidingWindowMask}. */
export interface BuildSlidingWindowMaskArgs extends BuildCausalMaskArgs {
  /** Keys that a query attends, itself and those before it: at least 1. */
  readonly window: number;
}

const causalNames = new OptionNames<BuildCausalMaskArgs>("buildCausalMask", { mask: true, qOffsetInK: true });
const windowNames = new OptionNames<BuildSlidingWindowMaskArgs>("buildSlidingWindowMask", {
  mask: true,
  qOffsetInK: true,
  window: true,
});

const block = new Block(structSizes.MABuildMaskArgs);

/**
 * Writes a causal mask: query i attends keys j <= i + qOffsetInK.
 * ({@link flashAttnPrefill} does the same without a mask by `causal: true`.)
 *
 * Errors: `invalid-argument` for a mask that is not [qL, kL]; `unsupported`
 * for another dtype; `overflow` where qOffsetInK + qL exceeds 2147483647.
 *
 * @example
 * using mask = device.tensor("f16", [qL, kL]);
 * buildCausalMask(pass, { mask });
 */
export function buildCausalMask(pass: Pass, args: BuildCausalMaskArgs): void {
  Pass.encode(pass, args, encodeCausal);
}

function encodeCausal({ native, handle, device }: PassLifetime, args: BuildCausalMaskArgs): void {
  causalNames.check(checkObject(args, "args"));
  const mask = useMask(args.mask, device);
  const qOffsetInK = checkI32(checkOptionalU32(args.qOffsetInK, 0, "qOffsetInK"), "qOffsetInK", "the offset");
  encode(native, handle, mask, qOffsetInK, 0);
}

/**
 * Writes a sliding-window mask: query i at position p = i + qOffsetInK attends
 * keys p - window < j <= p.
 *
 * Errors: as {@link buildCausalMask}, and `invalid-argument` for a window of 0.
 *
 * @example
 * using mask = device.tensor("bool", [qL, kL]);
 * buildSlidingWindowMask(pass, { mask, window: 256 });
 */
export function buildSlidingWindowMask(pass: Pass, args: BuildSlidingWindowMaskArgs): void {
  Pass.encode(pass, args, encodeSlidingWindow);
}

function encodeSlidingWindow({ native, handle, device }: PassLifetime, args: BuildSlidingWindowMaskArgs): void {
  windowNames.check(checkObject(args, "args"));
  const mask = useMask(args.mask, device);
  const qOffsetInK = checkI32(checkOptionalU32(args.qOffsetInK, 0, "qOffsetInK"), "qOffsetInK", "the offset");
  const window = checkI32(checkWindow(args.window), "window", "the window");
  encode(native, handle, mask, qOffsetInK, window);
}

function useMask(value: unknown, device: DeviceLifetime): TensorRange {
  const mask = useTensor(value, device, "mask", 2, "[qL, kL]");
  const [qL, kL] = mask.shape as readonly [number, number];
  if (qL === 0 || kL === 0) throw refused("mask", `[${mask.shape}] has no elements`);
  checkI32(qL, "mask", "qL");
  checkI32(kL, "mask", "kL");
  return mask;
}

function encode(native: Native, pass: number, mask: TensorRange, qOffsetInK: number, window: number): void {
  const [qL, kL] = mask.shape as readonly [number, number];
  packMABuildMaskArgs(block, 0, { mask, params: { qL, kL, qL_off: qOffsetInK, window } });
  checkStatus(native, native.ma_build_mask(pass, block.address));
}
