import { checkU32, refused } from "../checks.ts";
import type { DeviceLifetime } from "../device/lifetime.ts";
import { Tensor, type TensorRange } from "../device/tensor.ts";

/** The tensor `value`, refused unless it has the axes that `axes` names, for example `[nHeads, capacity, headDim]`. */
export function useTensor(
  value: unknown,
  device: DeviceLifetime,
  argument: string,
  rank: number,
  axes: string,
): TensorRange {
  const range = Tensor.use(value, device, argument);
  if (range.shape.length !== rank) throw refused(argument, `expected shape ${axes}, got [${range.shape}]`);
  return range;
}

/** Refuses `argument` when its `axis` differs from what another tensor gives. */
export function checkAxis(argument: string, axis: string, got: number, expected: number, where: string): void {
  if (got !== expected) throw refused(argument, `${axis} is ${got}, but ${expected} in ${where}`);
}

/** The argument `nTokens`; unless given, the tokens from `srcTokOffset` to the end of the source. */
export function checkTokens(nTokens: unknown, nSrcTokens: number, srcTokOffset: number): number {
  if (nTokens !== undefined) return checkU32(nTokens, "nTokens");
  if (srcTokOffset > nSrcTokens) {
    throw refused(
      "srcTokOffset",
      `${srcTokOffset} is beyond the ${nSrcTokens} tokens of the source`,
      "buffer-too-small",
    );
  }
  return nSrcTokens - srcTokOffset;
}

/** Refuses `value` where it leaves the signed 32 bits of the kernels' parameters. */
export function checkI32(value: number, argument: string, what: string): number {
  if (value > 0x7fff_ffff) throw refused(argument, `${what} ${value} exceeds ${0x7fff_ffff}`, "overflow");
  return value;
}
