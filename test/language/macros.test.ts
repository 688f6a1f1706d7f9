/** Macros around every construct: attributes, address spaces, heads of templates, signatures, constructors. */
import { floats, range, uints } from "./harness.ts";
import { sourceSuite, statementSuite } from "./separate.ts";

const list = [1.5, -2, 3.25, 8];
const four = { kernel: "k", out: "float", inputs: [floats(list)], grid: 4, threads: 4 } as const;
const twice = list.map((x) => 2 * x);
const body = "{ out[i] = in[i] * 2; }";

sourceSuite("macroSignatures", [
  {
    ...four,
    name: "the whole list of parameters",
    source: `#define PARAMETERS device float *out [[buffer(0)]], const device float *in [[buffer(1)]], uint i [[thread_position_in_grid]]\nkernel void k(PARAMETERS) ${body}`,
    expected: twice,
  },
  {
    ...four,
    name: "one macro a parameter, with its type, name and index",
    source: `#define OUT(T, name, n) device T *name [[buffer(n)]]\n#define IN(T, name, n) const device T *name [[buffer(n)]]\n#define GRID(name) uint name [[thread_position_in_grid]]\nkernel void k(OUT(float, out, 0), IN(float, in, 1), GRID(i)) ${body}`,
    expected: twice,
  },
  {
    ...four,
    name: "attributes alone, their names and their indices",
    source: `#define AT(n) [[buffer(n)]]\n#define POSITION [[thread_position_in_grid]]\n#define SLOT buffer\n#define ONE (0 + 1)\nkernel void k(device float *out AT(0), const device float *in [[SLOT(ONE)]], uint i POSITION) ${body}`,
    expected: twice,
  },
  {
    ...four,
    name: "indices by a counter of the preprocessor's arithmetic and by pasting",
    source: `#define INDEX_out 0\n#define INDEX_in 1\n#define BUFFER(name) [[buffer(INDEX_##name)]]\n#define READ(name) const device float *name BUFFER(name)\nkernel void k(device float *out BUFFER(out), READ(in), uint i [[thread_position_in_grid]]) ${body}`,
    expected: twice,
  },
  {
    ...four,
    name: "the word kernel, the result and the name",
    source: `#define ENTRY kernel void\n#define NAME(x) x\nENTRY NAME(k)(device float *out [[buffer(0)]], const device float *in [[buffer(1)]], uint i [[thread_position_in_grid]]) ${body}`,
    expected: twice,
  },
  {
    ...four,
    name: "the word kernel as an attribute, and a name that is pasted",
    source: `#define GPU [[kernel]] void\n#define JOIN_(a, b) a##b\n#define JOIN(a, b) JOIN_(a, b)\n#define EMPTY\nGPU JOIN(EMPTY, k)(device float *out [[buffer(0)]], const device float *in [[buffer(1)]], uint i [[thread_position_in_grid]]) ${body}`,
    expected: twice,
  },
  {
    ...four,
    name: "a kernel by a macro with its body as arguments that hold commas",
    source: `#define KERNEL(name, ...) kernel void name(device float *out [[buffer(0)]], const device float *in [[buffer(1)]], uint i [[thread_position_in_grid]]) { __VA_ARGS__ }\nKERNEL(other, out[i] = 0;)\nKERNEL(k, float a = in[i], b = 2; out[i] = fma(a, b, 0.0);)`,
    expected: twice,
  },
  {
    ...four,
    name: "the braces of a kernel",
    source: `#define BEGIN {\n#define END }\n#define INDEX i\nkernel void k(device float *out [[buffer(0)]], const device float *in [[buffer(1)]], uint INDEX [[thread_position_in_grid]]) BEGIN if (INDEX < 4) BEGIN out[INDEX] = in[INDEX] * 2; END END`,
    expected: twice,
  },
  {
    ...four,
    name: "heads of templates, their arguments and their instances",
    source: `#define TEMPLATE(...) template <__VA_ARGS__>\n#define T2(T, N) TEMPLATE(typename T, int N)\nT2(T, N) static T scaled(T x) { return x * N; }\nTEMPLATE(typename T, int N = 2) kernel void body(device T *out [[buffer(0)]], const device T *in [[buffer(1)]], uint i [[thread_position_in_grid]]) { out[i] = scaled<T, N>(in[i]); }\n#define MAKE(name, T, ...) template [[host_name(#name)]] kernel decltype(body<T, ##__VA_ARGS__>) body<T, ##__VA_ARGS__>;\nMAKE(k, float) MAKE(other, float, 3)`,
    expected: twice,
  },
  {
    ...four,
    name: "host names joined of several strings",
    source: `#define TEXT(x) #x\n#define STRING(x) TEXT(x)\n#define PRE ""\n#define LETTER k\ntemplate <typename T> kernel void body(device T *out [[buffer(0)]], const device T *in [[buffer(1)]], uint i [[thread_position_in_grid]]) ${body}\ntemplate [[host_name(PRE STRING(LETTER) "")]] kernel void body<float>(device float *, const device float *, uint);`,
    expected: twice,
  },
  {
    ...four,
    name: "a list of types that makes functions and instances",
    source: `#define TYPES(X) X(float, f32, k) X(int, i32, k_int) X(half, f16, k_half)\n#define FUNCTION(T, s, n) static T twice_##s(T x) { return x + x; }\nTYPES(FUNCTION)\n#define KERNEL(T, s, n) kernel void n(device T *out [[buffer(0)]], const device T *in [[buffer(1)]], uint i [[thread_position_in_grid]]) { out[i] = twice_##s(in[i]); }\nTYPES(KERNEL)`,
    expected: twice,
  },
  {
    ...four,
    name: "threadgroup variables, barriers and SIMD-group functions",
    source: `#define SHARED(T, name, n) threadgroup T name[n]\n#define SYNC() threadgroup_barrier(mem_flags::mem_threadgroup)\n#define LANES(op, x) simd_##op(x)\n#define REVERSED(a, n, k) a[(n) - 1 - (k)]\nkernel void k(device float *out [[buffer(0)]], const device float *in [[buffer(1)]], uint i [[thread_position_in_grid]]) { SHARED(float, s, 4); s[i] = in[i]; SYNC(); out[i] = REVERSED(s, 4, i) + LANES(max, in[i]); }`,
    expected: list.map((_, k) => (list[3 - k] ?? 0) + 8),
  },
  {
    ...four,
    name: "function constants: the declaration, the attribute and what depends on it",
    source: `#define OPTION(T, name, n, other) constant T name##_given [[function_constant(n)]]; constant T name = is_function_constant_defined(name##_given) ? name##_given : other;\nOPTION(float, scale, 0, 5) OPTION(int, shift, 1, 3)\n#define IF(c) function_constant(c)\nconstant bool kOff = shift == 4;\nkernel void k(device float *out [[buffer(0)]], const device float *in [[buffer(1)]], const device float *no [[buffer(2), IF(kOff)]], uint i [[thread_position_in_grid]]) { out[i] = in[i] * scale + shift + (kOff ? no[i] : 0); }`,
    constants: [{ index: 0, dtype: "f32", value: 2 }],
    expected: twice.map((x) => x + 3),
  },
]);

