/**
 * What Apple's compiler refuses, in forms that hide it: behind aliases,
 * templates, macros, members and lines that are not compiled. And correct code
 * beside each, which has to compile.
 */
import { test } from "bun:test";
import { countCase } from "./harness.ts";
import { both, compile, kernel, type Refusal, refusalSuite } from "./refused.ts";

const space = /type must have an explicit address space qualifier/;
const recursion = /calls itself; recursion is not supported/;
const pointer = /function pointers are not supported/;
const dynamic = /is not a constant expression/;
const used = /buffer index is already used|is already used by another argument/;

const refusals: readonly Refusal[] = [
  // Pointers and references without an address space.
  { name: "an alias of a pointer", source: both("using P = float §*;", "out[i] = 1;"), says: space },
  { name: "a typedef of a pointer", source: both("typedef float *§P;", "out[i] = 1;"), says: space },
  {
    name: "a pointer to a template's type",
    source: both("template <typename T> float f(const T &§x) { return x; }"),
    says: space,
  },
  { name: "a reference to an alias", source: both("typedef float F; float f(const F &§x) { return x; }"), says: space },
  { name: "an rvalue reference", source: both("float f(float &&§x) { return x; }"), says: space },
  { name: "a pointer to unsigned", source: kernel("unsigned x = 1; unsigned *§p = &x; out[i] = *p;"), says: space },
  { name: "a pointer to void", source: both("float f(const void *§p) { return 1; }", "out[i] = 1;"), says: space },
  { name: "a pointer to an atomic", source: both("void f(atomic_uint *§p) { }", "out[i] = 1;"), says: space },
  {
    name: "a reference to a matrix",
    source: both("float f(const float4x4 &§m) { return 1; }", "out[i] = 1;"),
    says: space,
  },
  {
    name: "a reference to an array",
    source: both("float f(const float (&§m)[4]) { return m[0]; }", "out[i] = 1;"),
    says: space,
  },
  {
    name: "a pointer to a nested struct",
    source: both("struct A { struct N { int a; }; N *§p; };", "out[i] = 1;"),
    says: space,
  },
  { name: "a pointer to a pointer", source: kernel("thread float **§q = nullptr; out[i] = **q;"), says: space },
  {
    name: "a kernel's pointer to a pointer",
    source: "kernel void k(device float **§out [[buffer(0)]]) { out[0][0] = 1; }\n",
    says: space,
  },
  {
    name: "the address space of the pointer alone",
    source: kernel("float x = 1; float *§thread p = &x; out[i] = *p;"),
    says: space,
  },
  { name: "a cast", source: kernel("float x = 1; out[i] = *(float §*)&x;"), says: space },
  { name: "a reinterpret_cast", source: kernel("float x = 1; out[i] = *reinterpret_cast<float §*>(&x);"), says: space },
  {
    name: "a template argument",
    source: both("template <typename T> struct S { T t; };", "S<float §*> s; out[i] = 1;"),
    says: space,
  },
  {
    name: "a static member outside of constant",
    source: both("struct S { static const int §n = 4; };", "out[i] = S::n;"),
    says: /constant address space/,
  },
  {
    name: "a static variable of a member function",
    source: both("struct S { float f(float x) { static float §n = 0; n += x; return n; } };", "S s; out[i] = s.f(1);"),
    says: /constant address space/,
  },
  // Of functions of SIMD and quad groups.
  {
    name: "a sum of 64 bits over lanes",
    source: kernel("out[i] = §simd_sum(long(i));"),
    says: /no matching function for call to 'simd_sum'[\s\S]*__is_valid_simdgroup_type<long/,
  },
  {
    name: "a bool of another lane",
    source: kernel("out[i] = §simd_shuffle_xor(in[i] > 1, 1);"),
    says: /no matching function for call to 'simd_shuffle_xor'/,
  },
  {
    name: "a struct of another lane",
    source: both("struct S { float x; };", "S s{in[i]}; out[i] = §quad_broadcast(s, 1).x;"),
    says: /no matching function for call to 'quad_broadcast'/,
  },
  {
    name: "the bits of floats over lanes",
    source: kernel("out[i] = §simd_or(in[i]);"),
    says: /no matching function for call to 'simd_or'/,
  },
  {
    name: "a function by the name that C gives that of float",
    source: kernel("out[i] = §cosf(in[i]);"),
    says: /undeclared identifier 'cosf'/,
  },
  // Behind macros.
  { name: "double by a macro", source: both("#define D double", "§D x = in[i]; out[i] = x;"), says: /double/ },
  {
    name: "double by a conditional macro",
    source: both("#if 1\n#define D double\n#else\n#define D float\n#endif", "§D x = in[i]; out[i] = x;"),
    says: /double/,
  },
  {
    name: "virtual by a macro",
    source: both("#define V virtual\nstruct S { §V float f() { return 1; } };", "out[i] = 1;"),
    says: /virtual/,
  },
  {
    name: "throw by a macro",
    source: both("#define FAIL throw 1", "if (in[i] < 0) §FAIL; out[i] = 1;"),
    says: /exception/,
  },
  { name: "goto by a macro", source: both("#define G goto", "§G end; end: out[i] = 1;"), says: /goto/ },
  { name: "std by a macro", source: both("#define SQ std::sqrt", "out[i] = §SQ(in[i]);"), says: /standard library/ },
  {
    name: "a lambda by a macro",
    source: both("#define L [](float x) { return x; }", "auto f = §L; out[i] = f(in[i]);"),
    says: /lambda/,
  },
  { name: "using namespace std", source: both("using namespace §std;", "out[i] = 1;"), says: /standard library/ },
  // Recursion.
  {
    name: "recursion of a member function",
    source: both("struct S { float f(float x) { return x < 1 ? x : §f(x - 1) + 1; } };", "S s; out[i] = s.f(in[i]);"),
    says: recursion,
  },
  {
    name: "recursion as the last call of a member function",
    source: both("struct S { float f(float x) { return x < 1 ? x : this->§f(x - 1); } };", "S s; out[i] = s.f(in[i]);"),
    says: recursion,
  },
  {
    name: "recursion of a function that has the name of one of the library",
    source: both(
      "struct P { float v; };\nfloat length(P p) { return p.v < 1 ? p.v : §length(P{p.v - 1}) + 1; }",
      "out[i] = length(P{in[i]});",
    ),
    says: recursion,
  },
  {
    name: "recursion of a template",
    source: both("template <typename T> T f(T x) { return x < 1 ? x : §f(x - 1); }"),
    says: recursion,
  },
  {
    name: "recursion through another template",
    source: both(
      "template <typename T> T g(T x);\ntemplate <typename T> T f(T x) { return x < 1 ? x : §g(x - 1); }\ntemplate <typename T> T g(T x) { return f(x) + 1; }",
    ),
    says: recursion,
  },
  {
    name: "recursion of an overload",
    source: both("int f(int x) { return x; }\nfloat f(float x) { return x < 1 ? x : §f(x - 1); }"),
    says: recursion,
  },
  {
    name: "recursion in a namespace",
    source: both("namespace n { float f(float x) { return x < 1 ? x : §n::f(x - 1); } }", "out[i] = n::f(in[i]);"),
    says: recursion,
  },
  {
    name: "recursion by a macro",
    source: both("#define AGAIN(x) f(x - 1)\nfloat §f(float x) { return x < 1 ? x : AGAIN(x); }"),
    says: recursion,
  },
  {
    name: "recursion of an operator",
    source: both(
      "struct S { float v; };\nS operator+(S a, S b) { return a.v < 1 ? b : S{a.v - 1} §+ b; }",
      "S s = {in[i]}; out[i] = (s + s).v;",
    ),
    says: recursion,
  },
  // Function pointers.
  {
    name: "an alias of a function pointer",
    source: both("using F = float (§*)(float);", "out[i] = 1;"),
    says: pointer,
  },
  {
    name: "auto of a function",
    source: both("float g(float x) { return x; }", "auto p = §g; out[i] = p(in[i]);"),
    says: pointer,
  },
  {
    name: "the address of a function",
    source: both("float g(float x) { return x; }", "auto p = &§g; out[i] = p(in[i]);"),
    says: pointer,
  },
  {
    name: "a function as an argument",
    source: both(
      "float g(float x) { return x; } template <typename F> float f(F h, float x) { return h(x); }",
      "out[i] = f(§g, in[i]);",
    ),
    says: pointer,
  },
  {
    name: "a choice of functions",
    source: both("float g(float x) { return x; } float h(float x) { return -x; }", "out[i] = (i & 1 ? §g : h)(in[i]);"),
    says: pointer,
  },
  {
    name: "an array of function pointers",
    source: both("float g(float x) { return x; }", "float (*§t[1])(float) = {g}; out[i] = t[0](1);"),
    says: pointer,
  },
  {
    name: "a reference to a function",
    source: both("float g(float x) { return x; }", "float (&§p)(float) = g; out[i] = p(1);"),
    says: pointer,
  },
  {
    name: "a pointer to a member function",
    source: both(
      "struct S { float f(float x) { return x; } };",
      "S s; float (S::*§p)(float) = &S::f; out[i] = (s.*p)(1);",
    ),
    says: pointer,
  },
  // Initialisers.
  {
    name: "a constant from a function of the library",
    source: both("constant float §kValue = sqrt(2.0f);", "out[i] = kValue;"),
    says: dynamic,
  },
  {
    name: "a constant from a member function",
    source: both(
      "struct S { float v; float get() const { return v; } };\nconstant float §kValue = S{1}.get();",
      "out[i] = kValue;",
    ),
    says: dynamic,
  },
  {
    name: "a constant from a constructor",
    source: both("struct S { float v; S(float x) { v = x * 2; } };\nconstant S §kValue = S(1);", "out[i] = kValue.v;"),
    says: dynamic,
  },
  {
    name: "a constant from a template",
    source: both(
      "template <typename T> T f(T x) { return x + 1; }\nconstant float §kValue{f<float>(1)};",
      "out[i] = kValue;",
    ),
    says: dynamic,
  },
  {
    name: "a static constant from an argument",
    source: kernel("static constant float §x = in[0]; out[i] = x;"),
    says: dynamic,
  },
  {
    name: "an array whose length is not constant",
    source: kernel("int n = in[0]; float x[§n]; x[0] = 1; out[i] = x[0];"),
    says: /variable length array/,
  },
  // Arguments of kernels.
  {
    name: "two buffers on one enumerator's value",
    source:
      "enum { kA = 1, kB = 1 };\nkernel void k(device float *out [[buffer(0)]], device float *a [[buffer(kA)]], device float *b [[§buffer(kB)]]) { out[0] = a[0] + b[0]; }\n",
    says: used,
  },
  {
    name: "two buffers on one index of a template",
    source:
      'template <int N> kernel void t(device float *out [[buffer(0)]], device float *a [[§buffer(N)]]) { out[0] = a[0]; }\ntemplate [[host_name("k")]] kernel void t<0>(device float *, device float *);\n',
    says: used,
  },
  {
    name: "two buffers on one macro's value",
    source:
      "#define A 1\n#define B (1)\nkernel void k(device float *out [[buffer(0)]], device float *a [[buffer(A)]], device float *b [[§buffer(B)]]) { out[0] = a[0] + b[0]; }\n",
    says: used,
  },
  {
    name: "an index of 31 by an expression",
    source: "kernel void k(device float *out [[§buffer(30 + 1)]]) { out[0] = 1; }\n",
    says: /out of bounds/,
  },
  {
    name: "an attribute without its index",
    source: "kernel void k(device float *out [[§buffer]]) { out[0] = 1; }\n",
    says: /needs an index/,
  },
  {
    name: "two indices on one argument",
    source: "kernel void k(device float *out [[buffer(0)]] [[§buffer(1)]]) { out[0] = 1; }\n",
    says: /one index or position/,
  },
  {
    name: "two arguments on one threadgroup index",
    source:
      "kernel void k(device float *out [[buffer(0)]], threadgroup float *a [[threadgroup(0)]], threadgroup float *b [[§threadgroup(0)]]) { a[0] = b[0]; out[0] = a[0]; }\n",
    says: used,
  },
  {
    name: "a position of an alias of int",
    source:
      "typedef int I;\nkernel void k(device float *out [[buffer(0)]], I i [[§thread_position_in_grid]]) { out[i] = 1; }\n",
    says: /cannot be applied to this type/,
  },
  {
    name: "a position by reference",
    source:
      "kernel void k(device float *out [[buffer(0)]], thread uint §&i [[thread_position_in_grid]]) { out[i] = 1; }\n",
    says: /cannot be applied to a pointer or reference/,
  },
  // Function constants.
  {
    name: "an assignment to a function constant",
    source: both("constant int c [[function_constant(0)]];", "§c = 3; out[i] = c;"),
    says: /cannot assign/,
  },
  {
    name: "a question about what is no function constant",
    source: both("constant int c = 2;", "out[i] = is_function_constant_defined(§c);"),
    says: /'c' is not a function constant/,
  },
];
refusalSuite("form", refusals);

