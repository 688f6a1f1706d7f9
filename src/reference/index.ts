/** Oracles: what each operation computes, evaluated in float64 and written for reading. */
export * from "./attention.ts";
export * from "./error.ts";
export * from "./kv-cache-copy.ts";
export * from "./masks.ts";
export * from "./rounding.ts";