statementSuite("macroExpressions", [
  {
    name: "address spaces by macros, in pointers, references and casts",
    before:
      "#define GLOBAL device\n#define LOCAL threadgroup\n#define PRIVATE thread\n#define PTR(space, T) space T *\nstatic float sum(GLOBAL const float *p, PRIVATE float &more, LOCAL float *s) { s[0] = p[1]; return p[0] + more + s[0]; }",
    code: "LOCAL float s[1]; float m = 10; PTR(const GLOBAL, float) p = a; out[0] = sum(p, m, s); PTR(GLOBAL, uint) q = (PTR(GLOBAL, uint))out; out[1] = q[0] == 0x41400000; PRIVATE float &r = m; r++; out[2] = m;",
    out: "float",
    threads: 1,
    inputs: [floats(list)],
    expected: [9.5, 0, 11],
  },
  {
    name: "an address space as an argument makes the overloads",
    before:
      "#define SPACES(X) X(device, 1) X(threadgroup, 2) X(thread, 3) X(constant, 4)\n#define OVERLOAD(space, n) static int which(const space float *p) { return n * 10 + int(*p); }\nSPACES(OVERLOAD)\nconstant float kOne[] = {4};",
    code: "threadgroup float s[1]; s[0] = 2; float x = 3; out[0] = which(a); out[1] = which(s); out[2] = which(&x); out[3] = which(kOne);",
    out: "int",
    threads: 1,
    inputs: [floats(list)],
    expected: [11, 22, 33, 44],
  },
  {
    name: "constructors of vectors: the type, the width and the components",
    before:
      "#define V(n) float##n\n#define VEC(T, n) vec<T, n>\n#define XYZ(v) v.x, v.y, v.z\n#define SPLAT(T, x) T(x)\n#define ONE_TWO 1, 2",
    code: "const V(3) v = V(3)(ONE_TWO, 3); const VEC(half, 4) h(ONE_TWO, ONE_TWO); const float4 w(XYZ(v), 9); const V(2) u{ONE_TWO}; out[0] = v.z + w.y; out[1] = w.w + h.w; out[2] = SPLAT(int3, 7).y + u.y; out[3] = dot(V(3)(XYZ(w)), SPLAT(V(3), 1));",
    out: "float",
    threads: 1,
    expected: [5, 11, 9, 6],
  },
  {
    name: "swizzles by macros, read and written",
    before:
      "#define LOW xy\n#define HIGH(v) v.zw\n#define SWAP(v) v.yx\n#define C(v, c) (v).c\n#define JOIN(v, a, b) v.a##b",
    code: "float4 v(1, 2, 3, 4); v.LOW = HIGH(v); HIGH(v) = SWAP(HIGH(v)); out[0] = C(v, x); out[1] = C(v, w); v.LOW += 1; C(v, z) *= 5; out[2] = v.y; out[3] = JOIN(v, z, w).x; JOIN(v, x, z) = float2(7, 8); out[4] = v.z;",
    out: "float",
    threads: 1,
    expected: [3, 3, 5, 20, 8],
  },
  {
    name: "members and methods of structs, by name and by list",
    before:
      "#define FIELDS(X) X(int, count) X(float, scale) X(float2, at)\n#define MEMBER(T, n) T n;\n#define GET(T, n) T get_##n() const { return n; }\n#define SAME(T, n) && all(n == o.n)\nstruct S { FIELDS(MEMBER) FIELDS(GET) bool same(S o) const { return true FIELDS(SAME); } };\n#define DOT(s, n) s.get_##n()",
    code: "S s{3, 2.5f, {1, 2}}, t = s; t.at.y = 5; out[0] = DOT(s, count) * DOT(s, scale); out[1] = DOT(t, at).y; out[2] = s.same(s); out[3] = s.same(t);",
    out: "float",
    threads: 1,
    expected: [7.5, 5, 1, 0],
  },
  {
    name: "operators of the user's by a macro",
    before:
      "struct Q { int n; };\n#define OPERATOR(op) static Q operator op(Q a, Q b) { return Q{a.n op b.n}; } static thread Q &operator op##=(thread Q &a, Q b) { a.n = a.n op b.n; return a; }\nOPERATOR(+) OPERATOR(-) OPERATOR(*) OPERATOR(<<) OPERATOR(^)\n#define FOLD(op, x, y, z) ((x) op (y) op (z))",
    code: "Q p{6}, q{2}; out[0] = FOLD(+, p, q, q).n; out[1] = (p << q).n; p ^= q; out[2] = p.n; p *= q; p -= Q{1}; out[3] = p.n; out[4] = FOLD(-, p, q, q).n;",
    out: "int",
    threads: 1,
    expected: [10, 24, 4, 7, 3],
  },
  {
    name: "min and max by macros of the names of functions, used for vectors",
    before:
      "#define MIN(x, y) ((x) < (y) ? (x) : (y))\n#define MAX(x, y) ((x) > (y) ? (x) : (y))\n#define CLAMP(x, lo, hi) MIN(MAX(x, lo), hi)\n#define max3(x, y, z) metal::max(x, metal::max(y, z))",
    code: "out[0] = MIN(a[0], a[1]); out[1] = CLAMP(a[3], 0, 5); out[2] = max3(float2(1, 5), float2(2), float2(3)).y; out[3] = MAX(i, 3u); out[4] = CLAMP(-1, MIN(0, 1), 4);",
    out: "float",
    threads: 1,
    inputs: [floats(list)],
    expected: [-2, 5, 5, 3, 0],
  },
  {
    name: "statements: loops with pragmas, do while, conditions and blocks",
    before:
      '#define FOR(k, n) _Pragma("unroll") for (int k = 0; k < (n); ++k)\n#define SWAP(T, x, y) do { T t_ = x; x = y; y = t_; } while (0)\n#define IF(c) if (c)\n#define ELSE else\n#define REPEAT4(x) x x x x',
    code: "int p = 1, q = 2, s = 0; FOR(k, 3) FOR(j, 2) s += k * j; IF(p < q) SWAP(int, p, q); ELSE s = 100; REPEAT4(s++;) out[0] = s; out[1] = p; out[2] = q; float2 v(1), w(3); SWAP(float2, v, w); out[3] = int(v.y);",
    out: "int",
    threads: 1,
    expected: [7, 2, 1, 3],
  },
  {
    name: "macros that a later line defines anew",
    before:
      '#define STEP 1\nstatic int one(int x) { return x + STEP; }\n#undef STEP\n#define STEP 10\nstatic int ten(int x) { return x + STEP; }\n#pragma push_macro("STEP")\n#undef STEP\n#define STEP 100\nstatic int hundred(int x) { return x + STEP; }\n#pragma pop_macro("STEP")',
    code: "out[0] = one(0); out[1] = ten(0); out[2] = hundred(0); out[3] = STEP;",
    out: "int",
    threads: 1,
    expected: [1, 10, 100, 10],
  },
  {
    name: "counts of arguments, and macros chosen by them",
    before:
      "#define PICK(_1, _2, _3, NAME, ...) NAME\n#define SUM1(a) (a)\n#define SUM2(a, b) ((a) + (b))\n#define SUM3(a, b, c) ((a) + (b) + (c))\n#define SUM(...) PICK(__VA_ARGS__, SUM3, SUM2, SUM1)(__VA_ARGS__)",
    code: "out[0] = SUM(1); out[1] = SUM(1, 2); out[2] = SUM(1, 2, 3); out[3] = SUM(float2(1, 2), float2(3)).y;",
    out: "float",
    threads: 1,
    expected: [1, 3, 6, 5],
  },
  {
    name: "keywords and types: auto, const, casts and sizeof",
    before:
      "#define LET const auto\n#define VAR auto\n#define CAST(T) static_cast<T>\n#define AS(T, x) as_type<T>(x)\n#define BYTES(x) sizeof(x)\n#define LENGTH(x) (sizeof(x) / sizeof((x)[0]))",
    code: "LET x = CAST(int)(a[2]); VAR v = float3(x); v.y = 9; int list[] = {1, 2, 3, 4, 5}; out[0] = x; out[1] = v.y; out[2] = AS(uint, 1.0f) >> 23; out[3] = BYTES(v) + LENGTH(list); out[4] = AS(ushort2, 0x20001u).y;",
    out: "float",
    threads: 1,
    inputs: [floats(list)],
    expected: [3, 9, 127, 21, 2],
  },
  {
    name: "blocks of quantised weights by macros of bit fields and nibbles",
    before:
      "#define NIBBLE(b, k) (((b) >> (4 * (k))) & 0xF)\n#define BLOCK(name, T, n) struct name { T d; uchar qs[(n) / 2]; }\nBLOCK(block_q4, half, 8);\n#define UNPACK(b, k) ((float)(b).d * ((int)NIBBLE((b).qs[(k) / 2], (k) % 2) - 8))",
    code: "const device block_q4 *b = (const device block_q4 *)a; out[i] = UNPACK(b[0], i);",
    out: "float",
    inputs: [uints([0x21003800, 0x00006543])],
    // d = 0.5; bytes 00, 21, 43, 65.
    expected: [0, 0, 1, 2, 3, 4, 5, 6].map((q) => 0.5 * (q - 8)),
  },
  {
    name: "atomics by macros",
    before:
      "#define ADD(p, x) atomic_fetch_add_explicit(p, x, memory_order_relaxed)\n#define ATOMIC(T) atomic_##T\n#define LOAD(p) atomic_load_explicit((p), memory_order_relaxed)",
    code: "threadgroup ATOMIC(uint) n; if (i == 0) atomic_store_explicit(&n, 5u, memory_order_relaxed); threadgroup_barrier(mem_flags::mem_threadgroup); ADD(&n, i); device ATOMIC(int) *o = (device ATOMIC(int) *)out; ADD(o + 1, int(i) + 1); threadgroup_barrier(mem_flags::mem_threadgroup); if (i == 0) out[0] = LOAD(&n);",
    out: "int",
    threads: 4,
    expected: [11, 10],
  },
  {
    name: "templates of constants by a macro, with commas in the argument",
    before:
      "#define ARG(...) __VA_ARGS__\n#define CONSTANT(T, name, value) constant constexpr T name = value;\n#define SAME(x, y) is_same_v<x, y>\ntemplate <typename T, int N> struct Arr { T v[N]; };\nCONSTANT(float2, kPair, ARG(float2(3, 4))) CONSTANT(int, kSize, sizeof(Arr<ARG(int, 5)>))",
    code: "out[0] = kPair.y; out[1] = kSize; out[2] = SAME(ARG(vec<float, 3>), float3); Arr<ARG(float, 2)> r = {ARG({6, 7})}; out[3] = r.v[1];",
    out: "float",
    threads: 1,
    expected: [4, 20, 1, 7],
  },
]);

