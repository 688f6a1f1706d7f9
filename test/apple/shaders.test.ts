/**
 * The shaders against what Apple's compiler and GPUs allow, as far as that can be known without them: the documented
 * words of the language, no warning of clang, and the limits on threadgroup memory and arguments.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { Device } from "../../src/index.ts";
import { shaderFiles, shaderText } from "../helpers/shaders.ts";
import { undocumented } from "./language.ts";
import { compileStrictly } from "./strict.ts";

const shaders = shaderFiles(".metal");
const headers = shaderFiles(".h");
const headerTexts = headers.map(shaderText);

const device = Device.open();
afterAll(() => device.dispose());
const builtIn = device.kernelNames;

/** Names, and beginnings of names, in the table of entry points of each shader. */
const namesOf = new Map(
  shaders.map((file) => {
    const names = [...shaderText(file).matchAll(/instantiate_\w+\("(\w+)"/g)].map(([, name]) => name as string);
    return [file, names];
  }),
);

/** How much of a kernel's name a shader's table has. */
function match(file: string, kernel: string): number {
  return Math.max(0, ...(namesOf.get(file) ?? []).filter((name) => kernel.startsWith(name)).map((name) => name.length));
}

/** One kernel of each shader. */
const kernels = shaders.map((file) => {
  const kernel = builtIn.find(
    (name) => match(file, name) > Math.max(...shaders.map((other) => (other === file ? 0 : match(other, name)))),
  );
  if (kernel === undefined) throw new Error(`${file} has no entry point`);
  return kernel;
});

test.each(shaders)("%s keeps the compiler from fusing products and sums", (file) => {
  const [first, second] = [...shaderText(file).matchAll(/^#include "(.*)"$/gm)].map(([, name]) => name);
  // Layouts have no arithmetic.
  expect([first, second]).toEqual(["ShaderTypes.h", "common/arithmetic.h"]);
});

describe("the documented language", () => {
  test.each([...shaders, ...headers])("%s uses nothing else", (file) => {
    expect(undocumented(file, shaderText(file), headerTexts)).toEqual([]);
  });

  test.each([
    ["a builtin of clang", "uint n = __builtin_popcount(1);", "__builtin_popcount"],
    ["double", "double d = 1;", "double"],
    ["the standard library of C++", "int n = std::min(1, 2);", "std"],
    ["a function that the language lacks", "float y = erf(1.0f);", "erf"],
    ["a jump", "goto end;", "goto"],
    ["an attribute of clang", "int n __attribute__((aligned(8)));", "__attribute__"],
    ["a derived class", "struct A {}; struct B : A {};", "a derived class"],
    ["a derived specialisation", "template <> struct B<int> : A {};", "a derived class"],
    ["a long long", "long long n = 1;", "a long long"],
    ["its literal", "long n = 1ull;", "a long long"],
    ["a hexadecimal float", "float x = 0x1.8p3f;", "a hexadecimal float literal"],
    ["a lambda", "auto f = [&](int i) { return i; };", "a lambda"],
    ["a pointer to a function", "int (*f)(int);", "a pointer to a function"],
    ["an exception", "try {} catch (int) {}", "try"],
    ["memory from a heap", "int *p = new int;", "new"],
  ])("%s is found", (_name, statement, found) => {
    const text = `#include <metal_stdlib>\nusing namespace metal;\nkernel void k(device int *a [[buffer(0)]]) {\n${statement}\n}\n`;
    expect(undocumented("k.metal", text, []).join("\n")).toMatch(new RegExp(`k\\.metal:4: ${found}`));
  });
});

/** By index: some files have the same. */
const declarations = new Map(
  [...shaders, ...headers].flatMap((file) =>
    [...shaderText(file).matchAll(/^constant (bool|uint) \w+ \[\[function_constant\((\d+)\)\]\]/gm)].map(
      (found) => [found[2], found] as const,
    ),
  ),
);
/** Those of all shaders: a kernel takes what it knows of them. */
const constants = [...declarations.values()].map(([, type, index]) =>
  type === "bool"
    ? { index: Number(index), dtype: "bool" as const, value: true }
    : { index: Number(index), dtype: "u32" as const, value: 1 },
);

if (device.info.backend === "SoftMetal")
  describe("warnings are errors", () => {
    test("no shader has one", async () => {
      // A file is checked whole before the first of its kernels is compiled.
      const compiled = Object.fromEntries(kernels.map((kernel) => [kernel, "compiled"]));
      expect(await compileStrictly({ kernels, constants })).toEqual(compiled);
    });

    test.each([
      ["a warning", "int n = 0;", /:3:\d+: error: unused variable 'n'/],
      ["an extension of clang", "a[0] = a[1] ?: 2;", /:3:\d+: error: .* extension/],
      ["C++17", "if constexpr (sizeof(int) == 4) a[0] = 1;", /:3:\d+: error: constexpr if is incompatible/],
      [
        "a warning in another instantiation",
        "int n = 1; if (a[0] < n) a[0] = 0;",
        /:3:\d+: error: comparison of integers/,
      ],
    ])("%s would be seen", async (_name, statement, message) => {
      const source = `#include <metal_stdlib>
template <typename T> kernel void planted(device T *a [[buffer(0)]]) {
${statement}
}
template [[host_name("planted_int")]] kernel void planted<int>(device int *a [[buffer(0)]]);
template [[host_name("planted_uint")]] kernel void planted<uint>(device uint *a [[buffer(0)]]);
`;
      const { planted_int } = await compileStrictly({ kernels: ["planted_int"], constants: [], source });
      expect(planted_int).toMatch(message);
    });
  });

describe("limits of the hardware", () => {
  /** Bytes of threadgroup memory that a kernel may get at dispatch: two floats a value of the largest head. */
  const dynamicBytes = (kernel: string): number =>
    /^hadamard_(?:de)?quantize_kv(?!.*_d\d)/.test(kernel) ? 8 * 4096 : 0;

  test.each(builtIn)("%s: threads, and threadgroup memory inside 32 KiB", (kernel) => {
    using pipeline = device.pipeline(kernel, { constants });
    const { staticThreadgroupMemoryLength, maxTotalThreadsPerThreadgroup, threadExecutionWidth } = pipeline.info;
    expect(staticThreadgroupMemoryLength + dynamicBytes(kernel)).toBeLessThanOrEqual(32 * 1024);
    expect(maxTotalThreadsPerThreadgroup).toBeLessThanOrEqual(1024);
    expect(threadExecutionWidth).toBe(32);
  });

  test("every entry point of the shaders is built in", () => {
    // The names are those of the compiled libraries by now.
    expect([...device.kernelNames].sort()).toEqual([...builtIn].sort());
  });

  test.each(shaders)("%s: at most 31 buffers, no index twice in one kernel", (file) => {
    for (const [, signature] of shaderText(file).matchAll(/\bvoid \w+\(([^{;]*?)\)\s*\{/g)) {
      const slots = [...(signature as string).matchAll(/\[\[buffer\((\d+)\)/g)].map(([, index]) => Number(index));
      expect(new Set(slots).size).toBe(slots.length);
      expect(Math.max(0, ...slots)).toBeLessThanOrEqual(30);
    }
  });
});
