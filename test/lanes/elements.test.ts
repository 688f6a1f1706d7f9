/** Matrices filled through `thread_elements()`: those that lie in memory by rows or columns, which the compiler pass
 * loads whole, and those that only look so. */
import { expect, test } from "bun:test";
import { Device } from "../../src/index.ts";
import { isOnVectors } from "./dispatch.ts";

const length = 2048;
const steps = 3;

interface Fill {
  readonly what: string;
  readonly type: "float" | "half" | "bfloat";
  /** Statements that set x and y, a lane's two elements, from `in`. */
  readonly metal: string;
  /** Where they lie in `in`, which has the value i % 61 at i; -1: 0. */
  readonly places: (row: number, column: number, step: number) => readonly [number, number];
}

const byRows = (stride: number) => (row: number, column: number, step: number) => {
  const at = row * stride + column + 8 * step;
  return [at, at + 1] as const;
};
const byColumns = (stride: number) => (row: number, column: number, step: number) => {
  const at = column * stride + row + 8 * step;
  return [at, at + stride] as const;
};

const fills: readonly Fill[] = [
  {
    what: "rows",
    type: "bfloat",
    metal: "const device bfloat *p = in + row * 40 + column + t * 8; x = p[0], y = p[1];",
    places: byRows(40),
  },
  {
    what: "rows, their distance an argument",
    type: "half",
    metal: "const device half *p = in + (int)row * stride + (int)column; x = p[t * 8], y = p[t * 8 + 1];",
    places: byRows(50),
  },
  {
    what: "columns",
    type: "bfloat",
    metal: "const device bfloat *p = in + column * 64 + row + t * 8; x = p[0], y = p[64];",
    places: byColumns(64),
  },
  {
    what: "columns, their distance an argument",
    type: "float",
    metal: "const device float *p = in + (ulong)column * (ulong)stride + row + t * 8; x = p[0], y = p[(ulong)stride];",
    places: byColumns(50),
  },
  {
    what: "rows turned around",
    type: "half",
    metal: "const device half *p = in + row * 40 + column + t * 8; x = p[1], y = p[0];",
    places: (row, column, step) => [byRows(40)(row, column, step)[1], byRows(40)(row, column, step)[0]],
  },
  {
    what: "columns apart",
    type: "bfloat",
    metal: "const device bfloat *p = in + row * 64 + column * 2 + t * 8; x = p[0], y = p[1];",
    places: (row, column, step) => [row * 64 + column * 2 + step * 8, row * 64 + column * 2 + step * 8 + 1],
  },
  {
    what: "the second element in another row",
    type: "float",
    metal: "const device float *p = in + row * 40 + column + t * 8; x = p[0], y = p[41];",
    places: (row, column, step) => [byRows(40)(row, column, step)[0], byRows(40)(row, column, step)[0] + 41],
  },
  {
    what: "the second element further away by an argument",
    type: "float",
    metal: "const device float *p = in + row * 40 + column + t * 8; x = p[0], y = p[1 + stride];",
    places: (row, column, step) => [byRows(40)(row, column, step)[0], byRows(40)(row, column, step)[1] + 50],
  },
  {
    what: "columns, the second element further away by an argument",
    type: "float",
    metal: "const device float *p = in + column * 40 + row + t * 8; x = p[0], y = p[40 + stride];",
    places: (row, column, step) => [byColumns(40)(row, column, step)[0], byColumns(40)(row, column, step)[1] + 50],
  },
  {
    what: "rows one before the other, their distance an argument",
    type: "half",
    metal: "const device half *p = in + 700 + (int)row * ~stride + (int)column; x = p[t * 8], y = p[t * 8 + 1];",
    places: (row, column, step) => {
      const at = 700 - row * 51 + column + 8 * step;
      return [at, at + 1];
    },
  },
  {
    what: "rows one before the other, by numbers that wrap",
    type: "float",
    metal: `const device float *p = in + (1000l - 4294967296l) + (ulong)((row | 8) * (uint)~stride) + column + t * 8;
    x = p[0], y = p[1];`,
    places: (row, column, step) => {
      const at = 1000 - (row + 8) * 51 + column + 8 * step;
      return [at, at + 1];
    },
  },
  {
    what: "columns at two distances",
    type: "half",
    metal: "const device half *p = in + column * 40 + row + t * 8; x = p[0], y = p[stride];",
    places: (row, column, step) => [column * 40 + row + step * 8, column * 40 + row + step * 8 + 50],
  },
  {
    what: "rows that are written between the two",
    type: "float",
    metal: `threadgroup float box[64];
    box[lane] = in[lane + t], box[lane + 32] = in[lane + 32 + t];
    simdgroup_barrier(mem_flags::mem_threadgroup);
    x = box[row * 8 + column];
    simdgroup_barrier(mem_flags::mem_threadgroup);
    box[lane] = in[lane + 100], box[lane + 32] = in[lane + 132];
    simdgroup_barrier(mem_flags::mem_threadgroup);
    y = box[row * 8 + column + 1];`,
    places: (row, column, step) => [row * 8 + column + step, row * 8 + column + 101],
  },
  {
    what: "rows of half the lanes, the others' far outside",
    type: "float",
    metal: `x = y = 0;
    if (row < 4) { const device float *p = in + row * 40 + column + t * 8 + (row / 4) * ${2 ** 28}; x = p[0], y = p[1]; }`,
    places: (row, column, step) => (row < 4 ? byRows(40)(row, column, step) : [-1, -1]),
  },
  {
    what: "rows in a loop that lanes leave at different times",
    type: "bfloat",
    metal:
      "for (uint k = 0; k <= row; ++k) { const device bfloat *p = in + k * 40 + column + t * 8; x = p[0], y = p[1]; }",
    places: byRows(40),
  },
];

