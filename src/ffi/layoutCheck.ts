import { layouts } from "./generated/layouts.ts";
import { abiVersion } from "./generated/symbols.ts";
import type { Native } from "./library.ts";
import { type LayoutStruct, nativeLayouts } from "./nativeLayout.ts";

/** What a comparison of layouts found. */
export interface LayoutCheck {
  /** Structs that were compared. */
  readonly structs: number;
  readonly abiVersion: number;
  /** Each in words; none where both sides agree. */
  readonly faults: readonly string[];
}

/** Compares version, sizes and the place of each field as this package has them with what the compiled library measured. */
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
