import { Block } from "../../src/ffi/block.ts";
import type { Native } from "../../src/ffi/library.ts";
import type { LayoutField, LayoutStruct } from "../../src/ffi/nativeLayout.ts";
import { checkStatus } from "../../src/ffi/status.ts";
import { encodeText } from "../../src/ffi/text.ts";

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
