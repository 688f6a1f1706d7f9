/** Function constants of every type, scalars and vectors, and the spellings of explicit instantiations. */
import { floats, type KernelCase, kernelSuite, uints } from "./harness.ts";

type Constants = NonNullable<KernelCase["constants"]>;
const source = `#include <metal_stdlib>
using namespace metal;
constant bool flag [[function_constant(0)]];
constant uint count [[function_constant(1)]];
constant int offset [[function_constant(2)]];
constant float scale [[function_constant(3)]];
constant half small [[function_constant(4)]];
constant uchar byte [[function_constant(5)]];
constant char signed_byte [[ function_constant ( 6 ) ]];
constant bool has_mask [[function_constant(300)]];
constant bool never_set [[function_constant(301)]];
constant uint may_be_set [[function_constant(302)]];
constant uint may_be_set_or = is_function_constant_defined(may_be_set) ? may_be_set : 77u;
constant float twice_scale = 2.0f * scale;
constant bool both = flag && count > 2u;
constant uint derived = both ? count * 10u : 5u;
constant bool is_known = is_function_constant_defined(may_be_set);
constant int named_index [[function_constant(303)]];

kernel void bools(device float *out [[buffer(0)]]) { out[0] = flag ? 1 : 2; if (flag) { out[1] = 3; } else { out[1] = 4; } out[2] = float(!flag); }
kernel void uints(device float *out [[buffer(0)]]) { float s = 0; for (uint k = 0; k < count; ++k) { s += k; } out[0] = s; }
kernel void all_types(device float *out [[buffer(0)]]) {
  out[0] = offset; out[1] = scale; out[2] = float(small); out[3] = byte; out[4] = signed_byte; out[5] = named_index;
}
kernel void derived_constants(device float *out [[buffer(0)]]) { out[0] = twice_scale; out[1] = both; out[2] = derived; }
kernel void optional(device float *out [[buffer(0)]]) {
  out[0] = may_be_set_or; out[1] = is_known; out[2] = is_function_constant_defined(may_be_set);
  if (is_function_constant_defined(may_be_set)) { out[3] = may_be_set; } else { out[3] = -1; }
}
kernel void optional_arguments(device float *out [[buffer(0)]], const device float *mask [[buffer(1), function_constant(has_mask)]],
                               constant uint &size [[buffer(2), function_constant(has_mask)]]) {
  out[0] = has_mask ? mask[1] + size : -1;
}
float through(float x) { return x * scale; }
kernel void in_helpers(device float *out [[buffer(0)]]) { out[0] = through(2); }
template <typename T> kernel void templated(device T *out [[buffer(0)]]) { out[0] = T(scale) + T(count); }
template [[host_name("templated_float")]] kernel void templated<float>(device float *);
kernel void sizes(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  threadgroup float box[4]; box[i] = i; threadgroup_barrier(mem_flags::mem_threadgroup); switch (count) { case 1: out[i] = box[0]; break; case 3: out[i] = box[3 - i] * scale; break; default: out[i] = -1; }
}
`;
const c = {
  flag: (value: boolean) => ({ index: 0, dtype: "bool", value }) as const,
  count: (value: number) => ({ index: 1, dtype: "u32", value }) as const,
  offset: (value: number) => ({ index: 2, dtype: "i32", value }) as const,
  scale: (value: number) => ({ index: 3, dtype: "f32", value }) as const,
  small: (value: number) => ({ index: 4, dtype: "f16", value }) as const,
  byte: (value: number) => ({ index: 5, dtype: "u8", value }) as const,
  signedByte: (value: number) => ({ index: 6, dtype: "i8", value }) as const,
  hasMask: (value: boolean) => ({ index: 300, dtype: "bool", value }) as const,
  maySet: (value: number) => ({ index: 302, dtype: "u32", value }) as const,
  named: (value: number) => ({ index: 303, dtype: "i32", value }) as const,
};
const one = (
  name: string,
  kernel: string,
  constants: Constants,
  expected: readonly number[],
  more: Partial<KernelCase> = {},
): KernelCase => ({
  name,
  kernel,
  constants,
  out: "float",
  expected,
  grid: 1,
  threads: 1,
  ...more,
});

