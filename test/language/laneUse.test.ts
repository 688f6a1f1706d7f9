/** Kernels whose text does not show whether their threads work together: the compiled code decides. */
import { expect, test } from "bun:test";
import { Device } from "../../src/index.ts";
import { countCase, floats, kernelSuite, range } from "./harness.ts";

const list = range(32, (k) => k * 0.25 - 3);
const sum = list.reduce((a, b) => a + b);
const head = "#include <metal_stdlib>\nusing namespace metal;\n";
const inputs = [floats(list)];
const parameters =
  "device float *out [[buffer(0)]], const device float *a [[buffer(1)]], uint i [[thread_position_in_grid]]";

/** A loop and a kernel with lanes beside the one that hides its lanes. */
const beside = (name: string) => `
kernel void ${name}_loop(${parameters}) { out[i] = a[i] * 2; }
kernel void ${name}_lanes(${parameters}) { out[i] = simd_sum(a[i]); }
`;

const forms = [
  {
    name: "a macro that calls what it is given",
    source: "#define APPLY(f, x) f(x)",
    body: "out[i] = APPLY(simd_sum, a[i]);",
  },
  {
    name: "a macro that pastes the name together",
    source: "#define REDUCE(op, x) simd_##op(x)",
    body: "out[i] = REDUCE(sum, a[i]);",
  },
  {
    name: "a function as the argument of a template",
    source: "template <float (*F)(float)> static float apply(float x) { return F(x); }",
    body: "out[i] = apply<simd_sum>(a[i]);",
  },
  {
    name: "a function as the argument of a template of a template",
    source: `template <float (*F)(float)> struct By { static float run(float x) { return F(x); } };
      template <typename R> static float twice(float x) { return R::run(x) + R::run(x); }`,
    body: "out[i] = twice<By<simd_sum>>(a[i]) / 2;",
  },
  {
    name: "an operator of a type of the source",
    source: `struct Summed { float x; float operator()(float y) const { return simd_sum(y) * x; } };`,
    body: "const Summed s{1}; out[i] = s(a[i]);",
  },
  {
    name: "a conversion of a type of the source",
    source: "struct Sum { float x; operator float() const { return simd_sum(x); } };",
    body: "out[i] = Sum{a[i]};",
  },
  {
    name: "a barrier by a macro's argument",
    source: "#define CALL(f, ...) f(__VA_ARGS__)",
    body: "CALL(threadgroup_barrier, mem_flags::mem_device); out[i] = CALL(metal::simd_sum, a[i]);",
  },
];
forms.forEach(({ name, source, body }, index) => {
  const kernel = `hidden_${index}`;
  kernelSuite(kernel, `${head}${source}\nkernel void ${kernel}(${parameters}) { ${body} }\n${beside(kernel)}`, [
    { name, kernel, out: "float", inputs, grid: 32, threads: 32, expected: range(32, () => sum) },
    {
      name: "a loop beside it",
      kernel: `${kernel}_loop`,
      out: "float",
      inputs,
      grid: 32,
      threads: 32,
      expected: list.map((x) => x * 2),
    },
    {
      name: "lanes beside it",
      kernel: `${kernel}_lanes`,
      out: "float",
      inputs,
      grid: 32,
      threads: 32,
      expected: range(32, () => sum),
    },
  ]);
});

const done = countCase();
test("large kernels, each compiled alone", () => {
  const filler = Array.from({ length: 120 }, (_, k) => `  x = x * 1 + ${k} - ${k};`).join("\n");
  const source = `${head}template <float (*F)(float)> static float apply(float x) { return F(x); }
kernel void alone_0(${parameters}) {\n  float x = a[i];\n${filler}\n  out[i] = apply<simd_sum>(x);\n}
kernel void alone_1(${parameters}) {\n  float x = a[i];\n${filler}\n  out[i] = x;\n}
`;
  using device = Device.open();
  device.registerSource("alone.metal", source);
  for (const [kernel, expected] of [
    ["alone_0", sum],
    ["alone_1", list[5]],
  ] as const) {
    using pipeline = device.pipeline(kernel);
    using out = device.tensor("f32", [32]);
    using a = device.tensor("f32", [32]);
    a.set(list);
    using pass = device.pass();
    pass.dispatch(pipeline, { buffers: [out, a], grid: 32, threads: 32 });
    pass.commitAndWait();
    expect(out.toFloat32Array()[5]).toBe(expected as number);
  }
  done();
});
