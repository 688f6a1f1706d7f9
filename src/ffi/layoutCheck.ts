import { layouts } from "./generated/layouts.ts";
import { abiVersion } from "./generated/symbols.ts";
import type { Native } from "./library.ts";
import { type LayoutStruct, nativeLayouts } from "./nativeLayout.ts";

/** The result of comparing layouts. */
interface LayoutCheck {
  /** Structs that were compared. */
  readonly structs: number;
  readonly abiVersion: number;
  /** A description of each difference. */
  readonly faults: readonly string[];
}

/** Compares ABI version, struct sizes and field offsets of this package with those that the compiled library measured. */
export function checkLayouts(native: Native): LayoutCheck {
  const { abiVersion: found, structs } = nativeLayouts(native);
  const faults = layoutFaults(structs);
  if (found !== abiVersion) faults.unshift(`the library has ABI version ${found}, the package ${abiVersion}`);
  return { structs: Object.keys(layouts).length, abiVersion: found, faults };
}

/** Where the structs of a library differ from those of this package. */
export function layoutFaults(structs: ReadonlyMap<string, LayoutStruct>): string[] {
  return Object.entries(layouts).flatMap(([name, layout]) => {
    const struct = structs.get(name);
    if (struct === undefined) return [`the library has no struct ${name}`];
    const found = [struct.size, ...struct.fields.map((field) => `${field.name}:${field.offset}`)].join(" ");
    return found === layout ? [] : [`${name} is "${found}" in the library, "${layout}" in the package`];
  });
}
