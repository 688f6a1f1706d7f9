import type { FloatDType } from "../../device/dtypes.ts";
import type { DeviceLifetime } from "../../device/lifetime.ts";
import type { Tensor, TensorRange } from "../../device/tensor.ts";
import { OptionNames } from "../../optionNames.ts";
import { useBatched } from "../shapes.ts";
import type { OneOrBoth } from "../streams.ts";

/** Element types that the copies move. */
export type CopyDType = FloatDType;

/** A source and the cache it goes to. */
export interface CopyStream {
  /** What is copied. */
  readonly src: Tensor<CopyDType>;
  /** Where it goes. */
  readonly cache: Tensor<CopyDType>;
}

/** One stream, or K and V with the same shapes and dtypes in one dispatch. */
export type CopyStreams = OneOrBoth<CopyStream>;

/** @internal The names inside `k` and `v`. */
export const copyStreamNames = new OptionNames<CopyStream>("a stream", { src: true, cache: true });

/** @internal A head-major cache, [nHeads, capacity, headDim], or with a batch before it. */
export function useCache(value: unknown, device: DeviceLifetime, argument: string): TensorRange {
  return useBatched(value, device, argument, 3, "[nHeads, capacity, headDim]");
}
