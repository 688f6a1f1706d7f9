import { type Field, type Header, isDerived, isReserved, type Struct } from "./header.ts";

const halvedStructs = new Set(["MATensor", "MABinding"]);

/** Whether 64 bits are given in two halves, since a tensor keeps them so: `offsetLow`, `offsetHigh`. */
export function isHalved(struct: Struct, field: Field): boolean {
  return halvedStructs.has(struct.name) && field.size === 8 && !field.pointer;
}

const word = (offset: number) => (offset === 0 ? "at" : `at + ${offset / 4}`);

/** `src/ffi/generated/structs.ts`: sizes, records and the functions that pack and read them. */
export function structsModule(header: Header): string {
  const { packed, read } = directions(header);
  const sizes = header.structs.map(({ name, size }) => `${name}: ${size},`);
  return [
    'import type { Block } from "../block.ts";',
    `/** Bytes of each struct. */\nexport const structSizes = {\n${sizes.join("\n")}\n} as const;`,
    ...packed.flatMap((struct) => [record(struct), packer(struct)]),
    ...read.flatMap((struct) => [record(struct), reader(struct)]),
  ].join("\n\n");
}

/** `src/ffi/generated/layouts.ts`: each struct's size and the offsets of its fields, for comparison with the library. */
export function layoutsModule(header: Header): string {
  const lines = header.structs.map(({ name, size, fields }) => {
    const places = fields.map((field) => `${field.name}:${field.offset}`);
    return `${name}: "${[size, ...places].join(" ")}",`;
  });
  return `/** Bytes of each struct, then \`field:offset\` of each field. */\nexport const layouts = {\n${lines.join("\n")}\n} as const;`;
}

/** Structs that functions read, with those inside them; and those that functions write. */
export function directions(header: Header): { packed: Struct[]; read: Struct[] } {
  const named = (isConst: boolean) =>
    new Set(
      header.functions.flatMap(({ parameters }) =>
        parameters.filter((parameter) => parameter.isConst === isConst).map(({ type }) => type),
      ),
    );
  const inputs = named(true);
  for (const struct of header.structs.toReversed()) {
    if (inputs.has(struct.name)) for (const { type } of struct.fields) inputs.add(type);
  }
  const outputs = named(false);
  return {
    packed: header.structs.filter(({ name }) => inputs.has(name)),
    read: header.structs.filter(({ name }) => outputs.has(name)),
  };
}

/** Fields that a caller gives, by the names and types of the record. */
function members(struct: Struct): { name: string; type: string; comment: string }[] {
  return struct.fields
    .filter((field) => !isReserved(field) && !isDerived(field))
    .flatMap((field) => {
      if (isHalved(struct, field)) {
        return ["Low", "High"].map((half) => ({
          name: `${field.name}${half}`,
          type: "number",
          comment: field.comment,
        }));
      }
      return [{ name: field.name, type: memberType(field), comment: field.comment }];
    });
}

function memberType(field: Field): string {
  if (field.pointer) return "number";
  if (/^[A-Z]/.test(field.type)) return `Readonly<${field.type}> | undefined`;
  if (field.type === "char") return "string";
  if (field.type === "uint8_t") return "Uint8Array";
  return field.count > 1 ? "readonly number[]" : "number";
}

function record(struct: Struct): string {
  const lines = members(struct).map(
    ({ name, type, comment }) => `${comment === "" ? "" : `/** ${comment} */\n`}${name}: ${type};`,
  );
  return `/** ${struct.comment.replace(/\s+/g, " ")} */\nexport interface ${struct.name} {\n${lines.join("\n")}\n}`;
}

function packer(struct: Struct): string {
  const stores = struct.fields
    .filter((field) => !isReserved(field) && !isDerived(field))
    .flatMap((f) => store(struct, f));
  const views = ["u32", "f32", "bytes"].filter((view) => stores.some((line) => line.startsWith(`${view}`)));
  return [
    `/** Packs \`${struct.name}\` at 32-bit word \`at\`; undefined packs zeros. */`,
    `export function pack${struct.name}(block: Block, at: number, record: Readonly<${struct.name}> | undefined): void {`,
    // A loop: the engine compiles it in place, where fill is a call out of compiled code.
    `if (record === undefined) { for (let word = at; word < at + ${struct.size / 4}; word++) block.u32[word] = 0; return; }`,
    ...(views.length > 0 ? [`const { ${views.join(", ")} } = block;`] : []),
    ...stores,
    "}",
  ].join("\n");
}

