/** C-style casts to references, and packs of functions as arguments of templates. */
import { floats, kernelSuite, range } from "./harness.ts";

const list = range(32, (k) => k * 0.25 - 3);
const inputs = [floats(list)];
const head = "#include <metal_stdlib>\nusing namespace metal;\n";
const parameters = "device float *out [[buffer(0)]], device float *a [[buffer(1)]], uint i [[thread_position_in_grid]]";

/** The bits of a float one up from `x`. */
const next = (x: number): number => {
  const bits = new Uint32Array(Float32Array.of(x).buffer);
  bits[0] = (bits[0] as number) + 1;
  return new Float32Array(bits.buffer)[0] as number;
};

const forms = [
  {
    name: "to another type of the same memory, assigned to",
    body: "out[i] = a[i]; ((device uint &)out[i])++;",
    expected: next,
  },
  {
    name: "of thread memory, read",
    body: "float x = a[i]; uint bits = (thread uint &)x + 1; out[i] = (const thread float &)bits;",
    expected: next,
  },
  {
    name: "of threadgroup memory, by an alias",
    source: "using Bits = threadgroup uint &;",
    body: "threadgroup float s[32]; s[i] = a[i]; ((Bits)s[i])++; Bits(s[i])--; Bits b = Bits(s[i]); b++; out[i] = s[i];",
    expected: next,
  },
  {
    name: "of constant memory, in an argument and in a cast",
    source: "constant float2 kPair = float2(2, 3);\nstatic float sum(constant float2 &v) { return v.x + v.y; }",
    body: "out[i] = a[i] * sum((constant float2 &)(kPair)) + (float)(constant float &)kPair;",
    expected: (x: number) => x * 5 + 2,
  },
  {
    name: "of a member behind an arrow, an element and a call",
    source: `struct S { float v[2]; };
      static device S &at(device float *p, uint i) { return (device S &)p[i / 2 * 2]; }
      struct Holder { device S *s; };`,
    body: "Holder h{&at(a, i)}; out[i] = (device float &)h.s->v[i % 2] + -(device float &)at(a, i).v[i % 2] * 3;",
    expected: (x: number) => x - 3 * x,
  },
  {
    name: "that are parameters and no casts",
    source: `static float take(thread float &) { return 1; }
      struct F { float operator()(thread float &x) const { return x; } };
      template <float (*G)(thread float &)> static float call(thread float &x) { return G(x); }`,
    body: "float x = a[i]; out[i] = F()(x) + call<take>(x);",
    expected: (x: number) => x + 1,
  },
  {
    name: "a pack of functions, folded",
    source: `static float up(float x) { return x + 1; }
      static float twice(float x) { return 2 * x; }
      template <float (*...F)(float)> static float all(float x) { return (F(x) + ...); }`,
    body: "out[i] = all<up, twice, up>(a[i]) + all<twice>(a[i]);",
    expected: (x: number) => 2 * (x + 1) + 4 * x,
  },
  {
    name: "a pack of functions, one after another, and by types",
    source: `static float up(float x) { return x + 1; }
      static float twice(float x) { return 2 * x; }
      template <float (*F)(float), float (*...R)(float)> static float chain(float x) {
        if constexpr (sizeof...(R) > 0) return chain<R...>(F(x)); else return F(x);
      }
      struct Up { float operator()(float x) const { return x + 1; } };
      template <typename... F> static float types(float x) { return (F()(x) + ...); }`,
    body: "out[i] = chain<up, twice, up>(a[i]) + types<Up, Up>(a[i]);",
    expected: (x: number) => 2 * (x + 1) + 1 + 2 * (x + 1),
  },
];
forms.forEach(({ name, source = "", body, expected }, index) => {
  const kernel = `casts_${index}`;
  kernelSuite(kernel, `${head}${source}\nkernel void ${kernel}(${parameters}) { ${body} }\n`, [
    { name, kernel, out: "float", inputs, grid: 32, threads: 32, expected: list.map(expected) },
  ]);
});
