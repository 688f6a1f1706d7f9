import { floats, type KernelCase, range } from "./harness.ts";
import { sourceSuite, statementSuite } from "./separate.ts";

const matrixHead = "#include <metal_simdgroup_matrix>\n";
const lanes = { out: "float", grid: 32, threads: 32, kernel: "k" } as const;
const matrix = range(64, (k) => k - 20);
/** Sum of a matrix that every lane adds its elements of. */
const total = matrix.reduce((x, y) => x + y);
const parameters =
  "device float *out [[buffer(0)]], const device float *in [[buffer(1)]], uint i [[thread_position_in_grid]]";

sourceSuite("constMatrices", [
  {
    ...lanes,
    name: "elements of a const reference to a matrix",
    source: `${matrixHead}static float sum(const thread simdgroup_float8x8 &m) { return m.thread_elements()[0] + m.thread_elements()[1]; }
kernel void k(${parameters}) { simdgroup_float8x8 m; simdgroup_load(m, in); out[i] = simd_sum(sum(m)); }`,
    inputs: [floats(matrix)],
    expected: range(32, () => total),
  },
  {
    ...lanes,
    name: "elements of a const matrix in a struct, by a const method",
    source: `${matrixHead}template <typename T> struct Tile { simdgroup_matrix<T, 8, 8> m; T at(short k) const { return m.thread_elements()[k]; } float2 both() const thread { return float2(m.thread_elements()); } };
kernel void k(${parameters}) { Tile<float> t; simdgroup_load(t.m, in); const Tile<float> c = t; out[i] = simd_sum(c.at(0) + c.at(1) + c.both().x + t.both().y); }`,
    inputs: [floats(matrix)],
    expected: range(32, () => 2 * total),
  },
  {
    ...lanes,
    name: "elements of a const array of matrices, as a vector by const reference and as auto",
    source: `${matrixHead}static float sum(const thread simdgroup_float8x8 (&m)[2]) { float s = 0; for (int k = 0; k < 2; k++) { const auto v = m[k].thread_elements(); s += v[0] + v[1]; } return s; }
kernel void k(${parameters}) { simdgroup_float8x8 m[2]; simdgroup_load(m[0], in); m[1] = simdgroup_float8x8(2.0f); const simdgroup_float8x8 c(1.0f); const thread auto &e = c.thread_elements(); out[i] = simd_sum(sum(m) + e[0] + e[1]); }`,
    inputs: [floats(matrix)],
    expected: range(32, () => total + 16 + 8),
  },
]);

