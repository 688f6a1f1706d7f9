/** Positions and sizes that a kernel can ask for, in every type and dimension; arguments of every kind. */
import { type Input, ints, type KernelCase, kernelSuite, range, uints } from "./harness.ts";

type Extent3 = readonly [number, number, number];
/** A dispatch whose edges are partial, in every dimension, and one of each lesser dimension. */
const grids: Readonly<Record<1 | 2 | 3, { grid: Extent3; threads: Extent3 }>> = {
  1: { grid: [70, 1, 1], threads: [33, 1, 1] },
  2: { grid: [11, 7, 1], threads: [8, 3, 1] },
  3: { grid: [5, 4, 3], threads: [3, 2, 2] },
};

interface Place {
  /** Of the thread in the grid, of its threadgroup, of it in the threadgroup. */
  readonly grid: Extent3;
  readonly group: Extent3;
  readonly local: Extent3;
  /** Sizes: of the grid, of the threadgroups of the dispatch, of this threadgroup, in threadgroups. */
  readonly size: Extent3;
  readonly full: Extent3;
  readonly own: Extent3;
  readonly groups: Extent3;
}
const map3 = (of: (axis: 0 | 1 | 2) => number): Extent3 => [of(0), of(1), of(2)];
const volume = ([x, y, z]: Extent3): number => x * y * z;
const linear = ([x, y, z]: Extent3, [width, height]: Extent3): number => x + width * (y + height * z);

/** Every thread of a dispatch in the order of its linear position in the grid. */
function places(size: Extent3, full: Extent3): Place[] {
  const groups = map3((k) => Math.ceil(size[k] / full[k]));
  return range(volume(size), (at) => {
    const grid: Extent3 = [at % size[0], Math.floor(at / size[0]) % size[1], Math.floor(at / (size[0] * size[1]))];
    const group = map3((k) => Math.floor(grid[k] / full[k]));
    const own = map3((k) => Math.min(full[k], size[k] - group[k] * full[k]));
    return { grid, group, local: map3((k) => grid[k] - group[k] * full[k]), size, full, own, groups };
  });
}

/** Attributes with a value per axis. */
const vectors: readonly (readonly [string, (place: Place) => Extent3])[] = [
  ["thread_position_in_grid", ({ grid }) => grid],
  ["thread_position_in_threadgroup", ({ local }) => local],
  ["threadgroup_position_in_grid", ({ group }) => group],
  ["threads_per_grid", ({ size }) => size],
  ["threads_per_threadgroup", ({ own }) => own],
  ["threadgroups_per_grid", ({ groups }) => groups],
  ["dispatch_threads_per_threadgroup", ({ full }) => full],
  ["grid_size", ({ size }) => size],
  ["grid_origin", () => [0, 0, 0]],
];
const index = ({ local, own }: Place): number => linear(local, own);
/** Attributes with one value. */
const scalars: readonly (readonly [string, (place: Place) => number])[] = [
  ["thread_index_in_threadgroup", index],
  ["thread_index_in_simdgroup", (place) => index(place) % 32],
  ["simdgroup_index_in_threadgroup", (place) => Math.floor(index(place) / 32)],
  ["simdgroups_per_threadgroup", ({ own }) => Math.ceil(volume(own) / 32)],
  ["dispatch_simdgroups_per_threadgroup", ({ full }) => Math.ceil(volume(full) / 32)],
  ["threads_per_simdgroup", () => 32],
  ["thread_execution_width", () => 32],
  ["thread_index_in_quadgroup", (place) => index(place) % 4],
  ["quadgroup_index_in_threadgroup", (place) => Math.floor(index(place) / 4)],
  ["quadgroups_per_threadgroup", ({ own }) => Math.ceil(volume(own) / 4)],
  ["dispatch_quadgroups_per_threadgroup", ({ full }) => Math.ceil(volume(full) / 4)],
];

const kernels: string[] = [];
const cases: KernelCase[] = [];

