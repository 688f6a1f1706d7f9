/** Temporaries as operands of operators, and as arguments, that take a constant reference to `thread` memory. */
import { floats, ints, range } from "./harness.ts";
import { both, refusalSuite } from "./refused.ts";
import { statementSuite } from "./separate.ts";

const value = `struct V { int x; V operator-() const { return V{-x}; }
  thread V &operator+=(const thread V &o) thread { x += o.x; return *this; }
  bool operator==(const thread V &o) const { return x == o.x; }
  bool operator<(const thread V &o) const thread { return x < o.x; }
  bool operator>(const thread V &o) const thread { return o < *this; } };
static V make(int x) { return V{x}; } static int get(const thread V &o) { return o.x; }
static V operator+(const thread V &a, const thread V &b) { return V{a.x + b.x}; }
static bool operator!=(const thread V &a, const thread V &b) { return !(a == b) && get(a) != get(b); }`;

statementSuite("temporaries", [
  {
    name: "a chain of operators",
    before: value,
    code: "V a{1}, b{2}; out[i] = (a + b + make(i) + -b).x;",
    out: "int",
    expected: range(3, (i) => 1 + i),
  },
  {
    name: "results of calls and of operators, added to an object",
    before: value,
    code: "V a{1}, b{int(i)}; a += make(i); a += -b; a += b + b; a += V{5}; out[i] = a.x;",
    out: "int",
    expected: range(3, (i) => 6 + 2 * i),
  },
  {
    name: "a conditional expression behind & of two operands, and behind one that takes its address",
    code: "short2 v = short2(i + 3), w[1] = {short2(6)}; const bool c = i > 0; int p = i, q = 2; const short2 a = max(v, v) & (c ? short2(1) : v), b = w[0] & (c ? short2(3) : v), d = short2(v) & (c ? v : w[0]); const thread int *at = &(c ? p : q); const int e = 5 & (c ? p : q); out[i] = a.x + 10 * b.y + 100 * d.x + 1000 * *at + 10000 * e + 100000 * *(const thread int *)&(c ? q : p);",
    out: "int",
    expected: range(3, (i) => {
      const [v, c] = [i + 3, i > 0];
      const p = c ? i : 2;
      return (
        (v & (c ? 1 : v)) +
        10 * (6 & (c ? 3 : v)) +
        100 * (v & (c ? v : 6)) +
        1000 * p +
        10_000 * (5 & p) +
        100_000 * (c ? 2 : i)
      );
    }),
  },
  {
    name: "comparisons, of which one calls another",
    before: value,
    code: "V a{1}; out[i] = (a == make(i)) + 2 * (make(i) != a + V{1}) + 4 * (a < make(i)) + 8 * (make(i) > a);",
    out: "int",
    expected: [2, 3, 12],
  },
  {
    name: "a number that an operator takes by reference",
    before:
      "struct W { int x; thread W &operator+=(const thread int &o) thread { x += o; return *this; } int operator[](thread const int &k) const { return x + k; } int operator()(const thread int &j, const thread float &k) const { return x * j + int(k); } };",
    code: "W w{1}; w += int(i) * 2; out[i] = w[i + 1] + w(int(i) - 1, 7);",
    out: "int",
    expected: range(3, (i) => 1 + 2 * i + i + 1 + (1 + 2 * i) * (i - 1) + 7),
  },
  {
    name: "operators of class templates, and templates of operators",
    before: `template <typename T> struct W { T x; thread W &operator+=(const thread W<T> &o) thread { x += o.x; return *this; }
  W operator*(const thread T &s) const { return W{x * s}; }
  friend W operator-(const thread W &a, const thread W &b) { return W{a.x - b.x}; } };
template <typename T> W<T> operator+(const thread W<T> &a, const thread W<T> &b) { return W<T>{a.x + b.x}; }
template <typename T, typename U> W<T> operator/(const thread W<T> &a, const thread U &b) { U y = b; y += 1; return W<T>{T(a.x / y)}; }
template <typename T> T get(const thread W<T> &o) { return o.x; }`,
    code: "W<int> w{1}, q{int(i)}; int two = 2; w += q * two; w += q * 3 - w - q; out[i] = get(w + q + w) + get((w + q) / two) + (w / 1).x;",
    out: "int",
    expected: range(3, (i) => {
      // w is 1 + 2 i, and 2 i after 3 i - w - i has been added.
      const w = 2 * i;
      return w + i + w + Math.trunc((w + i) / 3) + Math.trunc(w / 2);
    }),
  },
  {
    name: "operators whose bodies need the memory of their operands",
    before: `struct M { int x[2]; const thread int &operator[](int k) const { return x[k]; } thread int &operator[](int k) { return x[k]; } };
static int second(const thread int *p) { return p[1]; } static M make(int a, int b) { return M{{a, b}}; } static int first(const thread M &m) { return m[0]; }
static M operator+(const thread M &a, const thread M &b) { const thread M &r = a; const thread int *p = b.x; return M{{r[0] + *p, second(a.x) + second(p)}}; }
static const thread M &operator|(const thread M &a, const thread M &b) { if (first(a) > 0) return a; return b; }
static bool operator==(const thread M &a, const thread M &b) { return &a == &b; }`,
    code: "M a = make(1, 2), b = make(3, int(i)); M c = a + b + make(10, 20); out[i] = c[0] + 100 * c[1] + 10000 * (make(0, 0) | b + b)[0] + 100000 * (a == a) + 200000 * (a == b);",
    out: "int",
    expected: range(2, (i) => 14 + 100 * (22 + i) + 60000 + 100000),
  },
  {
    name: "an object that is its own operand",
    before:
      "struct C { int re, im; }; static thread C &operator*=(thread C &a, const thread C &b) { a.re = a.re * b.re - a.im * b.im; a.im = a.re * b.im; return a; }",
    code: "C a{2, 1}; a *= a; C b{2, 1}; b *= C{2, 1}; out[0] = a.re; out[1] = a.im; out[2] = b.re; out[3] = b.im;",
    out: "int",
    threads: 1,
    expected: [3, 3, 3, 3],
  },
  {
    name: "overloads for other memory, and for what may change",
    before:
      "struct V { int x; }; static int operator+(const thread V &a, const thread V &b) { return a.x + b.x; } static int operator+(const device V &a, const thread V &b) { return 100 + b.x; } static int operator+(thread V &a, const device V &b) { return 200 + a.x; } static int operator-(thread V &a) { return 1; } static int operator-(const thread V &a) { return 2; }",
    code: "V a{1}; const V c{1}; device V *d = (device V *)out; const int r[] = {a + V{2}, *d + V{3}, a + *d, -a, -c, -V{1}}; for (int k = 0; k < 6; k++) out[k] = r[k];",
    out: "int",
    threads: 1,
    expected: [3, 103, 201, 1, 2, 2],
  },
  {
    name: "loops over arrays by constant references, in functions and in constant methods",
    before:
      "struct V { int x; }; struct L { V items[3]; int sum() const { int s = 0; for (const thread V &v : items) { s += v.x; } return s; } }; static int total(const thread L &l) { int s = 0; for (const thread auto &v : l.items) { s += 10 * v.x; } for (thread const V &v : l.items) { const thread V *p = &v; s += p->x; } return s; }",
    code: "L l{{{1}, {2}, {int(i)}}}; out[i] = l.sum() + total(l) + total(L{{{1}, {1}, {1}}});",
    out: "int",
    expected: range(3, (i) => 12 * (3 + i) + 33),
  },
  {
    name: "an assignment of one's own",
    before:
      "struct V { int x; V() = default; V(int k) : x(k) {} thread V &operator=(const thread V &o) thread { x = o.x + 1; return *this; } }; static V make(int x) { return V(x); }",
    code: "V a(1); a = make(i); V b(9); b = a; out[i] = a.x * 10 + b.x;",
    out: "int",
    expected: range(3, (i) => 10 * (i + 1) + i + 2),
  },
  {
    name: "functions that are evaluated at compile time",
    before:
      "struct V { int x; constexpr V operator+(const thread V &o) const { return V{x + o.x}; } }; static constexpr int twice(const thread int &x) { return 2 * x; } constant int kSum = (V{1} + V{2}).x + twice(4);",
    code: "V a{1}, b{2}; int n = i; out[i] = kSum + (a + b + V{n}).x + twice(n) + twice(n + 1);",
    out: "int",
    expected: range(3, (i) => 11 + 3 + i + 2 * i + 2 * i + 2),
  },
  {
    name: "named functions that hand on what they get, to others and to the library",
    before:
      "static int g(const thread int *p) { return *p; } static int f(const thread int &x) { return abs(x) + g(&x) + max(x, 1); } struct P { int n; const thread P &self() const { return *this; } }; static int h(const thread P &p) { const thread P &q = p.self(); return q.n; }",
    code: "P p{3}; out[i] = f(int(i) - 1) + h(p) + h(P{int(i)});",
    out: "int",
    expected: range(3, (i) => Math.abs(i - 1) + i - 1 + Math.max(i - 1, 1) + 3 + i),
  },
]);

