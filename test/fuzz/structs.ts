import type { Native } from "../../src/ffi/library.ts";
import { type LayoutStruct, nativeLayouts } from "../../src/ffi/nativeLayout.ts";
import { type Leaf, leaves } from "../helpers/leaves.ts";
import type { Random } from "./random.ts";

/** Values of a struct's scalars by path; all others are 0. */
export type Fields = Readonly<Record<string, number | bigint>>;

/** A struct of the C ABI with its scalars, as the library's own layout lists them. */
export class StructShape {
  readonly name: string;
  readonly size: number;
  readonly #leaves: readonly Leaf[];
  readonly #byPath: ReadonlyMap<string, Leaf>;

  constructor(structs: ReadonlyMap<string, LayoutStruct>, struct: LayoutStruct) {
    this.name = struct.name;
    this.size = struct.size;
    this.#leaves = leaves(structs, struct);
    this.#byPath = new Map(this.#leaves.map((leaf) => [leaf.path, leaf]));
  }

  get paths(): readonly string[] {
    return this.#leaves.map(({ path }) => path);
  }

  isPointer(path: string): boolean {
    return this.#byPath.get(path)?.field.type === "pointer";
  }

  /** Bytes of the struct with `fields` set. */
  pack(fields: Fields): Uint8Array<ArrayBuffer> {
    const bytes = new Uint8Array(this.size);
    const view = new DataView(bytes.buffer);
    for (const path in fields) {
      const leaf = this.#byPath.get(path);
      if (leaf === undefined) throw new Error(`${this.name} has no ${path}`);
      store(view, leaf, fields[path] ?? 0);
    }
    return bytes;
  }

  /** Sets one to three scalars to anything; pointers stay as they are. */
  mutate(bytes: Uint8Array<ArrayBuffer>, random: Random): void {
    const view = new DataView(bytes.buffer);
    for (let count = random.between(1, 3); count > 0; count--) {
      const leaf = random.maybe(this.#leaves);
      if (leaf === undefined || leaf.field.type === "pointer") continue;
      // Bits, so that a float may become infinite or not a number.
      if (leaf.size === 8) view.setBigUint64(leaf.offset, random.u64(), true);
      else if (leaf.size === 4) view.setUint32(leaf.offset, random.u32(), true);
      else view.setUint8(leaf.offset, random.u32());
    }
  }

  /** Fills all bytes at random, but for pointers, which stay as they are. */
  scramble(bytes: Uint8Array<ArrayBuffer>, random: Random): void {
    for (const { offset, size, field } of this.#leaves) {
      if (field.type === "pointer") continue;
      for (let i = offset; i < offset + size; i++) bytes[i] = random.below(256);
    }
  }
}

/** The shapes of every struct that the library describes. */
export function structShapes(native: Native): ReadonlyMap<string, StructShape> {
  const { structs } = nativeLayouts(native);
  return new Map([...structs].map(([name, struct]) => [name, new StructShape(structs, struct)]));
}

function store(view: DataView, { offset, size, field }: Leaf, value: number | bigint): void {
  if (field.type === "f32") view.setFloat32(offset, Number(value), true);
  else if (field.type === "f64") view.setFloat64(offset, Number(value), true);
  else if (size === 8) view.setBigUint64(offset, BigInt.asUintN(64, BigInt(value)), true);
  else if (size === 4) view.setUint32(offset, Number(value), true);
  else view.setUint8(offset, Number(value));
}
