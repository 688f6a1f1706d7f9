/** Function objects, operators of the user's own types, templates of templates, aliases in scopes. */
import { floats, ints } from "./harness.ts";
import { sourceSuite, statementSuite } from "./separate.ts";

const list = [1.5, -2, 3.25, 8];
const inputs = [floats(list)];

statementSuite("chosenObjects", [
  {
    name: "a member function of the one of two objects that a condition chooses changes that one",
    before:
      "struct S { int x; void inc() { x++; } thread int &at() { return x; } thread S &self() { return *this; } int twice() const { return 2 * x; } int operator()(int by) { return x += by; } };",
    code: "S a{0}, b{100}; S list[2] = {{1000}, {2000}}; thread S *p = &b; (i > 1 ? a : b).inc(); (i > 1 ? list[0] : list[1]).at() = 7; (i > 1 ? *p : a).self().x += 3; const int y = (i > 1 ? a : b).twice(); out[5 * i] = a.x; out[5 * i + 1] = b.x; out[5 * i + 2] = list[0].x; out[5 * i + 3] = list[1].x; out[5 * i + 4] = y; out[5 * i] += (i > 1 ? a : b)(5);",
    out: "int",
    threads: 3,
    expected: [0, 1, 2].flatMap((i) => (i > 1 ? [1 + 6, 103, 7, 2000, 2] : [3 + 106, 101, 1000, 7, 202])),
  },
  {
    name: "the one of two numbers that a condition chooses counts up and down",
    code: "int a = 10, b = 20; const int x = (i > 1 ? a : b)++; const int y = --(i > 1 ? b : a); out[4 * i] = a; out[4 * i + 1] = b; out[4 * i + 2] = x; out[4 * i + 3] = y;",
    out: "int",
    threads: 3,
    expected: [0, 1, 2].flatMap((i) => (i > 1 ? [11, 19, 10, 19] : [9, 21, 20, 9])),
  },
  {
    name: "a function that gives the one of two references that a condition chooses",
    before:
      "static thread int &pick(bool c, thread int &a, thread int &b) { return c ? a : b; } template <typename T> static thread T &larger(thread T &a, thread T &b) { if (a < b) return (b); return (a < b ? b : a); } struct Pair { int a, b; thread int &at(int k) { return k == 0 ? a : b; } };",
    code: "int a = 1, b = 2; pick(i > 1, a, b) = 9; larger(a, b) += 30; Pair p{3, 4}; p.at(i > 1) = 5; out[4 * i] = a; out[4 * i + 1] = b; out[4 * i + 2] = p.a; out[4 * i + 3] = p.b;",
    out: "int",
    threads: 3,
    expected: [0, 1, 2].flatMap((i) => (i > 1 ? [39, 2, 3, 5] : [1, 39, 5, 4])),
  },
  {
    name: "a member of the one of two objects that a condition chooses is assigned to",
    before: "struct V { int x; int2 y; int z[2]; };",
    code: "V v{1, 2, {3, 4}}, w{10, 20, {30, 40}}; (i > 1 ? v : w).x += 5; (i > 1 ? v : w).y.x = 7; ++(i > 1 ? w : v).z[1]; out[4 * i] = v.x + w.x; out[4 * i + 1] = v.y.x + 100 * w.y.x; out[4 * i + 2] = v.z[1]; out[4 * i + 3] = w.z[1];",
    out: "int",
    threads: 3,
    expected: [0, 1, 2].flatMap((i) => (i > 1 ? [16, 2007, 4, 41] : [16, 702, 5, 40])),
  },
]);

