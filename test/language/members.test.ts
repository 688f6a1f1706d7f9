/** Member functions and operators of objects in device, constant, threadgroup and thread memory. */
import { expect, test } from "bun:test";
import { thrownBy } from "../helpers/errors.ts";
import { countCase, device, floats, languageSuite, range, uints } from "./harness.ts";

const prelude = `
struct Sum {
  float value;
  int count;
  void add(float x) device { value += x; count++; }
  void add(float x) threadgroup { value += x; count += 10; }
  void add(float x) { value += x; count += 100; }
  device Sum &scaled(float by) device { value *= by; return *this; }
  thread Sum &scaled(float by) thread { value *= by; return *this; }
  float mean() const device { return value / count; }
  float mean() const { return value / count; }
  void twice(float x) device { add(x); this->add(x); }
  void twice(float x) threadgroup { add(x); (*this).add(x); }
};
struct Where {
  float x;
  int memory() const { return 1; }
  int memory() device const { return 2; }
  int memory() const threadgroup { return 3; }
  int memory() constant { return 4; }
  static int fixed() { return 9; }
  float both(float y = 2) const device { return x * y + fixed(); }
  float both(float y = 5) const { return x * y; }
};
template <typename T, uint N> struct Stack {
  uint count;
  T items[N];
  void clear() threadgroup { count = 0; }
  void push(T x) threadgroup;
  T top() const threadgroup;
  uint size() const threadgroup { return count; }
  uint size() const { return count; }
  template <typename U> U as(uint k) const threadgroup { return U(items[k]); }
};
template <typename T, uint N> void Stack<T, N>::push(T x) threadgroup { items[count++] = x; }
template <typename T, uint N> T Stack<T, N>::top() const threadgroup { return items[size() - 1]; }
struct Inner { float v; void set(float y) device { v = y; } };
struct Outer { Inner one, two[2]; device Inner *at(int k) device { return k == 0 ? &one : &two[k - 1]; } void go() device { one.set(1); two[1].set(3); } };
struct Shadow { float x; float first(float x) const device { return x; } float second() const device { float x = 3; return x + this->x; } };
struct Base { float x; void inc() device { x += 1; } };
struct Derived : Base { float y; void go() device { inc(); x += 2; y = x * 10; } };
struct Queue {
  atomic_uint head;
  uint items[4];
  uint push(uint v) device { const uint k = atomic_fetch_add_explicit(&head, 1u, memory_order_relaxed); items[k] = v; return k; }
  uint size() const device { return atomic_load_explicit(&head, memory_order_relaxed); }
};
struct Mixed {
  packed_float3 p;
  uint low : 4;
  uint high : 4;
  union { float f; uint u; };
  float3 doubled() const device { return p * 2.0f; }
  void set(float3 v) device { p = v; p[1] = 9; low = 3; high = 5; f = 1; }
  uint sum() const device { return low + high + u; }
};
template <typename T> struct Row {
  T v[4];
  thread T &operator[](int k) { return v[k]; }
  const thread T &operator[](int k) const { return v[k]; }
  device T &operator[](int k) device { return v[k]; }
  const device T &operator[](int k) const device { return v[k]; }
  threadgroup T &operator[](int k) threadgroup { return v[k]; }
  T operator[](int k) const constant { return v[k]; }
};
struct Layout {
  float width;
  float operator()(float x, float y) const constant { return y * width + x; }
  float operator()(float x, float y) const { return -(y * width + x); }
  float operator()() const constant { return width; }
};
struct Complex {
  float re, im;
  Complex operator+(Complex o) const device { return Complex{re + o.re, im + o.im}; }
  Complex operator+(Complex o) const { return Complex{re + o.re, im + o.im}; }
  Complex operator-() const device { return Complex{-re, -im}; }
  bool operator==(Complex o) const device { return re == o.re && im == o.im; }
  void operator*=(float s) device { re *= s; im *= s; }
  device Complex &operator-=(Complex o) device { re -= o.re; im -= o.im; return *this; }
};
struct Marked {
  float x;
  threadgroup Marked &operator=(const thread Marked &o) threadgroup { x = o.x * 2; return *this; }
  thread Marked &operator=(const threadgroup Marked &o) { x = o.x + 1; return *this; }
};
constant float kNumbers[] = {1, 2, 3, 4};
constant Where kWhere = {6};
template <typename P> float use(P object) { object->add(2); return object->scaled(3).mean(); }
`;

