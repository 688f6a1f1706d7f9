/** Upper halves of integers, which the lanes' vectors take by a permutation: every width, signed or not, odd shifts too. */
import { expect, test } from "bun:test";
import { Device } from "../../src/index.ts";

const source = `
#include <metal_stdlib>
using namespace metal;
kernel void halves(const device ulong *in [[buffer(0)]], device uint *out [[buffer(1)]],
                   uint i [[thread_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
  const ulong x = in[i];
  const uint low = uint(x);
  // What keeps the kernel from running as a loop.
  const uint same = simd_broadcast_first(0u * lane);
  out[8 * i] = uint(x >> 32) + same;
  out[8 * i + 1] = uint(ushort(low >> 16));
  out[8 * i + 2] = uint(int(short(int(low) >> 16)));
  out[8 * i + 3] = uint(uchar(ushort(low) >> 8));
  out[8 * i + 4] = uint(int(char(short(low) >> 8)));
  out[8 * i + 5] = uint(ushort(low >> 15));
  out[8 * i + 6] = uint(uchar(low >> 16));
  out[8 * i + 7] = uint(int(long(x) >> 32));
}
`;

test("upper halves of 16, 32 and 64 bits", () => {
  using device = Device.open();
  device.registerSource("halves.metal", source);
  using pipeline = device.pipeline("halves");
  const count = 77;
  const values = BigUint64Array.from({ length: count }, (_, i) =>
    BigInt.asUintN(64, BigInt(i + 1) * 0x9e3779b97f4a7c15n),
  );
  using input = device.tensor("u64", [count]);
  input.bytes.set(new Uint8Array(values.buffer));
  using out = device.tensor("u32", [8 * count]);
  using pass = device.pass();
  pass.dispatch(pipeline, { buffers: [input, out], grid: count, threads: 64 });
  pass.commitAndWait();
  const wanted = [...values].flatMap((x) => {
    const low = Number(x & 0xffff_ffffn);
    const high = Number(x >> 32n);
    const signed = (value: number, bits: number) => ((value << (32 - bits)) >> (32 - bits)) >>> 0;
    const upper = (low >>> 8) & 0xff;
    return [
      high,
      low >>> 16,
      signed(low >>> 16, 16),
      upper,
      signed(upper, 8),
      (low >>> 15) & 0xffff,
      (low >>> 16) & 0xff,
      high,
    ];
  });
  expect([...out.view()]).toEqual(wanted);
  if (process.platform === "linux" && process.env["SOFTMETAL_EXECUTOR"] === undefined) {
    expect(pipeline.executor).toBe("vectors");
  }
});