function store(struct: Struct, field: Field): string[] {
  const value = `record.${field.name}`;
  if (field.pointer) return [`block.setU64(${word(field.offset)}, ${value});`];
  if (/^[A-Z]/.test(field.type)) return [`pack${field.type}(block, ${word(field.offset)}, ${value});`];
  if (field.type === "uint8_t") return [`bytes.set(${value}, 4 * (${word(field.offset)}));`];
  if (isHalved(struct, field)) {
    return [`u32[${word(field.offset)}] = ${value}Low;`, `u32[${word(field.offset + 4)}] = ${value}High;`];
  }
  return Array.from({ length: field.count }, (_, i) => {
    const element = field.count > 1 ? `${value}[${i}] as number` : value;
    const at = word(field.offset + i * field.size);
    if (field.size === 8) return `block.setU64(${at}, ${element});`;
    return `${field.type === "ma_f32" ? "f32" : "u32"}[${at}] = ${element};`;
  });
}

function reader(struct: Struct): string {
  const fields = struct.fields.filter((field) => !isReserved(field)).map((field) => `${field.name}: ${load(field)},`);
  return [
    `/** Reads \`${struct.name}\`. */`,
    `export function read${struct.name}(block: Block): ${struct.name} {`,
    `return {\n${fields.join("\n")}\n};`,
    "}",
  ].join("\n");
}

function load(field: Field): string {
  const at = field.offset / 4;
  if (field.type === "char") return `block.getString(${field.offset}, ${field.count})`;
  if (field.count > 1) {
    return `[${Array.from({ length: field.count }, (_, i) => `block.u32[${at + i}] as number`).join(", ")}]`;
  }
  if (field.type === "double") return `block.f64[${field.offset / 8}] as number`;
  return field.size === 8 ? `block.getU64(${at})` : `block.u32[${at}] as number`;
}

/** `src/ffi/generated/symbols.ts`: the functions as bun:ffi declares them, and the version. */
export function symbolsModule(header: Header): string {
  const types = new Map([
    ["uint32_t", "u32"],
    ["uint64_t", "u64"],
  ]);
  const entries = header.functions.map(({ name, parameters }) => {
    const args = parameters.map(({ type, pointers }) => `"${pointers > 0 ? "ptr" : types.get(type)}"`);
    return `${name}: { args: [${args.join(", ")}], returns: "i32" },`;
  });
  return [
    'import type { FFIFunction } from "bun:ffi";',
    `/** \`MA_ABI_VERSION\` of the header that this package was written against. */\nexport const abiVersion = ${header.version};`,
    `/** The functions of metal_attention.h. */\nexport const symbols = {\n${entries.join("\n")}\n} as const satisfies Record<string, FFIFunction>;`,
  ].join("\n\n");
}

/** Enumerations that the library and its kernels alone use. */
const nativeEnums = new Set(["MA_ATTN", "MA_DECODE"]);

/** `src/ffi/generated/codes.ts`: the values of the other enumerations, by names such as `buffer-too-small`. */
export function codesModule(header: Header): string {
  const enums = header.enums.filter(({ prefix }) => !nativeEnums.has(prefix));
  const tables = enums.map(({ prefix, comment, values }) => {
    const entries = values
      .filter(({ name }) => name.startsWith(`${prefix}_`))
      .map(
        ({ name, value }) =>
          `"${name
            .slice(prefix.length + 1)
            .toLowerCase()
            .replaceAll("_", "-")}": ${value},`,
      );
    const about = comment === "" ? "" : `${comment.replace(/\s+/g, " ")} `;
    return `/** ${about}(\`${prefix}_*\`) */\nexport const ${codesName(prefix)} = {\n${entries.join("\n")}\n} as const;`;
  });
  return tables.join("\n\n");
}

/** `MA_DTYPE` to `dtypeCodes`. */
function codesName(prefix: string): string {
  return `${prefix.slice(3).toLowerCase()}Codes`;
}
