/** Sources that include others by their names. */
import { describe, expect, test } from "bun:test";
import { unlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Device } from "../../src/index.ts";
import { expectRefusal, thrownBy } from "../helpers/errors.ts";
import { resultOf } from "../helpers/result.ts";

/** A device with these sources. */
function withSources(sources: Readonly<Record<string, string>>): Device {
  const device = Device.open();
  for (const [name, text] of Object.entries(sources)) device.registerSource(name, text);
  return device;
}

const kernel = (value: string, name = "k") =>
  `kernel void ${name}(device int *out [[buffer(0)]]) { out[0] = ${value}; }\n`;
const guarded = (macro: string, text: string) => `// A header.\n#ifndef ${macro}\n#define ${macro}\n${text}\n#endif\n`;

describe("what is included", () => {
  const cases: Readonly<Record<string, [sources: Readonly<Record<string, string>>, expected: number]>> = {
    "a source by its name": [{ "a.metal": `#include "b.h"\n${kernel("b()")}`, "b.h": "int b() { return 3; }" }, 3],
    "whichever is registered first": [
      { "b.h": "int b() { return 3; }", "a.metal": `#include "b.h"\n${kernel("b()")}` },
      3,
    ],
    "through another": [
      {
        "a.metal": `#include "b.h"\n${kernel("b()")}`,
        "b.h": '#include "c.h"\nint b() { return c(); }',
        "c.h": "int c() { return 4; }",
      },
      4,
    ],
    "from the folder of the one that includes it": [
      {
        "x/a.metal": `#include "b.h"\n#include "../y/c.h"\n${kernel("b() + c()")}`,
        "x/b.h": "int b() { return 5; }",
        "y/c.h": "int c() { return 20; }",
      },
      25,
    ],
    "by its whole name from elsewhere": [
      { "x/a.metal": `#include "y/b.h"\n${kernel("b()")}`, "y/b.h": "int b() { return 6; }" },
      6,
    ],
    "as often as it is asked for": [
      {
        "a.metal": `#define N 1\n#include "b.h"\n#undef N\n#define N 2\n#include "b.h"\n${kernel("b1() + b2()")}`,
        "b.h":
          "#define CAT(a, b) a##b\n#define NAME(n) CAT(b, n)\nint NAME(N)() { return 10 * N; }\n#undef NAME\n#undef CAT\n",
      },
      30,
    ],
    "once, by a pragma": [
      { "a.metal": `#include "b.h"\n#include "b.h"\n${kernel("b()")}`, "b.h": "#pragma once\nint b() { return 7; }" },
      7,
    ],
    "once, by a guard": [
      { "a.metal": `#include "b.h"\n#include "b.h"\n${kernel("b()")}`, "b.h": guarded("B_H", "int b() { return 8; }") },
      8,
    ],
    "once, by #import": [
      { "a.metal": `#import "b.h"\n#import "b.h"\n${kernel("b()")}`, "b.h": "int b() { return 9; }" },
      9,
    ],
    "in a circle that guards end": [
      {
        "a.metal": `#include "b.h"\n${kernel("b() + c()")}`,
        "b.h": guarded("B_H", '#include "c.h"\nint b() { return 1; }'),
        "c.h": guarded("C_H", '#include "b.h"\nint c() { return 10; }'),
      },
      11,
    ],
    "in a circle that pragmas end": [
      {
        "a.metal": `#include "b.h"\n${kernel("b() + c()")}`,
        "b.h": '#pragma once\n#include "c.h"\nint b() { return 2; }',
        "c.h": '#pragma once\n#include "b.h"\nint c() { return 10; }',
      },
      12,
    ],
    "not in lines that are left out": [
      { "a.metal": `#if 0\n#include "missing.h"\n#include "a.metal"\n#endif\n${kernel("13")}` },
      13,
    ],
    "not in comments": [
      {
        "a.metal": `/*\n#include "b.h"\n*/ // "/*"\n#define x "//" /* */\n#include "c.h"\n${kernel("c()")}`,
        "b.h": "*/ wrong",
        "c.h": "int c() { return 14; }",
      },
      14,
    ],
    "a header of the language in quotes": [
      { "a.metal": `#include "metal_stdlib"\n${kernel("metal::max(15, 1)")}` },
      15,
    ],
    "the caller's before the library's own of the same name": [
      { "a.metal": `#include "common/ring.h"\n${kernel("mine()")}`, "common/ring.h": "int mine() { return 16; }" },
      16,
    ],
    "an unfinished last line": [{ "a.metal": `#include "b.h"\n${kernel("N")}`, "b.h": "#define N 17" }, 17],
    "a kernel": [{ "a.metal": '#include "b.h"\n', "b.h": kernel("18") }, 18],
    "a kernel of a text that needs what comes before it": [
      { "a.metal": '#define N 19\n#include "b.h"\n', "b.h": kernel("N") },
      19,
    ],
    "a kernel whose name a macro makes": [
      {
        "a.metal": '#define NAME(x) x\n#include "b.h"\n',
        "b.h": "kernel void NAME(k)(device int *out [[buffer(0)]]) { out[0] = 20; }\n",
      },
      20,
    ],
  };
  test.each(Object.entries(cases))("%s", (_name, [sources, expected]) => {
    using device = withSources(sources);
    expect(resultOf(device)).toBe(expected);
  });

  test("is shared by several sources, with its kernels", () => {
    using device = withSources({
      "a.metal": `#include "common.h"\n${kernel("common() + 1", "a")}`,
      "b.metal": `#include "common.h"\n${kernel("common() + 2", "b")}`,
      "common.h": `#pragma once\nint common() { return 40; }\n${kernel("common()")}`,
    });
    expect([resultOf(device, "a"), resultOf(device, "b"), resultOf(device)]).toEqual([41, 42, 40]);
    expectRefusal(() => device.pipeline("c"), "kernel-not-found", "kernel");
  });
});

