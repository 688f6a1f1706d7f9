/**
 * Lane functions on the way out of a loop: they are of the lanes that leave in one turn, as they are without a way out.
 * Lanes are 32 in a row; the groups below are those with one remainder of 5, 7, 7, 6, 6, 6 lanes.
 */
import { statementSuite } from "./separate.ts";

const lanes = Array.from({ length: 32 }, (_, i) => i);
const groupOf = (i: number) => lanes.filter((other) => other % 5 === i % 5);
const sumOf = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0);
const perGroup = lanes.map((i) => sumOf(groupOf(i)));
const sizes = lanes.map((i) => groupOf(i).length);
const base = { out: "int", threads: 32 } as const;

statementSuite("loopExits", [
  {
    ...base,
    name: "a sum before break, in a loop whose turns are counted",
    code: "int r = -1; for (int q = 0; q < 5; q++) { if (int(i % 5) == q) { r = simd_sum(int(i)); break; } } out[i] = r;",
    expected: perGroup,
  },
  {
    ...base,
    name: "a sum before break, for as long as lanes are there",
    code: "const int key = i % 5; int r = -1; while (true) { const int first = simd_broadcast_first(key); if (key == first) { r = simd_sum(int(i)); break; } } out[i] = r;",
    expected: perGroup,
  },
  {
    ...base,
    name: "sums before break and return in loops over a range, with and without braces, beside an else",
    before:
      "static int in_range(int key, int i) { const int keys[5] = {0, 1, 2, 3, 4}; for (const int q : keys) { if (key == q) { const int s = simd_sum(i); return s; } } return -1; }",
    code: "const int key = i % 5; int keys[5] = {4, 3, 2, 1, 0}; int r = -1; for (int q : keys) { if (key == q) { r = simd_sum(int(i)); break; } } int t = -1; if (i < 99) for (int q : keys) if (key == q) { t = simd_sum(int(i)); break; } else t = -2; else t = -3; out[i] = 1000000 * r + 1000 * t + in_range(key, i);",
    expected: perGroup.map((sum) => 1_001_001 * sum),
  },
  {
    ...base,
    name: "a sum before break, where the condition declares a variable",
    code: "int r = -1, q = 0; while (int left = 5 - q) { if (int(i % 5) == q) { r = simd_sum(int(i)) + left; break; } q++; } out[i] = r;",
    expected: perGroup.map((sum, i) => sum + 5 - (i % 5)),
  },
  {
    ...base,
    name: "a sum before break in a do without braces",
    code: "int r = -1, q = 0; do if (int(i % 5) == q) { r = simd_sum(int(i)); break; } while (++q < 5); out[i] = r;",
    expected: perGroup,
  },
  {
    ...base,
    name: "behind the loop all lanes are there again",
    code: "const int key = i % 5; int r = -1; for (;;) { if (key == simd_broadcast_first(key)) { r = simd_sum(1); break; } } out[i] = 100 * simd_sum(1) + r;",
    expected: sizes.map((size) => 3200 + size),
  },
  {
    ...base,
    name: "a break without a lane function before it leaves all lanes together behind the loop",
    code: "int s = 0; for (int q = 0; q < 40; q++) { if (q == int(i)) break; s++; } out[i] = simd_sum(s);",
    expected: lanes.map(() => sumOf(lanes)),
  },
  {
    ...base,
    name: "return of the kernel, behind a sum, and of a function with it",
    before:
      "static int group_sum(int key, int i) { for (;;) { const int first = simd_broadcast_first(key); if (key == first) return simd_sum(i); } }\nstatic int counted(int key) { for (int q = 0; q < 9; ++q) { if (q == key) { const int n = simd_sum(1); return 10 * n + q; } } return -1; }",
    code: "const int key = i % 5; out[i] = -7; while (true) { if (key == simd_broadcast_first(key)) { out[i] = 1000 * simd_sum(1) + group_sum(key, i) + 100000 * counted(i % 5); return; } }",
    expected: lanes.map(
      (i) => 1000 * (sizes[i] as number) + (perGroup[i] as number) + 100_000 * (10 * (sizes[i] as number) + (i % 5)),
    ),
  },
  {
    ...base,
    name: "return of a sum alone, out of a loop that has no other end",
    before:
      "int group_sum(int key, int i) { for (;;) { const int first = simd_broadcast_first(key); if (key == first) return simd_sum(i); } }",
    code: "out[i] = group_sum(i % 5, i);",
    expected: perGroup,
  },
  {
    ...base,
    name: "return out of an inner loop, where the outer one has no other end",
    before:
      "static int left(int n) { int sum = 0; for (;;) { for (;;) { if (n % 3 == 0) break; sum += n--; if (n < 4) return sum; } n--; sum += 100; } }",
    code: "out[i] = left(i + 4) + 1000 * simd_sum(1);",
    expected: lanes.map((i) => {
      let [n, sum] = [i + 4, 32_000];
      for (; n % 3 === 0 || n > 4; n--) sum += n % 3 === 0 ? 100 : n;
      return sum + n;
    }),
  },
  {
    ...base,
    name: "a loop that lanes enter at two places",
    code: "int n = i, sum = 0; switch (i & 1) { case 0: do { sum += 10; case 1: sum += 1; } while (n-- > 0); } out[i] = sum + 1000 * simd_sum(1);",
    expected: lanes.map((i) => 32_000 + 11 * (i + 1) - 10 * (i & 1)),
  },
  {
    ...base,
    name: "ways out of several kinds, in loops within loops, with else and switch",
    before: "static int ones(int x) { return simd_sum(x); }",
    code: `int r = 0;
      for (int turn = 0; turn < 3; turn++) {
        int key = (i + turn) % 5;
        do {
          const int first = simd_broadcast_first(key);
          if (key != first) { key += 0; } else if (key == 4) { r += 10 * ones(1); break; } else { switch (key) { case 0: r += ones(1); break; default: r += ones(1) + 0; } break; }
        } while (true);
        if (i == 31 && turn == 1) { r += 1000 * simd_sum(1); break; }
      }
      out[i] = r + 10000 * ones(1);`,
    expected: lanes.map((i) => {
      let result = 320_000;
      for (let turn = 0; turn < 3; turn++) {
        // Lane 31 leaves after its second turn.
        const here = lanes.filter((other) => turn < 2 || other !== 31);
        const key = (i + turn) % 5;
        const size = here.filter((other) => (other + turn) % 5 === key).length;
        if (i === 31 && turn === 2) break;
        result += key === 4 ? 10 * size : size;
        if (i === 31 && turn === 1) result += 1000;
      }
      return result;
    }),
  },
  {
    ...base,
    name: "values of the turn go out with the lane: vectors, and pointers to what it chose",
    code: `int list[2] = {int(i), -int(i)}; thread int *chosen = list; float3 v(0);
      for (int q = 0; q < 5; q++) { const float3 w(q, i, 1); if (int(i % 5) == q) { v = w * float(simd_sum(1)); chosen = &list[q % 2]; simd_sum(q); break; } }
      out[i] = int(v.x * 1000 + v.y + v.z) + *chosen;`,
    expected: lanes.map((i) => {
      const size = sizes[i] as number;
      const q = i % 5;
      return 1000 * q * size + i * size + size + (q % 2 === 0 ? i : -i);
    }),
  },
  // Lanes of one parity leave together, sixteen of them.
  {
    ...base,
    name: "both arms of an if leave",
    code: "const uint k = i % 2; uint s = 0, t = 0; (void)t; for (;;) { if (k == simd_broadcast_first(k)) { s = simd_sum(1u); if (k) { t = 1; break; } else { t = 2; break; } } } out[i] = int(s);",
    expected: lanes.map(() => 16),
  },
  {
    ...base,
    name: "the first lane leaves apart from the others",
    code: "const uint k = i % 2; uint s = 0, t = 0; (void)t; for (;;) { if (k == simd_broadcast_first(k)) { if (simd_is_first()) { s = 16; break; } else { s = i < 2 ? 0 : 16; break; } } } out[i] = int(s);",
    expected: lanes.map(() => 16),
  },
  {
    ...base,
    name: "a block around break alone",
    code: "const uint k = i % 2; uint s = 0, t = 0; (void)t; for (;;) { if (k == simd_broadcast_first(k)) { s = simd_sum(1u); { break; } } } out[i] = int(s);",
    expected: lanes.map(() => 16),
  },
  {
    ...base,
    name: "behind an else of a loop without braces",
    code: "const uint k = i % 2; uint s = 0, t = 0; (void)t; for (uint n = 0; n < 9; n++) if (k != simd_broadcast_first(k)) t++; else { s = simd_sum(1u); break; } out[i] = int(s);",
    expected: lanes.map(() => 16),
  },
  {
    ...base,
    name: "behind an else if of a loop without braces",
    code: "const uint k = i % 2; uint s = 0, t = 0; (void)t; for (uint n = 0; n < 9; n++) if (k != simd_broadcast_first(k)) { t++; } else if (i < 99) { s = simd_sum(1u); break; } out[i] = int(s);",
    expected: lanes.map(() => 16),
  },
  {
    ...base,
    name: "a return without braces",
    before: "static uint f(uint k) { for (;;) if (k == simd_broadcast_first(k)) return simd_sum(1u); }",
    code: "const uint k = i % 2; uint s = 0, t = 0; (void)t; s = f(k); out[i] = int(s);",
    expected: lanes.map(() => 16),
  },
  {
    ...base,
    name: "returns of while and do without braces",
    before:
      "static uint f(uint k) { while (true) if (k == simd_broadcast_first(k)) return simd_sum(1u); } static uint g(uint k) { do if (k == simd_broadcast_first(k)) return simd_sum(1u); while (true); }",
    code: "const uint k = i % 2; uint s = 0, t = 0; (void)t; s = (f(k) + g(k)) / 2; out[i] = int(s);",
    expected: lanes.map(() => 16),
  },
  {
    ...base,
    name: "a return out of an inner loop behind a sum of the outer",
    before:
      "static uint f(uint k) { for (;;) { if (k == simd_broadcast_first(k)) { uint r = simd_sum(1u); for (uint m = 0;; m++) { if (m > k) return r; } } } }",
    code: "const uint k = i % 2; uint s = 0, t = 0; (void)t; s = f(k); out[i] = int(s);",
    expected: lanes.map(() => 16),
  },
  {
    ...base,
    name: "returns of a switch",
    before:
      "static uint f(uint k) { for (;;) { if (k == simd_broadcast_first(k)) { uint r = simd_sum(1u); switch (k) { case 0: return r; default: return r; } } } }",
    code: "const uint k = i % 2; uint s = 0, t = 0; (void)t; s = f(k); out[i] = int(s);",
    expected: lanes.map(() => 16),
  },
  {
    ...base,
    name: "a braced list that is returned",
    before:
      "struct R { uint a; }; static R f(uint k) { for (;;) { if (k == simd_broadcast_first(k)) return {simd_sum(1u)}; } }",
    code: "const uint k = i % 2; uint s = 0, t = 0; (void)t; s = f(k).a; out[i] = int(s);",
    expected: lanes.map(() => 16),
  },
  {
    ...base,
    name: "nothing that is returned, a reference, and two values with a comma",
    before:
      "static void g(thread uint &s) { s = simd_sum(1u); } static void f(uint k, thread uint &s) { for (;;) { if (k == simd_broadcast_first(k)) return g(s); } } static thread uint &at(uint k, thread uint *a) { for (;;) { if (k == simd_broadcast_first(k)) return a[simd_sum(1u) - 16]; } } static uint last(uint k) { uint r; for (;;) { if (k == simd_broadcast_first(k)) return r = simd_sum(1u), r; } }",
    code: "const uint k = i % 2; uint s = 0, t = 0; (void)t; uint a[1] = {16}; f(k, s); s = (s + at(k, a) + last(k)) / 3; out[i] = int(s);",
    expected: lanes.map(() => 16),
  },
  {
    ...base,
    name: "a member function",
    before: "struct R { uint sum(uint v) const { return simd_sum(v); } };",
    code: "const uint k = i % 2; uint s = 0, t = 0; (void)t; R r; for (;;) { if (k == simd_broadcast_first(k)) { s = r.sum(1); break; } } out[i] = int(s);",
    expected: lanes.map(() => 16),
  },
  {
    ...base,
    name: "a static member function",
    before: "struct R { static uint sum(uint v) { return simd_sum(v); } };",
    code: "const uint k = i % 2; uint s = 0, t = 0; (void)t; for (;;) { if (k == simd_broadcast_first(k)) { s = R::sum(1); break; } } out[i] = int(s);",
    expected: lanes.map(() => 16),
  },
  {
    ...base,
    name: "a function template by its arguments",
    before: "template <typename T> static T total(T v) { return simd_sum(v); }",
    code: "const uint k = i % 2; uint s = 0, t = 0; (void)t; for (;;) { if (k == simd_broadcast_first(k)) { s = total<uint>(1); break; } } out[i] = int(s);",
    expected: lanes.map(() => 16),
  },
  {
    ...base,
    name: "a constructor, and one by an alias",
    before: "struct R { uint v; R(uint a) : v(simd_sum(a)) {} }; using Q = R;",
    code: "const uint k = i % 2; uint s = 0, t = 0; (void)t; for (;;) { if (k == simd_broadcast_first(k)) { R r(1u); s = r.v; break; } } for (;;) { if (k == simd_broadcast_first(k)) { Q r(1u); s += r.v; break; } } s /= 2; out[i] = int(s);",
    expected: lanes.map(() => 16),
  },
  {
    ...base,
    name: "a conversion",
    before: "struct R { uint v; operator uint() const { return simd_sum(v); } };",
    code: "const uint k = i % 2; uint s = 0, t = 0; (void)t; R r{1}; for (;;) { if (k == simd_broadcast_first(k)) { s = r; break; } } out[i] = int(s);",
    expected: lanes.map(() => 16),
  },
  {
    ...base,
    name: "an operator, and a function of a template",
    before:
      "struct R { uint v; }; static R operator+(R a, R b) { return R{simd_sum(a.v + b.v)}; } static uint total(uint v) { return simd_sum(v); } template <uint (*G)(uint)> static uint by(uint k) { for (;;) { if (k == simd_broadcast_first(k)) { uint r = G(1); if (k) return r; else return r; } } }",
    code: "const uint k = i % 2; uint s = 0, t = 0; (void)t; R r{1}, z{0}; for (;;) { if (k == simd_broadcast_first(k)) { s = (r + z).v; break; } } s = (s + by<total>(k)) / 2; out[i] = int(s);",
    expected: lanes.map(() => 16),
  },
  {
    ...base,
    name: "a lane function in the condition of break",
    code: "const uint k = i % 2; uint s = 0, t = 0; (void)t; for (;;) { if (k == simd_broadcast_first(k) && (s = simd_sum(1u), true)) break; } out[i] = int(s);",
    expected: lanes.map(() => 16),
  },
  {
    ...base,
    name: "behind continue",
    code: "const uint k = i % 2; uint s = 0, t = 0; (void)t; for (;;) { if (!(k == simd_broadcast_first(k))) continue; s = simd_sum(1u); if (k) { t = 1; break; } else { t = 2; break; } } out[i] = int(s);",
    expected: lanes.map(() => 16),
  },
  {
    ...base,
    name: "conditions that declare variables of qualified and of template types",
    before: "template <typename T> struct Opt { T v; operator bool() const { return v != 0; } };",
    code: "const uint k = i % 2; uint s = 0, t = 0; (void)t; uint r = 0; while (metal::uint q = k + 1) { if (k == simd_broadcast_first(k)) { r = simd_sum(q) / q; break; } } while (Opt<uint> o = Opt<uint>{k + 1}) { if (k == simd_broadcast_first(k)) { s = (simd_sum(o.v) / o.v + r) / 2; break; } } out[i] = int(s);",
    expected: lanes.map(() => 16),
  },
  {
    ...base,
    name: "a do without braces around other loops, and a constexpr function beside",
    before: "constexpr uint digits(uint n) { uint d = 0; for (;;) { if (n == 0) return d; n /= 10; d++; } }",
    code: "const uint k = i % 2; uint s = 0, t = 0; (void)t; uint q = 0; do for (uint m = 0; m < 2; m++) if (k == q && m == 1) { s = simd_sum(1u); break; } while (++q < digits(99)); if (s == 0) while (true) if (k == simd_broadcast_first(k)) { s = 1; break; } out[i] = int(s);",
    expected: lanes.map(() => 16),
  },
]);
