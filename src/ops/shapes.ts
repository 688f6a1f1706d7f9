import { checkObject, refused } from "../checks.ts";
import type { DeviceLifetime } from "../lifetime.ts";
import { Tensor, type TensorRange } from "../tensor.ts";

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

/** A source and the cache it goes to. */
export interface CopyStream {
  /** What is copied. */
  readonly src: Tensor;
  /** Where it goes. */
  readonly cache: Tensor;
}

/** One stream, or K and V with the same shapes and dtypes in one dispatch. */
export type CopyStreams =
  | { readonly src: Tensor; readonly cache: Tensor; readonly k?: undefined; readonly v?: undefined }
  | { readonly k: CopyStream; readonly v: CopyStream; readonly src?: undefined; readonly cache?: undefined };

/** Refuses arguments that name both a single stream and K or V, or K without V. */
export function isDual(args: CopyStreams): boolean {
  const { k, v, src, cache } = args;
  if (k === undefined && v === undefined) return false;
  if (src !== undefined || cache !== undefined) {
    throw refused("src", "expected either src and cache, or k and v, got both");
  }
  checkObject(k as CopyStream, "k");
  checkObject(v as CopyStream, "v");
  return true;
}

/** Tokens from `srcTokOffset` to the end of the source. */
export function defaultTokens(nSrcTokens: number, srcTokOffset: number): number {
  if (srcTokOffset > nSrcTokens) {
    throw refused(
      "srcTokOffset",
      `${srcTokOffset} is beyond the ${nSrcTokens} tokens of the source`,
      "buffer-too-small",
    );
  }
  return nSrcTokens - srcTokOffset;
}
