import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { layoutAssertions } from "../../scripts/abi/c.ts";
import { type Header, isDerived, isReserved, parseHeaders, type Struct } from "../../scripts/abi/header.ts";
import { layoutsModule, structsModule, symbolsModule } from "../../scripts/abi/typescript.ts";

// The generator's reading of C, on headers made up for it.

const text = `
#define MA_ABI_VERSION 17

typedef uint32_t ma_thing;

/// A plain pair.
typedef struct Pair {
  ma_i32 first;   ///< at 0
  ma_u32 second;  ///< derived: first + 1
} Pair;

/// Gaps before what is aligned to 8 bytes, and behind the last byte.
typedef struct Gaps {
  uint8_t flag;
  uint64_t wide;
  Pair pairs;
  ma_thing handle;
  const void *bytes;
  double times[3];
  uint32_t reserved[2];
  char name[5];
} Gaps;

/// Colours.
enum {
  MA_COLOUR_RED = 1,  ///< the first
  MA_COLOUR_DARK_BLUE = -2,
};

int32_t ma_version(void);
/// Paints.
int32_t ma_paint(ma_thing thing, const Gaps *gaps, uint64_t count,
                 uint32_t *result, void **contents);
`;
const header = parseHeaders([text]);

function structOf(parsed: Header, name: string): Struct {
  const found = parsed.structs.find((each) => each.name === name);
  if (found === undefined) throw new Error(`no struct ${name}`);
  return found;
}

test("version, structs, enumerations and functions", () => {
  expect(header.version).toBe(17);
  expect(header.structs.map(({ name, comment }) => [name, comment])).toEqual([
    ["Pair", "A plain pair."],
    ["Gaps", "Gaps before what is aligned to 8 bytes, and behind the last byte."],
  ]);
  expect(header.enums).toEqual([
    {
      prefix: "MA_COLOUR",
      comment: "Colours.",
      values: [
        { name: "MA_COLOUR_RED", value: 1, comment: "the first" },
        { name: "MA_COLOUR_DARK_BLUE", value: -2, comment: "" },
      ],
    },
  ]);
  expect(header.functions).toEqual([
    { name: "ma_version", comment: "", parameters: [] },
    {
      name: "ma_paint",
      comment: "Paints.",
      parameters: [
        { name: "thing", type: "uint32_t", pointers: 0, isConst: false },
        { name: "gaps", type: "Gaps", pointers: 1, isConst: true },
        { name: "count", type: "uint64_t", pointers: 0, isConst: false },
        { name: "result", type: "uint32_t", pointers: 1, isConst: false },
        { name: "contents", type: "void", pointers: 2, isConst: false },
      ],
    },
  ]);
});

test("fields stand at multiples of their alignment, and a struct ends at one of its own", () => {
  const { fields, size, alignment } = structOf(header, "Gaps");
  const places = fields.map(({ name, type, pointer, count, offset }) => [name, type, pointer, count, offset]);
  expect(places).toEqual([
    ["flag", "uint8_t", false, 1, 0],
    ["wide", "uint64_t", false, 1, 8],
    ["pairs", "Pair", false, 1, 16],
    ["handle", "uint32_t", false, 1, 24],
    ["bytes", "void", true, 1, 32],
    ["times", "double", false, 3, 40],
    ["reserved", "uint32_t", false, 2, 64],
    ["name", "char", false, 5, 72],
  ]);
  expect([size, alignment]).toEqual([80, 8]);
  expect([structOf(header, "Pair").size, structOf(header, "Pair").alignment]).toEqual([8, 4]);
});

test("derived and reserved fields are known, and no record has them", () => {
  expect(structOf(header, "Pair").fields.map(isDerived)).toEqual([false, true]);
  expect(
    structOf(header, "Gaps")
      .fields.filter(isReserved)
      .map(({ name }) => name),
  ).toEqual(["reserved"]);
  const module = structsModule(header);
  expect(module).toContain("first: number;");
  expect(module).not.toContain("second: number;");
  expect(module).not.toMatch(/reserved/);
  expect(module).toContain("u32[at] = record.first;");
  expect(module).toContain("block.setU64(at + 8, record.bytes);");
});

test("what TypeScript gets of it", () => {
  expect(layoutsModule(header)).toContain('Pair: "8 first:0 second:4",');
  expect(symbolsModule(header)).toContain('ma_paint: { args: ["u32", "ptr", "u64", "ptr", "ptr"], returns: "i32" },');
  expect(symbolsModule(header)).toContain("abiVersion = 17");
});

test.each([
  ["a field of two names", "  uint32_t first, second;", 'cannot read the field "  uint32_t first, second;"'],
  ["a field of an unknown type", "  long first;", "S.first: unknown type long"],
  ["a bit field", "  uint32_t first : 3;", "cannot read the field"],
])("%s is refused, not passed over", (_, field, message) => {
  expect(() => parseHeaders([`typedef struct S {\n${field}\n} S;\n`])).toThrow(message);
});

test("a parameter that it cannot read is refused", () => {
  expect(() => parseHeaders(["int32_t ma_call(unsigned long long value);\n"])).toThrow("cannot read the parameter");
});

// The generator computes offsets; the compiler holds them against its own.

const compiler = Bun.which("clang-19") ?? Bun.which("clang") ?? Bun.which("cc");

/** What the C compiler says of the assertions on the made-up header. */
function compileAssertions(assertions: string): string {
  if (compiler === null) throw new Error("no C compiler: scripts/setup installs one");
  const folder = mkdtempSync(join(tmpdir(), "metal-attention-layout-"));
  const types = "#include <stdint.h>\ntypedef uint32_t ma_u32;\ntypedef int32_t ma_i32;\n";
  const file = join(folder, "layout.c");
  Bun.spawnSync(["tee", join(folder, "metal_attention.h")], { stdin: Buffer.from(types + text), stdout: "ignore" });
  Bun.spawnSync(["tee", file], { stdin: Buffer.from(assertions), stdout: "ignore" });
  const { stderr } = Bun.spawnSync([compiler, "-std=c11", "-fsyntax-only", file]);
  rmSync(folder, { recursive: true });
  return stderr.toString();
}

test("the C compiler lays the made-up structs out alike", () => {
  expect(compileAssertions(layoutAssertions(header))).toBe("");
});

test.each(["Pair.second", "Gaps.wide", "Gaps.times"])("a wrong offset of %s does not compile", (name) => {
  const [structName, fieldName] = name.split(".");
  const structs = header.structs.map((each) => ({
    ...each,
    fields: each.fields.map((field) =>
      each.name === structName && field.name === fieldName ? { ...field, offset: field.offset + 4 } : field,
    ),
  }));
  expect(compileAssertions(layoutAssertions({ ...header, structs }))).toContain(name);
});

test("a wrong size does not compile", () => {
  const structs = header.structs.map((each) => ({ ...each, size: each.size + 8 }));
  expect(compileAssertions(layoutAssertions({ ...header, structs }))).toContain("Gaps");
});
