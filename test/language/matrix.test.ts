/** SIMD-group matrices: 8x8 of float, half and bfloat, in both styles of kernel. */
import { bfloat, bitsOf, type Format, half, numberOf } from "./formats.ts";
import { type Case, type Element, floats, type Input, languageSuite, range, words } from "./harness.ts";

type Matrix = readonly number[];
const size = 8;
const make = (of: (row: number, column: number) => number): Matrix => range(64, (k) => of(k >> 3, k & 7));
const at = (m: Matrix, row: number, column: number): number => m[row * size + column] ?? Number.NaN;
const transposed = (m: Matrix): Matrix => make((row, column) => at(m, column, row));
const product = (a: Matrix, b: Matrix, c: Matrix = make(() => 0)): Matrix =>
  make((row, column) =>
    range(size, (k) => at(a, row, k) * at(b, k, column)).reduce((x, y) => x + y, at(c, row, column)),
  );

/** Small integers: products and sums of them are exact in every format. */
const a = make((row, column) => ((row * 3 + column * 5) % 7) - 3);
const b = make((row, column) => ((row * 2 + column * 7) % 5) - 2);
const c = make((row, column) => row - column);

interface Type {
  readonly name: "float" | "half" | "bfloat";
  readonly encode: (values: Matrix) => Matrix;
  readonly input: (values: Matrix) => Input;
}
const sixteen = (format: Format): Type => ({
  name: format.name,
  encode: (values) => values.map((x) => bitsOf(format, x)),
  input: (values) =>
    words(
      format.name,
      values.map((x) => bitsOf(format, x)),
    ),
});
const types: readonly Type[] = [
  { name: "float", encode: (values) => values, input: floats },
  sixteen(half),
  sixteen(bfloat),
];
const lanes = { threads: 32, threadgroup: 32 } as const;

/** Where lane l's two elements are: in row `row`, columns `column` and the next. */
const rowOf = (lane: number): number => ((lane >> 2) & 4) + ((lane >> 1) & 3);
const columnOf = (lane: number): number => ((lane >> 2) & 2) * 2 + (lane & 1) * 2;

/** Products by left and right factor: each comes again at once, behind one other, behind several. */
const pairs = "00 11 22 03 30 44 15 51 00 01 21 52 43 34"
  .split(" ")
  .map((pair) => [Number(pair[0]), Number(pair[1])] as const);
const sixLefts = range(6, (k) => make((row, column) => ((row * 3 + column * 5 + k * 11) % 7) - 3));
const sixRights = range(6, (k) => make((row, column) => ((row * 2 + column * 7 + k * 13) % 5) - 2));