statementSuite("functionObjects", [
  {
    name: "objects that keep numbers, vectors and other objects",
    before:
      "struct Scale { float by; float operator()(float x) const { return by * x; } float2 operator()(float2 v) const { return by * v; } }; struct Shift { float3 o; float3 operator()(float3 v) const { return v + o; } }; template <typename F, typename G> struct Then { F f; G g; template <typename T> auto operator()(T x) const { return g(f(x)); } }; template <typename F, typename G> static Then<F, G> then(F f, G g) { return {f, g}; }",
    code: "const auto f = then(Scale{2}, Scale{5}); out[0] = f(1.5f); out[1] = f(float2(1, 3)).y; out[2] = Shift{{1, 2, 3}}(float3(1)).z; out[3] = then(then(Scale{3}, Scale{1}), f)(1.0f);",
    out: "float",
    threads: 1,
    expected: [15, 30, 4, 30],
  },
  {
    name: "objects as template arguments, with state and without, called in loops",
    before:
      "struct Add { static constexpr constant int init = 0; template <typename T> T operator()(T x, T y) const { return x + y; } }; struct Max { static constexpr constant int init = -100; template <typename T> T operator()(T x, T y) const { return x > y ? x : y; } }; struct Count { int n = 0; int operator()(int x, int y) { n++; return x + (y > 0); } };\ntemplate <typename Op, int N> static int fold(const device int *p, Op op = Op()) { int r = Op::init; for (int k = 0; k < N; k++) r = op(r, p[k]); return r; }",
    code: "out[0] = fold<Add, 4>(a); out[1] = fold<Max, 3>(a); Count c; int r = 0; for (int k = 0; k < 4; k++) r = c(r, a[k]); out[2] = r * 10 + c.n; out[3] = Add{}(3, 4) + Max()(1, 2);",
    out: "int",
    threads: 1,
    inputs: [ints([5, -3, 7, 2])],
    expected: [11, 7, 34, 9],
  },
  {
    name: "objects with operator() for device, threadgroup and constant memory",
    before:
      "struct Poly { float c[3]; float operator()(float x) const { return c[0] + x * (c[1] + x * c[2]); } float operator()(float x) const device { return 100 + c[0] * x; } float operator()(float x) const threadgroup { return 200 + c[0] * x; } float operator()(float x) const constant { return 300 + c[0] * x; } };\nconstant Poly kPoly = {{1, 2, 3}};",
    code: "const device Poly *d = (const device Poly *)a; threadgroup Poly t; t.c[0] = 5; const Poly mine = {{1, 1, 1}}; out[0] = mine(2); out[1] = d[0](2); out[2] = t(1); out[3] = kPoly(7); out[4] = (*d)(0);",
    out: "float",
    threads: 1,
    inputs,
    expected: [7, 103, 205, 307, 100],
  },
  {
    name: "an object that wraps a pointer: its element, its row and its call",
    before:
      "template <typename T> struct View { const device T *p; int stride; const device T &operator[](int k) const { return p[k]; } T operator()(int r, int c) const { return p[r * stride + c]; } View row(int r) const { return {p + r * stride, 1}; } const device T *operator->() const { return p; } const device T &operator*() const { return *p; } };\nstruct P { int x, y; };",
    code: "View<int> v{a, 2}; out[0] = v[3]; out[1] = v(1, 0); out[2] = v.row(1)[1] + *v; View<P> q{(const device P *)a, 1}; out[3] = q->y + q[1].x; out[4] = (*q).x;",
    out: "int",
    threads: 1,
    inputs: [ints([5, 6, 7, 8])],
    expected: [8, 7, 13, 13, 5],
  },
]);

