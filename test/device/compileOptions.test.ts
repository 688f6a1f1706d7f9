/** Macros, mathematics and the language version of a registered source. */
import { afterAll, describe, expect, test } from "bun:test";
import { Device, type SourceOptions } from "../../src/index.ts";
import { expectRefusal } from "../helpers/errors.ts";

const device = Device.open();
afterAll(() => device.dispose());

let sources = 0;

/** What a kernel with the body `out[0] = EXPRESSION;` gives, x[0] being 0 and x[1] infinity. */
function value(expression: string, options: SourceOptions, head = ""): number {
  const name = `k${sources++}`;
  const text = `#include <metal_stdlib>
using namespace metal;
${head}
kernel void ${name}(device const float *x [[buffer(0)]], device float *out [[buffer(1)]]) { out[0] = ${expression}; }
`;
  device.registerSource(`${name}.metal`, text, options);
  using pipeline = device.pipeline(name);
  using x = device.tensor("f32", [2]).set([0, Number.POSITIVE_INFINITY]);
  using out = device.tensor("f32", [1]);
  using pass = device.pass();
  pass.dispatch(pipeline, { buffers: [x, out], grid: 1, threads: 1 });
  pass.commitAndWait();
  return out.toFloat32Array()[0] ?? Number.NaN;
}

describe("macros", () => {
  test.each([
    ["a number", { macros: { N: 42 } }, "N", 42],
    ["a negative number", { macros: { N: -1.5 } }, "2 * N", -3],
    ["a bigint", { macros: { N: 2n ** 40n } }, "N >> 38", 4],
    ["true", { macros: { N: true } }, "N + 10", 11],
    ["false, which is defined", { macros: { N: false } }, "N + 10", 10],
    ["a text", { macros: { SUM: "(2 + 3)" } }, "SUM * 2", 10],
    ["a text with a type", { macros: { T: "half" } }, "sizeof(T)", 2],
    ["one that names another", { macros: { A: "B", B: 7 } }, "A", 7],
    ["an empty one", { macros: { NOTHING: "" } }, "NOTHING 3 NOTHING", 3],
  ] as const)("%s", (_name, options, expression, expected) => {
    expect(value(expression, options)).toBe(expected);
  });

  test("decide on lines, and stand before the first line of the source", () => {
    const head = "#if WIDTH == 4\nconstant float chosen = 8;\n#else\nconstant float chosen = 9;\n#endif";
    expect(value("chosen", { macros: { WIDTH: 4 } }, head)).toBe(8);
    expect(value("chosen", {}, head)).toBe(9);
    device.registerSource("lines.metal", "kernel void at_line(device int *out) { out[0] = MISSING + N; }", {
      macros: { N: 1 },
    });
    expectRefusal(() => device.pipeline("at_line"), "shader-compilation", undefined, "lines.metal:1:");
  });

  test.each([
    [{ "1N": 1 }, "options.macros.1N", "identifier"],
    [{ "N-1": 1 }, "options.macros.N-1", "identifier"],
    [{ "": 1 }, "options.macros.", "identifier"],
    [{ "F(x)": "x" }, "options.macros.F(x)", "identifier"],
    [{ N: "a\nb" }, "options.macros.N", "one line"],
    [{ N: "a\\" }, "options.macros.N", "one line"],
    [{ N: "a\0" }, "options.macros.N", "one line"],
    [{ N: Number.NaN }, "options.macros.N", "finite"],
    [{ N: null }, "options.macros.N", "expected a string"],
    [{ N: { a: 1 } }, "options.macros.N", "expected a string"],
    [[1], "options.macros", "record"],
    ["N=1", "options.macros", "record"],
  ] as const)("%p is refused", (macros, argument, word) => {
    const options = { macros } as unknown as SourceOptions;
    expectRefusal(() => device.registerSource("refused.metal", " ", options), "invalid-argument", argument, word);
  });

  test.each(["defined", "__METAL_VERSION__"])("%s is the compiler's name", (name) => {
    const register = () => device.registerSource("refused.metal", " ", { macros: { [name]: 1 } });
    expectRefusal(register, "invalid-argument", `macros.${name}`, "compiler's");
  });
});