for (const [attribute, of] of vectors) {
  for (const type of ["uint", "ushort", "uint2", "ushort2", "uint3", "ushort3"] as const) {
    const width = type.endsWith("3") ? 3 : type.endsWith("2") ? 2 : 1;
    const { grid, threads } = grids[width];
    const name = `at_${attribute}_${type}`;
    const scalar = type.replace(/[23]/, "");
    const at = `${scalar}${width === 1 ? "" : width}`;
    const place = ["at", "at.x + size.x * at.y", "at.x + size.x * (at.y + size.y * at.z)"][width - 1];
    const components = width === 1 ? ["v"] : ["v.x", "v.y", "v.z"].slice(0, width);
    kernels.push(`kernel void ${name}(device uint *out [[buffer(0)]], ${type} v [[${attribute}]]${
      attribute === "thread_position_in_grid" ? "" : `, ${at} at [[thread_position_in_grid]]`
    }${attribute === "threads_per_grid" ? "" : `, ${at} size [[threads_per_grid]]`}) {
  ${attribute === "thread_position_in_grid" ? `const ${at} at = v;` : ""} ${attribute === "threads_per_grid" ? `const ${at} size = v;` : ""}
  (void)size; const uint first = uint(${place}) * ${width};
  ${components.map((component, k) => `out[first + ${k}] = ${component};`).join(" ")}
}`);
    cases.push({
      name: `${attribute} as ${type}`,
      kernel: name,
      out: "uint",
      grid,
      threads,
      expected: places(grid, threads).flatMap((each) => of(each).slice(0, width)),
    });
  }
}
for (const [attribute, of] of scalars) {
  for (const type of ["uint", "ushort"] as const) {
    const { grid, threads } = grids[3];
    const name = `at_${attribute}_${type}`;
    kernels.push(`kernel void ${name}(device uint *out [[buffer(0)]], ${type} v [[${attribute}]], uint3 at [[thread_position_in_grid]],
    uint3 size [[threads_per_grid]]) { out[at.x + size.x * (at.y + size.y * at.z)] = v; }`);
    const wide = { grid: [70, 2, 1], threads: [50, 2, 1] } as const;
    cases.push(
      {
        name: `${attribute} as ${type}, in small partial threadgroups`,
        kernel: name,
        out: "uint",
        grid,
        threads,
        expected: places(grid, threads).map(of),
      },
      {
        name: `${attribute} as ${type}, in several SIMD groups`,
        kernel: name,
        out: "uint",
        ...wide,
        expected: places(wide.grid, wide.threads).map(of),
      },
    );
  }
}

const argument = (name: string, parameters: string, code: string): void => {
  kernels.push(
    `kernel void ${name}(device float *out [[buffer(0)]], ${parameters}, uint i [[thread_position_in_grid]]) { ${code} }`,
  );
};
const one = (name: string, kernel: string, expected: readonly number[], more: Partial<KernelCase> = {}): void => {
  cases.push({ name, kernel, out: "float", grid: expected.length, threads: expected.length, expected, ...more });
};
const params: Input = uints([0x3fc00000, 7, 0x01020304]);

