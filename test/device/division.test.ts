import { afterAll, describe, expect, test } from "bun:test";
import { openWithThreads } from "../../scripts/lib/open-device.ts";

// Division by zero, and of the lowest integer by -1, gives any value on a GPU. It must not end the pass, and quotients
// beside it must be right.

const types = [
  { type: "char", bits: 8n, isSigned: true },
  { type: "uchar", bits: 8n, isSigned: false },
  { type: "short", bits: 16n, isSigned: true },
  { type: "ushort", bits: 16n, isSigned: false },
  { type: "int", bits: 32n, isSigned: true },
  { type: "uint", bits: 32n, isSigned: false },
  { type: "long", bits: 64n, isSigned: true },
  { type: "ulong", bits: 64n, isSigned: false },
] as const;

const source = `#include <metal_stdlib>
using namespace metal;
#define DIVIDE(type)                                                                                                   \\
  kernel void divide_##type(device const type *a [[buffer(0)]], device const type *b [[buffer(1)]],                    \\
                            device type *out [[buffer(2)]], uint i [[thread_position_in_grid]]) {                      \\
    out[2 * i] = a[i] / b[i];                                                                                          \\
    out[2 * i + 1] = a[i] % b[i];                                                                                      \\
  }                                                                                                                    \\
  kernel void divide_lanes_##type(device const type *a [[buffer(0)]], device const type *b [[buffer(1)]],              \\
                                  device type *out [[buffer(2)]], uint i [[thread_position_in_grid]]) {                \\
    const type quotient = a[i] / b[i];                                                                                 \\
    simdgroup_barrier(mem_flags::mem_none);                                                                            \\
    out[2 * i] = quotient;                                                                                             \\
    out[2 * i + 1] = a[i] % b[i];                                                                                      \\
  }
${types.map(({ type }) => `DIVIDE(${type})`).join("\n")}
`;

const devices = [1, 2].map((threads) => openWithThreads(threads));
for (const device of devices) device.registerSource("division.metal", source);
afterAll(() => {
  for (const device of devices) device.dispose();
});

describe.each(types)("$type", ({ type, bits, isSigned }) => {
  const wrap = (x: bigint) => (isSigned ? BigInt.asIntN(Number(bits), x) : BigInt.asUintN(Number(bits), x));
  const lowest = isSigned ? -(1n << (bits - 1n)) : 0n;
  const bytes = Number(bits / 8n);
  const count = 1000;
  const a = Array.from({ length: count }, (_, i) => (i % 7 === 3 ? lowest : wrap(BigInt(i * 7919 - 300000))));
  const b = Array.from({ length: count }, (_, i) => (i % 5 === 1 ? 0n : wrap(BigInt((i % 13) - 1))));

  const encoded = (values: readonly bigint[]) => {
    const view = new DataView(new ArrayBuffer(values.length * bytes));
    for (const [i, x] of values.entries()) {
      for (let k = 0; k < bytes; k++) view.setUint8(i * bytes + k, Number((x >> BigInt(8 * k)) & 255n));
    }
    return new Uint8Array(view.buffer);
  };
  const decoded = (raw: Uint8Array): bigint[] =>
    Array.from({ length: raw.length / bytes }, (_, i) => {
      let x = 0n;
      for (let k = bytes - 1; k >= 0; k--) x = (x << 8n) | BigInt(raw[i * bytes + k] ?? 0);
      return wrap(x);
    });

  test.each(["divide", "divide_lanes"])("%s: every quotient that there is", (kernel) => {
    for (const device of devices) {
      using pipeline = device.pipeline(`${kernel}_${type}`);
      using x = device.tensor("u8", [count * bytes]);
      using y = device.tensor("u8", [count * bytes]);
      using out = device.tensor("u8", [2 * count * bytes]);
      x.view().set(encoded(a));
      y.view().set(encoded(b));
      using pass = device.pass();
      pass.dispatch(pipeline, { buffers: [x, y, out], grid: count, threads: 64 });
      pass.commitAndWait();
      const results = decoded(out.view());
      let undefinedOnes = 0;
      for (const [i, dividend] of a.entries()) {
        const divisor = b[i] as bigint;
        if (divisor === 0n || (isSigned && dividend === lowest && divisor === -1n)) {
          undefinedOnes++;
          continue;
        }
        expect({ i, quotient: results[2 * i] }).toEqual({ i, quotient: dividend / divisor });
        expect({ i, remainder: results[2 * i + 1] }).toEqual({ i, remainder: dividend % divisor });
      }
      expect(undefinedOnes).toBeGreaterThan(200);
    }
  });
});