test("mathematics is safe unless it is asked to be fast", () => {
  const words = "#ifdef __FAST_MATH__\nconstant float fast_math = 1;\n#else\nconstant float fast_math = 0;\n#endif";
  expect(value("fast_math", {}, words)).toBe(0);
  expect(value("fast_math", { mathMode: "relaxed" }, words)).toBe(0);
  expect(value("fast_math", { mathMode: "fast" }, words)).toBe(1);
  // What is no number is seen.
  expect(value("isnan(x[1] - x[1]) ? 1 : 2", { mathMode: "safe" })).toBe(1);
  expect(value("isnan(x[1] - x[1]) ? 1 : 2", { mathMode: "relaxed" })).toBe(1);
  expect(() => device.registerSource("m.metal", " ", { mathMode: "quick" as "fast" })).toThrow(
    /options\.mathMode: .*safe.*relaxed.*fast/,
  );
});

test("optimized for size, a kernel gives what it does otherwise", () => {
  const head = `inline float folded(float start) {
  float sum = start;
  for (int i = 1; i <= 100; i++) sum = fma(sum, 0.75f, 1.0f / float(i));
  return sum;
}`;
  const results = ([undefined, "default", "size"] as const).map((optimizationLevel) =>
    value("folded(x[0]) + float(simd_is_first()) * 0.125f", { optimizationLevel }, head),
  );
  expect(results[0]).toBeGreaterThan(0.125);
  expect(new Set(results).size).toBe(1);
  const options = { optimizationLevel: "speed" as "size" };
  expectRefusal(
    () => device.registerSource("level.metal", " ", options),
    "invalid-argument",
    "options.optimizationLevel",
    "default",
    "size",
  );
});

describe("the language version", () => {
  test.each([
    ["2.4", 240],
    ["3.0", 300],
    ["3.1", 310],
    [undefined, 310],
  ] as const)("%s is __METAL_VERSION__ %d", (languageVersion, expected) => {
    expect(value("__METAL_VERSION__", { languageVersion })).toBe(expected);
  });

  test("bfloat is of 3.1", () => {
    expect(value("float(bfloat(1.5f))", { languageVersion: "3.1" })).toBe(1.5);
    const register = () => {
      device.registerSource("old.metal", "kernel void old(device bfloat *out) { out[0] = 1.0f; }", {
        languageVersion: "3.0",
      });
      device.pipeline("old");
    };
    const message = "old.metal:1:24: error: 'bfloat' is of version 3.1 of the language; this source is compiled as 3.0";
    expectRefusal(register, "shader-compilation", undefined, message);
  });

  test("another is refused with the list of those that there are", () => {
    const register = () => device.registerSource("r.metal", " ", { languageVersion: "9.9" as "3.1" });
    expectRefusal(register, "invalid-argument", "options.languageVersion", "2.4", "3.0", "3.1");
  });
});

test("a source is compiled again with other options, and not taken for the one in the cache", () => {
  const text = "kernel void again(device float *out [[buffer(0)]]) { out[0] = N; }\n";
  const result = () => {
    using pipeline = device.pipeline("again");
    using out = device.tensor("f32", [1]);
    using pass = device.pass();
    pass.dispatch(pipeline, { buffers: [out], grid: 1, threads: 1 });
    pass.commitAndWait();
    return out.toFloat32Array()[0];
  };
  device.registerSource("again.metal", text, { macros: { N: 1 } });
  expect(result()).toBe(1);
  for (const N of [2, 1, "1 + 1"]) {
    device.registerSource("again.metal", text, { macros: { N }, replace: true });
    expect(result()).toBe(typeof N === "string" ? 2 : N);
  }
});
