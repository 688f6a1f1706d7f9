/** Where Metal differs from C++, a note behind the error says what to write in its place, once, at the error's line. */
import { expect, test } from "bun:test";
import { thrownBy } from "../helpers/errors.ts";
import { countCase } from "./harness.ts";
import { both, compile, kernel } from "./refused.ts";

const heap = /memory comes from the caller, as buffers and threadgroup arguments, or is an array/;
const numbers = /numbers are float, half or bfloat: a literal without a suffix is a float/;
const types = /types are known only when a shader is compiled: 'is_same_v<T, U>'/;
const constants = /a program has constants only, .* what a kernel changes is in buffers or its own/;
const space = /memory of one address space is no other's: copy values, or make the function a template/;
const struct = /a struct with 'operator\(\)' takes its place/;

const notes: readonly (readonly [string, string, RegExp])[] = [
  ["double", kernel("double x = in[i]; out[i] = x;"), numbers],
  ["a long double literal", kernel("out[i] = 1.0L;"), numbers],
  ["a virtual function", both("struct S { virtual float f() { return 1; } };", "out[i] = 1;"), /a template parameter/],
  ["throw", kernel("if (i > 3) throw 1; out[i] = 1;"), /by writing a code into a buffer/],
  ["new", kernel("thread float *p = new float; out[i] = *p;"), heap],
  ["delete", kernel("thread float *p = nullptr; delete p; out[i] = 1;"), heap],
  ["an operator new", both("struct S { void operator delete(thread void *p); };", "out[i] = 1;"), heap],
  ["goto", kernel("goto end; end: out[i] = 1;"), /loops, 'break', 'continue'/],
  ["a lambda without captures", kernel("auto f = [](float x) { return x; }; out[i] = f(1);"), struct],
  ["a lambda that captures", kernel("float y = 2; auto f = [&](float x) { return x * y; }; out[i] = f(1);"), struct],
  ["recursion", both("float f(float x) { return x < 1 ? x : f(x - 1); }"), /no stack of calls: use a loop/],
  [
    "recursion of a template",
    both("template <typename T> T f(T x) { return x < 1 ? x : f(x - 1); }"),
    /no stack of calls: use a loop/,
  ],
  [
    "a function pointer",
    both("float g(float x) { return x; }", "float (*p)(float) = g; out[i] = p(1);"),
    /F\)\(float\)>/,
  ],
  ["dynamic_cast", both("struct S { int a; };", "S s; out[i] = dynamic_cast<thread S *>(&s)->a;"), types],
  ["typeid", kernel("out[i] = typeid(int) == typeid(int);"), types],
  ["register", kernel("register int x = 0; out[i] = x;"), /chooses what lies in registers/],
  ["a constant in a function", kernel("constant int x = 1; out[i] = x;"), /declare it outside of functions/],
  ["thread_local", kernel("thread_local int x = 0; out[i] = x;"), /belongs to its thread already/],
  ["std", kernel("out[i] = std::sqrt(in[i]);"), /<metal_stdlib> are in namespace metal/],
  ["a header of C", both("#include <stdint.h>", "out[i] = 1;"), /includes headers of Metal, such as <metal_stdlib>/],
  ["asm", kernel('asm("nop"); out[i] = 1;'), /code for a GPU/],
  ["a builtin", kernel("out[i] = __builtin_sqrtf(in[i]);"), /functions of <metal_stdlib> are in their place/],
  [
    "a pointer without address space",
    kernel("float x = 1; float *p = &x; out[i] = *p;"),
    /device, constant, threadgroup/,
  ],
  ["a variable of the program", both("float counter = 0;", "out[i] = counter;"), constants],
  ["a static variable", kernel("static float n = 0; n += 1; out[i] = n;"), constants],
  [
    "a threadgroup variable of a function",
    both("float f(float x) { threadgroup float box[4]; box[0] = x; return box[0]; }"),
    /a kernel declares its threadgroup memory, and hands functions a pointer/,
  ],
  [
    "an initialised threadgroup variable",
    kernel("threadgroup float x = 3; out[i] = x;"),
    /one of them writes it, and 'threadgroup_b/,
  ],
  ["a pointer to other memory", kernel("threadgroup float *p = out; out[i] = p[0];"), space],
  ["a cast to other memory", kernel("out[i] = *(thread float *)in;"), space],
  [
    "an array of a length at run time",
    kernel("int n = in[0]; float x[n]; x[0] = 1; out[i] = x[0];"),
    /as a template parameter is/,
  ],
  [
    "a dynamic initialiser",
    both("float g(float x) { return x; }\nconstant float k0 = g(2);", "out[i] = k0;"),
    /has to be 'constexpr'/,
  ],
  ["any number of arguments", both("float f(int n, ...) { return n; }", "out[i] = f(1);"), /by a pack/],
  [
    "a kernel that is called",
    both("kernel void g(device float *x [[buffer(0)]]) { }", "g(out);"),
    /a function that is no kernel/,
  ],
  [
    "a kernel that returns",
    "kernel float k(device float *out [[buffer(0)]]) { return 1; }\n",
    /its results back in buffers/,
  ],
  [
    "a default argument",
    "kernel void k(device float *out [[buffer(0)]], constant int *n [[buffer(1)]] = nullptr) { }\n",
    /is set by the caller/,
  ],
  ["a mask as numbers", kernel("int3 m = float3(1) < float3(2); out[i] = m.x;"), /'select', 'any' and 'all' take/],
  ["a texture", both("float f(texture2d<float> t) { return 1; }", "out[i] = 1;"), /a buffer of its numbers/],
];

notes.forEach(([name, source, says], index) => {
  const done = countCase();
  test(`note: ${name}`, () => {
    const label = `note_${index}.metal`;
    const { message } = thrownBy(() => compile(label, source));
    const place = new RegExp(`${label}:(\\d+:\\d+): error: `);
    const lines = message.split("\n");
    const error = lines.findIndex((line) => place.test(line));
    // The error, its line and the caret, then the note at the same place, with both again.
    const note = lines.findIndex((line) => line.includes(": note: ") && says.test(line));
    expect({ message, note: note > error }).toEqual({ message, note: true });
    const errors = lines.flatMap((line) => place.exec(line)?.[1] ?? []);
    expect(errors).toContain(/:(\d+:\d+): note: /.exec(lines[note] ?? "")?.[1] ?? "");
    expect(lines.filter((line) => says.test(line))).toHaveLength(1);
    done();
  });
});

const often = countCase();
test("a note is said once, however often its error comes", () => {
  const { message } = thrownBy(() => compile("often.metal", kernel("double x = 1; double y = 2; out[i] = x + y;")));
  expect(message.match(/: error: 'double'/g)).toHaveLength(2);
  expect(message.match(/: note: /g)).toHaveLength(1);
  often();
});

const candidates = countCase();
test("of the language's own operators one stands for all, of numbers that Metal has", () => {
  const type =
    "struct C { float x; C(float y) : x(y) {} template <typename T> operator T() const thread { return T(x); } };\nC operator+(C a, C b) { return C(a.x + b.x); }";
  const { message } = thrownBy(() => compile("ambiguous.metal", both(type, "C c(1); out[i] = (c + 2.0f).x;")));
  expect(message).toContain("is ambiguous");
  expect(message.match(/built-in candidate/g)).toHaveLength(1);
  expect(message).not.toMatch(/double|int128|float128/);
  candidates();
});
