import { expect } from "bun:test";
import { isFloat } from "../../src/ffi/layoutCheck.ts";
import { loadLibrary } from "../../src/ffi/library.ts";
import { type LayoutStruct, type Leaf, leaves, nativeLayouts, readLeaf } from "../../src/ffi/nativeLayout.ts";

const native = loadLibrary();
/** The layouts that the compiled library measured. */
export const layouts = nativeLayouts(native);

/** The library's layout of a struct. */
export function struct(name: string): LayoutStruct {
  const found = layouts.structs.get(name);
  if (found === undefined) throw new Error(`the library has no layout of ${name}`);
  return found;
}

/** Reads every scalar through the library, and every byte by the offsets that it gives. */
export function expectFields(name: string, bytes: Uint8Array, expected: Readonly<Record<string, number>>): void {
  const layout = struct(name);
  const all = leaves(layouts.structs, layout).filter(({ path }) => !/reserved|_pad/.test(path));
  expect(all.map(({ path }) => path).sort()).toEqual(Object.keys(expected).sort());
  expect(bytes.length).toBe(layout.size);

  const rebuilt = new DataView(new ArrayBuffer(layout.size));
  for (const leaf of all) {
    const value = expected[leaf.path] as number;
    const { integer, real } = readLeaf(native, bytes, leaf);
    if (isFloat(leaf)) expect([leaf.path, real]).toEqual([leaf.path, value]);
    else expect([leaf.path, integer]).toEqual([leaf.path, BigInt(value)]);
    write(rebuilt, leaf, value);
  }
  // What no field covers is zero.
  expect(bytes).toEqual(new Uint8Array(rebuilt.buffer));
}

/** Stores a scalar by the library's layout. */
export function write(view: DataView, leaf: Leaf, value: number): void {
  if (isFloat(leaf))
    leaf.size === 4 ? view.setFloat32(leaf.offset, value, true) : view.setFloat64(leaf.offset, value, true);
  else if (leaf.size === 1) view.setUint8(leaf.offset, value);
  else if (leaf.size === 4) view.setUint32(leaf.offset, value, true);
  else view.setBigInt64(leaf.offset, BigInt(value), true);
}
