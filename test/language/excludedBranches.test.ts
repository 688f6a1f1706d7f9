/** Threadgroup variables of branches that a constant excludes: they take no memory. Each kernel has more than fits in all. */
import { expect, test } from "bun:test";
import { thrownBy } from "../helpers/errors.ts";
import { countCase, device, floats, type KernelCase, kernelSuite, range } from "./harness.ts";

const steps = range(8, (k) => k + 1);

/** A threadgroup array of `size` that turns the numbers round and multiplies them. */
const turn = (size: string, factor: number) =>
  `{ threadgroup float part[${size}]; part[i] = in[i]; threadgroup_barrier(mem_flags::mem_threadgroup); out[i] = part[7 - i] * ${factor}; }`;

const parameters =
  "device float *out [[buffer(0)]], const device float *in [[buffer(1)]], uint i [[thread_index_in_threadgroup]]";
const types = "(device float *, const device float *, uint)";

const forms: readonly {
  readonly name: string;
  readonly source: string;
  readonly factors: readonly number[];
  readonly words: readonly number[];
}[] = [
  {
    name: "plain_if",
    source: `template <int N> kernel void plain_if_of(${parameters}) { if (N > 4) ${turn("8000", 2)} else ${turn("7000", 3)} }`,
    factors: [2, 3],
    words: [8000, 7000],
  },
  {
    name: "plain_switch",
    source: `template <int N> kernel void plain_switch_of(${parameters}) { switch (N) { case 8: ${turn("8000", 4)} break; case 2: ${turn("7900", 5)} break; default: ${turn("7800", 6)} } }`,
    factors: [4, 5],
    words: [8000, 7900],
  },
  {
    name: "chain",
    source: `template <int N> kernel void chain_of(${parameters}) { constexpr bool wide = N * 2 > 10; if (wide && N != 9) ${turn("8000", 7)} else if (N == 3) ${turn("7000", 8)} else ${turn("6000", 9)} }`,
    factors: [7, 9],
    words: [8000, 6000],
  },
  {
    name: "condition_of_a_type",
    source: `template <int N> struct Traits { static constant constexpr bool wide = N > 4; };
template <int N> kernel void condition_of_a_type_of(${parameters}) { if (Traits<N>::wide) ${turn("8000", 2)} if (!Traits<N>::wide) ${turn("8100", 5)} }`,
    factors: [2, 5],
    words: [8000, 8100],
  },
  {
    name: "constexpr_if",
    source: `template <int N> kernel void constexpr_if_of(${parameters}) { if constexpr (N > 4) ${turn("8000", 3)} else ${turn("7000", 4)} }`,
    factors: [3, 4],
    words: [8000, 7000],
  },
];

const instances = ({ name }: { readonly name: string }) =>
  [8, 2].map((n) => `template [[host_name("${name}_${n}")]] kernel void ${name}_of<${n}>${types};`).join("\n");

const source = `#include <metal_stdlib>
using namespace metal;
constant constexpr int kWide = 1;
#define DEEP 0
kernel void no_template(${parameters}) { if (kWide) ${turn("8000", 5)} else ${turn("7000", 6)} if (DEEP) ${turn("6000", 7)} }
${forms.map((form) => `${form.source}\n${instances(form)}`).join("\n")}
`;

const whole = { out: "float", inputs: [floats(steps)], grid: 8, threads: 8 } as const;
const turned = (factor: number) => [...steps].reverse().map((x) => x * factor);

kernelSuite("excludedBranches", source, [
  { ...whole, name: "constants of the program and macros", kernel: "no_template", expected: turned(5) },
  ...forms.flatMap(({ name, factors }) =>
    [8, 2].map(
      (n, k): KernelCase => ({
        ...whole,
        name: `${name.replaceAll("_", " ")} of ${n}`,
        kernel: `${name}_${n}`,
        expected: turned(factors[k] ?? 0),
      }),
    ),
  ),
]);

const done = countCase();
test("excludedBranches: bytes of the variables that are left", () => {
  const bytes = (kernel: string) => {
    using pipeline = device().pipeline(kernel);
    return pipeline.info.staticThreadgroupMemoryLength;
  };
  expect(bytes("no_template")).toBe(4 * 8000);
  for (const { name, words } of forms) {
    expect([8, 2].map((n) => bytes(`${name}_${n}`))).toEqual(words.map((count) => 4 * count));
  }
  done();
});

// A Mac's compiler replaces a function constant by its value; here it is a variable.
const chosen = `#include <metal_stdlib>
using namespace metal;
constant bool wide [[function_constant(0)]];
kernel void chosen_small(${parameters}) { if (wide) ${turn("100", 2)} else ${turn("50", 3)} }
kernel void chosen_large(${parameters}) { if (wide) ${turn("8000", 2)} else ${turn("7000", 3)} }
`;

const constants = (value: boolean) => ({ constants: [{ index: 0, dtype: "bool", value } as const] });

const counted = countCase();
test("excludedBranches: those of a function constant are counted, and refused where they are too many", () => {
  const software = device();
  software.registerSource("chosenBranches", chosen);
  using out = software.tensor("f32", [8]);
  using numbers = software.tensor("f32", [8]);
  numbers.set(steps);
  for (const [value, factor] of [
    [true, 2],
    [false, 3],
  ] as const) {
    using pipeline = software.pipeline("chosen_small", constants(value));
    expect(pipeline.info.staticThreadgroupMemoryLength).toBe(4 * (100 + 50));
    using pass = software.pass();
    pass.dispatch(pipeline, { buffers: [out, numbers], grid: 8, threads: 8 });
    pass.commitAndWait();
    expect([...out.toFloat32Array()]).toEqual(turned(factor));
    const refused = thrownBy(() => software.pipeline("chosen_large", constants(value)));
    expect(refused.message).toContain("'chosen_large' has 60000 bytes of threadgroup variables; the limit is 32768");
  }
  counted();
});
