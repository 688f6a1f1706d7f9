/** Kernels that read and write tensors of each type of integer, up to its extremes. */
import { afterAll, expect, test } from "bun:test";
import { Device } from "../../src/index.ts";

const device = Device.open();
afterAll(() => device.dispose());

/** The name in Metal, and the least and the greatest value. */
const types = {
  u8: ["uchar", 0n, 2n ** 8n - 1n],
  i8: ["char", -(2n ** 7n), 2n ** 7n - 1n],
  u16: ["ushort", 0n, 2n ** 16n - 1n],
  i16: ["short", -(2n ** 15n), 2n ** 15n - 1n],
  u32: ["uint", 0n, 2n ** 32n - 1n],
  i32: ["int", -(2n ** 31n), 2n ** 31n - 1n],
  u64: ["ulong", 0n, 2n ** 64n - 1n],
  i64: ["long", -(2n ** 63n), 2n ** 63n - 1n],
} as const;
type IntegerDType = keyof typeof types;

test.each(Object.entries(types))("%s is read and written whole", (name, [metal, least, greatest]) => {
  const dtype = name as IntegerDType;
  // Copied, negated or complemented, stepped over the end, halved, compared, and told from another type.
  device.registerSource(
    `${metal}.metal`,
    `#include <metal_stdlib>
using namespace metal;
kernel void ${metal}_all(const device ${metal} *x [[buffer(0)]], device ${metal} *out [[buffer(1)]],
                         constant ${metal} &step [[buffer(2)]], uint i [[thread_position_in_grid]],
                         uint n [[threads_per_grid]]) {
  const ${metal} v = x[i];
  out[i] = v;
  out[n + i] = ${metal}(~v);
  out[2 * n + i] = ${metal}(v + step);
  out[3 * n + i] = ${metal}(v / ${metal}(2));
  out[4 * n + i] = v > ${metal}(1) ? ${metal}(1) : ${metal}(0);
  out[5 * n + i] = ${metal}(sizeof(v));
}
`,
  );
  const bits = 8 * { u8: 1, i8: 1, u16: 2, i16: 2, u32: 4, i32: 4, u64: 8, i64: 8 }[dtype];
  const wrap = (x: bigint) => (least < 0n ? BigInt.asIntN(bits, x) : BigInt.asUintN(bits, x));
  const values = [least, least + 1n, 0n, 1n, greatest / 3n, greatest - 1n, greatest];
  const numbers = (list: readonly bigint[]) => (bits === 64 ? list : list.map(Number));
  using pipeline = device.pipeline(`${metal}_all`);
  using x = device.tensor(dtype, [values.length]).set(numbers(values));
  using out = device.tensor(dtype, [6, values.length]);
  using step = device.tensor(dtype, [1]).set(numbers([1n]));
  using pass = device.pass();
  pass.dispatch(pipeline, { buffers: [x, out, step], grid: values.length, threads: 4 });
  pass.commitAndWait();
  const expected = [
    values,
    values.map((v) => wrap(~v)),
    values.map((v) => wrap(v + 1n)),
    values.map((v) => v / 2n),
    values.map((v) => (v > 1n ? 1n : 0n)),
    values.map(() => BigInt(bits / 8)),
  ].flat();
  const actual = Array.from(out.view() as ArrayLike<number | bigint>, BigInt);
  expect(actual).toEqual(expected);
});