const cases: Case[] = [];
for (const type of types) {
  const t = type.name;
  const m = `simdgroup_matrix<${t}, 8, 8>`;
  const out: Element = t;
  cases.push(
    {
      ...lanes,
      name: `simdgroup_load and simdgroup_store of ${t}: device memory, transposed on either side`,
      code: `${m} m, n; simdgroup_load(m, a); simdgroup_store(m, out); simdgroup_load(n, a, 8, ulong2(0, 0), true); simdgroup_store(n, out + 64);
        simdgroup_store(m, out + 128, 8, ulong2(0, 0), true); simdgroup_store(n, out + 192, 8, 0, true);`,
      out,
      inputs: [type.input(a)],
      expected: [a, transposed(a), transposed(a), a].flatMap(type.encode),
    },
    {
      ...lanes,
      name: `strides and origins of ${t}, the origin as (column, row)`,
      code: `simdgroup_${t}8x8 m; simdgroup_load(m, a, 24, ulong2(3, 2)); simdgroup_store(m, out, 16, ulong2(8, 0)); simdgroup_store(m, out, 16, ulong2(0, 1));`,
      out,
      inputs: [type.input(range(24 * 12, (k) => (k * 5) % 101))],
      expected: type.encode(
        range(16 * 9, (k) => {
          const [row, column] = [k >> 4, k & 15];
          const source = (r: number, q: number): number => (((r + 2) * 24 + q + 3) * 5) % 101;
          if (column >= 8) return row < 8 ? source(row, column - 8) : 0;
          return row >= 1 ? source(row - 1, column) : 0;
        }),
      ),
    },
    {
      ...lanes,
      name: `threadgroup memory of ${t}, with stride, origin and transposition`,
      code: `threadgroup ${t} box[16 * 12]; for (uint k = lane; k < 16 * 12; k += 32) { box[k] = a[k]; } threadgroup_barrier(mem_flags::mem_threadgroup);
        ${m} m; simdgroup_load(m, box, 16, ulong2(2, 1), true); simdgroup_barrier(mem_flags::mem_threadgroup); simdgroup_store(m, box + 16, 16, ulong2(1, 1));
        threadgroup_barrier(mem_flags::mem_threadgroup); for (uint k = lane; k < 16 * 12; k += 32) { out[k] = box[k]; }`,
      out,
      inputs: [type.input(range(192, (k) => (k * 7) % 97))],
      expected: type.encode(
        range(192, (k) => {
          const [row, column] = [(k >> 4) - 2, (k & 15) - 1];
          const source = (q: number): number => (q * 7) % 97;
          return row >= 0 && row < 8 && column >= 0 && column < 8 ? source((column + 1) * 16 + row + 2) : source(k);
        }),
      ),
    },
    {
      ...lanes,
      name: `filled, diagonal and default matrices of ${t}`,
      code: `${m} d(${t}(2.5f)); auto f = make_filled_simdgroup_matrix<${t}, 8, 8>(${t}(1.5f)); simdgroup_${t}8x8 z = simdgroup_${t}8x8(0); ${m} e = f;
        simdgroup_store(d, out); simdgroup_store(f, out + 64); simdgroup_store(z, out + 128); e = d; simdgroup_store(e, out + 192);`,
      out,
      expected: [
        make((r, q) => (r === q ? 2.5 : 0)),
        make(() => 1.5),
        make(() => 0),
        make((r, q) => (r === q ? 2.5 : 0)),
      ].flatMap(type.encode),
    },
    {
      ...lanes,
      name: `simdgroup_multiply and simdgroup_multiply_accumulate of ${t}`,
      code: `${m} x, y, z, r; simdgroup_load(x, a); simdgroup_load(y, b); simdgroup_load(z, c); simdgroup_multiply(r, x, y); simdgroup_store(r, out);
        simdgroup_multiply_accumulate(r, x, y, z); simdgroup_store(r, out + 64); simdgroup_multiply_accumulate(z, x, y, z); simdgroup_store(z, out + 128);
        simdgroup_multiply(x, x, y); simdgroup_store(x, out + 192);`,
      out,
      inputs: [type.input(a), type.input(b), type.input(c)],
      expected: [product(a, b), product(a, b, c), product(a, b, c), product(a, b)].flatMap(type.encode),
    },
    {
      ...lanes,
      name: `thread_elements of ${t}: which lane holds which elements`,
      code: `${m} m; simdgroup_load(m, a); const vec<${t}, 2> v = m.thread_elements(); out[2 * lane] = v[0]; out[2 * lane + 1] = m.thread_elements()[1];`,
      out,
      inputs: [type.input(range(64, (k) => k))],
      expected: type.encode(range(64, (k) => rowOf(k >> 1) * 8 + columnOf(k >> 1) + (k & 1))),
    },
    {
      ...lanes,
      name: `thread_elements of ${t}: written whole, by component and in place`,
      code: `${m} m; m.thread_elements() = vec<${t}, 2>(${t}(lane), ${t}(lane + 32)); simdgroup_store(m, out); m.thread_elements()[1] = ${t}(7);
        thread auto &e = m.thread_elements(); e[0] += ${t}(1); simdgroup_store(m, out + 64); m.thread_elements() *= ${t}(2); simdgroup_store(m, out + 128);`,
      out,
      expected: (() => {
        const first = range(64, () => 0);
        const second = range(64, () => 0);
        for (const lane of range(32, (k) => k)) {
          const place = rowOf(lane) * 8 + columnOf(lane);
          first.splice(place, 2, lane, lane + 32);
          second.splice(place, 2, lane + 1, 7);
        }
        return [first, second, second.map((x) => 2 * x)].flatMap(type.encode);
      })(),
    },
    {
      ...lanes,
      name: `element style of ${t}: fragments in registers, matrices refilled around each product, as MLX has it`,
      code: `const short2 at = coordinates(lane); typedef vec<${t}, 2> frag_type; frag_type fa = {a[at.y * 8 + at.x], a[at.y * 8 + at.x + 1]}, fb = {b[at.y * 8 + at.x], b[at.y * 8 + at.x + 1]};
        vec<float, 2> fd = {0, 0}; for (int k = 0; k < 3; ++k) { mma(fd, fa, fb, fd); } out[2 * lane] = ${t}(fd[0]); out[2 * lane + 1] = ${t}(fd[1]);`,
      out,
      inputs: [type.input(a), type.input(b)],
      expected: type.encode(range(64, (k) => 3 * at(product(a, b), rowOf(k >> 1), columnOf(k >> 1) + (k & 1)))),
    },
  );
}
for (const [left, right] of [
  ["half", "half"],
  ["bfloat", "bfloat"],
  ["half", "float"],
  ["float", "half"],
] as const) {
  const [x, y] = [types.find(({ name }) => name === left), types.find(({ name }) => name === right)];
  if (x === undefined || y === undefined) throw new Error("unknown type");
  cases.push({
    ...lanes,
    name: `${left} times ${right} into float`,
    code: `simdgroup_${left}8x8 x; simdgroup_${right}8x8 y; simdgroup_float8x8 z(1.0f), r; simdgroup_load(x, a); simdgroup_load(y, b);
      simdgroup_multiply_accumulate(z, x, y, z); simdgroup_store(z, out); simdgroup_multiply(r, x, y); simdgroup_store(r, out + 64);`,
    out: "float",
    inputs: [x.input(a), y.input(b)],
    expected: [
      ...product(
        a,
        b,
        make((r, q) => (r === q ? 1 : 0)),
      ),
      ...product(a, b),
    ],
  });
}
/** Values whose product has more bits than half holds: the sum must be taken in float and rounded once. */
const fine = make((row, column) => 1 + ((row * 8 + column) % 13) / 64);
const coarse = make((row, column) => 1 + ((row + column * 3) % 11) / 32);
cases.push(
  {
    ...lanes,
    name: "half products accumulate in float and round once",
    code: "simdgroup_half8x8 x, y, r; simdgroup_load(x, a); simdgroup_load(y, b); simdgroup_multiply(r, x, y); simdgroup_store(r, out);",
    out: "half",
    inputs: [
      words(
        "half",
        fine.map((v) => bitsOf(half, v)),
      ),
      words(
        "half",
        coarse.map((v) => bitsOf(half, v)),
      ),
    ],
    expected: product(
      fine.map((v) => numberOf(half, bitsOf(half, v))),
      coarse.map((v) => numberOf(half, bitsOf(half, v))),
    ).map((v) => bitsOf(half, v)),
  },
  {
    ...lanes,
    name: "matrices in arrays, structs and both",
    code: `simdgroup_float8x8 list[2][2]; struct Pair { simdgroup_float8x8 x, y; } pair; for (int k = 0; k < 4; ++k) { list[k / 2][k % 2] = make_filled_simdgroup_matrix<float, 8, 8>(float(k)); }
      simdgroup_load(pair.x, a); pair.y = list[1][1]; simdgroup_multiply_accumulate(list[0][1], pair.x, pair.y, list[0][1]); simdgroup_store(list[0][1], out);
      Tile tile; tile.clear(); tile.add(pair.x); tile.add(pair.x); simdgroup_store(tile.m[1], out + 64);`,
    out: "float",
    inputs: [floats(a)],
    expected: [
      ...product(
        a,
        make(() => 3),
        make(() => 1),
      ),
      ...a.map((v) => 2 * v),
    ],
  },
  {
    ...lanes,
    name: "matrices by reference, by value and as results",
    code: `simdgroup_float8x8 m = loaded(a); twice(m); simdgroup_store(sum(m, m), out); const simdgroup_float8x8 n = m; simdgroup_store(n, out + 64);
      simdgroup_float8x8 k = by_value(n); simdgroup_store(k, out + 128); simdgroup_store(n, out + 192);`,
    out: "float",
    inputs: [floats(a)],
    expected: [a.map((v) => 4 * v), a.map((v) => 2 * v), a.map((v) => 4 * v), a.map((v) => 2 * v)].flat(),
  },
  {
    name: "four SIMD groups, each with its own matrices",
    code: `simdgroup_float8x8 m = make_filled_simdgroup_matrix<float, 8, 8>(float(group)), n; simdgroup_load(n, a); simdgroup_multiply(m, m, n); simdgroup_store(m, out + group * 64);`,
    out: "float",
    threads: 128,
    threadgroup: 128,
    inputs: [floats(a)],
    expected: range(4, (k) =>
      product(
        make(() => k),
        a,
      ),
    ).flat(),
  },
  {
    ...lanes,
    name: "a loop of products with a running accumulator",
    code: `simdgroup_float8x8 d = simdgroup_float8x8(0), x, y; for (uint k = 0; k < 4; ++k) { simdgroup_load(x, a + 8 * k, 32); simdgroup_load(y, b + 64 * k);
      simdgroup_multiply_accumulate(d, x, y, d); } simdgroup_store(d, out);`,
    out: "float",
    inputs: [floats(range(256, (k) => (k % 9) - 4)), floats(range(256, (k) => (k % 7) - 3))],
    expected: make((row, column) =>
      range(32, (k) => (((row * 32 + k) % 9) - 4) * (((k * 8 + column) % 7) - 3)).reduce((x, y) => x + y, 0),
    ),
  },
  {
    ...lanes,
    name: "products in one run of statements, of matrices that come again behind others",
    code: `simdgroup_float8x8 d = simdgroup_float8x8(0), ${range(6, (k) => `x${k}, y${k}`).join(", ")};
      ${range(6, (k) => `simdgroup_load(x${k}, a + ${64 * k}); simdgroup_load(y${k}, b + ${64 * k});`).join(" ")}
      ${pairs.map(([x, y]) => `simdgroup_multiply_accumulate(d, x${x}, y${y}, d);`).join(" ")} simdgroup_store(d, out);`,
    out: "float",
    inputs: [floats(sixLefts.flat()), floats(sixRights.flat())],
    expected: pairs.reduce(
      (sum, [x, y]) => product(sixLefts[x] as Matrix, sixRights[y] as Matrix, sum),
      make(() => 0),
    ),
  },
  {
    ...lanes,
    name: "elements between products: a row maximum through shuffles",
    code: `simdgroup_float8x8 x, y, r; simdgroup_load(x, a); simdgroup_load(y, b); simdgroup_multiply(r, x, y); float2 e = r.thread_elements(); float top = max(e[0], e[1]);
      top = max(top, simd_shuffle_xor(top, ushort(1))); top = max(top, simd_shuffle_xor(top, ushort(8))); r.thread_elements() = e - top; simdgroup_store(r, out);`,
    out: "float",
    inputs: [floats(a), floats(b)],
    expected: make((row, column) => {
      const r = product(a, b);
      return at(r, row, column) - Math.max(...range(8, (k) => at(r, row, k)));
    }),
  },
);