const kinds =
  "template <typename T> struct Kind { static constant constexpr int v = 7; }; template <> struct Kind<float> { static constant constexpr int v = 1; }; template <> struct Kind<int> { static constant constexpr int v = 2; };";

statementSuite("deducedReferences", [
  {
    name: "the type of a variable, of a constant, of a temporary and of what lies in other memory",
    before: `${kinds} template <typename T> static int kind(thread const T &x) { return Kind<T>::v; }
template <typename T, typename U> static int kinds(const thread T &x, U y) { return 10 * Kind<T>::v + Kind<U>::v; }`,
    code: "float x = a[0]; const int n = i; threadgroup int t[2]; t[i & 1] = 1; out[0] = kind(x); out[1] = kind(n); out[2] = kind(x + 1) + 10 * kind(n + 1); out[3] = kind(a[0]) + 10 * kind(t[0]); out[4] = kind(2.0h) + kinds(x, n); out[5] = kinds(n * 2, a[0]);",
    out: "int",
    threads: 1,
    inputs: [floats([3])],
    expected: [1, 2, 21, 21, 7 + 12, 21],
  },
  {
    name: "parameters of one type, variables beside temporaries",
    before: `template <typename T> static T sum(thread const T &x, thread const T &y) { return x + y; }
template <typename T> static void add(thread T &to, thread const T &x) { to += x; }
template <typename T> static T mix3(thread const T &x, T w, thread const T &y, const thread T &z) { T r[2] = {x * w, y}; return r[0] + r[1] * z; }`,
    code: "float x = a[0], y = 2; out[0] = sum(x, y); out[1] = sum(x, 2.5f); out[2] = sum(a[0] * 2, y); out[3] = sum(1.0f, 2.0f); add(x, y); add(x, y + 1); out[4] = x; out[5] = mix3(x, 2.0f, y, y + 1); out[6] = mix3(1.0f, y, 3.0f, 4.0f); out[7] = sum(a[0], x);",
    out: "float",
    threads: 1,
    inputs: [floats([3])],
    expected: [5, 5.5, 8, 3, 8, 22, 14, 11],
  },
  {
    name: "a type that the call names, to which arguments are converted",
    before:
      "template <typename T> static T half_of(thread const T &x) { return x / 2; } template <typename T> static T quotient(thread const T &x, thread const T &y) { return x / y; }",
    code: "int n = 3; float x = 5; out[0] = half_of<float>(n); out[1] = half_of<float>(5) + half_of<float>(x) + half_of<int>(7.5f); out[2] = quotient<float>(n, 2) + quotient<float>(x, 2) + quotient<float>(1, x); out[3] = half_of<float>(a[0]) + half_of<int>(a[0]);",
    out: "float",
    threads: 1,
    inputs: [floats([3])],
    expected: [1.5, 2.5 + 2.5 + 3, 1.5 + 2.5 + 1 / 5, 2.5].map(Math.fround),
  },
  {
    name: "functions that are chosen by the type, by its traits and by the memory",
    before: `template <typename T> static enable_if_t<is_floating_point_v<T>, int> kind(thread const T &x) { return 1; }
template <typename T> static enable_if_t<is_integral_v<T>, int> kind(thread const T &x) { return 2; }
template <typename T> static int place(thread const T &x) { return 1; } template <typename T> static int place(device const T &x) { return 2; }
template <typename T> static int shape(thread const T &x) { return 1; } template <typename T> static int shape(thread const vec<T, 4> &x) { return 4; } static int shape(thread const float2 &x) { return 2; }
template <typename T> static int change(thread const T &x) { return 1; } template <typename T> static int change(thread T &x) { x += 1; return 2; }
template <typename T> static int count(thread const T &x) { return sizeof(x) / sizeof(x[0]); }`,
    code: "float x = 1; int n = 2; float4 v = 3; float2 w = 1; float list[5] = {}; const float c = 4; out[0] = kind(x) + 10 * kind(n) + 100 * kind(2u) + 1000 * kind(1.5f); out[1] = place(x) + 10 * place(out[0]) + 100 * place(x + 1); out[2] = shape(x) + 10 * shape(v) + 100 * shape(v + 1) + 1000 * shape(2.0f) + 10000 * shape(w) + 100000 * shape(w + 1); out[3] = change(x) + 10 * change(c) + 100 * change(x + 1) + 1000 * int(x); out[4] = count(list) + 10 * count(v);",
    out: "int",
    threads: 1,
    expected: [1221, 121, 221441, 2112, 5 + 40],
  },
  {
    name: "methods, static functions, constructors, tags without a name, defaults and packs",
    before: `${kinds} template <typename T> struct W { T v; }; struct Yes {}; struct No {};
struct H { float x; template <typename T> H(thread const T &from, int by) : x(from * by) {} template <typename T> int kind(thread const T &y) const { return Kind<T>::v; } template <typename T> static T twice(thread const T &y) { return y + y; } template <typename T> thread H &add(const thread T &y) { x += y; return *this; } };
template <typename T> static W<T> wrapped(thread const T &x) { return W<T>{x}; } template <typename T> static int tagged(thread const T &, Yes) { return Kind<T>::v; } template <typename T> static int tagged(thread const T &, No) { return -Kind<T>::v; }
template <typename T, int N = 3> static T scaled(thread const T &x, T by = T(2)) { return x * by * N; } template <typename T, typename... R> static T first(thread const T &x, R... rest) { return x + sizeof...(rest); }
static float halved(float x) { return x / 2; } template <float (*F)(float), typename T> static float through(thread const T &x) { return F(x); }`,
    code: "float x = 3; int n = 2; H h(x, 2), g(n + 1, 3); h.add(x).add(0.5f); out[0] = h.x; out[1] = g.x + 100 * h.kind(x) + 10 * h.kind(n) + h.kind(1.5f); out[2] = H::twice(x) + H::twice(4) + wrapped(x).v + wrapped(1.5f).v; out[3] = tagged(x, Yes{}) + 10 * tagged(n + 1, No{}); out[4] = scaled(x) + scaled(2.0f, 5.0f) + scaled<int, 4>(n); out[5] = first(x, 1, 2) + first(2.5f) + first(n + 1, x); out[6] = through<halved>(x) + through<halved>(n + 3);",
    out: "float",
    threads: 1,
    expected: [9.5, 9 + 121, 6 + 8 + 3 + 1.5, 1 - 20, 18 + 30 + 16, 5 + 2.5 + 4, 1.5 + 2.5],
  },
  {
    name: "the memory of an argument: compared, given out and kept in the body",
    before:
      "template <typename T> static bool is(thread const T &x, thread const T &y) { return &x == &y; } template <typename T> static const thread T &larger(thread const T &x, thread const T &y) { if (x < y) return y; return x; } template <typename T> static T second(thread const T *p) { return p[1]; } template <typename T> static T last(thread const T (&x)[2]) { return second(x); } template <typename T> static constexpr T squared(thread const T &x) { return x * x; } constant constexpr int kNine = squared(3);",
    code: "int x = 1, y = 5; const thread int &r = larger(x, y); y = 7; int list[2] = {3, 4}; out[0] = is(x, x) + 10 * is(x, y); out[1] = r; out[2] = last(list); out[3] = squared(x + 1) + squared(y) + kNine;",
    out: "int",
    threads: 1,
    expected: [1, 7, 4, 4 + 49 + 9],
  },
  {
    name: "array parameters and the type of a parenthesis",
    before: `${kinds} template <typename T> static void powers(T to[4], T x) { to[0] = Kind<T>::v; for (int k = 1; k < 4; k++) to[k] = to[k - 1] * x; }
template <typename T> static T sum(const T list[4], T from = 0) { for (int k = 0; k < 4; k++) from += list[k]; return from; } template <typename T> static T front(T list[]) { return list[0]; }
static float at(thread const float *p, int k) { return p[k]; } struct P { float of(float list[2]) const { return at(list, 1); } }; static float whole(float list[2][2]) { return list[1][0] + P().of(list[1]); }`,
    code: "float list[4]; powers(list, 2.0f); out[0] = list[3]; out[1] = sum(list, 0.5f) + front(list); float m[2][2] = {{1, 2}, {3, 4}}; out[2] = whole(m); out[3] = Kind<remove_reference_t<decltype((list[0]))>>::v; powers(list, a[0]); out[4] = list[2]; float x = 2; float y = metal::move(x); out[5] = y;",
    out: "float",
    threads: 1,
    inputs: [floats([3])],
    expected: [8, 15.5 + 1, 7, 1, 9, 2],
  },
  {
    name: "explicit specialisations, with and without their arguments",
    before: `template <typename T> static T op(thread const T &x) { return x; } template <> float2 op<float2>(thread const float2 &x) { return x * x; } template <> int op(const thread int &x) { return -x; }
template <typename V, typename Q> inline V conv(const thread Q &, float s) { return -1; } template <> inline float conv<float, uchar>(const thread uchar &q, float s) { return q * s; }
template <typename T> static float len(thread const vec<T, 2> &v) { return 0; } template <> float len<float>(thread const float2 &v) { return v.x + v.y; }`,
    code: "float2 v = a[0]; uchar q = 4; int n = 6; out[0] = op<float2>(v).x + op(v + 1).y; out[1] = op(n) + op(n + 1) + op(0.5f); out[2] = conv<float, uchar>(q, 2.5f) + conv<float, uchar>(3, 2) + conv<float, int>(n, 1); out[3] = len<float>(v) + len(v * 2);",
    out: "float",
    threads: 1,
    inputs: [floats([3])],
    expected: [9 + 16, -6 - 7 + 0.5, 10 + 6 - 1, 6 + 12],
  },
]);

