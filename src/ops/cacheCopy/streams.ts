import { checkObject, refused } from "../../checks.ts";
import type { Tensor } from "../../device/tensor.ts";
import type { MetalAttentionError } from "../../errors.ts";
import type { Native } from "../../ffi/library.ts";
import { nativeError } from "../../ffi/status.ts";

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

/**
 * Whether K and V were given. Refuses them beside a single stream, whose first
 * argument is `argument` and all of them `single`, and one without the other.
 */
export function isDual(
  k: object | undefined,
  v: object | undefined,
  hasSingle: boolean,
  argument: string,
  single: string,
): boolean {
  if (k === undefined && v === undefined) return false;
  if (hasSingle) throw refused(argument, `expected either ${single}, or k and v, got both`);
  checkObject(k as object, "k");
  checkObject(v as object, "v");
  return true;
}

/** The library's error about a copy, with the tensors named as the caller wrote them. */
export function copyError(native: Native, status: number, dual: boolean): MetalAttentionError {
  const first = dual ? "k." : "";
  return nativeError(native, status, (message) =>
    message
      // The capacity comes from the shape of a cache.
      .replace(/^(ma_\w+: )(?=(?:capacity|cacheCap) is )/, `$1${first}cache: `)
      .replace(/\b(src|cache)K\b/g, `${first}$1`)
      .replace(/\b(src|cache)V\b/g, "v.$1"),
  );
}
