import { loadLibrary } from "../../src/ffi/library.ts";
import { type LayoutStruct, nativeLayouts } from "../../src/ffi/nativeLayout.ts";
import { type Leaf, leaves, readLeaf } from "./leaves.ts";

const native = loadLibrary();
/** The layouts that the compiled library measured. */
export const layouts = nativeLayouts(native);

/** The library's layout of a struct. */
export function struct(name: string): LayoutStruct {
  const found = layouts.structs.get(name);
  if (found === undefined) throw new Error(`the library has no layout of ${name}`);
  return found;
}

/**
 * What the library reads in the bytes of a struct other than `expected`, the
 * value of each scalar by its path, or finds beside it; each in words.
 */
export function packedFaults(
  name: string,
  bytes: Uint8Array,
  expected: Readonly<Record<string, number>>,
): readonly string[] {
  const layout = struct(name);
  if (bytes.length !== layout.size) return [`${name} has ${layout.size} bytes, not ${bytes.length}`];
  const all = leaves(layouts.structs, layout).filter(({ path }) => !/reserved|_pad/.test(path));
  const paths = new Set(all.map(({ path }) => path));
  const unknown = Object.keys(expected).filter((path) => !paths.has(path));
  const covered = new Uint8Array(bytes.length);
  for (const { offset, size } of all) covered.fill(1, offset, offset + size);
  return [
    ...unknown.map((path) => `the library has no field ${name}.${path}`),
    ...all.flatMap((leaf) => leafFaults(name, bytes, leaf, expected[leaf.path])),
    ...(bytes.some((byte, i) => byte !== 0 && covered[i] === 0) ? [`${name} has a value where no field is`] : []),
  ];
}

function leafFaults(name: string, bytes: Uint8Array, leaf: Leaf, value: number | undefined): readonly string[] {
  if (value === undefined) return [`the sample has no ${name}.${leaf.path}`];
  const { integer, real } = readLeaf(native, bytes, leaf);
  const read = isFloat(leaf) ? real : integer;
  const packed = isFloat(leaf) ? value : BigInt(value);
  return read === packed ? [] : [`${name}.${leaf.path} was packed as ${packed}, the library reads ${read}`];
}

/** Whether a scalar is a float. */
export function isFloat({ field }: Leaf): boolean {
  return field.type === "f32" || field.type === "f64";
}

/** Stores a scalar by the library's layout. */
export function write(view: DataView, leaf: Leaf, value: number): void {
  if (isFloat(leaf))
    leaf.size === 4 ? view.setFloat32(leaf.offset, value, true) : view.setFloat64(leaf.offset, value, true);
  else if (leaf.size === 1) view.setUint8(leaf.offset, value);
  else if (leaf.size === 4) view.setUint32(leaf.offset, value, true);
  else view.setBigInt64(leaf.offset, BigInt(value), true);
}
