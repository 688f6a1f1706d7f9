import { checkObject, display, refused } from "../checks.ts";
import { maxArrayBuffer } from "../device/lifetime.ts";
import { didYouMean, unknownName } from "../optionNames.ts";
import { type ScalarType, scalarTraits, type TypeTraits, types, type VectorType } from "./types.ts";

/** The type of a field: a scalar, a vector, a struct, or an array `[type, length]` of any of them. */
export type FieldType = ScalarType | VectorType | Struct | readonly [type: FieldType, length: number];

/** Fields by name, in the order of the shader's struct. */
export type FieldTypes = Readonly<Record<string, FieldType>>;

/** What a field of a type takes. Vectors and arrays take an array or a typed array; 64-bit integers a bigint too. */
export type FieldValue<F> =
  F extends Struct<infer Fields>
    ? StructValues<Fields>
    : F extends "bool"
      ? boolean
      : F extends "u64" | "i64"
        ? number | bigint
        : F extends ScalarType
          ? number
          : F extends `bool${number}`
            ? ArrayLike<boolean>
            : F extends `${"" | "packed_"}${"ulong" | "long"}${number}`
              ? ArrayLike<number | bigint>
              : F extends VectorType
                ? ArrayLike<number>
                : F extends readonly [infer Element, number]
                  ? ArrayLike<FieldValue<Element>>
                  : never;

/** A value for each field. */
export type StructValues<Fields extends FieldTypes> = { readonly [Name in keyof Fields]: FieldValue<Fields[Name]> };

/** A struct of a shader: where its fields lie, and how values are packed for it. Made by {@link struct}. */
export interface Struct<Fields extends FieldTypes = FieldTypes> {
  readonly fields: Fields;
  /** Bytes, with the padding at the end: the shader's `sizeof`. */
  readonly size: number;
  /** Bytes: the shader's `alignof`. */
  readonly alignment: number;
  /** Bytes from the start to each field. */
  readonly offsets: { readonly [Name in keyof Fields]: number };
  /**
   * The bytes of a struct with these values, padding zero, or of an array of them.
   *
   * Errors: `invalid-argument` for a field that is missing or unknown, a value
   * that its type cannot hold, and more than 4 GiB; `argument` is its path.
   */
  pack(values: StructValues<Fields> | readonly StructValues<Fields>[]): Uint8Array<ArrayBuffer>;
}

/** A type as it lies in memory, and how a value of it is stored. */
interface Placed {
  readonly size: number;
  readonly alignment: number;
  store(view: DataView, offset: number, value: unknown, path: string): void;
}

/** The structs that this module made, or a former evaluation of it. */
const placedKey: unique symbol = Symbol.for("metal-attention.struct");

/**
 * A struct of a shader, for `bytes` of a dispatch: sizes and offsets follow
 * Metal's rules of alignment.
 *
 * Errors: `invalid-argument` for a type that is not known, no fields, or more than 4 GiB.
 *
 * @example
 * // struct Params { uint n; float scale; float3 origin; half weights[4]; };
 * const params = struct({ n: "u32", scale: "f32", origin: "float3", weights: ["f16", 4] });
 * const bytes = params.pack({ n: 4, scale: 0.5, origin: [0, 0, 1], weights: [1, 2, 3, 4] });
 * pass.dispatch(kernel, { buffers: { 0: x }, bytes: { 1: bytes }, grid: 4, threads: 4 });
 */
