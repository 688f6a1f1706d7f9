import { checkObject, refused } from "../checks.ts";
import type { MetalAttentionError } from "../errors.ts";
import type { Native } from "../ffi/library.ts";
import { nativeError } from "../ffi/status.ts";
import type { Tensor } from "../tensor.ts";

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

/** Whether K and V were given. Refuses them beside a single stream, and one without the other. */
export function isDual(
  k: CopyStream | undefined,
  v: CopyStream | undefined,
  src: Tensor | undefined,
  cache: Tensor | undefined,
): boolean {
  if (k === undefined && v === undefined) return false;
  if (src !== undefined || cache !== undefined) {
    throw refused("src", "expected either src and cache, or k and v, got both");
  }
  checkObject(k as CopyStream, "k");
  checkObject(v as CopyStream, "v");
  return true;
}

/** The library's error, with the tensors named as the caller wrote them. */
export function streamError(native: Native, status: number, dual: boolean): MetalAttentionError {
  return nativeError(native, status, (message) =>
    message.replace(/\b(src|cache)([KV])\b/g, (_, tensor: string, stream: string) =>
      dual ? `${stream.toLowerCase()}.${tensor}` : tensor,
    ),
  );
}