const matrices = (["left", "right"] as const).flatMap((side) => fills.map((fill, index) => ({ side, fill, index })));

/** In one operand the fill, in the other rows. */
const source = `#include <metal_stdlib>
using namespace metal;
${matrices
  .map(
    ({ side, fill: { type, metal }, index }) => `
kernel void ${side}_${index}(const device ${type} *in [[buffer(0)]], device float *out [[buffer(1)]],
                         constant int &stride [[buffer(2)]], uint lane [[thread_index_in_simdgroup]]) {
  const uint row = (lane / 4 & 4) + lane / 2 % 4, column = (lane / 4 & 2) * 2 + lane % 2 * 2;
  simdgroup_float8x8 c(0.0f);
  for (int t = 0; t < ${steps} + (stride & 0); ++t) {
    ${type} x, y;
    ${metal}
    simdgroup_float8x8 a, b;
    ${side === "left" ? "a" : "b"}.thread_elements() = float2(x, y);
    ${side === "left" ? "b" : "a"}.thread_elements() = float2(in[row * 24 + column + 3], in[row * 24 + column + 4]);
    simdgroup_multiply_accumulate(c, a, b, c);
  }
  simdgroup_store(c, out, 8);
}`,
  )
  .join("")}`;

/** A product that lanes of the first rows alone come to, which Metal leaves open; further on there is no memory. */
const fewLanes = `#include <metal_stdlib>
using namespace metal;
kernel void few_lanes(const device half *in [[buffer(0)]], device float *out [[buffer(1)]],
                      constant uint &rows [[buffer(2)]], uint lane [[thread_index_in_simdgroup]]) {
  const uint row = (lane / 4 & 4) + lane / 2 % 4, column = (lane / 4 & 2) * 2 + lane % 2 * 2;
  if (row < rows) {
    const device half *p = in + ((ulong)row << 40) + column;
    simdgroup_float8x8 a, b, c(0.0f);
    a.thread_elements() = float2(p[0], p[1]);
    b.thread_elements() = 1.0f;
    simdgroup_multiply_accumulate(c, a, b, c);
    out[row * 8 + column] = c.thread_elements()[0], out[row * 8 + column + 1] = c.thread_elements()[1];
  }
}`;

const value = (place: number): number => (place < 0 ? 0 : place % 61);

function expected(side: "left" | "right", places: Fill["places"]): number[] {
  const sums = new Array<number>(64).fill(0);
  for (let step = 0; step < steps; step++) {
    const filled: number[] = [];
    const plain: number[] = [];
    for (let row = 0; row < 8; row++) {
      for (let column = 0; column < 8; column += 2) {
        filled.push(...places(row, column, step).map(value));
        plain.push(value(row * 24 + column + 3), value(row * 24 + column + 4));
      }
    }
    const [a, b] = side === "left" ? [filled, plain] : [plain, filled];
    for (let i = 0; i < 64; i++) {
      for (let k = 0; k < 8; k++) sums[i] = (sums[i] ?? 0) + (a[i - (i % 8) + k] ?? 0) * (b[k * 8 + (i % 8)] ?? 0);
    }
  }
  return sums;
}

if (process.platform === "linux") {
  const device = Device.open();
  device.registerSource("elements.metal", source);
  const dtypes = { float: "f32", half: "f16", bfloat: "bf16" } as const;

  test.each(matrices.map(({ side, fill, index }) => [`${side}: ${fill.what}`, side, fill, index] as const))(
    "%s",
    (_, side, fill, index) => {
      using input = device.tensor(dtypes[fill.type], [length]);
      input.set(Float32Array.from({ length }, (_, place) => value(place)));
      using out = device.tensor("f32", [64]);
      using pipeline = device.pipeline(`${side}_${index}`);
      if (isOnVectors) expect(pipeline.executor).toBe("vectors");
      using pass = device.pass();
      pass.dispatch(pipeline, { buffers: [input, out], bytes: { 2: new Int32Array([50]) }, grid: 32, threads: 32 });
      pass.commitAndWait();
      expect(Array.from(out.toFloat32Array())).toEqual(expected(side, fill.places));
    },
  );

  // One thread at a time has nothing of lanes that do not come.
  if (isOnVectors)
    test("lanes that are not there load nothing", () => {
      device.registerSource("few_lanes.metal", fewLanes);
      using input = device.tensor("f16", [8]).set([1, 2, 4, 8, 16, 32, 64, 128]);
      using out = device.tensor("f32", [8]);
      using pass = device.pass();
      const bytes = { 2: new Uint32Array([1]) };
      pass.dispatch(device.pipeline("few_lanes"), { buffers: [input, out], bytes, grid: 32, threads: 32 });
      pass.commitAndWait();
      expect(Array.from(out.toFloat32Array())).toEqual(new Array<number>(8).fill(255));
    });
}