describe("errors", () => {
  test("are at the line of the text that has them, and of the one that includes it", () => {
    using device = withSources({
      "a.metal": `// one\n#include "b.h"\n${kernel("b() + wrong_here")}`,
      "b.h": "// one\n// two\nint b() { return wrong_there; }\n",
    });
    const { code, message } = thrownBy(() => device.pipeline("k"));
    expect(code).toBe("shader-compilation");
    expect(message).toContain("b.h:3:18: error: use of undeclared identifier 'wrong_there'");
    expect(message).toContain("\nint b() { return wrong_there; }\n                 ^\n");
    expect(message).toContain("a.metal:3:");
    expect(message).toContain("'wrong_here'");
  });

  test.each([
    [
      "itself",
      { "a.metal": `\n#include "a.metal"\n${kernel("1")}` },
      "a.metal:2:2: error: 'a.metal' includes 'a.metal', in a circle",
    ],
    [
      "itself through others",
      { "a.metal": `#include "x/b.h"\n${kernel("1")}`, "x/b.h": '\n\n#include "c.h"', "x/c.h": '\n#include "b.h"' },
      "x/c.h:2:2: error: 'x/b.h' includes 'x/c.h' includes 'x/b.h', in a circle",
    ],
    [
      "what nobody registered",
      { "a.metal": `\n#include "b.h"\n${kernel("1")}`, "c.h": " " },
      "a.metal:2:10: error: 'b.h' file not found",
    ],
    [
      "what is missing there",
      { "a.metal": `#include "b.h"\n${kernel("1")}`, "b.h": '\n\n#include "c.h"' },
      "b.h:3:10: error: 'c.h' file not found",
    ],
  ] as const)("a source that includes %s", (_name, sources, expected) => {
    using device = withSources(sources);
    expectRefusal(() => device.pipeline("k"), "shader-compilation", undefined, expected);
  });

  test("what is not there is named with what there is", () => {
    using device = withSources({ "a.metal": `#include "b.h"\n${kernel("1")}`, "c.h": " ", "d.h": " " });
    const { message } = thrownBy(() => device.pipeline("k"));
    expect(message).toContain('#include "NAME" takes a registered source (c.h, d.h) or a header of the language');
  });

  test("texts that grow without end are refused", () => {
    const levels = Array.from({ length: 40 }, (_, i) => [`${i}.h`, `#include "${i + 1}.h"\n#include "${i + 1}.h"\n`]);
    using device = withSources({
      ...(Object.fromEntries(levels) as Record<string, string>),
      "40.h": `// ${"x".repeat(1 << 20)}\n`,
      "a.metal": `#include "0.h"\n${kernel("1")}`,
    });
    expectRefusal(() => device.pipeline("k"), "shader-compilation", undefined, "has more than 64 MiB");
    // What each of them includes is found without putting it in: 35 of them would have 64 MiB.
  }, 20_000);
});

