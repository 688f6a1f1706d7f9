import { Block } from "./block.ts";
import type { Native } from "./library.ts";
import { checkStatus } from "./status.ts";
import { encodeText, readText } from "./text.ts";

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

/** A scalar inside a struct, nested structs and arrays resolved: `params.Q_strides[2]`. */
export interface Leaf {
  readonly path: string;
  /** Bytes from the start of the outermost struct. */
  readonly offset: number;
  /** Bytes of one element. */
  readonly size: number;
  /** The innermost struct, its place, and the field to read there. */
  readonly owner: LayoutStruct;
  readonly ownerOffset: number;
  readonly field: LayoutField;
  readonly element: number;
}

/** The layouts that the compiled library measured, by struct. */
export function nativeLayouts(native: Native): { abiVersion: number; structs: Map<string, LayoutStruct> } {
  const json = readText((buffer, capacity, needed) =>
    checkStatus(native, native.ma_layout_json(buffer, capacity, needed)),
  );
  const parsed = JSON.parse(json) as { abiVersion: number; structs: LayoutStruct[] };
  return { abiVersion: parsed.abiVersion, structs: new Map(parsed.structs.map((struct) => [struct.name, struct])) };
}

/** Every scalar of `struct`. */
export function leaves(
  structs: ReadonlyMap<string, LayoutStruct>,
  struct: LayoutStruct,
  base = 0,
  prefix = "",
): Leaf[] {
  return struct.fields.flatMap((field) => {
    const nested = structs.get(field.type);
    const size = field.size / field.count;
    return Array.from({ length: field.count }, (_, element) => {
      const path = `${prefix}${field.name}${field.count > 1 ? `[${element}]` : ""}`;
      const offset = base + field.offset + element * size;
      if (nested !== undefined) return leaves(structs, nested, offset, `${path}.`);
      return [{ path, offset, size, owner: struct, ownerOffset: base, field, element }];
    }).flat();
  });
}

/** Reads a scalar through the library, as the compiled code sees it. */
export function readLeaf(native: Native, bytes: Uint8Array, leaf: Leaf): { integer: bigint; real: number } {
  const struct = encodeText(leaf.owner.name);
  const field = encodeText(leaf.field.name);
  const owner = new Block(leaf.owner.size);
  owner.bytes.set(bytes.subarray(leaf.ownerOffset, leaf.ownerOffset + leaf.owner.size));
  const integer = new Block(8);
  const real = new Block(8);
  checkStatus(
    native,
    native.ma_layout_read(
      struct.block.bytes,
      field.block.bytes,
      leaf.element,
      owner.bytes,
      BigInt(leaf.owner.size),
      integer.bytes,
      real.bytes,
    ),
  );
  return { integer: new BigInt64Array(integer.buffer)[0] ?? 0n, real: real.f64[0] ?? 0 };
}
