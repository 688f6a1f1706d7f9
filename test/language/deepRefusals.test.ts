/**
 * What Apple's compiler refuses, with the place of the error and the kernel's own spelling: memory, kernels, arguments
 * and constants. No message speaks of OpenCL or of what is SoftMetal's own.
 */
import { both, kernel, type Refusal, refusalSuite } from "./refused.ts";

const space = /address space/;
const used = /already used|is used by/;

const refusals: readonly Refusal[] = [
  {
    name: "an index in ten thousand parentheses",
    source: `kernel void k(device float *out [[§buffer(${"(".repeat(10000)}0${")".repeat(10000)})]]) { out[0] = 1; }\n`,
    says: /bracket nesting level exceeded maximum of 256/,
  },
  // From one address space to another.
  {
    name: "a cast of a device pointer to a thread pointer",
    source: kernel("thread float *p = §(thread float *)in; out[i] = *p;"),
    says: space,
  },
  {
    name: "a cast of a device pointer to a threadgroup pointer",
    source: kernel("out[i] = *§(threadgroup float *)(in + 1);"),
    says: space,
  },
  {
    name: "a cast of a constant pointer to a device pointer",
    source: both(
      "constant float kList[] = {1, 2};",
      "const device float *p = §(const device float *)kList; out[i] = p[1];",
    ),
    says: space,
  },
  {
    name: "a cast of the address of a local variable to device",
    source: kernel("float x = 1; device float *p = §(device float *)&x; out[i] = *p;"),
    says: space,
  },
  {
    name: "a reinterpret_cast between address spaces",
    source: kernel("out[i] = *§reinterpret_cast<const thread float *>(in);"),
    says: /address space|not allowed|qualifiers/,
  },
  {
    name: "a static_cast between address spaces",
    source: kernel("threadgroup float s[4]; s[0] = 1; out[i] = *§static_cast<device float *>(s);"),
    says: /address space|not allowed/,
  },
  {
    name: "a cast of a device reference to a thread reference",
    source: kernel("§(thread float &)out[i] = in[i];"),
    says: space,
  },
  {
    name: "a cast of a constant reference to a thread one",
    source: both("constant float kOne = 1;", "out[i] = §(const thread float &)kOne;"),
    says: space,
  },
  {
    name: "a cast of a threadgroup reference to device, by an alias",
    source: both("using Ref = device float &;", "threadgroup float s; s = in[i]; out[i] = §(Ref)s;"),
    says: space,
  },
  {
    name: "a cast of a device reference to a thread one, by a typedef and like a call",
    source: both("typedef thread float &Ref;", "Ref r = §Ref(out[i]); r = in[i];"),
    says: space,
  },
  {
    name: "a device reference to a threadgroup element",
    source: kernel("threadgroup float s[4]; s[i] = 1; device float &§r = s[0]; out[i] = r;"),
    says: space,
  },
  {
    name: "a threadgroup struct where a device one is wanted, by reference",
    source: both(
      "struct Tile { float v; };\nstatic float first(const device Tile &t) { return t.v; }",
      "threadgroup Tile t; t.v = 1; out[i] = §first(t);",
    ),
    says: /no matching function|address space/,
  },
  {
    name: "a result of another address space",
    source: both("static device float *pick(threadgroup float *s) { return §s; }", "out[i] = 1;"),
    says: /address space|cannot initialize return/,
  },
  {
    name: "a pointer to a pointer of another address space",
    source: kernel("thread float *p = nullptr; device float *thread *§q = &p; out[i] = **q;"),
    says: /address space|cannot initialize/,
  },
  // What is constant.
  {
    name: "an assignment to a const variable",
    source: kernel("const float x = in[i]; x §= 2; out[i] = x;"),
    says: /const|read-only/,
  },
  {
    name: "an increment of a const vector",
    source: kernel("const int3 v(1); out[i] = v.x§++;"),
    says: /const|assignable/,
  },
  { name: "a write to const device memory", source: kernel("in[i] §= 1; out[i] = 1;"), says: /const|read-only/ },
  {
    name: "a write to a const member",
    source: both("struct S { const int n; float x; };", "S s = {1, 2}; s.n §= 3; out[i] = s.x;"),
    says: /const|read-only/,
  },
  {
    name: "a const method that changes the object",
    source: both("struct Counter { int n; int next() const { return n§++; } };", "Counter c = {1}; out[i] = c.next();"),
    says: /const|read-only/,
  },
  {
    name: "a method that changes, called on a const object",
    source: both("struct Counter { int n; int next() { return n++; } };", "const Counter c = {1}; out[i] = §c.next();"),
    says: /const|read-only/,
  },
  {
    name: "an element of a constant array",
    source: both("constant int kSizes[2] = {1, 2};", "kSizes[1] §= 5; out[i] = kSizes[1];"),
    says: /const|read-only/,
  },
  {
    name: "a swizzle that names a component twice, as a target",
    source: kernel("float4 v(1); v.§xx = float2(2); out[i] = v.x;"),
    says: /assignable|duplicate|twice/,
  },
  {
    name: "a constant without a value",
    source: both("constant float §kScale;", "out[i] = kScale;"),
    says: /initiali/,
  },
  // Kernels.
  {
    name: "a kernel that calls a kernel",
    source:
      "kernel void inner(device float *out [[buffer(0)]]) { out[0] = 1; }\nkernel void k(device float *out [[buffer(0)]]) { §inner(out); }\n",
    says: /kernel/,
  },
  {
    name: "a function that calls a kernel",
    source:
      "kernel void inner(device float *out [[buffer(0)]]) { out[0] = 1; }\nstatic void helper(device float *p) { §inner(p); }\nkernel void k(device float *out [[buffer(0)]]) { helper(out); }\n",
    says: /kernel/,
  },
  {
    name: "a default argument of a kernel",
    source: "kernel void k(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]] §= 0) { out[i] = 1; }\n",
    says: /default argument/,
  },
  {
    name: "a kernel as a method",
    source:
      "struct S { §kernel void run(device float *out [[buffer(0)]]) { out[0] = 1; } };\nkernel void k(device float *out [[buffer(0)]]) { out[0] = 1; }\n",
    says: /kernel/,
  },
  {
    name: "a variadic kernel",
    source: "kernel void k(device float *out [[buffer(0)]], §...) { out[0] = 1; }\n",
    says: /variadic|\.\.\./,
  },
  {
    name: "a variadic function",
    source: both("static float sum(int n, §...) { return n; }", "out[i] = sum(1);"),
    says: /variadic|\.\.\./,
  },
  {
    name: "two threadgroup arguments on one index",
    source:
      "kernel void k(device float *out [[buffer(0)]], threadgroup int *a [[threadgroup(1)]], threadgroup half *b [[§threadgroup(1)]]) { out[0] = a[0] + b[0]; }\n",
    says: used,
  },
  {
    name: "a threadgroup argument on a buffer index",
    source: "kernel void k(device float *out [[buffer(0)]], threadgroup float *s [[§buffer(1)]]) { out[0] = s[0]; }\n",
    says: /threadgroup|buffer/,
  },
  {
    name: "a buffer argument on a threadgroup index",
    source: "kernel void k(device float *out [[buffer(0)]], device float *s [[§threadgroup(0)]]) { out[0] = s[0]; }\n",
    says: /threadgroup|buffer/,
  },
  {
    name: "a buffer index that is negative",
    source: "kernel void k(device float *out [[buffer(0)]], device float *in [[§buffer(-1)]]) { out[0] = in[0]; }\n",
    says: /-1|out of bounds|negative/,
  },
  {
    name: "a lane as a float",
    source:
      "kernel void k(device float *out [[buffer(0)]], float §lane [[thread_index_in_simdgroup]]) { out[0] = lane; }\n",
    says: /thread_index_in_simdgroup|type/,
  },
  {
    name: "a position as a vector of four",
    source:
      "kernel void k(device float *out [[buffer(0)]], uint4 §at [[thread_position_in_grid]]) { out[at.x] = 1; }\n",
    says: /thread_position_in_grid|type/,
  },
  {
    name: "a size of the grid as a bool",
    source: "kernel void k(device float *out [[buffer(0)]], bool §n [[threads_per_grid]]) { out[0] = n; }\n",
    says: /threads_per_grid|type/,
  },
  {
    name: "a position as a struct",
    source:
      "struct At { uint3 v; };\nkernel void k(device float *out [[buffer(0)]], At at [[§thread_position_in_threadgroup]]) { out[at.v.x] = 1; }\n",
    says: /thread_position_in_threadgroup|type/,
  },
  // Function constants.
  {
    name: "two function constants on one index",
    source: both(
      "constant int rows [[function_constant(3)]];\nconstant int columns [[§function_constant(3)]];",
      "out[i] = rows + columns;",
    ),
    says: /function.constant|index 3|already/,
  },
  {
    name: "a function constant with a value",
    source: both("constant int rows [[function_constant(3)]] §= 4;", "out[i] = rows;"),
    says: /initiali|function.constant/,
  },
  {
    name: "a function constant that is a struct",
    source: both("struct Size { int x; };\nconstant Size §size_of [[function_constant(0)]];", "out[i] = size_of.x;"),
    says: /function.constant|type/,
  },
  {
    name: "a function constant that is an array",
    source: both("constant int §sizes[2] [[function_constant(0)]];", "out[i] = sizes[0];"),
    says: /function.constant|type/,
  },
  {
    name: "a function constant as the length of an array",
    source: both("constant int width [[function_constant(0)]];", "float row[§width]; row[0] = 1; out[i] = row[0];"),
    says: /width|constant|variable length/,
  },
  {
    name: "a function constant as an argument of a template",
    source: both(
      "constant int width [[function_constant(0)]];\ntemplate <int N> static int twice() { return 2 * N; }",
      "out[i] = §twice<width>();",
    ),
    says: /constant expression|no matching function/,
  },
  {
    name: "a function constant outside of constant memory",
    source: kernel("int rows [[§function_constant(0)]]; out[i] = 1;"),
    says: /function_constant/,
  },
];
refusalSuite("deep", refusals);
