/** Atomic types in device and threadgroup memory, with many threads at once. */
import { type Case, type Element, languageSuite, range, type Values } from "./harness.ts";

const threads = 4096;
const group = { threads, threadgroup: 256 } as const;
const all = range(threads, (k) => k);
const sum = all.reduce((x, y) => x + y, 0);
const wrapping = (of: (x: number, y: number) => number, list: readonly number[], first: number): number =>
  list.reduce((x, y) => of(x, y), first);

const cases: Case[] = [];
const fetches: readonly (readonly [string, (x: number, y: number) => number, number])[] = [
  ["add", (x, y) => (x + y) | 0, 5],
  ["sub", (x, y) => (x - y) | 0, 5],
  ["min", (x, y) => Math.min(x, y), 3000],
  ["max", (x, y) => Math.max(x, y), 7],
  ["and", (x, y) => x & (y | 0x7ffff000), 0x7fffffff],
  ["or", (x, y) => x | y, 1 << 20],
  ["xor", (x, y) => x ^ y, 0x55],
];
for (const type of ["int", "uint"] as const) {
  for (const [name, of, first] of fetches) {
    const operand = name === "and" ? `(${type}(i) | ${type}(0x7ffff000))` : `${type}(i)`;
    cases.push(
      {
        ...group,
        name: `atomic_fetch_${name}_explicit of atomic_${type}, device memory`,
        code: `device atomic_${type} *x = (device atomic_${type} *)out; if (i == 0) { atomic_store_explicit(x + 1, ${type}(9), memory_order_relaxed); }
          atomic_fetch_${name}_explicit(x, ${operand}, memory_order_relaxed);`,
        out: type,
        expected: [wrapping(of, all, 0), 9].map((x) => (type === "int" ? x | 0 : x >>> 0)),
      },
      {
        name: `atomic_fetch_${name}_explicit of atomic_${type}, threadgroup memory, the old value returned`,
        threads: 256,
        threadgroup: 256,
        code: `threadgroup atomic_${type} x; threadgroup atomic_uint seen; if (local == 0) { atomic_store_explicit(&x, ${type}(${first}), memory_order_relaxed);
          atomic_store_explicit(&seen, 0u, memory_order_relaxed); } threadgroup_barrier(mem_flags::mem_threadgroup);
          const ${type} old = atomic_fetch_${name}_explicit(&x, ${operand}, memory_order_relaxed); if (old == ${type}(${first})) { atomic_fetch_add_explicit(&seen, 1u, memory_order_relaxed); }
          threadgroup_barrier(mem_flags::mem_threadgroup); if (local == 0) { out[0] = atomic_load_explicit(&x, memory_order_relaxed);
          out[1] = atomic_load_explicit(&seen, memory_order_relaxed) > 0; }`,
        out: type,
        expected: [wrapping(of, all.slice(0, 256), first), 1].map((x) => (type === "int" ? x | 0 : x >>> 0)),
      },
    );
  }
}
const plain = (name: string, code: string, out: Element, expected: Values, more: Partial<Case> = {}): void => {
  cases.push({ ...group, name, code, out, expected, ...more });
};

