/** Function constants by their names, and by indices that the source computes. */
import { afterAll, describe, expect, test } from "bun:test";
import { Device, type PipelineOptions } from "../../src/index.ts";
import { expectRefusal } from "../helpers/errors.ts";

const device = Device.open();
afterAll(() => device.dispose());

type Constants = NonNullable<PipelineOptions["constants"]>;

function result(kernel: string, constants: Constants): number[] {
  using pipeline = device.pipeline(kernel, { constants });
  using out = device.tensor("f32", [4]);
  using pass = device.pass();
  pass.dispatch(pipeline, { buffers: [out], grid: 1, threads: 1 });
  pass.commitAndWait();
  return [...out.toFloat32Array()];
}

device.registerSource(
  "named.metal",
  `#include <metal_stdlib>
using namespace metal;
#define BASE 10
enum Place { first = 20, second };
enum class Scoped : uint { third = 30 };
constexpr constant uint base = 40;
template <int N> struct Twice { static constexpr constant int value = 2 * N; };
constant float by_macro [[function_constant(BASE + 1)]];
constant float by_enum [[function_constant(second)]];
constant float by_scoped [[function_constant(uint(Scoped::third) | 1)]];
constant float by_constexpr [[function_constant(base * 2 - 1)]];
constant float by_template [[function_constant(Twice<45>::value)]];
constant float by_sizeof [[function_constant(sizeof(float4) == 16 ? 95 : 96)]];
constant uint3 vector [[function_constant(BASE)]];
namespace inner { constant bool flag [[function_constant(7)]]; }
constant float optional [[function_constant(8)]];
constant float with_default = is_function_constant_defined(optional) ? optional : 2.5f;
kernel void computed(device float *out [[buffer(0)]]) {
  out[0] = by_macro + by_enum + by_scoped;
  out[1] = by_constexpr + by_template + by_sizeof;
  out[2] = vector.x + vector.y * vector.z;
  out[3] = inner::flag ? with_default : 0;
}
kernel void plain(device float *out [[buffer(0)]]) { out[0] = 1; }
`,
);

const f32 = (place: { index: number } | { name: string }, value: number) =>
  ({ ...place, dtype: "f32", value }) as const;
const names = ["by_macro", "by_enum", "by_scoped", "by_constexpr", "by_template", "by_sizeof"];
const indices = [11, 21, 31, 79, 90, 95];
const vector = { dtype: "u32", value: [2, 3, 4] } as const;
const flag = { dtype: "bool", value: true } as const;
const powers = [1, 2, 4, 8, 16, 32];

describe("function constants", () => {
  test("by name", () => {
    const constants = [
      ...names.map((name, i) => f32({ name }, powers[i] as number)),
      { name: "vector", ...vector },
      { name: "flag", ...flag },
    ];
    expect(result("computed", constants)).toEqual([7, 56, 14, 2.5]);
    expect(result("computed", [...constants, f32({ name: "optional" }, 9)])).toEqual([7, 56, 14, 9]);
  });

  test("by indices that the source computes", () => {
    const constants = [
      ...indices.map((index, i) => f32({ index }, powers[i] as number)),
      { index: 10, ...vector },
      { index: 7, ...flag },
    ];
    expect(result("computed", constants)).toEqual([7, 56, 14, 2.5]);
    expect(result("computed", [...constants, f32({ index: 8 }, 9)])).toEqual([7, 56, 14, 9]);
  });

  test("of another value are another pipeline, by name too", () => {
    const rest = [
      ...names.slice(1).map((name) => f32({ name }, 0)),
      { name: "vector", ...vector },
      { name: "flag", ...flag },
    ];
    const values = [1, 2, 1].map((value) => result("computed", [f32({ name: "by_macro" }, value), ...rest])[0]);
    expect(values).toEqual([1, 2, 1]);
  });

  test("that the kernel needs and nobody gives are named", () => {
    expectRefusal(() => device.pipeline("computed"), "shader-compilation", undefined, "by_macro", "flag");
    expect(result("plain", [])).toEqual([1, 0, 0, 0]);
  });

  test("of a name that the source has not are refused", () => {
    const constants = [f32({ name: "by_makro" }, 1)];
    expectRefusal(
      () => device.pipeline("plain", { constants }),
      "shader-compilation",
      undefined,
      "no function constant 'by_makro'",
      "by_macro",
    );
  });

  test.each([
    [[{ dtype: "f32", value: 1 }], "options.constants.0", "index or a name"],
    [[{ name: "a", index: 1, dtype: "f32", value: 1 }], "options.constants.0", "index or a name"],
    [[{ name: "", dtype: "f32", value: 1 }], "options.constants.0.name", "name"],
    [[{ name: "a b", dtype: "f32", value: 1 }], "options.constants.0.name", "name"],
    [[{ nam: "a", dtype: "f32", value: 1 }], "options.constants.0.nam", "name"],
    [[f32({ name: "a" }, 1), f32({ name: "a" }, 2)], "constants", "name a is given twice"],
  ] as const)("%p are refused", (constants, argument, word) => {
    const create = () => device.pipeline("plain", { constants: constants as unknown as Constants });
    expectRefusal(create, "invalid-argument", argument, word);
  });
});

const dtypes = {
  bool: ["bool", [true, false, true, true]],
  u8: ["uchar", [1, 2, 3, 255]],
  i8: ["char", [-1, 2, 3, -128]],
  u16: ["ushort", [1, 2, 3, 65535]],
  i16: ["short", [-1, 2, 3, -32768]],
  u32: ["uint", [1, 2, 3, 2 ** 24]],
  i32: ["int", [-1, 2, 3, -(2 ** 24)]],
  u64: ["ulong", [1, 2n, 3, 2n ** 40n]],
  i64: ["long", [-1, 2n, 3, -(2n ** 40n)]],
  f32: ["float", [0.5, -2, 3, 1e30]],
  f16: ["half", [0.5, -2, 3, 65504]],
  bf16: ["bfloat", [0.5, -2, 3, 2 ** 100]],
} as const;

describe.each(Object.entries(dtypes))("every size of %s", (dtype, [type, values]) => {
  test.each([1, 2, 3, 4])("of %d", (n) => {
    const name = `of_${type}_${n}`;
    const full = n === 1 ? type : `${type}${n}`;
    const parts = Array.from({ length: n }, (_, i) => `out[${i}] = float(value_${name}${n === 1 ? "" : `[${i}]`});`);
    device.registerSource(
      `${name}.metal`,
      `#include <metal_stdlib>
using namespace metal;
constant ${full} value_${name} [[function_constant(3)]];
kernel void ${name}(device float *out [[buffer(0)]]) { ${parts.join(" ")} }`,
    );
    const given = n === 1 ? values[0] : values.slice(0, n);
    const expected = [0, 1, 2, 3].map((i) => (i < n ? Math.fround(Number(values[i])) : 0));
    for (const place of [{ index: 3 }, { name: `value_${name}` }]) {
      expect(result(name, [{ ...place, dtype, value: given }] as unknown as Constants)).toEqual(expected);
    }
  });
});