languageSuite("members", prelude, [
  {
    name: "functions that change objects in device memory, by pointer, element and dereference, one calling another",
    code: `device Sum *s = (device Sum *)out; s->add(2.5f); s[0].add(1); (*s).add(1); s[1].twice(a[1]); s[1].scaled(2).scaled(5).add(4); out[4] = s->mean();
      Sum mine = {8, 0}; mine.add(1); out[5] = mine.count + mine.scaled(2).value; out[6] = use(s + 1);`,
    out: "float",
    threads: 1,
    inputs: [floats([1, 7])],
    expected: [4.5, 3 * 2 ** -149, (14 * 10 + 4 + 2) * 3, 4 * 2 ** -149, 1.5, 100 + 18, (146 * 3) / 4],
  },
  {
    name: "functions that change objects in threadgroup memory, templates, definitions outside of the class",
    code: `threadgroup Stack<float, 4> stack; threadgroup Sum sums[2]; stack.clear(); stack.push(2.5f); stack.push(a[0]); sums[1].value = 1; sums[1].count = 0; sums[1].twice(4);
      const Stack<float, 4> copy = stack; out[0] = stack.top(); out[1] = copy.size() + stack.size(); out[2] = stack.as<int>(0) + stack.template as<float>(0); out[3] = sums[1].value + sums[1].count;`,
    out: "float",
    threads: 1,
    inputs: [floats([3.5])],
    expected: [3.5, 4, 2 + 2.5, 9 + 20],
  },
  {
    name: "overloads on the memory of the object, default arguments, static members, arguments that are calls",
    code: `device Where *d = (device Where *)a; const device Where &r = ((const device Where *)a)[1]; threadgroup Where t; t.x = 1; Where mine = *d; constant Where *c = &kWhere;
      out[0] = mine.memory(); out[1] = d->memory() * 10 + r.memory(); out[2] = t.memory(); out[3] = c->memory() * 10 + kWhere.memory(); out[4] = d->both(); out[5] = mine.both();
      out[6] = r.both(mine.both(d->memory())); out[7] = Where::fixed(); out[8] = Where{3}.memory();`,
    out: "float",
    threads: 1,
    inputs: [floats([2, 3])],
    expected: [1, 22, 3, 44, 2 * 2 + 9, 10, 3 * 4 + 9, 9, 1],
  },
  {
    name: "members of members, pointers to members, names of parameters and variables, bases",
    code: `device Outer *o = (device Outer *)out; o->go(); o->at(1)->set(2); device Derived *d = (device Derived *)(out + 3); d->go(); d->inc(); const device Shadow *s = (const device Shadow *)a;
      out[5] = s->first(9); out[6] = s->second();`,
    out: "float",
    threads: 1,
    inputs: [floats([4])],
    expected: [1, 2, 3, 4, 30, 9, 7],
  },
  {
    name: "atomic, packed and overlaid members, bit fields; array<T, N> with functions of the same names",
    code: `device Queue &q = *(device Queue *)out; out[5] = q.push(7); out[6] = q.push(8); out[7] = q.size(); device Mixed *m = (device Mixed *)(out + 8); m->set(float3(1, 2, 3)); const float3 v = m->doubled();
      out[13] = uint(v.x + v.y + v.z); out[14] = m->sum() == 8 + 0x3f800000u; array<int, 3> list; device array<int, 3> &far = *(device array<int, 3> *)a; out[15] = list.size() * 10 + far.size();`,
    out: "uint",
    threads: 1,
    inputs: [uints([0, 0, 0])],
    expected: [2, 7, 8, 0, 0, 0, 1, 2, 0x3f800000, 0x41100000, 0x40400000, 0x53, 0x3f800000, 2 + 18 + 6, 1, 33],
  },
  {
    name: "operator[] and operator() for every memory",
    code: `Row<float> mine = {{1, 2, 3, 4}}; device Row<float> *d = (device Row<float> *)out; threadgroup Row<float> t; constant Row<float> &k = *(constant Row<float> *)kNumbers; const device Row<float> *far = (const device Row<float> *)a;
      mine[0] = 9; const Row<float> fixed = mine; t[2] = mine[0] + fixed[1]; d[0][1] = t[2]; (*d)[2] = k[3]; d->v[3] = 7; d[1][0] = far[0][2]; d[0][3] += far[1][1];
      constant Layout &layout = *(constant Layout *)(kNumbers + 2); const Layout copy = layout; out[5] = layout(1, 2); out[6] = copy(1, 2); out[7] = layout();`,
    out: "float",
    threads: 1,
    inputs: [floats(range(8, (k) => k * k))],
    expected: [0, 11, 4, 7 + 25, 4, 7, -7, 3],
  },
  {
    name: "other operators for device memory, and assignment for threadgroup memory",
    code: `device Complex *c = (device Complex *)a; const Complex s = c[0] + c[1], n = -c[0]; out[0] = s.re; out[1] = n.im; out[2] = c[0] == Complex{1, 2}; c[0] *= 3; out[3] = c->im;
      c[1] -= Complex{1, 1}; out[4] = c[1].im; out[5] = (s + s).im; threadgroup Marked t; Marked m; m.x = 3; t = m; out[6] = t.x; m = t; out[7] = m.x;`,
    out: "float",
    threads: 1,
    inputs: [floats([1, 2, 3, 4])],
    expected: [4, -2, 1, 6, 3, 12, 6, 7],
  },
]);