const fraction = `struct Q { int n, d; };
static Q operator+(Q x, Q y) { return {x.n * y.d + y.n * x.d, x.d * y.d}; } static Q operator-(Q x) { return {-x.n, x.d}; } static Q operator*(Q x, int k) { return {x.n * k, x.d}; } static Q operator*(int k, Q x) { return x * k; }
static bool operator==(Q x, Q y) { return x.n * y.d == y.n * x.d; } static bool operator<(Q x, Q y) { return x.n * y.d < y.n * x.d; } static bool operator!(Q x) { return x.n == 0; }
static thread Q &operator+=(thread Q &x, Q y) { x = x + y; return x; } static thread Q &operator++(thread Q &x) { x.n += x.d; return x; } static Q operator++(thread Q &x, int) { Q old = x; ++x; return old; }`;
statementSuite("memberDeclarations", [
  {
    name: "calls in the template arguments of members and of their results",
    before: `template <typename T> constexpr bool wide() { return sizeof(T) > 4; } struct A { template <typename T> static constexpr bool ok() { return true; } }; constexpr int n() { return 4; } template <int N> struct Row { float x[N]; };
struct S { float p; Row<n()> row; template <typename V> enable_if_t<wide<V>(), float> get(int k) const { return p + k; } template <typename V> enable_if_t<A::ok<V>(), float> next() { return p += 1; } Row<n()> both(int k) { row.x[k] = p; return row; } void set(float x) { p = x; row.x[0] = x; } };`,
    code: "S s; s.set(a[0]); out[0] = s.get<float4>(2); out[1] = s.next<int>(); out[2] = s.both(3).x[3] + s.row.x[0];",
    out: "float",
    threads: 1,
    inputs: [floats([1.5])],
    expected: [3.5, 2.5, 4],
  },
  {
    name: "constructors that cast to the type of a conversion operator",
    before:
      "struct F { float x; template <typename T> F(T value) : x(float(value)) {} operator float() const { return x; } }; struct G { float x; G(int value) : x(abs(float(value))) {} G(uint value) { x = float(value) + 0.5f; } operator float() const { return x; } operator int() const { return int(x) + 1; } int whole() const { return int(*this); } };",
    code: "out[0] = F(a[0]) + 1; out[1] = float(G(-3)) + float(G(i + 2)); out[2] = G(4).whole();",
    out: "float",
    threads: 1,
    inputs: [floats([1.5])],
    expected: [2.5, 5.5, 5],
  },
  {
    name: "static constants whose memory stands first",
    before:
      "template <int N> struct S { constant static constexpr int n = N; }; struct P { constant static const int n = 3; constant constexpr static float x = 0.5f; }; template <int N> struct Q { constant static const int n = N + P::n; };",
    code: "out[0] = S<4>::n + 10 * P::n + P::x; out[1] = Q<5>::n;",
    out: "float",
    threads: 1,
    expected: [34.5, 8],
  },
  {
    name: "references and pointers to dependent templates in threadgroup memory",
    before: `template <typename T, int N> struct Part { typedef T type; T data[N]; template <int M> using sub = Part<T, M>; template <typename U, int M> using as = Part<U, M>; };
template <int M, typename P> static METAL_FUNC threadgroup typename P::template sub<M> &part(threadgroup P &p, int k) { return *(threadgroup typename P::template sub<M> *)(&p.data[k * M]); }
template <int M, typename P> static typename enable_if<true, threadgroup typename P::template as<typename P::type, M> &>::type other(threadgroup P &p, int k) { threadgroup typename P::template as<typename P::type, M> *q = (threadgroup typename P::template as<typename P::type, M> *)(&p.data[k * M]); return *q; }`,
    code: "threadgroup Part<float, 32> p; p.data[i] = a[i]; threadgroup_barrier(mem_flags::mem_threadgroup); out[i] = part<2>(p, 1).data[i % 2] + other<1>(p, 3 - int(i)).data[0];",
    out: "float",
    inputs: [floats([1, 2, 3, 4])],
    expected: [7, 7, 5, 5],
  },
]);

