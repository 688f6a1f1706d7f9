/** Reader and writer of the safetensors format: a JSON header, then raw little-endian tensors. */
export type { Safetensors, SafetensorsDType, SafetensorsTensor } from "./format.ts";
export { decodeSafetensors, readSafetensors } from "./read.ts";
export { floatValues } from "./values.ts";
export { encodeSafetensors, type SafetensorsContent, writeSafetensors } from "./write.ts";
