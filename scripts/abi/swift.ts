import type { CFunction, Field, Header, Parameter } from "./header.ts";

/** Functions whose result is no status. */
const plain = new Set(["ma_abi_version", "ma_last_error"]);

const layoutTypes: Readonly<Record<string, string>> = {
  char: ".char",
  uint8_t: ".u8",
  uint32_t: ".u32",
  ma_u32: ".u32",
  ma_i32: ".i32",
  ma_f32: ".f32",
  uint64_t: ".u64",
  ma_i64: ".i64",
  double: ".f64",
};

/** `Generated/Layout.swift`: each struct's fields by key path, so that the compiler measures them. */
export function layoutSource(header: Header): string {
  const field = (struct: string, { name, type, pointer, count }: Field) => {
    const kind = pointer ? ".pointer" : (layoutTypes[type] ?? `.structure("${type}")`);
    return `        LayoutField("${name}", \\${struct}.${name}, ${kind}${count > 1 ? `, count: ${count}` : ""})`;
  };
  const structs = header.structs.map(({ name, fields }) => {
    const list = fields.map((f) => field(name, f));
    // swift format wants no comma behind a single element.
    const text = list.length === 1 ? list[0] : list.map((line) => `${line},`).join("\n");
    return `    StructLayout(\n      ${name}.self,\n      [\n${text}\n      ]),`;
  });
  return [
    "import CMetalAttention\n",
    "extension LayoutTable {",
    "  /// The structs of the C headers, in their order.",
    `  static let structs: [StructLayout] = [\n${structs.join("\n")}\n  ]`,
    "}\n",
  ].join("\n");
}

/** `Generated/Codes.swift`: the enumerations that the library uses as types. */
export function codesSource(header: Header): string {
  const names: Readonly<Record<string, string>> = {
    MA_DTYPE: "DType",
    MA_PACKING: "Packing",
    MA_PAIRING: "Pairing",
    MA_BINDING: "BindingKind",
    MA_DISPATCH: "DispatchForm",
    MA_FAILURE: "FailurePart",
    MA_STATE: "PassState",
    MA_STORAGE: "Storage",
    MA_MATH: "MathMode",
    MA_OPTIMIZATION: "OptimizationLevel",
    MA_DECODE: "DecodePart",
    MA_ATTN: "AttnOption",
  };
  const enums = header.enums.flatMap(({ prefix, comment, values }) => {
    const name = names[prefix];
    if (name === undefined) return [];
    const cases = values.map(
      (entry) => `  case ${caseName(camel(entry.name.slice(prefix.length + 1)))} = ${entry.value}`,
    );
    const about = comment === "" ? "" : `${comment.replaceAll("\n", "\n/// ")} `;
    return [`/// ${about}(\`${prefix}_*\`)\nenum ${name}: UInt32, CaseIterable {\n${cases.join("\n")}\n}`];
  });
  const errors = header.enums.find(({ prefix }) => prefix === "MA_ERROR")?.values ?? [];
  const codes = errors.map(({ name, value, comment }) => {
    const about = comment === "" ? "" : `  /// ${comment}\n`;
    return `${about}  static let ${camel(name.replace(/^MA_(ERROR_)?/, ""))}: Int32 = ${value}`;
  });
  const status = `/// What a function of the C ABI returns.\nenum StatusCode {\n${codes.join("\n")}\n}`;
  return `${[...enums, status, operationEnum(header), tensorEnum(header)].join("\n\n")}\n`;
}

/** Operations that are called otherwise than their arguments: any kernel, and what TypeScript calls `dequantizeKv`. */
const operationNames: Readonly<Record<string, string>> = {
  KernelDispatch: "kernel",
  HadamardDequantizeKv: "dequantizeKv",
};

function operationEnum({ functions }: Header): string {
  const operations = functions.flatMap(({ parameters }) => operationOf(parameters) ?? []);
  const cases = operations.map((name) => operationNames[name] ?? name.charAt(0).toLowerCase() + name.slice(1));
  const lines = cases.map((name) => `  case ${name}`);
  return `/// The kind of a dispatch, as \`ma_pass_describe\` names it.\nenum Operation: UInt8 {\n${lines.join("\n")}\n}`;
}

