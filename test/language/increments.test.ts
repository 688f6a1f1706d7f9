/** `++` and `--` on vectors of every type, wherever C++ has them; numbers and pointers beside them. */
import { type Case, ints, languageSuite, range } from "./harness.ts";
import { encoded, numberTypes } from "./numbers.ts";

const cases: Case[] = numberTypes.flatMap((type): Case[] => [
  {
    name: `${type}2, ${type}3, ${type}4: before and after, value and statement`,
    code: `${type}2 v = ${type}2(5, 9); ${type}3 w = ${type}3(1, 2, 3); ${type}4 u = ${type}4(7);
      v++; ++v; v--; --w; const ${type}2 old = v++; const ${type}3 now = ++w; const ${type}4 was = u--; const ${type}4 is = --u;
      out[0] = v.x; out[1] = v.y; out[2] = old.x; out[3] = old.y; out[4] = w.z; out[5] = now.x; out[6] = was.w; out[7] = is.y; out[8] = u.x;`,
    out: type,
    threads: 1,
    expected: encoded(type, [7, 11, 6, 10, 3, 1, 7, 5, 5]),
  },
  {
    name: `${type}4 in arrays, structs, device and threadgroup memory, by reference and pointer`,
    code: `struct Holder { ${type}4 v; ${type}2 list[2]; }; Holder h = {${type}4(1), {${type}2(2), ${type}2(3)}}; thread ${type}4 &r = h.v;
      threadgroup ${type}4 box[2]; box[0] = ${type}4(20); device ${type}4 *place = (device ${type}4 *)out; thread Holder *p = &h;
      h.v++; ++h.list[1]; p->list[0]--; r++; box[0]--; const ${type}4 before = box[0]++; const ${type}2 item = h.list[1]++;
      place[1] = ${type}4(30); place[1]++; ++*(place + 1); --place[1].y; place[1].zw++; const ${type}4 last = place[1]--;
      out[0] = h.v.x; out[1] = h.list[0].y; out[2] = h.list[1].x + item.x; out[3] = before.x; out[8] = last.z; out[9] = box[0].x;`,
    out: type,
    threads: 1,
    expected: encoded(type, [3, 1, 9, 19, 31, 30, 32, 32, 33, 20]),
  },
]);

cases.push(
  {
    name: "a bool counts up to true and stays there, as in C++14",
    code: "bool b = i > 0; const bool was = b++; const bool is = ++b; out[0] = was; out[1] = is; out[2] = b;",
    out: "int",
    threads: 1,
    expected: [0, 1, 1],
  },
  {
    name: "for loops that count vectors, one and several at a time",
    code: `int s = 0; for (int4 v = int4(0, 10, 20, 30); v.x < 3; v++) { s += v.y; } int n = 0;
      for (float2 f = 0, g = 5; f.x < 4 && g.y > 2; ++f, g--, n++) { s += int(f.x * 100); } out[0] = s; out[1] = n;`,
    out: "int",
    threads: 1,
    expected: [10 + 11 + 12 + 100 + 200, 3],
  },
  {
    name: "in templates, where the type depends",
    code: "out[0] = twice(3); out[1] = int(twice(float3(1, 2, 3)).z); out[2] = twice(uchar4(255)).w; out[3] = int(twice(2.5h) * 2); out[4] = drained<int, 3>(a);",
    out: "int",
    threads: 1,
    inputs: [ints([5, 6, 7])],
    expected: [3 + 5, 3 + 5, (255 + 1) & 255, (2.5 + 4.5) * 2, 5 + 6 + 7],
  },
  {
    name: "in macros, conditions, labels and operands of other operators",
    code: `int3 v = int3(1, 2, 3); int k = 0; STEP(v); if (i == 0) v++; else v--; do v++; while (v.x < 6);
      switch (v.y) { case 7: v++; break; default: v--; } const int3 w = -v++ * 2; ++v; const int3 c = i == 0 ? v++ : v--; k = v[1]++; k += ++v.z;
      out[0] = v.x; out[1] = v.y; out[2] = v.z; out[3] = w.x; out[4] = c.x; out[5] = k;`,
    out: "int",
    threads: 1,
    // v.x: 1, 2 (STEP), 3 (if), 4, 5, 6 (do), 7 (case 7), 8 and 9 around w; c = 9; then v is (10, 11, 12).
    expected: [10, 12, 13, -14, 9, 11 + 13],
  },
  {
    name: "numbers and pointers step as they did, once each",
    code: `int n = 3; const device int *p = a; device int *q = out; int list[3] = {7, 8, 9}; int at = 0;
      *q++ = *p++ + n++; *q++ = *++p; *q++ = n--; *q++ = list[at++]++; *q++ = list[0] + at; ++*q; q[0] += 4; (*q)++; list[at++] += 10;
      q[1] = list[1]; q[2] = at; uchar c = 255; c++; q[3] = c; half h = 0.5h; ++h; q[4] = int(h * 2); bool flag = false; q[5] = flag ? n++ : n--; q[6] = n;`,
    out: "int",
    threads: 1,
    inputs: [ints([10, 20, 30])],
    expected: [13, 30, 4, 7, 9, 6, 18, 2, 0, 3, 3, 2],
  },
  {
    name: "counters that threads of a threadgroup keep in shared vectors",
    code: `threadgroup uint4 counts[8]; counts[local] = uint4(local); for (uint k = 0; k <= local; ++k) { counts[local]++; counts[local].w--; }
      threadgroup_barrier(mem_flags::mem_threadgroup); const uint4 c = counts[7 - local]; out[i] = c.x * 100 + c.w;`,
    out: "uint",
    expected: range(8, (k) => (2 * (7 - k) + 1) * 100 + (7 - k)),
  },
);
languageSuite(
  "increments",
  `#define STEP(v) ++v
template <typename T> T twice(T v) { T before = v++; v++; --v; ++v; return before + v; }
template <typename T, int N> T drained(const device T *from) { T s = 0; for (int k = N; k-- > 0;) { s += from[k]; } return s; }`,
  cases,
);
languageSuite(
  "increment_operators",
  `struct Ring { uint at; thread Ring &operator++() { at = (at + 1) % 3; return *this; } Ring operator++(int) { Ring old = *this; ++*this; return old; } };`,
  [
    {
      name: "an operator++ of a struct stays its own",
      code: "Ring r = {1}; ++r; out[0] = r.at; const Ring old = r++; out[1] = old.at; out[2] = r.at; uint n = 4; n++; out[3] = n--; out[4] = n;",
      out: "uint",
      threads: 1,
      expected: [2, 2, 0, 5, 4],
    },
  ],
);
