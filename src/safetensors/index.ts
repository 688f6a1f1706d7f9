/** Reader and writer of the safetensors format: a JSON header, then raw little-endian tensors. */
export type {
  Safetensors,
  SafetensorsDType,
  SafetensorsHeader,
  SafetensorsPlace,
  SafetensorsTensor,
} from "./format.ts";
export { decodeSafetensors, readSafetensors, readSafetensorsHeader } from "./read.ts";
export { floatValues } from "./values.ts";
export { encodeSafetensors, type SafetensorsContent, writeSafetensors } from "./write.ts";
