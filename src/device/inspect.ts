import { decodeValues } from "./convert.ts";
import type { DType, DTypeViews } from "./dtypes.ts";

/** The method that `console.log` and `Bun.inspect` call for the text of an object. */
export const inspectSymbol: unique symbol = Symbol.for("nodejs.util.inspect.custom");

const shownValues = 6;

/** The first values of a tensor's view, and how many there are in all. */
export function previewOf<T extends DType>(dtype: T, view: DTypeViews[T]): string {
  const first = decodeValues(dtype, view.subarray(0, shownValues) as DTypeViews[T]);
  const isFloat = dtype === "f32" || dtype === "f16" || dtype === "bf16";
  const texts = Array.from(first, (value, i) => {
    if (dtype === "bool") return String(value !== 0);
    // As floats, integers would be rounded; floats show the digits that a float has.
    return isFloat ? String(Number(value.toPrecision(7))) : String(view[i]);
  });
  if (view.length > shownValues) texts.push(`... ${view.length} values`);
  return `[${texts.join(", ")}]`;
}

const units = ["bytes", "KiB", "MiB", "GiB", "TiB"] as const;

/** A number of bytes in the largest unit that is not more, to a tenth. */
export function byteText(bytes: number): string {
  let unit = 0;
  let value = bytes;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${Number(value.toFixed(1))} ${units[unit]}`;
}
