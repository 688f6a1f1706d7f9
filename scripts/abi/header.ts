/** A field of a C struct, with its place in the struct's bytes. */
export interface Field {
  readonly name: string;
  /** The C type: of an element, or of what a pointer leads to. */
  readonly type: string;
  readonly pointer: boolean;
  /** Array length; 1 for a scalar. */
  readonly count: number;
  readonly comment: string;
  /** Bytes from the start of the struct, and bytes of one element. */
  readonly offset: number;
  readonly size: number;
}

/** A C struct as the platforms served lay it out: natural alignment, 64-bit pointers. */
export interface Struct {
  readonly name: string;
  readonly comment: string;
  readonly fields: readonly Field[];
  readonly size: number;
  readonly alignment: number;
}

/** An enumeration, named by what its enumerators have in common: `MA_DTYPE`. */
export interface Enum {
  readonly prefix: string;
  readonly comment: string;
  readonly values: readonly { readonly name: string; readonly value: number; readonly comment: string }[];
}

/** A parameter such as `const char *name`. */
export interface Parameter {
  readonly name: string;
  readonly type: string;
  /** How many `*` stand before the name. */
  readonly pointers: number;
  readonly isConst: boolean;
}

/** A function; all of them return `int32_t`. */
export interface CFunction {
  readonly name: string;
  readonly comment: string;
  readonly parameters: readonly Parameter[];
}

/** What the C headers declare. */
export interface Header {
  readonly version: number;
  readonly structs: readonly Struct[];
  readonly enums: readonly Enum[];
  readonly functions: readonly CFunction[];
}

/** Bytes of the C types in use. */
const sizes: Record<string, number> = {
  char: 1,
  uint8_t: 1,
  uint32_t: 4,
  ma_u32: 4,
  ma_i32: 4,
  ma_f32: 4,
  uint64_t: 8,
  ma_i64: 8,
  double: 8,
};

/** Reads `typedef struct`, `enum`, `typedef` of handles and functions, the subset that the two headers are written in. */
export function parseHeaders(texts: readonly string[]): Header {
  const text = texts.join("\n");
  const handles = [...text.matchAll(/^typedef uint32_t (ma_(?!u32)\w+);/gm)].map(([, name]) => name as string);
  const structs = new Map<string, Struct>();
  for (const [, comment, body, name] of text.matchAll(/((?:^\/\/\/.*\n)*)^typedef struct \w+ \{\n([^}]*)\} (\w+);/gm)) {
    structs.set(name as string, layOut(name as string, sentence(comment), body as string, structs, handles));
  }
  const version = Number(/#define MA_ABI_VERSION (\d+)/.exec(text)?.[1]);
  const enums = [...text.matchAll(/((?:^\/\/\/.*\n)*)^enum \{([^}]*)\};/gm)].map(([, comment, body]) =>
    parseEnum(sentence(comment), body as string),
  );
  const functions = [...text.matchAll(/((?:^\/\/\/.*\n)*)^int32_t (ma_\w+)\(([^)]*)\);/gm)].map(
    ([, comment, name, list]) => ({
      name: name as string,
      comment: sentence(comment),
      parameters: parseParameters(list as string, handles),
    }),
  );
  return { version, structs: [...structs.values()], enums, functions };
}

function layOut(
  name: string,
  comment: string,
  body: string,
  structs: ReadonlyMap<string, Struct>,
  handles: readonly string[],
): Struct {
  const fields: Field[] = [];
  let end = 0;
  let alignment = 1;
  for (const line of body.split("\n")) {
    const match = /^ {2}(?:const )?(\w+) (\*?)(\w+)(?:\[(\d+)\])?; *(?:\/\/\/< (.*))?$/.exec(line);
    if (match === null) {
      if (line.trim() !== "") throw new Error(`${name}: cannot read the field "${line}"`);
      continue;
    }
    const [, given = "", star, field = "", count = "1", note = ""] = match;
    const type = handles.includes(given) ? "uint32_t" : given;
    const nested = structs.get(type);
    const size = star === "*" ? 8 : (nested?.size ?? sizes[type]);
    if (size === undefined) throw new Error(`${name}.${field}: unknown type ${type}`);
    const align = star === "*" ? 8 : (nested?.alignment ?? size);
    const offset = Math.ceil(end / align) * align;
    fields.push({ name: field, type, pointer: star === "*", count: Number(count), comment: note, offset, size });
    end = offset + size * Number(count);
    alignment = Math.max(alignment, align);
  }
  return { name, comment, fields, size: Math.ceil(end / alignment) * alignment, alignment };
}

function parseEnum(comment: string, body: string): Enum {
  const values = [...body.matchAll(/(MA_\w+) = (-?\d+),?(?: *\/\/\/< (.*))?/g)].map(([, name, value, note]) => ({
    name: name as string,
    value: Number(value),
    comment: note ?? "",
  }));
  const prefix = values.at(-1)?.name.split("_").slice(0, 2).join("_") ?? "";
  return { prefix, comment, values };
}

function parseParameters(list: string, handles: readonly string[]): Parameter[] {
  const parameters = list.replace(/\s+/g, " ").trim();
  if (parameters === "void") return [];
  return parameters.split(", ").map((parameter) => {
    const match = /^(const )?(\w+) (\**)(\w+)$/.exec(parameter);
    if (match === null) throw new Error(`cannot read the parameter "${parameter}"`);
    const [, isConst, type = "", stars = "", name = ""] = match;
    return {
      name,
      type: handles.includes(type) ? "uint32_t" : type,
      pointers: stars.length,
      isConst: isConst !== undefined,
    };
  });
}

/** The text of a `///` comment. */
function sentence(comment: string | undefined): string {
  return (comment ?? "").replace(/^\/\/\/ ?/gm, "").trim();
}

/** Whether the library fills the field where the caller gives 0. */
export function isDerived(field: Field): boolean {
  return field.comment.startsWith("derived:");
}

/** Whether nobody gives or reads the field. */
export function isReserved(field: Field): boolean {
  return field.name === "reserved" || field.name === "_pad";
}
