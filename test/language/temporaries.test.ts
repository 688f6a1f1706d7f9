/** Temporaries as operands of operators, and as arguments, that take a constant reference to `thread` memory. */
import { range } from "./harness.ts";
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

const changing = "struct V { int x; }; static V operator+(thread V &a, const thread V &b) { return V{a.x += b.x}; }";
refusalSuite("temporary_refused", [
  {
    name: "a temporary as an operand that the operator may change",
    source: both(changing, "V a{1}; out[i] = (a + a §+ a).x;"),
    says: /invalid operands to binary expression/,
  },
]);