statementSuite("macroLines", [
  {
    name: "definitions over several lines with comments and empty arguments",
    before:
      "#define BODY(x, y) /* the sum */ \\\n  ((x) + /* of both */ \\\n   (y 0))\n#define NOTHING()\n#define TWO(a, b) a b\n#define PLUS +",
    code: "out[0] = BODY(1, 2 +); NOTHING() out[1] = TWO(3, PLUS 4); out[2] = TWO(-, 5); out[3] = BODY(6,);",
    out: "int",
    threads: 1,
    expected: [3, 7, -5, 6],
  },
  {
    name: "conditions of the preprocessor with arithmetic, defined and versions",
    before:
      "#define N 4\n#if (N * 2 == 8 && defined(__METAL_VERSION__)) || !defined N\n#define A 1\n#else\n#define A 2\n#endif\n#if __METAL_VERSION__ >= 200 && N >> 1 == 2\n#define B 3\n#endif\n#if __has_include(<metal_stdlib>) && !__has_include(<vector>)\n#define C 5\n#else\n#define C 6\n#endif\n#if 'a' == 97 && -1 < 0u == 0\n#define D 7\n#else\n#define D 8\n#endif",
    code: "out[0] = A; out[1] = B; out[2] = C; out[3] = D;",
    out: "int",
    threads: 1,
    expected: [1, 3, 5, 7],
  },
  {
    name: "a pasted name and a string of the kernel's parameters",
    before:
      "#define P(x) p_##x\n#define STR(x) #x\nstatic constant char kName[] = STR(P(out));\nstatic float P(half)(float x) { return x / 2; }",
    code: "out[i] = P(half)(a[i]) + sizeof(kName);",
    out: "float",
    inputs: [floats(list)],
    expected: list.map((x) => x / 2 + 7),
  },
  {
    name: "a loop unrolled by a macro of indices",
    before:
      "#define R2(f, k) f(k) f((k) + 1)\n#define R4(f, k) R2(f, k) R2(f, (k) + 2)\n#define R8(f, k) R4(f, k) R4(f, (k) + 4)\n#define TERM(k) sum += p[k] * q[7 - (k)];",
    code: "const device float *p = a, *q = a; float sum = 0; R8(TERM, 0) out[0] = sum;",
    out: "float",
    threads: 1,
    inputs: [floats(range(8, (k) => k))],
    expected: [range(8, (k) => k * (7 - k)).reduce((x, y) => x + y)],
  },
]);
