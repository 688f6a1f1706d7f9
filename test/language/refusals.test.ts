/**
 * What Apple's compiler refuses is refused, at the place in the user's file
 * and with the line's text. A `§` in a source marks the place; it is taken out.
 */
import { expect, test } from "bun:test";
import { countCase, device } from "./harness.ts";
import { nearMisses } from "./programs.ts";
import { both, kernel, type Refusal, refusalSuite } from "./refused.ts";

const refusals: readonly Refusal[] = [
  // Address spaces.
  {
    name: "a pointer parameter of a kernel without an address space",
    source: "kernel void k(§float *out [[buffer(0)]]) { out[0] = 1; }\n",
    says: /address space/,
  },
  {
    name: "a reference parameter of a kernel without an address space",
    source: "kernel void k(device float *out [[buffer(0)]], §const float &x [[buffer(1)]]) { out[0] = x; }\n",
    says: /address space/,
  },
  {
    name: "a thread pointer as a kernel's argument",
    source: "kernel void k(device float *out [[buffer(0)]], §thread float *x [[buffer(1)]]) { out[0] = x[0]; }\n",
    says: /address space/,
  },
  {
    name: "a device pointer where a thread pointer is wanted",
    source: both("float f(thread const float *p) { return *p; }", "out[i] = §f(in);"),
    says: /no matching function|address space/,
  },
  {
    name: "a constant pointer where a device pointer is wanted",
    source: `kernel void k(device float *out [[buffer(0)]], constant float *c [[buffer(1)]]) {\n  const device float *§p = c;\n  out[0] = *p;\n}\n`,
    says: /address space|cannot initialize|changes/,
  },
  {
    name: "a threadgroup pointer from a device pointer",
    source: kernel("threadgroup float *§p = out; out[i] = p[0];"),
    says: /address space|cannot initialize|changes/,
  },
  {
    name: "a device pointer to a local variable",
    source: kernel("float x = 1; device float *§p = &x; out[i] = *p;"),
    says: /address space|cannot initialize|changes/,
  },
  {
    name: "a write through constant memory",
    source: `kernel void k(device float *out [[buffer(0)]], constant float *c [[buffer(1)]]) {\n  c[0] §= 2;\n  out[0] = c[0];\n}\n`,
    says: /const|read-only/,
  },
  {
    name: "a write to a program-scope constant",
    source: both("constant float kValue = 2;", "kValue §= 3; out[i] = kValue;"),
    says: /const/,
  },
  {
    name: "a program-scope variable without constant",
    source: both("float §counter = 0;", "out[i] = counter;"),
    says: /constant address space/,
  },
  {
    name: "a static variable in a kernel",
    source: kernel("static float §sum = 0; sum += in[i]; out[i] = sum;"),
    says: /constant address space|static/,
  },
  {
    name: "a program-scope threadgroup variable",
    source: both("threadgroup float §box[4];", "out[i] = box[0];"),
    says: /threadgroup/,
  },
  {
    name: "a threadgroup variable in a function that is no kernel",
    source: both("float f(float x) { threadgroup float §box[4]; box[0] = x; return box[0]; }"),
    says: /threadgroup/,
  },
  {
    name: "a threadgroup variable with an initialiser",
    source: kernel("threadgroup float x §= 3; out[i] = x;"),
    says: /threadgroup/,
  },
  {
    name: "a pointer member without an address space",
    source: both("struct S { float *§p; };", "S s; out[i] = in[i];"),
    says: /address space/,
  },
  {
    name: "a pointer variable without an address space",
    source: kernel("float x = 1; float *§p = &x; out[i] = *p;"),
    says: /address space/,
  },
  {
    name: "a reference parameter of a function without an address space",
    source: both("float f(const float &§x) { return x; }"),
    says: /address space/,
  },
  // What belongs to graphics.
  {
    name: "a texture",
    source: both("float f(§texture2d<float> t) { return 1; }", "out[i] = 1;"),
    says: /'texture2d' belongs to graphics/,
  },
  {
    name: "a sampler",
    source: both("constexpr §sampler s(filter::linear);", "out[i] = 1;"),
    says: /'sampler' belongs to graphics/,
  },
  {
    name: "a vertex function",
    source: both("§vertex float4 corner(uint i [[vertex_id]]) { return float4(i); }", "out[i] = 1;"),
    says: /'vertex' belongs to graphics/,
  },
  // Types and features of C++.
  { name: "double", source: kernel("§double x = in[i]; out[i] = float(x);"), says: /double/ },
  { name: "double as a parameter", source: both("float f(§double x) { return float(x); }"), says: /double/ },
  { name: "long double", source: kernel("long §double x = in[i]; out[i] = float(x);"), says: /double/ },
  { name: "recursion", source: both("float §f(float x) { return x < 1 ? x : f(x - 1); }"), says: /recurs/ },
  {
    name: "recursion through another function",
    source: both(
      "float g(float x);\nfloat §f(float x) { return x < 1 ? x : g(x - 1); }\nfloat g(float x) { return f(x) + 1; }",
    ),
    says: /recurs/,
  },
  {
    name: "a function pointer",
    source: both("float f(float x) { return x; }", "float (*§p)(float) = f; out[i] = p(in[i]);"),
    says: /function pointer|pointer to function/,
  },
  {
    name: "a function pointer as a parameter",
    source: both(
      "float g(float x) { return x; }\nfloat f(float (*§p)(float), float x) { return p(x); }",
      "out[i] = f(g, in[i]);",
    ),
    says: /function pointer|pointer to function/,
  },
  {
    name: "a virtual function",
    source: both("struct S { §virtual float f(float x) { return x; } };", "out[i] = 1;"),
    says: /virtual/,
  },
  { name: "an exception", source: kernel("if (in[i] < 0) { §throw 1; } out[i] = 1;"), says: /exception/ },
  { name: "try and catch", source: kernel("§try { out[i] = 1; } catch (...) { }"), says: /exception/ },
  { name: "new", source: kernel("thread float *p = §new float[3]; out[i] = p[0];"), says: /new/ },
  { name: "delete", source: kernel("thread float *p = nullptr; §delete p; out[i] = 1;"), says: /delete/ },
  { name: "std::", source: kernel("out[i] = §std::sqrt(in[i]);"), says: /standard library/ },
  { name: "#include of a header of C++", source: both("#include §<vector>", "out[i] = 1;"), says: /vector/ },
  { name: "a lambda", source: kernel("auto f = §[](float x) { return x; }; out[i] = f(in[i]);"), says: /lambda/ },
  { name: "goto", source: kernel("§goto end; end: out[i] = 1;"), says: /goto/ },
  {
    name: "dynamic_cast",
    source: both("struct S { int a; };", "S s; thread S *p = §dynamic_cast<thread S *>(&s); out[i] = p->a;"),
    says: /dynamic_cast/,
  },
  { name: "typeid", source: kernel("out[i] = §typeid(int) == typeid(int);"), says: /typeid/ },
  { name: "thread_local", source: kernel("§thread_local int x = 0; out[i] = x;"), says: /thread_local/ },
  {
    name: "a class template whose arguments a constructor would say",
    source: both("template <typename T> struct S { T v; S(T x) : v(x) {} };", "auto s = §S(in[i]); out[i] = s.v;"),
    says: /'S' needs its template arguments/,
  },
  {
    name: "a template parameter of any type",
    source: both("template <§auto N> float f(float x) { return x + N; }", "out[i] = f<3>(in[i]);"),
    says: /'auto' is not allowed in a template parameter/,
  },
  {
    name: "register",
    source: kernel("§register int x = 0; out[i] = x;"),
    says: /'register' is not supported in Metal/,
  },
  {
    name: "a constant in a function",
    source: kernel("constant int §x = 1; out[i] = x;"),
    says: /function scope variable cannot be declared in constant address space/,
  },
  {
    name: "a variable in device memory",
    source: kernel("device int §x = 1; out[i] = x;"),
    says: /function scope variable cannot be declared in device address space/,
  },
  {
    name: "a simdgroup_matrix of integers",
    source: both("#include <metal_simdgroup_matrix>", "simdgroup_matrix<int, 8, 8> §m; out[i] = 1;"),
    says: /half, bfloat or float/,
  },
  {
    name: "a dynamic initialiser at program scope",
    source: both("float f(float x) { return x + 1; }\nconstant float §kValue = f(2);", "out[i] = kValue;"),
    says: /constant|initiali/,
  },
  { name: "asm", source: kernel('§asm("nop"); out[i] = 1;'), says: /asm/ },
  {
    name: "a derived class with a virtual base",
    source: both("struct A { int x; };\nstruct B : §virtual A { int y; };", "out[i] = 1;"),
    says: /virtual/,
  },
  // Kernels and their arguments.
  {
    name: "a kernel that returns a value",
    source: "kernel float §k(device float *out [[buffer(0)]]) { return out[0]; }\n",
    says: /void/,
  },
  {
    name: "two arguments on one buffer index",
    source: "kernel void k(device float *out [[buffer(0)]], const device float *x [[§buffer(0)]]) { out[0] = x[0]; }\n",
    says: /buffer index 0/,
  },
  {
    name: "a buffer index beyond 30",
    source: "kernel void k(device float *out [[§buffer(31)]]) { out[0] = 1; }\n",
    says: /31/,
  },
  {
    name: "more than 31 buffers",
    source: `kernel void k(${Array.from({ length: 31 }, (_, n) => `device float *b${n}`).join(", ")}, §device float *last) { b0[0] = last[0]; }\n`,
    says: /31|buffer/,
  },
  {
    name: "an attribute that does not exist",
    source: "kernel void k(device float *out [[buffer(0)]], uint i [[§thread_position_in_galaxy]]) { out[i] = 1; }\n",
    says: /thread_position_in_galaxy/,
  },
  {
    name: "a position as float",
    source: "kernel void k(device float *out [[buffer(0)]], float §i [[thread_position_in_grid]]) { out[0] = i; }\n",
    says: /thread_position_in_grid|type/,
  },
  {
    name: "a position as int",
    source: "kernel void k(device float *out [[buffer(0)]], int §i [[thread_position_in_grid]]) { out[i] = 1; }\n",
    says: /thread_position_in_grid|type/,
  },
  {
    name: "positions of which one is a vector and one a scalar",
    source:
      "kernel void k(device float *out [[buffer(0)]], uint3 i [[thread_position_in_grid]], uint t [[§thread_position_in_threadgroup]]) { out[i.x] = t; }\n",
    says: /'thread_position_in_threadgroup' on type 'uint', and 'thread_position_in_grid' on type 'uint3'/,
  },
  {
    name: "a size and a position of two widths",
    source:
      "kernel void k(device float *out [[buffer(0)]], const metal::ushort2 i [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]], uint3 n [[§threads_per_threadgroup]]) { out[i.x] = n.x + lane; }\n",
    says: /'threads_per_threadgroup' on type 'uint3', and 'threadgroup_position_in_grid' on type 'ushort2'/,
  },
  {
    name: "positions of two widths in a template",
    source:
      'template <typename T> kernel void t(device T *out [[buffer(0)]], uint i [[thread_position_in_grid]], uint2 n [[§threads_per_grid]]) { out[i] = n.x; }\ntemplate [[host_name("k")]] kernel void t<float>(device float *, uint, uint2);\ntemplate [[host_name("l")]] kernel void t<int>(device int *, uint, uint2);\n',
    says: /'threads_per_grid' on type 'uint2', and 'thread_position_in_grid' on type 'uint':[\s\S]*\n1 error/,
  },
  {
    name: "a lane index as uint3",
    source:
      "kernel void k(device float *out [[buffer(0)]], uint3 §i [[thread_index_in_simdgroup]]) { out[i.x] = 1; }\n",
    says: /thread_index_in_simdgroup|type/,
  },
  {
    name: "an argument by value without an attribute",
    source: "kernel void k(device float *out [[buffer(0)]], §float x) { out[0] = x; }\n",
    says: /attribute|address space|type|buffer/,
  },
  {
    name: "two kernels of one name",
    source:
      "kernel void k(device float *out [[buffer(0)]]) { out[0] = 1; }\nkernel void §k(device float *out [[buffer(0)]]) { out[0] = 2; }\n",
    says: /redefinition|two kernels/,
  },
  // Orders of atomic functions.
  ...[
    ["an order of atomic_fetch_add_explicit", "atomic_fetch_add_explicit(x, 1u, memory_order_seq_cst§)"],
    ["an order of atomic_store_explicit", "atomic_store_explicit(x, 1u, memory_order_release§)"],
    ["an order of atomic_load_explicit", "out[i] = atomic_load_explicit(x, memory_order_acquire§)"],
    ["an order of atomic_exchange_explicit", "atomic_exchange_explicit(x, 1u, memory_order_acq_rel§)"],
    [
      "the second order of atomic_compare_exchange_weak_explicit",
      "uint y = 0; atomic_compare_exchange_weak_explicit(x, &y, 1u, memory_order_relaxed, memory_order_acquire§)",
    ],
    [
      "an order of atomic_fetch_sub_explicit, of floats",
      "atomic_fetch_sub_explicit((device atomic_float *)out, 1.0f, memory_order_seq_cst§)",
    ],
    ["an order of atomic_max_explicit", "atomic_max_explicit((device atomic_ulong *)out, 1ul, memory_order_release§)"],
  ].map(([name = "", code = ""]) => ({
    name,
    source: kernel(`device atomic_uint *x = (device atomic_uint *)out; ${code};`),
    says: /error: the memory order of an atomic function is memory_order_relaxed\n(?![\s\S]*diagnose_if)/,
  })),
  // Narrowing in braces.
  ...(
    [
      ["a fraction as int", "int x{§1.5f}; out[i] = x;", /type 'float' cannot be narrowed to 'int'/],
      ["a fraction in an array", "int x[2] = {§1.5f, 2}; out[i] = x[0];", /type 'float' cannot be narrowed to 'int'/],
      ["a double literal as int", "S s{1, §2.5}; out[i] = s.y;", /type 'float' cannot be narrowed to 'int'/],
      ["an int variable as uint", "int q = i; uint x{§q}; out[i] = x;", /from type 'int' to 'uint'/],
      ["a number too large", "uchar c{§300}; out[i] = c;", /300 which cannot be narrowed to type 'uchar'/],
      ["a float as half", "half h{§in[i]}; out[i] = h;", /from type 'float' to 'half'/],
      ["a sum of short as short", "short a = i; S s = {§a + a, 1}; out[i] = s.x;", /from type 'int' to 'short'/],
      ["a component of a vector", "int q = i; float2 v{1, §q}; out[i] = v.x;", /from type 'int' to 'float'/],
    ] as const
  ).map(([name, code, says]) => ({
    name: `narrowing: ${name}`,
    source: both("struct S { short x; int y; };", code),
    says,
  })),
  {
    name: "narrowing: a result",
    source: both("struct S { int x; };\nS made(float x) { return {§x}; }", "out[i] = made(in[i]).x;"),
    says: /type 'float' cannot be narrowed to 'int'/,
  },
  // Everyday mistakes.
  { name: "an unknown name", source: kernel("out[i] = §unknown + 1;"), says: /unknown/ },
  {
    name: "an unknown name on the left of an assignment",
    source: both("struct S { int a; };", "§unknown[i] = 1;"),
    says: /unknown/,
  },
  { name: "a missing semicolon", source: kernel("float x = 1§\n  out[i] = x;"), says: /';'/ },
  { name: "an unknown type", source: kernel("§float5 x = 1; out[i] = x;"), says: /float5/ },
  {
    name: "a call with too few arguments",
    source: both("float f(float x, float y) { return x + y; }", "out[i] = §f(in[i]);"),
    says: /f/,
  },
  {
    name: "a vector constructor with too many components",
    source: kernel("float2 v = §float2(1, 2, 3); out[i] = v.x;"),
    says: /component|float2|excess/,
  },
  {
    name: "a vector of int from a comparison, which is of bool",
    source: kernel("int3 §m = float3(in[i]) < float3(2); out[i] = m.x;"),
    says: /no viable conversion from 'bool3' to 'int3'/,
  },
  {
    name: "a swizzle beyond the vector",
    source: kernel("float2 v = float2(1); out[i] = v.§z;"),
    says: /swizzle|component|z/,
  },
  {
    name: "a static_assert that fails",
    source: both('static_assert(§sizeof(float) == 8, "float has 8 bytes");', "out[i] = 1;"),
    says: /float has 8 bytes/,
  },
  { name: "#error", source: both("#§error not for this device", "out[i] = 1;"), says: /not for this device/ },
  {
    name: "a macro whose expansion is wrong",
    source: both("#define BROKEN(x) (x + undefined_name)", "out[i] = §BROKEN(in[i]);"),
    says: /undefined_name/,
  },
  {
    name: "a barrier on an integer",
    source: kernel("§threadgroup_barrier(3); out[i] = 1;"),
    says: /mem_flags|no matching|cannot initialize|no known/,
  },
  {
    name: "a half times a struct",
    source: both("struct S { int a; };", "S s = {1}; out[i] = in[i] §* s;"),
    says: /invalid operands/,
  },
  {
    name: "an unclosed brace",
    source: "kernel void k(device float *out [[buffer(0)]]) §{\n  out[0] = 1;\n",
    says: /'}'|brace|unbalanced/,
  },
  {
    name: "an error in a template, at its instantiation",
    source:
      'template <typename T> kernel void t(device T *out [[buffer(0)]]) { out[0] = T(1)§.missing; }\ntemplate [[host_name("k")]] kernel void t<float>(device float *);\n',
    says: /missing|member/,
  },
];

refusalSuite("refused", refusals);

const accepted = countCase();
test("accepted: correct code that looks like what is refused", () => {
  device().registerSource("near_misses.metal", nearMisses);
  using pipeline = device().pipeline("tricky");
  expect(pipeline.info.staticThreadgroupMemoryLength).toBe(32);
  accepted();
});
