/** What a macro of `registerSource` may be: values that would swallow lines, names that are words, very many of them. */
import { afterAll, describe, expect, test } from "bun:test";
import { Device, type SourceOptions } from "../../src/index.ts";
import { expectRefusal } from "../helpers/errors.ts";
import { resultOf } from "../helpers/result.ts";

const device = Device.open();
afterAll(() => device.dispose());

let sources = 0;
type Macros = NonNullable<SourceOptions["macros"]>;

/** What a kernel with the body `out[0] = EXPRESSION;` gives, `head` before it. */
function value(expression: string, macros: Macros, head = ""): number {
  const name = `edge${sources++}`;
  const text = `#include <metal_stdlib>\nusing namespace metal;\n${head}\nkernel void ${name}(device int *out [[buffer(0)]]) { out[0] = ${expression}\n; }\n`;
  device.registerSource(`${name}.metal`, text, { macros });
  return resultOf(device, name);
}

describe("a value", () => {
  test.each([
    ["1 // one", "N\n + 1", 2],
    ["1 /* one */ + 2", "N", 3],
    ["1 + /* // */ 2", "N", 3],
    ["1'000", "N", 1000],
    ["1'000 + /* a' */ 0xa'b", "N", 1171],
    ["'/'", "N", 47],
    ["'\\''", "N", 39],
    ['sizeof("/* \\" //")', "N", 8],
    ['"a" "b"', "sizeof(N)", 3],
    ["x##y", "3", 3],
    ["(1 + 2) * 3 % 5, 4", "(N)", 4],
    ["   7   ", "N", 7],
    ["", "0\n#if defined(N) && (N + 0 == 0)\n + 6\n#endif", 6],
    ["N", "0\n#ifdef N\n + 5\n#endif", 5],
  ] as const)("%j is one line", (text, expression, expected) => {
    expect(value(expression, { N: text })).toBe(expected);
  });

  test.each([
    ["1 /* one", "a comment"],
    ["1 /*/", "a comment"],
    ["1'000 /* a'b", "a comment"],
    ["'/' /* ' ", "a comment"],
    ['"*/" /* "', "a comment"],
    ['R"(a', "a raw string"],
    ['u8R"x(a)"', "a raw string"],
    ['LR"/*(a)*/', "a raw string"],
  ])("%j, which goes on in the next line, is refused", (text, part) => {
    const register = () => device.registerSource("refused.metal", " ", { macros: { N: text } });
    expectRefusal(register, "invalid-argument", "macros.N", part, "one line");
  });

  test.each(["a\\", "a \\  ", "a\\\t", "a // \\ ", "a\u000b\\\u000c", "a\nb", "a\rb", "\n", "a\0b"])(
    "%j, whose line does not end, is refused",
    (text) => {
      const register = () => device.registerSource("refused.metal", " ", { macros: { N: text } });
      expectRefusal(register, "invalid-argument", "options.macros.N", "one line");
    },
  );

  test("that is wrong is reported where the macro is used", () => {
    const text = "\nkernel void wrong(device int *out [[buffer(0)]]) {\n  out[0] = N;\n}\n";
    device.registerSource("wrong.metal", text, { macros: { A: 1, N: "missing_name + 1", B: 2 } });
    expectRefusal(() => device.pipeline("wrong"), "shader-compilation", undefined, "wrong.metal:3:12", "missing_name");
  });
});

describe("a name", () => {
  test.each([
    ["a type", { float: "half" }, "sizeof(float)", 2],
    ["a type of Metal's", { half: "float" }, "sizeof(half)", 4],
    ["a keyword", { long: "short" }, "sizeof(long)", 2],
    ["an address space", { thread: "" }, "2 + int(sizeof(int thread))", 6],
    ["a statement", { if: "while (false) {} if" }, "1; if (out[0] == 1) out[0] = 9", 9],
    ["a function of the library", { min: "max" }, "min(2, 3)", 3],
    ["an argument's", { out: "out" }, "4", 4],
    ["its own", { N: "N" }, "N", 3],
  ] as const)("that is %s", (_name, macros, expression, expected) => {
    expect(value(expression, macros, "constant int N = 3;")).toBe(expected);
  });

  test.each(["and", "not_eq", "xor", "__VA_ARGS__", "__VA_OPT__", "defined", "__METAL_VERSION__"])(
    "%s is refused",
    (name) => {
      const register = () => device.registerSource("refused.metal", " ", { macros: { [name]: 1 } });
      expectRefusal(register, "invalid-argument", `macros.${name}`, "the compiler's");
    },
  );

  test.each(["F(x)", "a.b", "a b", "é", "N\0", "#"])("%j is no identifier", (name) => {
    const register = () => device.registerSource("refused.metal", " ", { macros: { [name]: 1 } });
    expectRefusal(register, "invalid-argument", `options.macros.${name}`, "identifier");
  });

  test("is the source's to define anew", () => {
    expect(value("N", { N: 1 }, "#undef N\n#define N 5")).toBe(5);
    expect(value("N(2)", { N: 1 }, "#undef N\n#define N(x) (x + 6)")).toBe(8);
  });
});

describe("positions", () => {
  test("stay, however many macros there are", () => {
    const macros = Object.fromEntries(Array.from({ length: 300 }, (_, k) => [`N${k}`, k]));
    const text = "\n\nkernel void place(device int *out [[buffer(0)]]) {\n  out[0] = N299 + absent;\n}\n";
    device.registerSource("place.metal", text, { macros });
    expectRefusal(() => device.pipeline("place"), "shader-compilation", undefined, "place.metal:4:19", "absent");
  });

  test("of #line and __LINE__ are the source's", () => {
    expect(value("__LINE__", { A: 1, B: 2 })).toBe(4);
    expect(value("__LINE__", { A: 1 }, "#line 70")).toBe(70);
    const text = '#line 40 "made.metal"\nkernel void renamed(device int *out [[buffer(0)]]) { out[0] = absent; }\n';
    device.registerSource("renamed.metal", text, { macros: { A: 1 } });
    expectRefusal(() => device.pipeline("renamed"), "shader-compilation", undefined, "made.metal:40:", "absent");
  });
});

test("macros reach what a source includes", () => {
  device.registerSource(
    "macro_header.h",
    "#ifdef WIDTH\nconstant int width = WIDTH;\n#else\n#error no width\n#endif\n",
  );
  expect(value("width", { WIDTH: 12 }, '#include "macro_header.h"')).toBe(12);
});

test("an include that a macro names is refused: only written names are found among the sources", () => {
  device.registerSource("by_macro.h", "constant int width = 4;\n");
  const text = "#include HEADER\nkernel void by_macro(device int *out [[buffer(0)]]) { out[0] = width; }\n";
  device.registerSource("by_macro.metal", text, { macros: { HEADER: '"by_macro.h"' } });
  const refused = () => device.pipeline("by_macro");
  expectRefusal(refused, "shader-compilation", undefined, "by_macro.metal:1:", "'by_macro.h' file not found");
});

test("a name of a macro in the quotes of an include is no macro", () => {
  device.registerSource("N", "constant int width = 14;\n");
  expect(value("width", { N: "absent.h" }, '#include "N"')).toBe(14);
});

test("4,096 macros are taken, and no more", () => {
  const macros = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, k) => [`N${k}`, k]));
  expect(value("N0 + N4095", macros(4096))).toBe(4095);
  const register = () => device.registerSource("refused.metal", " ", { macros: macros(4097) });
  expectRefusal(register, "invalid-argument", "macroCount", "4097", "4096");
});