const prelude = `
struct Tile {
  simdgroup_matrix<float, 8, 8> m[2];
  void clear() { for (int k = 0; k < 2; ++k) { m[k] = simdgroup_matrix<float, 8, 8>(0); } }
  void add(thread simdgroup_float8x8 &x) { simdgroup_float8x8 one(1.0f); simdgroup_multiply_accumulate(m[1], x, one, m[1]); }
};
simdgroup_float8x8 loaded(const device float *from) { simdgroup_float8x8 m; simdgroup_load(m, from); return m; }
void twice(thread simdgroup_float8x8 &m) { m.thread_elements() *= 2.0f; }
simdgroup_float8x8 sum(simdgroup_float8x8 x, const thread simdgroup_float8x8 &y) { simdgroup_float8x8 r, one(1.0f); simdgroup_multiply_accumulate(r, x, one, y); return r; }
simdgroup_float8x8 by_value(simdgroup_float8x8 m) { m.thread_elements() *= 2.0f; return m; }
short2 coordinates(uint lane) { const short qid = lane / 4; return short2((qid & 2) * 2 + (lane % 2) * 2, (qid & 4) + (lane / 2) % 4); }
template <typename D, typename A, typename B, typename C>
METAL_FUNC void mma(thread vec<D, 2> &d, thread vec<A, 2> &a, thread vec<B, 2> &b, thread vec<C, 2> &c) {
  simdgroup_matrix<D, 8, 8> dm; simdgroup_matrix<A, 8, 8> am; simdgroup_matrix<B, 8, 8> bm; simdgroup_matrix<C, 8, 8> cm;
  reinterpret_cast<thread vec<A, 2> &>(am.thread_elements()) = a;
  reinterpret_cast<thread vec<B, 2> &>(bm.thread_elements()) = b;
  reinterpret_cast<thread vec<C, 2> &>(cm.thread_elements()) = c;
  simdgroup_multiply_accumulate(dm, am, bm, cm);
  d = reinterpret_cast<thread vec<D, 2> &>(dm.thread_elements());
}
`;
languageSuite("matrix", prelude, cases);