/** Statements with an object in the wrong memory, and what their message says. */
const refused: Record<string, readonly [string, RegExp]> = {
  "a function for device memory on a threadgroup object": ["threadgroup Inner t; t.set(1);", /set/],
  "a function for device memory on a thread object": ["Inner x; x.set(1);", /set/],
  "a changing function on a constant device object": [
    "const device Inner *p = (const device Inner *)out; p->set(1);",
    /set/,
  ],
  "a function without a qualifier on a device object": [
    "struct Plain { float x; void set(float y) { x = y; } }; device Plain *p = (device Plain *)out; p->set(1);",
    /device/,
  ],
  "a function of a name that others qualify": ["device Named *p = (device Named *)out; p->set(1);", /set/],
  "a function without a qualifier called by one for device memory": [
    "device Calling *p = (device Calling *)out; p->go();",
    /not qualified for an object in device memory/,
  ],
};
Object.entries(refused).forEach(([name, [code, says]], index) => {
  const done = countCase();
  test(`refused: ${name}`, () => {
    const types = code.includes("Calling")
      ? "struct Calling { float x; void plain() { x = 1; } void go() device { plain(); } };"
      : "struct Inner { float v; void set(float y) device { v = y; } }; struct Named { float x; void set(float y) { x = y; } };";
    const source = `#include <metal_stdlib>\nusing namespace metal;\n${types}\nkernel void member_${index}(device float *out [[buffer(0)]]) { ${code} }\n`;
    const error = thrownBy(() => {
      device().registerSource(`member_${index}.metal`, source);
      device().pipeline(`member_${index}`);
    });
    expect(error.code).toBe("shader-compilation");
    expect(error.message).toMatch(says);
    expect(error.message).toContain(`member_${index}.metal:${code.includes("Calling") ? 3 : 4}:`);
    done();
  });
});