plain(
  "negative numbers: min and max of atomic_int",
  `device atomic_int *x = (device atomic_int *)out; atomic_fetch_min_explicit(x, 100 - int(i), memory_order_relaxed);
  atomic_fetch_max_explicit(x + 1, int(i) - 5000, memory_order_relaxed);`,
  "int",
  [100 - (threads - 1), 0],
);
plain(
  "large numbers: min and max of atomic_uint",
  `device atomic_uint *x = (device atomic_uint *)out; atomic_fetch_max_explicit(x, 0xfffff000u + i % 4096u, memory_order_relaxed);`,
  "uint",
  [0xffffffff],
);
plain(
  "atomic_fetch_add of atomic_float, exact integers",
  `device atomic_float *x = (device atomic_float *)out; atomic_fetch_add_explicit(x, float(i), memory_order_relaxed);
  atomic_fetch_sub_explicit(x + 1, 0.5f, memory_order_relaxed);`,
  "float",
  [sum, -threads / 2],
);
plain(
  "atomic_exchange, load and store of atomic_float",
  `device atomic_float *x = (device atomic_float *)out; atomic_store_explicit(x, 2.5f, memory_order_relaxed);
  const float old = atomic_exchange_explicit(x + 1, 1.5f, memory_order_relaxed); atomic_store_explicit(x + 2, old + atomic_load_explicit(x, memory_order_relaxed), memory_order_relaxed);`,
  "float",
  [2.5, 1.5, 2.5],
  { threads: 1, threadgroup: 1 },
);
plain(
  "atomic_fetch_add gives every thread another number",
  `device atomic_uint *x = (device atomic_uint *)out; const uint old = atomic_fetch_add_explicit(x, 1u, memory_order_relaxed); out[1 + old] = old;`,
  "uint",
  [threads, ...all],
);
plain(
  "atomic_compare_exchange_weak in a loop: a product by hand",
  `device atomic_uint *x = (device atomic_uint *)out; uint old = atomic_load_explicit(x, memory_order_relaxed);
  while (!atomic_compare_exchange_weak_explicit(x, &old, old * 5u + 1u, memory_order_relaxed, memory_order_relaxed)) { }`,
  "uint",
  [all.reduce((x) => (Math.imul(x, 5) + 1) >>> 0, 0)],
);
plain(
  "atomic_compare_exchange_weak: a float maximum by its bits",
  `device atomic_uint *x = (device atomic_uint *)out; const float mine = float((i * 37u) % 4096u) * 0.25f;
  uint old = atomic_load_explicit(x, memory_order_relaxed); while (as_type<float>(old) < mine && !atomic_compare_exchange_weak_explicit(x, &old, as_type<uint>(mine), memory_order_relaxed, memory_order_relaxed)) { }`,
  "float",
  [4095 * 0.25],
);
plain(
  "atomic_compare_exchange_weak reports what it found",
  `device atomic_int *x = (device atomic_int *)out; int expected = 7; const bool done = atomic_compare_exchange_weak_explicit(x, &expected, 9, memory_order_relaxed, memory_order_relaxed);
  out[1] = done; out[2] = expected; expected = 0; bool again = false; while (!again) { again = atomic_compare_exchange_weak_explicit(x, &expected, 9, memory_order_relaxed, memory_order_relaxed); } out[3] = again;`,
  "int",
  [9, 0, 0, 1],
  { threads: 1, threadgroup: 1 },
);
plain(
  "atomic_compare_exchange_weak of atomic_float and atomic_bool",
  `device atomic_float *x = (device atomic_float *)out; float old = 0; while (!atomic_compare_exchange_weak_explicit(x, &old, 1.5f, memory_order_relaxed, memory_order_relaxed)) { }
  threadgroup atomic_bool b; atomic_store_explicit(&b, false, memory_order_relaxed); bool was = atomic_exchange_explicit(&b, true, memory_order_relaxed); out[1] = was; out[2] = atomic_load_explicit(&b, memory_order_relaxed);`,
  "float",
  [1.5, 0, 1],
  { threads: 1, threadgroup: 1 },
);
plain(
  "atomic_ulong: atomic_max_explicit and atomic_min_explicit",
  `device atomic_ulong *x = (device atomic_ulong *)out; atomic_max_explicit(x, (ulong(i) << 32) | (4095u - i), memory_order_relaxed);
  atomic_min_explicit(x + 1, ulong(i), memory_order_relaxed);`,
  "ulong",
  [4095n << 32n, 0n],
);
plain(
  "atomics in structs, arrays and through helpers",
  `device Counters *x = (device Counters *)out; count(x->items, i % 3u); count(&x->total, 0u); atomic_fetch_add_explicit(&x->items[3], 2u, memory_order_relaxed);`,
  "uint",
  [...[0, 1, 2].map((k) => all.filter((i) => i % 3 === k).length), 2 * threads, threads],
);
plain(
  "a histogram in threadgroup memory, merged in device memory",
  `threadgroup atomic_uint bins[16]; if (local < 16) { atomic_store_explicit(&bins[local], 0u, memory_order_relaxed); }
  threadgroup_barrier(mem_flags::mem_threadgroup); atomic_fetch_add_explicit(&bins[(i * 7u) % 16u], 1u, memory_order_relaxed); threadgroup_barrier(mem_flags::mem_threadgroup);
  if (local < 16) { atomic_fetch_add_explicit((device atomic_uint *)out + local, atomic_load_explicit(&bins[local], memory_order_relaxed), memory_order_relaxed); }`,
  "uint",
  range(16, () => threads / 16),
);
plain(
  "atomic_thread_fence: the last threadgroup sees what the others wrote",
  `threadgroup bool last; device uint *parts = out + 2; device atomic_uint *ticket = (device atomic_uint *)out;
  if (local == 0) { parts[i / 256] = i; atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
    last = atomic_fetch_add_explicit(ticket, 1u, memory_order_relaxed) == 15u; } threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
  if (last && local == 0) { uint s = 0; for (uint k = 0; k < 16; ++k) { s += parts[k]; } out[1] = s; }`,
  "uint",
  [16, range(16, (k) => 256 * k).reduce((x, y) => x + y, 0), ...range(16, (k) => 256 * k)],
);
plain(
  "volatile and non-atomic reads beside atomics",
  `volatile device atomic_uint *x = (volatile device atomic_uint *)out; atomic_fetch_or_explicit(x, 1u << (i % 32u), memory_order_relaxed);`,
  "uint",
  [0xffffffff],
);

const prelude = `
struct Counters { atomic_uint items[4]; atomic_uint total; };
void count(device atomic_uint *at, uint k) { atomic_fetch_add_explicit(at + k, 1u, memory_order_relaxed); }
`;
languageSuite("atomics", prelude, cases);
