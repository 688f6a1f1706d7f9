import { MetalAttentionError } from "../errors.ts";

/** @internal The error of a call that the state of the cache is in the way of. */
export function invalidState(reason: string): MetalAttentionError {
  return new MetalAttentionError("invalid-state", `cache: ${reason}`, { argument: "cache" });
}