const row = `template <typename T, int N> struct Row { T v[N]; threadgroup T &operator[](int k) threadgroup { return v[k]; } thread T &operator[](int k) thread { return v[k]; } const threadgroup T &operator[](int k) const threadgroup { return v[k]; } };`;
statementSuite("nestedObjects", [
  {
    name: "operator[] of objects in objects in threadgroup memory",
    before: row,
    code: "threadgroup Row<Row<float, 4>, 2> box; box[i / 4][i % 4] = i; threadgroup_barrier(mem_flags::mem_threadgroup); out[i] = box[1 - i / 4][3 - i % 4];",
    out: "float",
    expected: range(8, (k) => 7 - k),
  },
  {
    name: "operator[] of arrays of objects, of vectors in objects, compound and by reference",
    before: row,
    code: "threadgroup Row<float4, 2> box[2]; box[i][1] = float4(i); box[i][1].y += 10; box[i][0] = box[i][1] * 2; threadgroup Row<float4, 2> &r = box[i]; r[0].zw = r[1].yx; threadgroup_barrier(mem_flags::mem_threadgroup); out[i] = box[1 - i][0].x * 100 + r[0].z + box[1 - i][1][1];",
    out: "float",
    expected: range(2, (k) => 2 * (1 - k) * 100 + (k + 10) + (1 - k + 10)),
  },
  {
    name: "operator() and operator[] that call each other, and array<T, N> in them",
    before:
      "template <typename T, int R, int C> struct Grid { array<array<T, C>, R> rows; threadgroup T &operator()(int r, int c) threadgroup { return rows[r][c]; } threadgroup array<T, C> &operator[](int r) threadgroup { return rows[r]; } T sum(int r) const threadgroup { T s = 0; for (int c = 0; c < C; c++) s += rows[r][c]; return s; } };",
    code: "threadgroup Grid<int, 2, 3> g; for (int c = 0; c < 3; c++) g(i, c) = c + 10 * i; g[i][2]++; threadgroup_barrier(mem_flags::mem_threadgroup); out[i] = g.sum(1 - i) + g(i, 2);",
    out: "int",
    expected: [34 + 3, 4 + 13],
  },
  {
    name: "the address of a component of a packed vector",
    before:
      "static float first(const device float *p) { return p[0] + p[1]; }\nstatic void set(device float *p, float x) { *p = x; }",
    code: "device packed_float3 *v = (device packed_float3 *)out; set(&v[1].y, 5); set(&v[1][2], 6); device float *p = &v[0].z; *p = 7; out[6] = first(&v[1].y); packed_float4 q(1, 2, 3, 4); thread float *t = &q[2]; *t += 1; out[7] = q.z;",
    out: "float",
    threads: 1,
    expected: [0, 0, 7, 0, 5, 6, 11, 4],
  },
  {
    name: "the address of a component of a packed vector in structs, of every memory",
    before:
      "struct P { int tag; packed_short3 at; uchar c; };\nstatic short next(threadgroup short *p) { return *p++ + *p; }",
    code: "threadgroup P box[2]; box[1].at = short3(1, 2, 3); out[0] = next(&box[1].at.y); device P *d = (device P *)(out + 4); device short *s = &d->at[0]; s[2] = 9; out[1] = d->at.z; P mine = {1, packed_short3(4, 5, 6), 7}; thread short *m = &mine.at.x; m[1] = 8; out[2] = mine.at.y; out[3] = sizeof(P);",
    out: "int",
    threads: 1,
    expected: [5, 9, 8, 12, 0, 0, 9],
  },
  {
    name: "the address of components in arrays, by pointer to const, beside pointer arithmetic",
    before: "struct Two { packed_half2 v[2]; };",
    code: "const device Two *t = (const device Two *)a; const device half *p = &t[0].v[1].x; const device half *q = &t->v[0][1]; out[0] = float(*p); out[1] = float(*q); out[2] = p - q; out[3] = float(*(&t[1].v[0].x + 1));",
    out: "float",
    threads: 1,
    inputs: [{ type: "half", values: [0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600] }],
    expected: [3, 2, 1, 6],
  },
  {
    name: "constants derived by casts and shifts",
    before:
      "constant uint kBits = 5; constant uint kMask = (1u << kBits) - 1; constant ushort kLow = (ushort)(kMask >> 1); constant int kSigned = int(kMask) - 40; constant float kScale = float(1 << 4) / 2; constant uchar kByte = static_cast<uchar>(0x1ff & ~kMask); constant long kLong = (long)1 << 40; constant half kHalf = (half)kScale;",
    code: "int list[kMask - 29]; list[1] = kLow; out[0] = kMask; out[1] = list[1]; out[2] = kSigned; out[3] = kScale; out[4] = kByte; out[5] = kLong >> 38; out[6] = float(kHalf); out[7] = sizeof(list);",
    out: "float",
    threads: 1,
    expected: [31, 15, -9, 8, 0xe0, 4, 8, 8],
  },
  {
    name: "constants derived from those of structs, arrays, vectors and enumerations",
    before:
      "enum Kind : ushort { kOne = 1, kTwo = kOne << 1 }; enum class Mode { a = 3 }; struct Q { int x; float2 v; }; constant Q kQ = {kTwo | 4, {1.5f, (float)kTwo}}; constant uint kList[] = {1u << 3, uint(kTwo) * 2, (uint)Mode::a}; constant float4 kV = float4(float(kTwo), 0, 0, (float)(3 >> 1)); template <int N> struct S { static constexpr constant uint mask = ~(~0u << N); };",
    code: "out[0] = kQ.x; out[1] = kQ.v.y; out[2] = kList[0] + kList[1] + kList[2]; out[3] = kV.x + kV.w; out[4] = S<6>::mask; out[5] = S<kTwo>::mask;",
    out: "float",
    threads: 1,
    expected: [6, 2, 15, 3, 63, 3],
  },
  {
    name: "constants of functions that are constant expressions",
    before:
      "constexpr int log2i(int n) { int k = 0; while (n > 1) { n /= 2; k++; } return k; }\nconstexpr uint pack(ushort hi, ushort lo) { return uint(hi) << 16 | lo; }\nconstant int kLog = log2i(64); constant uint kPacked = pack((ushort)kLog, 7); constant constexpr float kInv = 1.0 / (1 << 3);",
    code: "out[0] = kLog; out[1] = kPacked >> 16; out[2] = kPacked & 0xff; out[3] = kInv;",
    out: "float",
    threads: 1,
    expected: [6, 6, 7, 0.125],
  },
  {
    name: "nested arrays of structs, with and without braces, in constant memory",
    before:
      "struct P { float x; int n[2]; }; struct Q { P p[2]; float2 v; };\nconstant Q kQ[2][2] = {{{{{1, {2, 3}}, {4, {5, 6}}}, {7, 8}}}, {{{{9, {1, 1}}}, {}}, {{{2, {2, 2}}}, {3, 4}}}};",
    code: "out[0] = kQ[0][0].p[1].n[1]; out[1] = kQ[0][0].v.y; out[2] = kQ[1][0].p[0].x; out[3] = kQ[1][1].v.x; const Q q = kQ[1][1]; out[4] = q.p[0].n[1]; constant P *p = kQ[0][0].p; out[5] = p[1].x; out[6] = kQ[0][1].v.x;",
    out: "float",
    threads: 1,
    expected: [6, 8, 9, 3, 2, 4, 0],
  },
  {
    name: "nested arrays of structs in thread, threadgroup and device memory, copied whole",
    before: "struct P { float x[2]; }; struct Q { P p[2][2]; };",
    code: "Q q = {{{{{1, 2}}, {{3, 4}}}, {{{5, 6}}, {{7, 8}}}}}; threadgroup Q t[2]; t[1] = q; t[1].p[1][0].x[1] = 60; device Q *d = (device Q *)out; d[0] = t[1]; d->p[0][1] = q.p[1][1]; Q list[2][1] = {{q}, {t[1]}}; out[0] = list[1][0].p[1][0].x[1];",
    out: "float",
    threads: 1,
    expected: [60, 2, 7, 8, 5, 60, 7, 8],
  },
  {
    name: "nested arrays of structs with vectors and matrices, by loops and references",
    before: "struct Cell { float2x2 m; packed_float3 v; }; struct Board { Cell cells[2][3]; };",
    code: "Board b; for (int r = 0; r < 2; r++) for (int c = 0; c < 3; c++) { thread Cell &cell = b.cells[r][c]; cell.m = float2x2(r + 1.0f); cell.v = float3(c, r, 0); } b.cells[1][2].m[0].y = 9; thread Cell (&line)[3] = b.cells[1]; out[0] = line[2].m[0][1]; out[1] = line[2].m[1][1]; out[2] = line[2].v.x + line[1].v[1]; out[3] = b.cells[0][1].m[1].y;",
    out: "float",
    threads: 1,
    expected: [9, 2, 3, 1],
  },
]);