kernelSuite("constants", source, [
  one("bool true", "bools", [c.flag(true)], [1, 3, 0]),
  one("bool false", "bools", [c.flag(false)], [2, 4, 1]),
  one("uint in a loop bound", "uints", [c.count(5)], [10]),
  one("another value of it is another pipeline", "uints", [c.count(7)], [21]),
  one(
    "int, float, half, uchar, char",
    "all_types",
    [c.offset(-7), c.scale(0.5), c.small(1.5), c.byte(200), c.signedByte(-100), c.named(9)],
    [-7, 0.5, 1.5, 200, -100, 9],
  ),
  one(
    "extreme values",
    "all_types",
    [
      c.offset(-(2 ** 31)),
      c.scale(Number.POSITIVE_INFINITY),
      c.small(65504),
      c.byte(255),
      c.signedByte(-128),
      c.named(2 ** 31 - 1),
    ],
    [-(2 ** 31), Number.POSITIVE_INFINITY, 65504, 255, -128, 2 ** 31],
  ),
  one("constants derived from others", "derived_constants", [c.flag(true), c.count(4), c.scale(1.5)], [3, 1, 40]),
  one(
    "constants derived from others, the other branch",
    "derived_constants",
    [c.flag(true), c.count(2), c.scale(-1)],
    [-2, 0, 5],
  ),
  one("is_function_constant_defined of one that is set", "optional", [c.maySet(12)], [12, 1, 1, 12]),
  one("is_function_constant_defined of one that is not", "optional", [], [77, 0, 0, -1]),
  one("a value that no kernel reads is accepted", "uints", [c.count(3), c.scale(4)], [3]),
  one("arguments that a constant turns on", "optional_arguments", [c.hasMask(true)], [2.5 + 6], {
    inputs: [floats([1.5, 2.5]), uints([6])],
  }),
  one("arguments that a constant turns off need no buffer", "optional_arguments", [c.hasMask(false)], [-1]),
  one("in a function that the kernel calls", "in_helpers", [c.scale(4)], [8]),
  one("in a template", "templated_float", [c.scale(0.5), c.count(2)], [2.5]),
  one("beside threadgroup memory and a barrier", "sizes", [c.count(3), c.scale(2)], [6, 4, 2, 0], {
    grid: 4,
    threads: 4,
  }),
]);

/** Component types: what the kernel writes them as, and four values of each. */
const types = [
  { msl: "bool", dtype: "bool", out: "long", values: [true, false, true, true] },
  { msl: "char", dtype: "i8", out: "long", values: [-128, 127, -1, 5] },
  { msl: "uchar", dtype: "u8", out: "long", values: [255, 1, 128, 0] },
  { msl: "short", dtype: "i16", out: "long", values: [-32768, 32767, -1, 258] },
  { msl: "ushort", dtype: "u16", out: "long", values: [65535, 1, 32768, 258] },
  { msl: "int", dtype: "i32", out: "long", values: [-(2 ** 31), 2 ** 31 - 1, -1, 65538] },
  { msl: "uint", dtype: "u32", out: "long", values: [2 ** 32 - 1, 1, 2 ** 31, 65538] },
  { msl: "long", dtype: "i64", out: "long", values: [-(2n ** 63n), 2n ** 63n - 1n, -1, 2 ** 53 - 1] },
  { msl: "ulong", dtype: "u64", out: "ulong", values: [2n ** 64n - 1n, 1, 2n ** 63n, 2 ** 53 - 1] },
  { msl: "half", dtype: "f16", out: "float", values: [65504, -0.5, 2 ** -24, Number.NEGATIVE_INFINITY] },
  { msl: "bfloat", dtype: "bf16", out: "float", values: [2 ** 127, -0.5, 1.0078125, Number.NEGATIVE_INFINITY] },
  { msl: "float", dtype: "f32", out: "float", values: [2 ** 127, -0.1, 2 ** -149, Number.POSITIVE_INFINITY] },
] as const;

/** Each type with 1 to 4 components; the index of the constant is the place in this list. */
const shapes = types.flatMap((type) =>
  [1, 2, 3, 4].map((width) => ({ ...type, width, name: `${type.msl}${width === 1 ? "" : width}` })),
);
const components = ["x", "y", "z", "w"];
const shapeSource = `#include <metal_stdlib>
using namespace metal;
${shapes
  .map(({ name, out, width }, index) => {
    const writes = components
      .slice(0, width)
      .map((at, k) => `out[${k}] = ${out}(c_${name}${width > 1 ? `.${at}` : ""});`);
    return `constant ${name} c_${name} [[function_constant(${index})]];
kernel void write_${name}(device ${out} *out [[buffer(0)]]) { ${writes.join(" ")} }`;
  })
  .join("\n")}
`;
kernelSuite(
  "every type of constants",
  shapeSource,
  shapes.map(({ name, dtype, out, values, width }, index): KernelCase => {
    const given = values.slice(0, width);
    const value = width === 1 ? values[0] : given;
    const expected = given.map((v) => (out === "float" ? Math.fround(Number(v)) : BigInt(v)));
    return one(name, `write_${name}`, [{ index, dtype, value } as Constants[number]], [], { out, expected });
  }),
);

