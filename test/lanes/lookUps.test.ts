/** Tables that lanes look numbers up in, each at an index of its own: in all kinds of memory, of all sizes that the
 * compiler pass keeps in registers and of more, by some of the lanes, at the end of a buffer. */
import { expect, test } from "bun:test";
import { Device } from "../../src/index.ts";
import { runOnVectors } from "./dispatch.ts";

const threads = 80; // Two SIMD groups and a half.
const sizes = [16, 33, 128, 200, 256, 512];
const types = ["float", "uint"] as const;
const dtypes = { float: "f32", uint: "u32" } as const;

const numberAt = (i: number): number => (i * 2654435) % 65521;
/** The bits that an index below `size` takes. */
const maskOf = (size: number): number => 2 ** Math.ceil(Math.log2(size)) - 1;
const wordOf = (thread: number): number => Math.imul(thread + 1, 2654435761) >>> 0;

/** What each thread adds up: of the table at three indices that lie in one word, the last for odd threads alone. */
function expectedOf(size: number): number[] {
  return Array.from({ length: threads }, (_, thread) => {
    const word = wordOf(thread);
    const at = (shift: number) => numberAt(((word >>> shift) & maskOf(size)) % size);
    return at(0) + at(9) + (thread % 2 === 1 ? at(18) : 0);
  });
}

/** A remainder where the mask may lead past the table. */
const indexOf = (size: number, shift: number): string => {
  const index = `(word >> ${shift} & ${maskOf(size)})`;
  return size === maskOf(size) + 1 ? index : `(${index} % ${size} & ${maskOf(size)})`;
};

/** With a function of lanes, so that they run together. */
const sumOf = (size: number): string => `
  const uint word = words[index] ^ simd_or(0u);
  auto sum = table[${indexOf(size, 0)}] + table[${indexOf(size, 9)}];
  if (index % 2 == 1) sum += table[${indexOf(size, 18)}];
  out[index] = sum;`;

const parameters = (type: string): string =>
  `const device ${type} *given [[buffer(0)]], const device uint *words [[buffer(1)]], device ${type} *out [[buffer(2)]],
  uint index [[thread_position_in_threadgroup]]`;

const source = `#include <metal_stdlib>
using namespace metal;
${types
  .flatMap((type) =>
    sizes.map(
      (size) => `
constant ${type} constants_${type}_${size}[${size}] = {${Array.from({ length: size }, (_, i) => numberAt(i)).join(", ")}};
kernel void constant_${type}_${size}(${parameters(type)}) {
  const constant ${type} *table = constants_${type}_${size};${sumOf(size)}
}
kernel void device_${type}_${size}(${parameters(type)}) {
  const device ${type} *table = given;${sumOf(size)}
}
struct member_of_${type}_${size} {
  ${type} before[3], table[${size}];
};
kernel void member_${type}_${size}(${parameters(type)}) {
  const device ${type} *table = ((const device member_of_${type}_${size} *)(given - 3))->table;${sumOf(size)}
}
kernel void threadgroup_${type}_${size}(${parameters(type)}) {
  threadgroup ${type} before[3], table[${size}];
  before[index % 3] = 0;
  for (uint i = index; i < ${size}; i += ${threads}) table[i] = given[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);${sumOf(size)}
}
kernel void thread_${type}_${size}(${parameters(type)}) {
  ${type} table[${size}];
  for (uint i = 0; i < ${size}; i++) table[i] = given[i];${sumOf(size)}
}`,
    ),
  )
  .join("")}`;

const cases = ["constant", "device", "member", "threadgroup", "thread"].flatMap((memory) =>
  types.flatMap((type) => sizes.map((size) => ({ memory, type, size }))),
);

const device = Device.open();
device.registerSource("look_ups.metal", source);

test.each(cases)("$memory $type[$size]", ({ memory, type, size }) => {
  using words = device.tensor("u32", [threads]).set(Array.from({ length: threads }, (_, thread) => wordOf(thread)));
  using out = device.tensor(dtypes[type], [threads]);
  // At several places of a buffer, which ends behind the table.
  for (const first of [3, 4, 1000]) {
    using buffer = device.tensor(dtypes[type], [first + size]);
    using table = buffer.slice(first, first + size).set(Array.from({ length: size }, (_, i) => numberAt(i)));
    runOnVectors(device, `${memory}_${type}_${size}`, [table, words, out], threads);
    expect(Array.from(out.view())).toEqual(expectedOf(size));
  }
});
