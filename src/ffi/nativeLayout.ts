import type { Native } from "./library.ts";
import { checkStatus } from "./status.ts";
import { readText } from "./text.ts";

/** A field as the compiled library sees it; `type` is a scalar's name or another struct's. */
export interface LayoutField {
  readonly name: string;
  readonly offset: number;
  readonly size: number;
  readonly type: string;
  readonly count: number;
}

/** A struct as the compiled library sees it. */
export interface LayoutStruct {
  readonly name: string;
  readonly size: number;
  readonly alignment: number;
  readonly fields: readonly LayoutField[];
}

/** The layouts that the compiled library measured, by struct. */
export function nativeLayouts(native: Native): { abiVersion: number; structs: Map<string, LayoutStruct> } {
  const json = readText((buffer, capacity, needed) =>
    checkStatus(native, native.ma_layout_json(buffer, capacity, needed)),
  );
  const parsed = JSON.parse(json) as { abiVersion: number; structs: LayoutStruct[] };
  return { abiVersion: parsed.abiVersion, structs: new Map(parsed.structs.map((struct) => [struct.name, struct])) };
}