export function struct<const Fields extends FieldTypes>(fields: Fields): Struct<Fields> {
  const entries = Object.entries(checkObject(fields, "fields"));
  if (entries.length === 0) throw refused("fields", "a struct has at least one field");
  const names = entries.map(([name]) => name);
  const numeric = names.find((name) => /^\d/.test(name));
  // JavaScript would put it before all others.
  if (numeric !== undefined) throw refused(`fields.${numeric}`, "a field's name does not begin with a digit");
  let end = 0;
  let alignment = 1;
  const placed = entries.map(([name, type]) => {
    const field = place(type, `fields.${name}`);
    const offset = roundUp(end, field.alignment);
    end = checkSize(offset + field.size, `fields.${name}`);
    alignment = Math.max(alignment, field.alignment);
    return { name, field, offset };
  });
  const size = roundUp(end, alignment);

  const whole: Placed = {
    size,
    alignment,
    store(view, at, value, path) {
      const values = checkObject(value as Readonly<Record<string, unknown>>, path === "" ? "values" : path);
      const prefix = path === "" ? "" : `${path}.`;
      const unknown = Object.keys(values).find((name) => !names.includes(name));
      if (unknown !== undefined) throw refused(`${prefix}${unknown}`, unknownName("the struct", unknown, names));
      for (const { name, field, offset } of placed) field.store(view, at + offset, values[name], `${prefix}${name}`);
    },
  };
  const made: Struct<Fields> = {
    fields: Object.freeze({ ...fields }),
    size,
    alignment,
    offsets: Object.fromEntries(placed.map(({ name, offset }) => [name, offset])) as Struct<Fields>["offsets"],
    pack(values) {
      const list: readonly unknown[] = Array.isArray(values) ? values : [values];
      const view = new DataView(new ArrayBuffer(checkSize(size * list.length, "values")));
      for (const [i, each] of list.entries()) {
        whole.store(view, i * size, each, Array.isArray(values) ? `values[${i}]` : "");
      }
      return new Uint8Array(view.buffer);
    },
  };
  return Object.freeze(Object.defineProperty(made, placedKey, { value: whole }));
}

function place(type: unknown, path: string): Placed {
  if (typeof type === "string") {
    const traits = types.get(type);
    if (traits !== undefined) return traits.components === 1 ? placeScalar(traits) : placeVector(traits);
    const known = [...types.keys()];
    throw refused(path, `no type ${display(type)}${didYouMean(type, known)}; there are ${known.join(", ")}`);
  }
  if (Array.isArray(type)) {
    const [element, length] = type as readonly unknown[];
    if (type.length !== 2 || !Number.isInteger(length) || (length as number) < 1) {
      throw refused(path, "an array is [type, length], with a length of at least 1");
    }
    const placed = place(element, `${path}[0]`);
    checkSize(placed.size * (length as number), path);
    return placeArray(placed, length as number);
  }
  const inner = typeof type === "object" && type !== null ? (type as { [placedKey]?: Placed })[placedKey] : undefined;
  if (inner !== undefined) return inner;
  throw refused(path, `expected the name of a type, a struct or [type, length], got ${display(type)}`);
}

/** Returns `bytes` when a buffer can hold as many. */
function checkSize(bytes: number, path: string): number {
  if (bytes <= maxArrayBuffer) return bytes;
  throw refused(path, `ends at ${bytes} bytes, and an ArrayBuffer holds ${maxArrayBuffer}`);
}

function placeScalar({ size, alignment, scalar }: TypeTraits): Placed {
  const { fits, store, expected } = scalarTraits[scalar];
  return {
    size,
    alignment,
    store(view, offset, value, path) {
      if (!fits(value)) throw refused(path, `expected ${expected}, got ${display(value)}`);
      store(view, offset, value as number | bigint | boolean);
    },
  };
}

function placeVector({ size, alignment, scalar, components }: TypeTraits): Placed {
  const element = placeScalar({ ...scalarTraits[scalar], alignment: 1, scalar, components: 1 });
  return { size, alignment, store: storeEach(element, components) };
}

function placeArray(element: Placed, length: number): Placed {
  return { size: element.size * length, alignment: element.alignment, store: storeEach(element, length) };
}

/** Stores as many values as there are elements, each behind the other. */
function storeEach(element: Placed, count: number): Placed["store"] {
  return (view, offset, value, path) => {
    const isList = Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView));
    if (!isList) throw refused(path, `expected an array of ${count}, got ${display(value)}`);
    const list = value as unknown as ArrayLike<unknown>;
    if (list.length !== count) throw refused(path, `expected ${count} values, got ${list.length}`);
    for (let i = 0; i < count; i++) element.store(view, offset + i * element.size, list[i], `${path}[${i}]`);
  };
}

function roundUp(bytes: number, alignment: number): number {
  return Math.ceil(bytes / alignment) * alignment;
}