statementSuite("ownOperators", [
  {
    name: "arithmetic of a struct beside arithmetic of vectors and numbers",
    before: fraction,
    code: "Q x{1, 2}, y{1, 3}; Q z = x + y; out[0] = z.n * 10 + z.d; z += -y; out[1] = z == x; out[2] = (2 * x * 3).n; const Q w = z++; out[3] = (w == x) + 2 * (x < z); out[4] = !x || !Q{0, 1}; int3 v(1); v++; out[5] = v.y; out[6] = (++y).n;",
    out: "int",
    threads: 1,
    expected: [56, 1, 6, 3, 1, 2, 4],
  },
  {
    name: "operators between a struct and vectors, on either side",
    before:
      "struct Quat { float4 v; }; static Quat operator*(Quat a, Quat b) { return {float4(a.v.w * b.v.xyz + b.v.w * a.v.xyz + cross(a.v.xyz, b.v.xyz), a.v.w * b.v.w - dot(a.v.xyz, b.v.xyz))}; } static float3 operator*(Quat q, float3 p) { return (q * Quat{float4(p, 0)} * Quat{float4(-q.v.xyz, q.v.w)}).v.xyz; } static Quat operator*(float s, Quat q) { return {s * q.v}; } static Quat operator~(Quat q) { return {float4(-q.v.xyz, q.v.w)}; }",
    code: "const Quat q{float4(0, 0, 1, 0)}; const float3 p = q * float3(1, 2, 3); out[0] = p.x; out[1] = p.y; out[2] = p.z; out[3] = (2 * q).v.z; out[4] = (q * ~q).v.w; out[5] = (float2(2) * 3).x;",
    out: "float",
    threads: 1,
    expected: [-1, -2, 3, 2, 1, 6],
  },
  {
    name: "operators as members: compound, subscript, call, arrow, comparison, logic",
    before:
      "struct Bits { uint w; Bits operator&(Bits o) const { return {w & o.w}; } Bits operator|(uint k) const { return {w | 1u << k}; } thread Bits &operator|=(uint k) thread { w |= 1u << k; return *this; } thread Bits &operator<<=(uint k) { w <<= k; return *this; } bool operator[](uint k) const { return w >> k & 1; } bool operator&&(Bits o) const { return w != 0 && o.w != 0; } explicit operator bool() const { return w != 0; } bool operator!=(Bits o) const { return w != o.w; } uint operator,(uint k) const { return w + k; } };",
    code: "Bits b{0}; b |= 3; (b <<= 2) |= 0; out[0] = b.w; out[1] = b[5] + 10 * b[4]; out[2] = (b & (Bits{0} | 5)).w; out[3] = b && Bits{0}; if (b) out[4] = 7; out[5] = b != Bits{33}; out[6] = (b, 100u); out[7] = bool(b & Bits{2}) ? 1 : 2;",
    out: "uint",
    threads: 1,
    expected: [33, 1, 32, 0, 7, 0, 133, 2],
  },
  {
    name: "operators of templates, found by their arguments in a namespace",
    before:
      "namespace lin { template <typename T, int N> struct V { T e[N]; }; template <typename T, int N> static V<T, N> operator+(V<T, N> a, V<T, N> b) { for (int k = 0; k < N; k++) a.e[k] += b.e[k]; return a; } template <typename T, int N, typename S> static V<T, N> operator*(V<T, N> a, S s) { for (int k = 0; k < N; k++) a.e[k] *= s; return a; } template <typename T, int N> static T dot(V<T, N> a, V<T, N> b) { T s = 0; for (int k = 0; k < N; k++) s += a.e[k] * b.e[k]; return s; } template <typename T, int N> static bool operator==(V<T, N> a, V<T, N> b) { return dot(a, a) == dot(b, b); } }",
    code: "lin::V<float, 5> v = {{1, 2, 3, 4, 5}}, w = v * 2 + v; out[0] = w.e[4]; out[1] = dot(v, w); out[2] = v == w; lin::V<int, 2> n = {{3, 4}}; out[3] = dot(n, n) + dot(float2(1, 2), float2(3));",
    out: "float",
    threads: 1,
    expected: [15, 165, 0, 34],
  },
  {
    name: "assignment of the user's own for every memory",
    before:
      "struct P { int n; P() = default; P(int k) : n(k) {} thread P &operator=(const thread P &o) thread { n = o.n + 1; return *this; } threadgroup P &operator=(const thread P &o) threadgroup { n = o.n + 10; return *this; } device P &operator=(const thread P &o) device { n = o.n + 100; return *this; } device P &operator+=(int k) device { n += k; return *this; } };",
    code: "P p(1), q(5); p = q; out[1] = p.n; threadgroup P t; t = p; out[2] = t.n; device P &d = *(device P *)out; d = p; d += 1000;",
    out: "int",
    threads: 1,
    expected: [1106, 6, 16],
  },
]);

