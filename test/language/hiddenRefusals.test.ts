/** What Apple's compiler refuses, where a macro, an alias or a template hides it: each rule in at least two disguises. */
import { both, kernel, type Refusal, refusalSuite } from "./refused.ts";

const space = /address space/;
const used = /already used|is used by/;

const refusals: readonly Refusal[] = [
  // Casts between address spaces.
  {
    name: "a cast to a pointer of another memory by an alias",
    source: both("using Local = thread float *;", "Local p = §(Local)in; out[i] = *p;"),
    says: space,
  },
  {
    name: "a cast to a pointer of another memory by a macro",
    source: both("#define LOCAL(p) ((thread float *)(p))", "out[i] = *§LOCAL(in);"),
    says: space,
  },
  {
    name: "a cast to a pointer of another memory by a template's parameter",
    source: both(
      "template <typename P> static P moved(const device float *p) { return §(P)p; }",
      "out[i] = *moved<thread float *>(in);",
    ),
    says: space,
  },
  {
    name: "a cast to a reference of another memory by a macro",
    source: both("#define HERE(x) ((thread float &)(x))", "out[i] = §HERE(out[i]);"),
    says: space,
  },
  // Pointers to members.
  {
    name: "a pointer to a member by a macro",
    source: both(
      "struct Pair { float x, y; };\n#define AT(m) &Pair::m",
      "Pair p = {1, 2}; auto m = §AT(y); out[i] = p.*m;",
    ),
    says: /member/,
  },
  {
    name: "a pointer to a member as an argument of a template function",
    source: both(
      "struct Pair { float x, y; };\ntemplate <typename M> static float get(Pair p, M m) { return p.*m; }",
      "out[i] = get(Pair{1, 2}, §&Pair::x);",
    ),
    says: /member/,
  },
  // Headers of C.
  {
    name: "a header of C by a macro",
    source: both("#define HEADER <stdint.h>\n#include §HEADER", "out[i] = 1;"),
    says: /file not found|standard library|header/,
  },
  {
    name: "a header of C between lines that are compiled",
    source: both("#if __METAL_VERSION__ > 100\n#include §<string.h>\n#endif", "out[i] = 1;"),
    says: /file not found|standard library|header/,
  },
  // Builtins of clang's.
  {
    name: "a builtin by a macro",
    source: both("#define LIKELY(x) __builtin_expect(!!(x), 1)", "if (§LIKELY(i == 0)) out[i] = 1;"),
    says: /__builtin_expect/,
  },
  {
    name: "a builtin whose name is pasted",
    source: both("#define BITS(name) __builtin_##name", "out[i] = §BITS(popcount)(i);"),
    says: /__builtin_popcount/,
  },
  {
    name: "a builtin in a template that is used",
    source: both("template <typename T> static T f(T x) { return §__builtin_fabsf(x); }"),
    says: /__builtin_fabsf/,
  },
  // C variadics.
  {
    name: "a variadic method",
    source: both("struct S { float §sum(int n, ...) { return n; } };", "S s; out[i] = s.sum(1, 2);"),
    says: /variadic/,
  },
  {
    name: "a variadic template function",
    source: both("template <typename T> static T first(T x, §...) { return x; }", "out[i] = first(in[i], 1);"),
    says: /variadic/,
  },
  // Kernels that are called, and their default arguments.
  {
    name: "a kernel that is called by a macro",
    source:
      "kernel void inner(device float *out [[buffer(0)]]) { out[0] = 1; }\n#define CALL(f, x) f(x)\nkernel void k(device float *out [[buffer(0)]]) { §CALL(inner, out); }\n",
    says: /kernel/,
  },
  {
    name: "a kernel template that is called",
    source:
      'template <typename T> kernel void inner(device T *out [[buffer(0)]]) { out[0] = 1; }\ntemplate [[host_name("a")]] kernel void inner<float>(device float *);\nkernel void k(device float *out [[buffer(0)]]) { §inner<float>(out); }\n',
    says: /kernel/,
  },
  {
    name: "a kernel's default argument by a macro",
    source:
      "#define NONE = nullptr\nkernel void k(device float *out [[buffer(0)]], device float *x [[buffer(1)]] §NONE) { out[0] = 1; }\n",
    says: /default argument/,
  },
  {
    name: "a default argument of a kernel template",
    source:
      'template <typename T> kernel void body(device T *out [[buffer(0)]], constant int &n [[buffer(1)]] §= 3) { out[0] = n; }\ntemplate [[host_name("k")]] kernel void body<float>(device float *, constant int &);\n',
    says: /default argument/,
  },
  // Indices twice.
  {
    name: "two arguments on one index by a macro that makes them",
    source:
      "#define IN(name, n) const device float *name [[buffer(n)]]\nkernel void k(device float *out [[buffer(0)]], IN(a, 1),\n  §IN(b, 1)) { out[0] = a[0] + b[0]; }\n",
    says: used,
  },
  {
    name: "two function constants on one index by a macro",
    source: both(
      "#define BASE 5\nconstant int rows [[function_constant(BASE)]];\nconstant bool quick [[§function_constant(5)]];",
      "out[i] = rows + quick;",
    ),
    says: /function.constant|index 5|already/,
  },
  {
    name: "two function constants on one index, one in a namespace",
    source: both(
      "namespace n { constant int rows [[function_constant(2)]]; }\nconstant int columns [[§function_constant(2)]];",
      "out[i] = n::rows + columns;",
    ),
    says: /function.constant|index 2|already/,
  },
  // Double.
  {
    name: "double by an alias template",
    source: both("template <typename T> using Id = T;", "Id<§double> x = 1; out[i] = x;"),
    says: /double/,
  },
  {
    name: "double as a default of a template's parameter",
    source: both("template <typename T = §double> static T one() { return 1; }", "out[i] = one();"),
    says: /double/,
  },
  {
    name: "double by a pasted name",
    source: both("#define TYPE(a, b) a##b", "§TYPE(dou, ble) x = 1; out[i] = x;"),
    says: /double/,
  },
  { name: "double in decltype", source: kernel("decltype(§double(1)) x = 1; out[i] = x;"), says: /double/ },
];
refusalSuite("hidden", refusals);
