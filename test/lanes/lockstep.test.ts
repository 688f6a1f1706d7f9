/** Lanes in lockstep: what published kernels rely on, without a barrier between. */
import { expect, test } from "bun:test";
import { Device } from "../../src/index.ts";

const width = 32;
const rounds = 20;

const source = `
#include <metal_stdlib>
using namespace metal;

/// All lanes read what one of them writes next.
kernel void read_then_written(device uint *out [[buffer(0)]], uint lane [[thread_index_in_simdgroup]]) {
  threadgroup uint shared;
  if (lane == 0) { shared = 1; }
  uint sum = lane;
  for (uint round = 0; round < ${rounds}; ++round) {
    sum = sum * 3 + shared;
    if (lane == round % 32) { shared = sum; }
  }
  out[lane] = sum;
}

/// Each lane goes through what the others have just written, as many as it has a mind to.
kernel void loops_over_others(device uint *out [[buffer(0)]], uint lane [[thread_index_in_simdgroup]]) {
  threadgroup uint shared[32];
  uint value = lane + 1;
  for (uint round = 0; round < ${rounds}; ++round) {
    shared[lane] = value;
    uint sum = 0;
    for (uint other = lane % 5; other < 32 - lane % 3; ++other) { sum = sum * 5 + shared[other]; }
    value = sum;
  }
  out[lane] = value;
}

/// Neighbours exchange through memory.
kernel void exchanges(device uint *out [[buffer(0)]], uint lane [[thread_index_in_simdgroup]]) {
  threadgroup uint shared[32];
  shared[lane] = lane * lane;
  for (uint round = 0; round < ${rounds}; ++round) {
    const uint value = shared[lane ^ 1u] + shared[(lane + round) % 32];
    shared[lane] = value * 7;
  }
  out[lane] = shared[lane];
}

/// In a branch, by those who took it.
kernel void in_a_branch(device uint *out [[buffer(0)]], uint lane [[thread_index_in_simdgroup]]) {
  threadgroup uint shared[32];
  shared[lane] = lane;
  if (lane % 3 != 0) {
    const uint value = shared[31 - lane];
    shared[lane] = value + 100;
    shared[lane] += shared[(lane + 1) % 32];
  }
  out[lane] = shared[lane];
}
`;

const lanes = Array.from({ length: width }, (_, lane) => lane);
const wrapped = (value: number): number => value >>> 0;
const product = (a: number, b: number): number => wrapped(Math.imul(a, b));

const expected: Readonly<Record<string, () => number[]>> = {
  read_then_written() {
    let shared = 1;
    let sums = lanes;
    for (let round = 0; round < rounds; round++) {
      sums = sums.map((sum) => wrapped(product(sum, 3) + shared));
      shared = sums[round % width] as number;
    }
    return sums;
  },
  loops_over_others() {
    let values = lanes.map((lane) => lane + 1);
    for (let round = 0; round < rounds; round++) {
      const shared = values;
      values = lanes.map((lane) =>
        shared.slice(lane % 5, width - (lane % 3)).reduce((sum, value) => wrapped(product(sum, 5) + value), 0),
      );
    }
    return values;
  },
  exchanges() {
    let shared = lanes.map((lane) => lane * lane);
    for (let round = 0; round < rounds; round++) {
      const before = shared;
      const at = (lane: number): number => before[lane % width] as number;
      shared = lanes.map((lane) => product(wrapped(at(lane ^ 1) + at(lane + round)), 7));
    }
    return shared;
  },
  in_a_branch() {
    const takes = (lane: number): boolean => lane % 3 !== 0;
    const first = lanes.map((lane) => (takes(lane) ? 31 - lane + 100 : lane));
    return first.map((value, lane) => (takes(lane) ? value + (first[(lane + 1) % width] as number) : value));
  },
};

if (process.platform === "linux" && process.env["SOFTMETAL_EXECUTOR"] !== "threads")
  test.each(Object.entries(expected))("%s", (kernel, words) => {
    using device = Device.open();
    device.registerSource("lockstep.metal", source);
    using pipeline = device.pipeline(kernel);
    expect(pipeline.executor).toBe("vectors");
    using out = device.tensor("u32", [width]);
    using pass = device.pass();
    pass.dispatch(pipeline, { buffers: [out], grid: width, threads: width });
    pass.commitAndWait();
    expect(Array.from(out.view())).toEqual(words());
  });