statementSuite("templatesOfTemplates", [
  {
    name: "templates as arguments of templates, with defaults and packs",
    before:
      "template <typename T, int N> struct Box { T v[N]; static constexpr constant int size = N; }; template <typename T> struct One { T v; static constexpr constant int size = 1; }; template <template <typename, int> class C, typename T = float> struct Two { C<T, 2> a; C<T, 3> b; static constexpr constant int size = C<T, 2>::size + C<T, 3>::size; }; template <template <typename...> class C, typename... T> struct Make { typedef C<T...> type; };",
    code: "Two<Box> t = {{{1, 2}}, {{3, 4, 5}}}; out[0] = t.b.v[2]; out[1] = Two<Box, half>::size; typename Make<One, int>::type o = {7}; out[2] = o.v; out[3] = sizeof(Two<Box, char>);",
    out: "float",
    threads: 1,
    expected: [5, 5, 7, 5],
  },
  {
    name: "partial specialisation on templates, pointers of a memory, arrays and vectors",
    before:
      "template <typename T> struct Kind { static constexpr constant int v = 0; }; template <typename T> struct Kind<device T *> { static constexpr constant int v = 1; }; template <typename T> struct Kind<const threadgroup T *> { static constexpr constant int v = 2; }; template <typename T, int N> struct Kind<vec<T, N>> { static constexpr constant int v = 10 + N; }; template <typename T, size_t N> struct Kind<T[N]> { static constexpr constant int v = 100 + N; }; template <typename T, int C, int R> struct Kind<matrix<T, C, R>> { static constexpr constant int v = 1000 + 10 * C + R; }; template <typename T> struct Box {}; template <typename T> struct Kind<Box<T>> { static constexpr constant int v = 20 + Kind<T>::v; };",
    code: "out[0] = Kind<float>::v; out[1] = Kind<device int *>::v; out[2] = Kind<const threadgroup half *>::v; out[3] = Kind<float3>::v; out[4] = Kind<int[7]>::v; out[5] = Kind<float2x4>::v; out[6] = Kind<Box<Box<uchar2>>>::v; out[7] = Kind<decltype(out)>::v;",
    out: "int",
    threads: 1,
    expected: [0, 1, 2, 13, 107, 1024, 52, 1],
  },
  {
    name: "members that are templates, of templates, in templates",
    before:
      "template <typename T> struct Outer { template <int N> struct In { T v[N]; template <typename U> U at(int k) const { return U(v[k]); } }; template <typename U> using Pair = In<sizeof(U) / sizeof(T)>; template <int N> static In<N> filled(T x) { In<N> r; for (int k = 0; k < N; k++) r.v[k] = x + k; return r; } }; template <typename T> static int second(T x) { const auto r = Outer<T>::template filled<3>(x); return r.template at<int>(1); }",
    code: "Outer<float>::In<2> p = {{1.5f, 2.5f}}; out[0] = p.at<int>(1); out[1] = second(4.5f) + second(7); Outer<half>::Pair<float> q = {{3, 4}}; out[2] = int(q.v[1]); out[3] = sizeof(q);",
    out: "int",
    threads: 1,
    expected: [2, 13, 4, 4],
  },
  {
    name: "a tile, its loader and its layout as templates of each other",
    before:
      "struct Rows { template <int R, int C> static constexpr int at(int r, int c) { return r * C + c; } }; struct Columns { template <int R, int C> static constexpr int at(int r, int c) { return c * R + r; } };\ntemplate <typename T, int R, int C, typename L> struct Tile { T v[R * C]; thread T &operator()(int r, int c) thread { return v[L::template at<R, C>(r, c)]; } }; template <template <typename, int, int, typename> class X, typename L> struct Load { template <typename T> static X<T, 2, 2, L> from(const device T *p) { X<T, 2, 2, L> x; for (int k = 0; k < 4; k++) x.v[k] = p[k]; return x; } };",
    code: "auto r = Load<Tile, Rows>::from(a); auto c = Load<Tile, Columns>::from(a); out[0] = r(0, 1); out[1] = c(0, 1); c(1, 0) += 10; out[2] = c.v[1]; out[3] = r(1, 1);",
    out: "float",
    threads: 1,
    inputs,
    expected: [-2, 3.25, 8, 8],
  },
  {
    name: "packs: sums, types by place, indices and a tuple",
    before:
      "template <typename... T> struct Tuple {}; template <typename H, typename... T> struct Tuple<H, T...> { H head; Tuple<T...> tail; }; template <int N, typename H, typename... T> static auto get(Tuple<H, T...> t) { if constexpr (N == 0) { return t.head; } else { return get<N - 1>(t.tail); } } template <int... K> struct Seq { static constexpr constant int sum = (K + ... + 0); static constexpr constant int count = sizeof...(K); }; template <int N, int... K> struct Count { typedef typename Count<N - 1, N - 1, K...>::type type; }; template <int... K> struct Count<0, K...> { typedef Seq<K...> type; }; template <typename... T> static float all_of(T... x) { float r = 0; ((r = r * 10 + x), ...); return r; }",
    code: "const Tuple<int, float, half> t = {1, {2.5f, {3.5h, {}}}}; out[0] = get<0>(t) + get<1>(t) + float(get<2>(t)); out[1] = Count<5>::type::sum; out[2] = Count<5>::type::count; out[3] = all_of(1, 2.0f, ushort(3)); out[4] = sizeof(get<2>(t));",
    out: "float",
    threads: 1,
    expected: [7, 10, 5, 123, 2],
  },
]);