statementSuite("constructors", [
  {
    name: "constant references of constructors with initialisers, given temporaries",
    before:
      "struct Reader { uint v; Reader(thread const uint &x) : v(x) {} }; struct Layout { Reader r; int n; Layout(size_t x) : r(x), n{int(x) + 1} {} }; struct Held { thread const int &x; Held(thread const int &from) : x(from) {} }; struct Box { int v; Box(thread const int &x, thread const int &y) : v{x} { v += y; thread const int *p = &y; v += *p; } };",
    code: "Reader r(3u), q(i + 1); Layout l(a[0]); int n = 4; Held h(n); n = 6; Box b(n, 2), c(n + 1, n); out[0] = r.v + 10 * q.v; out[1] = l.r.v + 10 * l.n; out[2] = h.x; out[3] = b.v + 100 * c.v;",
    out: "int",
    threads: 1,
    inputs: [ints([5])],
    expected: [13, 65, 6, 10 + 1900],
  },
]);

const changing = "struct V { int x; }; static V operator+(thread V &a, const thread V &b) { return V{a.x += b.x}; }";
refusalSuite("temporary_refused", [
  {
    name: "a temporary as an operand that the operator may change",
    source: both(changing, "V a{1}; out[i] = (a + a §+ a).x;"),
    says: /invalid operands to binary expression/,
  },
]);