function tensorEnum({ structs }: Header): string {
  const names = new Set(
    structs.flatMap(({ fields }) => fields.filter(({ type }) => type === "MATensor").map(({ name }) => name)),
  );
  const lines = [...names].map((name) => `  case ${name}`);
  return `/// The tensor arguments of the operations.\nenum TensorName: UInt8 {\n${lines.join("\n")}\n}`;
}

/** In backticks what Swift takes for a keyword. */
function caseName(name: string): string {
  return name === "private" || name === "default" ? `\`${name}\`` : name;
}

/** `BUFFER_TOO_SMALL` to `bufferTooSmall`. */
function camel(name: string): string {
  return name.toLowerCase().replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
}

/**
 * `Generated/Exports.swift`: the C functions. One that takes a pass and a
 * struct of arguments encodes the operation named by the struct; all others
 * are methods of `Exports`.
 */
export function exportsSource(header: Header): string {
  return `import CMetalAttention\n\n${header.functions.map(exported).join("\n\n")}\n`;
}

function exported({ name, parameters }: CFunction): string {
  const method = camel(name.slice(3));
  const list = parameters.map((parameter) => `${parameter.name}: ${swiftType(parameter)}`);
  const head = `public func ${method}(${list.join(", ")}) -> Int32 {`;
  const open = head.length <= 120 ? head : `public func ${method}(\n${filled(list)}\n) -> Int32 {`;
  return [
    "#if compiler(>=6.3)",
    `  @c(${name})`,
    "#else",
    `  @_cdecl("${name}")`,
    "#endif",
    open,
    ...body(name, method, parameters),
    "}",
  ].join("\n");
}

/** Parameters in lines of at most 120 columns, as swift format has them. */
function filled(list: readonly string[]): string {
  const lines: string[] = [];
  for (const [i, parameter] of list.entries()) {
    const text = i + 1 < list.length ? `${parameter},` : parameter;
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + text.length <= 120) lines[lines.length - 1] = `${last} ${text}`;
    else lines.push(`  ${text}`);
  }
  return lines.join("\n");
}

function body(name: string, method: string, parameters: readonly Parameter[]): string[] {
  const operation = operationOf(parameters);
  if (operation !== undefined) {
    const args = parameters[1]?.name ?? "args";
    const label = args === "args" ? "" : ` named: "${args}",`;
    return [`  encode("${name}", ${args},${label} into: pass, ${operation}.encode)`];
  }
  const call = `Exports.${method}(${parameters.map((parameter) => parameter.name).join(", ")})`;
  if (plain.has(name)) return [`  ${call}`];
  return [`  status("${name}") { () throws(StatusError) in`, `    try ${call}`, "  }"];
}

/** The Swift type that encodes a call: `KvCacheCopy` for `MAKvCacheCopyArgs`. */
export function operationOf(parameters: readonly Parameter[]): string | undefined {
  const [pass, args, ...rest] = parameters;
  if (pass?.name !== "pass" || args?.isConst !== true || !args.type.startsWith("MA") || rest.length > 0)
    return undefined;
  return args.type.slice(2).replace(/Args$/, "");
}

function swiftType({ type, pointers, isConst }: Parameter): string {
  const scalars: Readonly<Record<string, string>> = {
    int32_t: "Int32",
    uint32_t: "UInt32",
    uint64_t: "UInt64",
    int64_t: "Int64",
    double: "Double",
    char: "CChar",
  };
  if (pointers === 0) return scalars[type] ?? type;
  if (type === "void") {
    if (pointers === 2) return "UnsafeMutablePointer<UnsafeMutableRawPointer?>?";
    return isConst ? "UnsafeRawPointer?" : "UnsafeMutableRawPointer?";
  }
  return `Unsafe${isConst ? "" : "Mutable"}Pointer<${scalars[type] ?? type}>?`;
}
