/** Sources of the size of published libraries, and what their kernels compute. */
const types = ["float", "half", "int", "uint", "short", "ushort", "char", "uchar", "long", "ulong", "bfloat", "bool"];
const operations = ["Add", "Sub", "Mul", "Max", "Min", "First", "Second", "Twice", "Same", "Mean"];
const formulas: Readonly<Record<string, string>> = {
  Add: "x + y",
  Sub: "x - y",
  Mul: "x * y",
  Max: "x > y ? x : y",
  Min: "x < y ? x : y",
  First: "x",
  Second: "y",
  Twice: "x + x",
  Same: "x == y ? x : y",
  Mean: "(x + y) / T(2)",
};
const widths = [1, 2, 4, 8];
const layouts = ["ss", "sv", "vs", "vv"];

/** 200 lines whose macros instantiate a template for 12 types, 10 operations, 4 widths and 4 layouts. */
export function manyInstances(): { readonly source: string; readonly count: number } {
  const structs = operations.map(
    (name) => `struct ${name} {
  template <typename T> T operator()(T x, T y) const { (void)x; (void)y; return T(${formulas[name]}); }
};`,
  );
  const head = `#include <metal_stdlib>
using namespace metal;
${structs.join("\n")}
// The layout of the operands: one number or a list, on each side.
template <typename T, typename Op, int N, int L>
[[kernel]] void binary(
    const device T *a [[buffer(1)]],
    const device T *b [[buffer(2)]],
    device T *out [[buffer(0)]],
    uint i [[thread_position_in_grid]]) {
  const uint from = i * N;
  for (int k = 0; k < N; ++k) {
    const T x = L & 2 ? a[from + k] : a[0];
    const T y = L & 1 ? b[from + k] : b[0];
    out[from + k] = Op()(x, y);
  }
}
#define KERNEL(name, ...) template [[host_name(name)]] [[kernel]] decltype(binary<__VA_ARGS__>) binary<__VA_ARGS__>;`;
  const macros = `#define LAYOUTS(op, T, n) KERNEL("ss_" #op "_" #T "_" #n, T, op, n, 0) KERNEL("sv_" #op "_" #T "_" #n, T, op, n, 1) \\
  KERNEL("vs_" #op "_" #T "_" #n, T, op, n, 2) KERNEL("vv_" #op "_" #T "_" #n, T, op, n, 3)
#define WIDTHS(op, T) ${widths.map((n) => `LAYOUTS(op, T, ${n})`).join(" ")}`;
  const table = operations.flatMap((op) => types.map((T) => `WIDTHS(${op}, ${T})`));
  const lines = [head, macros, ...table].join("\n").split("\n");
  const padding = range(200 - lines.length, (k) => `// ${k}`);
  return {
    source: `${[...lines, ...padding].join("\n")}\n`,
    count: layouts.length * operations.length * types.length * widths.length,
  };
}

/** 15,000 lines: 345 templates of kernels, each with functions of its own, instantiated for two types. */
export function manyLines(): { readonly source: string; readonly count: number } {
  const parts = range(345, (k) => {
    const steps = range(10, (n) => `  s += (x[${n % 4}] + ${n}) * ${(k % 7) + 1} - T(${n * ((k % 7) + 1)});`);
    return `// Part ${k}.
struct Block_${k} {
  half scale;
  uchar codes[${16 + (k % 4) * 2}];
};
template <typename T>
static inline T part_${k}(const thread T (&x)[4]) {
  T s = 0;
${steps.join("\n")}
  return s;
}
static inline int code_${k}(const device Block_${k} *block, int at) {
  const uchar pair = block->codes[at / 2];
  return at & 1 ? pair >> 4 : pair & 15;
}
template <typename T>
kernel void body_${k}(
    device T *out [[buffer(0)]],
    const device T *in [[buffer(1)]],
    const device T *more [[buffer(2)]],
    uint i [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  T x[4];
  for (int n = 0; n < 4; ++n) {
    x[n] = in[0];
  }
  const T sum = part_${k}(x);
  if (lane == 99) {
    out[i] = T(code_${k}((const device Block_${k} *)more, int(i)));
  }
  out[i] = sum;
}
template [[host_name("kernel_${k}_float")]] kernel void body_${k}<float>(device float *, const device float *, const device float *, uint, uint);
template [[host_name("kernel_${k}_int")]] kernel void body_${k}<int>(device int *, const device int *, const device int *, uint, uint);`;
  });
  const lines = `#include <metal_stdlib>\nusing namespace metal;\n${parts.join("\n")}`.split("\n");
  const padding = range(15_000 - lines.length, (k) => `// ${k}`);
  return { source: `${[...lines, ...padding].join("\n")}\n`, count: 690 };
}

function range<T>(count: number, of: (k: number) => T): T[] {
  return Array.from({ length: count }, (_, k) => of(k));
}