describe("files are not read", () => {
  const path = join(tmpdir(), `metal-attention-includes-${process.pid}.h`);
  const forms = {
    "by its path": `#include "${path}"`,
    "in angle brackets": `#include <${path}>`,
    "by a macro": `#define FILE "${path}"\n#include FILE`,
    "by a relative path": `#include "../../../../../../../../../..${path}"`,
    "by #import": `#import "${path}"`,
    "by #include_next": `#include_next "${path}"`,
    "by #embed": `constant int x[] = {\n#embed "${path}"\n};`,
  };
  test.each(Object.entries(forms))("%s", (_name, line) => {
    writeFileSync(path, "secret words\n");
    try {
      using device = withSources({ "a.metal": `${line}\n${kernel("1")}` });
      const { code, message } = thrownBy(() => device.pipeline("k"));
      expect(code).toBe("shader-compilation");
      expect(message).toContain("file not found");
      expect(message).not.toContain("secret");
    } finally {
      unlinkSync(path);
    }
  });

  test("nor looked for", () => {
    writeFileSync(path, "secret words\n");
    try {
      using device = withSources({
        "a.metal": `#if __has_include("${path}")\n${kernel("1")}#else\n${kernel("2")}#endif\n`,
      });
      expect(resultOf(device)).toBe(2);
    } finally {
      unlinkSync(path);
    }
  });

  test("a device file does not hang the compiler", () => {
    using device = withSources({ "a.metal": `#include "/dev/zero"\n${kernel("1")}` });
    expectRefusal(() => device.pipeline("k"), "shader-compilation", undefined, "'/dev/zero' file not found");
  });
});

describe("headers of many layers that are included once", () => {
  /** Each header includes all below it. */
  const layers = (count: number, include: (j: number) => string) =>
    Object.fromEntries(
      Array.from({ length: count }, (_, i) => [
        `h${i}.h`,
        `#pragma once\n${Array.from({ length: i }, (_, j) => include(j)).join("")}int f${i}() { return ${i === 0 ? 1 : `f${i - 1}() + 1`}; }\n`,
      ]),
    );

  test("40 layers are put in once each", () => {
    using device = withSources({
      ...layers(40, (j) => `#include "h${j}.h"\n`),
      "a.metal": `#include "h39.h"\n#include "h0.h"\n${kernel("f39()")}`,
    });
    expect(resultOf(device)).toBe(40);
  });

  test("one that a condition leaves out is there behind it", () => {
    using device = withSources({
      ...layers(6, (j) => `#ifdef MISSING\n#include "h${j}.h"\n#endif\n#if 1\n#include "h${j}.h"\n#endif\n`),
      "a.metal": `#ifdef MISSING\n#include "h5.h"\n#else\n#endif\n#include "h5.h"\n${kernel("f5()")}`,
    });
    expect(resultOf(device)).toBe(6);
  });
});

describe("a source that is replaced", () => {
  test("changes those that include it", () => {
    using device = withSources({
      "a.metal": `#include "b.h"\n${kernel("c()")}`,
      "b.h": '#include "c.h"',
      "c.h": "int c() { return 1; }",
    });
    using old = device.pipeline("k");
    expect(resultOf(device)).toBe(1);
    device.registerSource("c.h", "int c() { return 2; }", { replace: true });
    expect(resultOf(device)).toBe(2);
    device.registerSource("b.h", "int c() { return 3; }", { replace: true });
    expect(resultOf(device)).toBe(3);
    using out = device.tensor("i32", [1]);
    using pass = device.pass();
    pass.dispatch(old, { buffers: [out], grid: 1, threads: 1 });
    pass.commitAndWait();
    expect(out.view()[0]).toBe(1);
  });

  test("a source that was missing", () => {
    using device = withSources({ "x/a.metal": `#include "b.h"\n${kernel("b()")}`, "b.h": "int b() { return 1; }" });
    expect(resultOf(device)).toBe(1);
    // Nearer.
    device.registerSource("x/b.h", "int b() { return 2; }");
    expect(resultOf(device)).toBe(2);
  });
});