kernelSuite(
  "constants that are vectors",
  `#include <metal_stdlib>
using namespace metal;
constant float2 scale [[function_constant(0)]];
constant uint3 shape [[function_constant(1)]];
constant vec<half, 4> weights [[function_constant(2)]];
constant bool3 flags [[function_constant(3)]];
constant float2 twice = scale * 2.0f;
constant uint volume = shape.x * shape.y * shape.z;
constant float2 scale_or = is_function_constant_defined(scale) ? scale : float2(7, 8);
kernel void derived(device float *out [[buffer(0)]]) { out[0] = twice.x; out[1] = twice.y; out[2] = volume; }
kernel void fallback(device float *out [[buffer(0)]]) { out[0] = scale_or.x; out[1] = scale_or.y; }
kernel void used_whole(device float *out [[buffer(0)]]) {
  out[0] = dot(float4(weights), float4(1, 10, 100, 1000)); out[1] = all(flags) ? 1 : 0; out[2] = any(flags) ? 1 : 0;
}
kernel void loops(device float *out [[buffer(0)]]) {
  float sum = 0; for (uint k = 0; k < shape.z; ++k) { sum += shape[k % 3]; } out[0] = sum;
}
`,
  [
    one(
      "constants derived from vectors",
      "derived",
      [
        { index: 0, dtype: "f32", value: [1.5, -2] },
        { index: 1, dtype: "u32", value: [2, 3, 5] },
      ],
      [3, -4, 30],
    ),
    one("is_function_constant_defined of a vector that is not", "fallback", [], [7, 8]),
    one("and of one that is", "fallback", [{ index: 0, dtype: "f32", value: [1, 2] }], [1, 2]),
    one(
      "in functions of vectors",
      "used_whole",
      [
        { index: 2, dtype: "f16", value: [1, 2, 3, 4] },
        { index: 3, dtype: "bool", value: [true, false, true] },
      ],
      [4321, 0, 1],
    ),
    one("in a loop bound", "loops", [{ index: 1, dtype: "u32", value: [2, 3, 4] }], [2 + 3 + 4 + 2]),
  ],
);

const spellings = `#include <metal_stdlib>
using namespace metal;
template <typename T> void body(device T *out, T value) { out[0] = value; }
template <typename T, int N> [[kernel]] void k1(device T *out [[buffer(0)]], uint i [[thread_position_in_grid]]) { out[i] = T(N); }
template <typename T, int N = 2> kernel void k2(device T *out [[buffer(0)]], uint i [[thread_position_in_grid]]) { out[i] = T(10 * N); }
template <typename T> kernel void k3(device T *out [[buffer(0)]], uint i [[thread_position_in_grid]]) { out[i] = T(sizeof(T)); }
template <typename T, typename U, bool B> kernel void k4(device T *out [[buffer(0)]], constant U &x [[buffer(1)]], uint i [[thread_position_in_grid]]) { out[i] = B ? T(x) : T(-x); }
template <typename... T> kernel void k5(device float *out [[buffer(0)]]) { out[0] = sizeof...(T); }

template [[host_name("k1_a")]] [[kernel]] void k1<float, 3>(device float *, uint);
template [[host_name("k1_b")]] kernel void k1<float, 4>(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]);
template [[host_name("k1_c")]] kernel decltype(k1<float, 5>) k1<float, 5>;
template [[host_name("k1_d")]] [[kernel]] decltype(k1<float, 6>) k1<float, 6>;
template [[kernel]] [[host_name("k1_f")]] void k1<float, 8>(device float *, uint);
template [[host_name("k1_g"), kernel]] void k1<float, 9>(device float *, uint);
template [[host_name("k2_a")]] kernel void k2<float>(device float *, uint);
template [[host_name("k2_b")]] kernel void k2<float, 1 + 2>(device float *, uint);
typedef decltype(k3<half>) k3_t;
template [[host_name("k3_f16")]] kernel k3_t k3<half>;
template [[host_name("k3_u8")]] kernel decltype(k3<uchar>) k3<uchar>;
template [[host_name("k4_a")]] kernel void k4<float, int, true>(device float *, constant int &, uint);
template [[host_name("k4_b")]] kernel void k4<float, short, (3 > 4)>(device float *, constant short &, uint);
template [[host_name("k5_a")]] kernel void k5<float, int, half>(device float *);
kernel [[host_name("renamed")]] void original(device float *out [[buffer(0)]]) { out[0] = 11; }
[[host_name("renamed_too")]] kernel void original_too(device float *out [[buffer(0)]]) { out[0] = 12; }
[[kernel, host_name("renamed_three")]] void original_three(device float *out [[buffer(0)]]) { out[0] = 13; }
`;
const spelled = (kernel: string, expected: number, more: Partial<KernelCase> = {}): KernelCase =>
  one(kernel, kernel, [], [expected], more);
kernelSuite("hostnames", spellings, [
  spelled("k1_a", 3),
  spelled("k1_b", 4),
  spelled("k1_c", 5),
  spelled("k1_d", 6),
  spelled("k1_f", 8),
  spelled("k1_g", 9),
  spelled("k2_a", 20),
  spelled("k2_b", 30),
  spelled("k3_f16", 0x4000, { out: "half" }),
  spelled("k3_u8", 1, { out: "uchar" }),
  spelled("k4_a", 5, { inputs: [uints([5])] }),
  spelled("k4_b", -5, { inputs: [uints([5])] }),
  spelled("k5_a", 3),
  spelled("renamed", 11),
  spelled("renamed_too", 12),
  spelled("renamed_three", 13),
]);
