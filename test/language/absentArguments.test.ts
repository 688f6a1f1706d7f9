/** Arguments that a function constant leaves out are never read, references included. */
import { ints, type KernelCase, kernelSuite, range } from "./harness.ts";

const source = `#include <metal_stdlib>
using namespace metal;
constant bool kHas [[function_constant(0)]];
struct Params { int n; int scale[8]; };
constant int kSize = kHas ? 3 : 1;

#define ARGUMENTS device int *out [[buffer(0)]], \\
  constant Params &p [[buffer(1), function_constant(kHas)]], const device int &first [[buffer(2), function_constant(kHas)]], \\
  constant int *list [[buffer(3), function_constant(kHas)]], uint i [[thread_position_in_grid]]

static int value(constant Params &p, const device int &first, constant int *list, uint i) {
  const int n = kHas ? p.n : 5;
  const int start = kHas ? first : 7;
  int sum = 0;
  for (int k = 0; k < kSize; k++) sum += kHas ? list[k] * p.scale[i & 7] : 11;
  return n + start + sum;
}
kernel void absent_loop(ARGUMENTS) { out[i] = value(p, first, list, i); }
kernel void absent_lanes(ARGUMENTS) { out[i] = simd_max(value(p, first, list, i)); }
kernel void absent_barrier(ARGUMENTS) {
  threadgroup int shared[32];
  shared[i] = value(p, first, list, i);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = shared[31 - i];
}
/// A place to write to.
kernel void absent_written(device int *out [[buffer(0)]], device int &count [[buffer(1), function_constant(kHas)]],
                           uint i [[thread_position_in_grid]]) {
  if (kHas) count = 9;
  out[i] = kHas ? count : 4;
}
`;

const scale = range(8, (k) => k + 1);
const inputs = [ints([2, ...scale]), ints([40]), ints([1, 10, 100])];
const present = range(32, (i) => 2 + 40 + 111 * (scale[i % 8] as number));
const absent = range(32, () => 5 + 7 + 11);
const common = { out: "int", grid: 32, threads: 32 } as const;
const constants = (value: boolean): KernelCase["constants"] => [{ index: 0, dtype: "bool", value }];

kernelSuite("absentArguments", source, [
  ...["absent_loop", "absent_lanes", "absent_barrier"].flatMap((kernel): KernelCase[] => {
    const most = range(32, () => Math.max(...present));
    const expected = { absent_loop: present, absent_lanes: most, absent_barrier: present.toReversed() }[kernel] ?? [];
    return [
      { ...common, name: `${kernel}, present`, kernel, inputs, constants: constants(true), expected },
      { ...common, name: `${kernel}, absent`, kernel, constants: constants(false), expected: absent },
    ];
  }),
  {
    ...common,
    name: "a reference to write to, absent",
    kernel: "absent_written",
    constants: constants(false),
    expected: range(32, () => 4),
  },
]);
