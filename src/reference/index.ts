/** Oracles: what each operation computes, evaluated in float64 and written for reading. */

export * from "./applyRope.ts";
export * from "./codebooks.ts";
export * from "./error.ts";
export * from "./exp.ts";
export * from "./flashAttnDecode.ts";
export * from "./flashAttnPrefill.ts";
export * from "./hadamard.ts";
export * from "./hadamardQuantizeKv.ts";
export * from "./kvCacheAppend.ts";
export * from "./kvCacheCopy.ts";
export * from "./log.ts";
export * from "./masks.ts";
export * from "./mergeAttention.ts";
export * from "./quantizedCodes.ts";
export * from "./rounding.ts";