const grid = { kernel: "k", out: "float", grid: 4, threads: 4, inputs } as const;
const parameters =
  "device float *out [[buffer(0)]], const device float *in [[buffer(1)]], uint i [[thread_position_in_grid]]";
sourceSuite("shadowedAliases", [
  {
    ...grid,
    name: "an alias of the program, of a namespace, of a struct and of a function",
    source: `typedef float4 V; namespace n { typedef int V; static V next(V x) { return ++x; } namespace m { using V = half2; static V next(V x) { return ++x; } } } struct S { using V = uchar; V v; V next() const { V w = v; w++; return w; } };
static V next(V x) { return ++x; } static float use() { typedef ushort V; V v = 65535; v++; return v; }
kernel void k(${parameters}) { V v(in[i]); S s{255}; out[i] = next(v).w + n::next(3) + float(n::m::next(half2(1)).y) + s.next() + use(); }`,
    expected: list.map((x) => x + 1 + 4 + 2),
  },
  {
    ...grid,
    name: "a parameter of a template that shadows an alias, and a block that shadows it",
    source: `using T = float3; template <typename T> static T step(T x) { T y = x; y++; return y; } template <int T> static float width() { return T * 2; } struct T2 { T v; };
kernel void k(${parameters}) { T t(in[i]); t++; const T2 b{t}; float r = step(b.v).y + step(1) + width<3>(); { typedef int T; T n = in[i]; n++; r += n; { enum T { kA = 5 }; r += kA; } T m = 1; r += m--; } out[i] = r; }`,
    expected: list.map((x) => x + 2 + 2 + 6 + Math.trunc(x) + 1 + 5 + 1),
  },
  {
    ...grid,
    name: "variables with the names of aliases, of structs and of functions, side by side",
    source: `typedef float2 Point; struct Item { float v; }; static float scale(float x) { return 2 * x; }
kernel void k(${parameters}) { Point Point(in[i], 1); struct Item Item = {3}; float r = scale(1); { float scale = Point.x * Item.v; r += scale * 1; } Point++; r += Point.y; for (int Item = 0; Item < 2; Item++) r += Item; out[i] = r + Item.v; }`,
    expected: list.map((x) => 2 + 3 * x + 2 + 1 + 3),
  },
  {
    ...grid,
    name: "enumerators, members and parameters of one name",
    source: `enum Mode { x, y = 4, room }; struct P { float x, y; float room(float y) const { return x * y + ::y; } }; static float f(float x, float2 y) { return x + y.x + y.y; }
kernel void k(${parameters}) { const P p{in[i], 2}; const uint2 room(i, 7); out[i] = p.room(3) + f(p.y, float2(p.x)) + room.y + ::room + x; }`,
    expected: list.map((x) => 3 * x + 4 + 2 + 2 * x + 7 + 5),
  },
]);
