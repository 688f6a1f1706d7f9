/**
 * Words and expressions of C and C++ that Apple's compiler refuses, with the place of the error and the kernel's own
 * spelling: no message speaks of OpenCL or of what is SoftMetal's own.
 */
import { both, kernel, type Refusal, refusalSuite } from "./refused.ts";

const double = /double/;
const header = /file not found|standard library|header/;
const builtin = /__builtin|undeclared|not supported/;

const refusals: readonly Refusal[] = [
  // Double precision.
  { name: "double in a cast", source: kernel("out[i] = float((§double)in[i] * 2);"), says: double },
  { name: "double in a functional cast", source: kernel("out[i] = float(§double(in[i]));"), says: double },
  {
    name: "double in static_cast",
    source: kernel("out[i] = static_cast<float>(static_cast<§double>(in[i]));"),
    says: double,
  },
  {
    name: "double as a member",
    source: both("struct Sum { float x; §double y; };", "out[i] = sizeof(Sum);"),
    says: double,
  },
  {
    name: "double as a template's argument",
    source: both("template <typename T> static T one() { return 1; }", "out[i] = one<§double>();"),
    says: double,
  },
  { name: "double as an alias", source: both("typedef §double Real;", "Real x = 1; out[i] = x;"), says: double },
  { name: "double in sizeof", source: kernel("out[i] = sizeof(§double);"), says: double },
  {
    name: "double as a result",
    source: both("static §double half_of(float x) { return x / 2; }", "out[i] = half_of(in[i]);"),
    says: double,
  },
  {
    name: "double as a kernel's buffer",
    source: "kernel void k(device §double *out [[buffer(0)]]) { out[0] = 1; }\n",
    says: double,
  },
  { name: "a vector of double", source: kernel("§double4 v = 1; out[i] = v.x;"), says: /double4/ },
  { name: "a long double literal in an argument", source: kernel("out[i] = max(in[i], §1.0L);"), says: /long double/ },
  // Headers and words of C and C++.
  { name: "#include <stdint.h>", source: both("#include §<stdint.h>", "uint32_t n = 1; out[i] = n;"), says: header },
  { name: "#include <math.h>", source: both("#include §<math.h>", "out[i] = sin(in[i]);"), says: header },
  { name: "#include <cmath>", source: both("#include §<cmath>", "out[i] = 1;"), says: header },
  { name: "#include <stdio.h>", source: both("#include §<stdio.h>", "out[i] = 1;"), says: header },
  {
    name: "#include of a header that is nowhere",
    source: both('#include §"missing_tile.h"', "out[i] = 1;"),
    says: /missing_tile\.h/,
  },
  { name: "__builtin_popcount", source: kernel("out[i] = §__builtin_popcount(i);"), says: builtin },
  { name: "__builtin_expect", source: kernel("if (§__builtin_expect(i == 0, 1)) out[i] = 1;"), says: builtin },
  { name: "__builtin_memcpy", source: kernel("float x; §__builtin_memcpy(&x, &x, 4); out[i] = x;"), says: builtin },
  { name: "printf", source: kernel('§printf("%d", 1); out[i] = 1;'), says: /printf/ },
  { name: "malloc", source: kernel("thread float *p = (thread float *)§malloc(4); out[i] = *p;"), says: /malloc/ },
  { name: "memcpy", source: kernel("float x = 1, y; §memcpy(&y, &x, 4); out[i] = y;"), says: /memcpy/ },
  {
    name: "new of a struct",
    source: both("struct Node { int n; };", "thread Node *p = §new Node(); out[i] = p->n;"),
    says: /new/,
  },
  { name: "delete of an array", source: kernel("thread int *p = nullptr; §delete[] p; out[i] = 1;"), says: /delete/ },
  {
    name: "a virtual destructor",
    source: both("struct Base { §virtual ~Base() {} int n; };", "out[i] = 1;"),
    says: /virtual/,
  },
  {
    name: "a pure virtual function",
    source: both("struct Op { §virtual float run(float x) const = 0; };", "out[i] = 1;"),
    says: /virtual/,
  },
  {
    name: "catch and throw again",
    source: kernel("§try { out[i] = 1; } catch (int code) { out[i] = code; }"),
    says: /exception/,
  },
  {
    name: "goto out of loops",
    source: kernel(
      "for (int n = 0; n < 4; n++) { if (in[n] > 1) §goto found; } out[i] = 0; return; found: out[i] = 1;",
    ),
    says: /goto/,
  },
  {
    name: "thread_local at program scope",
    source: both("§thread_local int counter = 0;", "out[i] = counter;"),
    says: /thread_local/,
  },
  {
    name: "typeid of a variable",
    source: kernel("float x = 1; out[i] = §typeid(x) == typeid(float);"),
    says: /typeid/,
  },
  { name: "asm with operands", source: kernel('int x; §asm("mov %0, 1" : "=r"(x)); out[i] = x;'), says: /asm/ },
  {
    name: "recursion of three functions",
    source: both(
      "static int b(int n); static int c(int n);\nstatic int §a(int n) { return n ? b(n - 1) : 0; } static int b(int n) { return c(n); } static int c(int n) { return a(n); }",
      "out[i] = a(3);",
    ),
    says: /recurs/,
  },
  {
    name: "recursion of an object's call",
    source: both(
      "struct Walk { int operator()(int n) const { return n ? §(*this)(n - 1) : 0; } };",
      "out[i] = Walk()(3);",
    ),
    says: /recurs/,
  },
  {
    name: "a pointer to a function as a member",
    source: both("struct Op { float (*§run)(float); };", "out[i] = 1;"),
    says: /function pointer|pointer to function/,
  },
  {
    name: "a pointer to a function as a result",
    source: both(
      "static float one(float x) { return x; }\nstatic auto pick() { return &§one; }",
      "out[i] = pick()(1);",
    ),
    says: /function pointer|pointer to function/,
  },
  {
    name: "a pointer to a member by auto",
    source: both("struct Pair { float x, y; };", "Pair p = {1, 2}; auto m = §&Pair::y; out[i] = p.*m;"),
    says: /member/,
  },
  {
    name: "a lambda that captures",
    source: kernel("float s = 2; auto scaled = §[&](float x) { return s * x; }; out[i] = scaled(in[i]);"),
    says: /lambda/,
  },
  // Everyday mistakes.
  { name: "an undeclared function", source: kernel("out[i] = §gelu(in[i]);"), says: /'gelu'/ },
  { name: "an undeclared variable in an index", source: kernel("out[§row * 4 + i] = 1;"), says: /'row'/ },
  {
    name: "an undeclared member",
    source: both("struct Params { int rows; };", "Params p = {1}; out[i] = p.§columns;"),
    says: /columns/,
  },
  { name: "an undeclared type", source: both("§Tensor made();", "out[i] = 1;"), says: /'Tensor'/ },
  { name: "an undeclared name in a namespace", source: kernel("out[i] = metal::§softmax(in[i]);"), says: /softmax/ },
  {
    name: "three numbers for a vector of four",
    source: kernel("float4 v = §float4(1, 2, 3); out[i] = v.x;"),
    says: /float4|component|constructor|too few/,
  },
  {
    name: "a vector of three from one of two",
    source: kernel("float2 p(1); float3 §v = p; out[i] = v.z;"),
    says: /float2|float3/,
  },
  {
    name: "a sum of vectors of two sizes",
    source: kernel("float2 p(1); float3 q(2); out[i] = (p §+ q).x;"),
    says: /invalid operands|cannot convert/,
  },
  {
    name: "a vector of float for one of int",
    source: kernel("float3 p(1); int3 §n = p; out[i] = n.x;"),
    says: /float3|int3/,
  },
  {
    name: "a component beyond a vector of three",
    source: kernel("float3 v(1); out[i] = v.§w;"),
    says: /swizzle|component|'w'/,
  },
  {
    name: "a struct times a number",
    source: both("struct Quat { float4 v; };", "Quat q = {float4(1)}; out[i] = (q §* 2.0f).v.x;"),
    says: /invalid operands/,
  },
  {
    name: "too many arguments",
    source: both("static float add(float x, float y) { return x + y; }", "out[i] = §add(1, 2, 3);"),
    says: /no matching function|too many/,
  },
  {
    name: "a function of the library with a struct",
    source: both("struct Quat { float4 v; };", "Quat q = {float4(1)}; out[i] = §sqrt(q);"),
    says: /sqrt/,
  },
  { name: "break outside of a loop", source: kernel("out[i] = 1; §break;"), says: /break/ },
  {
    name: "a case twice",
    source: kernel("switch (i) { case 1: out[i] = 1; break; case §1: out[i] = 2; break; }"),
    says: /duplicate case/,
  },
  {
    name: "a result of a void function",
    source: both("static void nothing() {}", "out[i] = §nothing();"),
    says: /void/,
  },
  {
    name: "a redefinition in one scope",
    source: kernel("float total = 1; int §total = 2; out[i] = total;"),
    says: /redefinition/,
  },
  {
    name: "an array assigned whole",
    source: kernel("float p[2] = {1, 2}, q[2]; q §= p; out[i] = q[1];"),
    says: /array/,
  },
  {
    name: "too many values for an array",
    source: kernel("int list[2] = {1, 2, §3}; out[i] = list[0];"),
    says: /excess/,
  },
  {
    name: "a private member",
    source: both("class Box { int hidden; public: int n; };", "Box b; out[i] = b.§hidden;"),
    says: /private/,
  },
  {
    name: "a template without its arguments",
    source: both("template <typename T> struct Tile { T v; };", "§Tile<> t; out[i] = t.v;"),
    says: /template/,
  },
];
refusalSuite("word", refusals);
