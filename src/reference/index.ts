/** Oracles: what each operation computes, evaluated in float64 and written for reading. */
export * from "./attention.ts";
export * from "./codebooks.ts";
export * from "./error.ts";
export * from "./exp.ts";
export * from "./hadamard.ts";
export * from "./hadamard-quantize.ts";
export * from "./kv-cache-copy.ts";
export * from "./masks.ts";
export * from "./quantized-codes.ts";
export * from "./rounding.ts";
