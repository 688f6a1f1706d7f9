import { structSizes } from "./layout.ts";
import { type LayoutSample, layoutSamples } from "./layoutSamples.ts";
import type { Native } from "./library.ts";
import { type LayoutStruct, type Leaf, leaves, nativeLayouts, readLeaf } from "./nativeLayout.ts";
import { recordSizes } from "./records.ts";
import { abiVersion } from "./symbols.ts";

/** What a comparison of layouts found. */
export interface LayoutCheck {
  /** Structs that were compared. */
  readonly structs: number;
  readonly abiVersion: number;
  /** Each in words; none where both sides agree. */
  readonly faults: readonly string[];
}

/**
 * Compares the structs as they are packed here with the layouts that the
 * compiled library measured of them: version, sizes, and a value of its own in
 * each field, read back by the library.
 */
export function checkLayouts(native: Native): LayoutCheck {
  const { abiVersion: found, structs } = nativeLayouts(native);
  const faults: string[] = [];
  if (found !== abiVersion) faults.push(`the library has ABI version ${found}, the package ${abiVersion}`);
  const sizes = Object.entries({ ...structSizes, ...recordSizes });
  for (const [name, size] of sizes) {
    const struct = structs.get(name);
    if (struct === undefined) faults.push(`the library has no struct ${name}`);
    else if (struct.size !== size)
      faults.push(`${name} has ${struct.size} bytes in the library, ${size} in the package`);
  }
  for (const sample of layoutSamples()) faults.push(...sampleFaults(native, structs, sample));
  return { structs: sizes.length, abiVersion: found, faults };
}

/** What the library reads in a sample other than what was packed, or finds beside it. */
export function sampleFaults(
  native: Native,
  structs: ReadonlyMap<string, LayoutStruct>,
  { struct: name, bytes, fields }: LayoutSample,
): string[] {
  const struct = structs.get(name);
  if (struct === undefined || struct.size !== bytes.length) return [`${name} cannot be compared field by field`];
  const all = leaves(structs, struct).filter(({ path }) => !/reserved|_pad/.test(path));
  const faults = all.flatMap((leaf) => leafFaults(native, bytes, name, leaf, fields[leaf.path]));
  const known = new Set(all.map(({ path }) => path));
  for (const path of Object.keys(fields)) if (!known.has(path)) faults.push(`the library has no field ${name}.${path}`);
  const covered = new Uint8Array(bytes.length);
  for (const { offset, size } of all) covered.fill(1, offset, offset + size);
  if (bytes.some((byte, i) => byte !== 0 && covered[i] === 0)) faults.push(`${name} has a value where no field is`);
  return faults;
}

function leafFaults(native: Native, bytes: Uint8Array, name: string, leaf: Leaf, value: number | undefined): string[] {
  if (value === undefined) return [`the package does not pack ${name}.${leaf.path}`];
  const { integer, real } = readLeaf(native, bytes, leaf);
  const read = isFloat(leaf) ? real : Number(integer);
  return read === value ? [] : [`${name}.${leaf.path} was packed as ${value}, the library reads ${read}`];
}

/** Whether a scalar is a float. */
export function isFloat({ field }: Leaf): boolean {
  return /f32|f64|float|double/i.test(field.type);
}