argument("by_reference", "constant Params &p [[buffer(1)]]", "out[i] = p.scale + p.count + p.tag.y;");
one("a struct as constant T &", "by_reference", [1.5 + 7 + 3, 1.5 + 7 + 3], { inputs: [params] });
argument(
  "by_pointer",
  "constant Params *p [[buffer(1)]]",
  "out[i] = p->scale + p[0].count + (*p).tag.x; const Params q = *p; out[i] += q.scale;",
);
one("a struct as constant T *", "by_pointer", [1.5 + 7 + 4 + 1.5], { inputs: [params] });
argument(
  "by_bytes",
  "constant Params &p [[buffer(1)]], constant float &f [[buffer(2)]], constant uint *list [[buffer(3)]]",
  "out[i] = p.count + f + list[i];",
);
one("setBytes for a struct, a scalar and an array", "by_bytes", [7 + 0.5 + 10, 7 + 0.5 + 20], {
  bytes: { 1: new Uint32Array([0, 7, 0]), 2: new Float32Array([0.5]), 3: new Uint32Array([10, 20]) },
});
argument("implicit", "const device float *x, constant int &n, device const float *y", "out[i] = x[i] + n + y[i];");
one("buffers without an index, in order", "implicit", [1 + 5 + 3, 2 + 5 + 4], {
  inputs: [{ type: "float", values: [1, 2] }, ints([5]), { type: "float", values: [3, 4] }],
});
argument(
  "restricted",
  "const device float * __restrict x [[buffer(1)]], volatile device uint *y [[buffer(2)]]",
  "out[i] = x[i] + y[i];",
);
one("__restrict and volatile pointers", "restricted", [11, 22], {
  inputs: [{ type: "float", values: [1, 2] }, uints([10, 20])],
});
argument("reference", "device float2 &x [[buffer(1)]], const device int4 &y [[buffer(2)]]", "out[i] = x.y + y.w;");
one("device references", "reference", [2 + 8], { inputs: [{ type: "float", values: [1, 2] }, ints([5, 6, 7, 8])] });
argument(
  "bytes_of",
  "const device char *x [[buffer(1)]], const device void *y [[buffer(2)]]",
  "out[i] = *(const device float *)(x + 4 * i) + ((const device int *)y)[i];",
);
one("char * and void * arguments, cast in the kernel", "bytes_of", [1.5 + 3, 2.5 + 4], {
  inputs: [{ type: "float", values: [1.5, 2.5] }, ints([3, 4])],
});
argument("last_index", "const device float *x [[ buffer ( 30 ) ]]", "out[i] = x[i];");
one("buffer index 30", "last_index", [8], { bytes: { 30: new Float32Array([8]) } });
argument("unused", "const device float *x [[buffer(5)]]", "out[i] = 3;");
one("an argument that the kernel does not read, bound all the same", "unused", [3], {
  bytes: { 5: new Float32Array([8]) },
});
argument(
  "two_memories",
  "threadgroup float *s [[threadgroup(0)]], threadgroup uint *t [[threadgroup(1)]], uint local [[thread_index_in_threadgroup]]",
  "s[local] = local; t[local] = 10 * local; threadgroup_barrier(mem_flags::mem_threadgroup); out[i] = s[3 - local] + t[3 - local];",
);
one("two threadgroup arguments", "two_memories", [33, 22, 11, 0], { threadgroupMemory: { 0: 16, 1: 16 } });
argument(
  "mixed_memory",
  "threadgroup float4 *s [[threadgroup(3)]], ushort lane [[thread_index_in_simdgroup]]",
  "threadgroup half t[6]; threadgroup ulong u; t[lane] = lane; s[lane] = float4(lane); if (lane == 0) { u = 5; } threadgroup_barrier(mem_flags::mem_threadgroup); out[i] = t[1 - lane] + s[1 - lane].w * 10 + u;",
);
one("static and dynamic threadgroup memory do not overlap", "mixed_memory", [16, 5], { threadgroupMemory: { 3: 32 } });
kernels.push(`[[kernel]] void kernel_attribute(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) { out[i] = 4; }
[[kernel, max_total_threads_per_threadgroup(64)]] void limited(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) { out[i] = 5; }


static float helper(float x) { return x + 1; }
kernel void no_positions(device float *out [[buffer(0)]]) { out[0] = helper(7); }
kernel void
  over_lines ( device float * out
    [[ buffer(0) ]] , // a comment with [[buffer(9)]]
    /* and one with kernel void f( */ uint i [[ thread_position_in_grid ]] )
{ out[i] = 9; }`);
one("[[kernel]]", "kernel_attribute", [4]);
one(
  "[[kernel, max_total_threads_per_threadgroup(64)]]",
  "limited",
  range(64, () => 5),
);
one("no position at all", "no_positions", [8]);
one("a kernel over several lines with comments between", "over_lines", [9]);

kernelSuite(
  "attributes",
  `#include <metal_stdlib>
using namespace metal;
struct Params { float scale; int count; uchar4 tag; };
${kernels.join("\n")}`,
  cases,
);
