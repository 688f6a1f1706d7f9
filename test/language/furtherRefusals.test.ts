/** Indices that are equal once they are computed, casts that change the memory of a reference, arguments that nothing tells. */
import { both, type Refusal, refusalSuite } from "./refused.ts";

const used = /function constant index (5 )?is already used/;
const space =
  /'(const )?device float \*' to '(const )?thread(group)? float \*' converts between mismatching address spaces/;
const body = "out[i] = f(in[i]);";
const template = (index: string) =>
  `template <int N, typename T> kernel void body(device T *out [[buffer(${index})]], uint i [[thread_position_in_grid]]) { out[i] = T(N); }`;

const refusals: readonly Refusal[] = [
  // Two function constants on one index.
  {
    name: "a sum of a constant and a number",
    source: both(
      "constant int BASE = 4;\nconstant int a [[§function_constant(BASE + 1)]];\nconstant int b [[function_constant(5)]];",
      "out[i] = a + b;",
    ),
    says: used,
  },
  {
    name: "a sum of a macro and a number",
    source: both(
      "#define BASE 4\nconstant int b [[function_constant(5)]];\nconstant int a [[§function_constant(BASE + 1)]];",
      "out[i] = a + b;",
    ),
    says: used,
  },
  {
    name: "two sums of constants",
    source: both(
      "constant int P = 2, Q = 3;\nconstant int a [[function_constant(P + 3)]];\nconstant int b [[§function_constant(Q * 2 - 1)]];",
      "out[i] = a + b;",
    ),
    says: used,
  },
  {
    name: "an enumerator of a namespace",
    source: both(
      "namespace n { enum { five = 5 }; constant int a [[§function_constant(five)]]; }\nconstant int b [[function_constant(10 / 2)]];",
      "out[i] = n::a + b;",
    ),
    says: used,
  },
  {
    name: "a shift and a remainder",
    source: both(
      "constant int a [[function_constant((1 << 2) + 1)]];\nconstant int b [[§function_constant(0x1d % 8)]];",
      "out[i] = a + b;",
    ),
    says: used,
  },
  // References as arguments of templates.
  {
    name: "a cast of a reference to a parameter of a template",
    source: both(
      "template <typename R> float f(device float &x) { return §(R)x; }",
      "out[i] = f<thread float &>(out[i]);",
    ),
    says: space,
  },
  {
    name: "the same in the form of a call",
    source: both(
      "template <typename R> float f(device float &x) { return §R(x); }",
      "out[i] = f<thread float &>(out[i]);",
    ),
    says: space,
  },
  {
    name: "a cast that is assigned to",
    source: both("template <typename R> void f(device float &x) { §(R)x = 1; }", "f<threadgroup float &>(out[i]);"),
    says: space,
  },
  {
    name: "a call that is assigned to",
    source: both("template <typename R> void f(device float &x) { §R(x) += 1; }", "f<threadgroup float &>(out[i]);"),
    says: space,
  },
  {
    name: "a cast to a parameter of a class template",
    source: both(
      "template <typename R> struct C { static float f(const device float &x) { return §(R)x; } };\nusing Mine = const thread float &;",
      "out[i] = C<Mine>::f(in[i]);",
    ),
    says: space,
  },
  {
    name: "a cast to a member type of a struct",
    source: both(
      "struct S { typedef const thread float &R; };\nfloat f(const device float &x) { return §(S::R)x; }",
      body,
    ),
    says: space,
  },
  {
    name: "a cast to a type of a template's argument",
    source: both(
      "template <typename T> struct S { typedef const thread T &R; };\ntemplate <typename T> float f(const device T &x) { return §(typename S<T>::R)x; }",
      body,
    ),
    says: space,
  },
  {
    name: "a cast beside both half and bfloat",
    source: both(
      "constant half h = 1; constant bfloat b = 1;\ntemplate <typename R> float f(device float &x) { return §(R)x + h + b; }",
      "out[i] = f<thread float &>(out[i]);",
    ),
    says: space,
  },
  // Template arguments that are neither given nor deduced.
  {
    name: "a number that no parameter has",
    source: `${template("0")}\ntemplate [[host_name("k")]] kernel void §body(device float *, uint);\n`,
    says: /the argument 'N' of 'body' cannot be deduced here: name it/,
  },
  {
    name: "parameters of another memory",
    source: `${template("0")}\ntemplate [[host_name("k")]] kernel void §body<7>(constant float *, uint);\n`,
    says: /the arguments of the template 'body' cannot be deduced from these parameters/,
  },
  {
    name: "an index that a deduced number makes twice",
    source: `template <int N> struct Table { float values[N]; };
template <int N> kernel void body(device float *out [[buffer(4)]], constant Table<N> &t [[§buffer(N)]]) { out[0] = t.values[0]; }
template [[host_name("k")]] kernel void body(device float *, constant Table<4> &);
`,
    says: /buffer index is already used by another argument/,
  },
];

refusalSuite("furtherRefusals", refusals);
