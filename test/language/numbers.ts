import { bfloat, bitsOf, half } from "./formats.ts";
import type { Element, Values } from "./harness.ts";

/** Every type of number that vectors are made of. */
export const numberTypes: readonly Element[] = [
  "char",
  "uchar",
  "short",
  "ushort",
  "int",
  "uint",
  "long",
  "ulong",
  "half",
  "bfloat",
  "float",
];

/** Small integers as a buffer of `type` holds them. */
export function encoded(type: Element, values: readonly number[]): Values {
  if (type === "half" || type === "bfloat") return values.map((x) => bitsOf(type === "half" ? half : bfloat, x));
  return type === "long" || type === "ulong" ? values.map(BigInt) : values;
}