const absent = (source: string, name: string, expected: readonly number[]): KernelCase & { source: string } => ({
  name,
  source: `constant bool kHas [[function_constant(0)]];\n${source}`,
  kernel: "k",
  out: "float",
  grid: 4,
  threads: 4,
  constants: [{ index: 0, dtype: "bool", value: false }],
  expected,
});
sourceSuite("absentReferences", [
  absent(
    "struct P { int n; float4 v; };\nkernel void k(device float *out [[buffer(0)]], constant P &p [[buffer(1), function_constant(kHas)]], uint i [[thread_position_in_grid]]) { float s = i; if (kHas) { for (int n = 0; n < p.n; n++) s += p.v[n]; } out[i] = s; }",
    "a struct by reference",
    [0, 1, 2, 3],
  ),
  absent(
    "constant bool kBoth = kHas && true;\nkernel void k(device float *out [[buffer(0)]], const constant int &n [[buffer(1), function_constant(kBoth)]], const device float &x [[buffer(2), function_constant(kHas)]], uint i [[thread_position_in_grid]]) { const float scale = kHas ? x : 2; const int count = kBoth ? n : 3; out[i] = simd_sum(scale) * count; }",
    "numbers by reference in conditions, with lanes, by a derived constant",
    [24, 24, 24, 24],
  ),
  absent(
    'struct P { int stride[3]; };\ntemplate <bool B> static int at(constant P &p, uint i) { return B && kHas ? p.stride[1] * i : i + 1; }\ntemplate <typename T> kernel void body(device T *out [[buffer(0)]], constant P &p [[buffer(1), function_constant(kHas)]], uint i [[thread_position_in_grid]]) { out[i] = at<true>(p, i) + at<false>(p, i); }\ntemplate [[host_name("k")]] kernel void body<float>(device float *, constant P &, uint);',
    "a reference that is handed on, in templates",
    [2, 4, 6, 8],
  ),
]);