/** References to elements that are used again after operations on their matrix. */
const held = product(a, b);
const heldCase = (name: string, code: string, of: (row: number, column: number) => number): Case => ({
  ...lanes,
  name,
  code,
  out: "float",
  inputs: [floats(a), floats(b)],
  expected: make(of),
});
const storeAt = `
void store_at(device float *out, uint lane, float2 e) {
  const uint at = ((lane / 4 & 4) + lane / 2 % 4) * 8 + (lane / 4 & 2) * 2 + lane % 2 * 2; out[at] = e[0]; out[at + 1] = e[1]; }
`;
const elementsOf = "thread float2 &elements_of(thread simdgroup_float8x8 &m) { return m.thread_elements(); }";
const multiplyInto = `
void multiply_into(thread float2 &e, thread simdgroup_float8x8 &r, thread simdgroup_float8x8 &x, thread simdgroup_float8x8 &y, thread float2 &read) {
  simdgroup_multiply(r, x, y); read = e; }
`;
const heldCases: readonly (readonly [prelude: string, entry: Case])[] = [
  [
    storeAt,
    heldCase(
      "elements read after a multiplication",
      `simdgroup_float8x8 x, y, r(0.0f); simdgroup_load(x, a); simdgroup_load(y, b); thread auto &e = r.thread_elements();
      simdgroup_multiply(r, x, y); store_at(out, lane, e);`,
      (row, column) => at(held, row, column),
    ),
  ],
  [
    storeAt,
    heldCase(
      "elements read and written in a loop of multiplications",
      `simdgroup_float8x8 x, y, r(0.0f); simdgroup_load(x, a); simdgroup_load(y, b); thread float2 &e = r.thread_elements();
      for (int k = 0; k < 3; ++k) { e += 1.0f; simdgroup_multiply_accumulate(r, x, y, r); } store_at(out, lane, e);`,
      (row, column) => 3 * at(held, row, column) + 3,
    ),
  ],
  [
    "",
    heldCase(
      "elements written after a store",
      `simdgroup_float8x8 x; simdgroup_load(x, a); thread float2 *e = &x.thread_elements(); *e += 1.0f; simdgroup_store(x, out); *e = 0.0f;`,
      (row, column) => at(a, row, column) + 1,
    ),
  ],
  [
    storeAt + elementsOf,
    heldCase(
      "elements from a function of the source",
      `simdgroup_float8x8 x, y, r(0.0f); simdgroup_load(x, a); simdgroup_load(y, b); thread float2 &e = elements_of(r);
      simdgroup_multiply(r, x, y); store_at(out, lane, e);`,
      (row, column) => at(held, row, column),
    ),
  ],
  [
    storeAt + multiplyInto,
    heldCase(
      "elements as the argument of a function that multiplies",
      `simdgroup_float8x8 x, y, r(0.0f); simdgroup_load(x, a); simdgroup_load(y, b); float2 e;
      multiply_into(r.thread_elements(), r, x, y, e); store_at(out, lane, e);`,
      (row, column) => at(held, row, column),
    ),
  ],
];
// A source of its own each: one such reference changes how a whole source is compiled.
for (const [index, [prelude, entry]] of heldCases.entries()) languageSuite(`held_${index}`, prelude, [entry]);