const accepted: readonly { readonly name: string; readonly source: string }[] = [
  {
    name: "lines for another compiler",
    source: both(
      "#ifdef __METAL_VERSION__\n#define VECTOR float4\n#else\n#include <vector>\nstd::vector<float> all; double y; static int counter = 0; float *p;\nclass Host { virtual void f() noexcept; };\n#endif",
      "out[i] = VECTOR(1).x;",
    ),
  },
  {
    name: "#if 0",
    source: both("#if 0\ndouble x; goto y; float f(float x) { return f(x); } throw\n#endif", "out[i] = 1;"),
  },
  {
    name: "macros that nothing uses",
    source: both("#define NEVER(x) std::sqrt((double)x)\n#define LATER goto end", "out[i] = 1;"),
  },
  {
    name: "a variable named as a struct",
    source: both("struct scale { float v; };", "float scale = 2, b = 3; float c = (scale * b); out[i] = scale * c;"),
  },
  {
    name: "a variable named as a function",
    source: both(
      "float scale(float x) { return x * 2; }",
      "float s = scale(1); { float scale = 3; float t = scale; out[i] = t + s; }",
    ),
  },
  {
    name: "functions that call another of their name",
    source: both(
      "float f(float x) { return x + 1; }\nfloat2 f(float2 x) { return float2(f(x.x), f(x.y)); }\nfloat4 f(float4 x) { return float4(f(x.xy), f(x.zw)); }\nstruct S { float f(float x) { return ::f(x); } };",
      "S s; out[i] = f(float4(1)).x + s.f(1);",
    ),
  },
  {
    name: "templates that end",
    source: both(
      "template <int N> float f(float x) { if constexpr (N == 0) { return x; } else { return f<N - 1>(x) + 1; } }\ntemplate <typename T> T sum(T a) { return a; }\ntemplate <typename T, typename... R> T sum(T a, R... r) { return a + sum(r...); }",
      "out[i] = f<5>(in[i]) + sum(1.0f, 2.0f, 3.0f);",
    ),
  },
  {
    name: "functions that shall not be inlined",
    source: both(
      "__attribute__((noinline)) float f(float x) { return simd_sum(x); }\n[[clang::noinline]] float g(float x) { return x; }",
      "out[i] = f(in[i]) + g(1);",
    ),
  },
  {
    name: "a function as a template's argument",
    source: both(
      "template <float (*F)(float)> float apply(float x) { return F(x); }\nfloat g(float x) { return x; }",
      "out[i] = apply<g>((g)(in[i]));",
    ),
  },
  {
    name: "address spaces in other places",
    source: both(
      "using DP = device float *; typedef const device float &DR;\nuint f(device const unsigned int *p, thread unsigned short &q, float device *r, float const thread *s, thread float *thread *t) { return *p; }\ntemplate <typename T> struct E {}; template <typename T> struct E<const device T *> { typedef T type; };",
      "DP p = out; DR r = in[i]; E<decltype(in)>::type x = 1; thread auto &y = x; device auto *z = p; *z = y + r;",
    ),
  },
  {
    name: "constants that are constant expressions",
    source: both(
      "constexpr float sq(float x) { return x * x; }\nstruct S { float a; float4 b; int c[2]; };\nconstant float g = sq(3) + 1; constant float w = g * 2; constant float2 v = {1, 2}; constant float3 u = float3(v, 3);\nconstant S s = {1, float4(2), {1, 2}}; constant float4x4 m = float4x4(1); constant half2 h = half4(1, 2, 3, 4).xy;\nconstant uint bits = as_type<uint>(1.0f); constant float big = numeric_limits<float>::max(); constant uint shifts[] = {1u << 3, ~0u};",
      "out[i] = g + w + u.x + s.a + float(h.x) + float(bits) + big + float(shifts[0]);",
    ),
  },
  {
    name: "defaulted and deleted constructors",
    source: both("struct S { S(const thread S &) = delete; S() = default; int a; };", "S s; s.a = 1; out[i] = s.a;"),
  },
  {
    name: "std in a namespace of the user's",
    source: both("namespace my { namespace std { float sqrt(float x) { return x; } } }", "out[i] = my::std::sqrt(2);"),
  },
  {
    name: "a variable named as a function constant",
    source: both(
      "constant int c [[function_constant(0)]];",
      "int c; c = 3; out[i] = c + (is_function_constant_defined(::c) ? 1 : 0);",
    ),
  },
];
for (const { name, source } of accepted) {
  const done = countCase();
  test(`accepted: ${name}`, () => {
    compile("accepted.metal", source);
    done();
  });
}
