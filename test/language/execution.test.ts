/** How kernels run: grids, threadgroups, order, repeatability, time limits. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { openWith } from "../../scripts/lib/open-device.ts";
import type { Device, Extent } from "../../src/index.ts";
import { rejectionOf } from "../helpers/errors.ts";
import { countCase, device, floats, type KernelCase, range, run, uints } from "./harness.ts";
import { rmsNorm, softmax, steelAttention } from "./programs.ts";

const source = `#include <metal_stdlib>
using namespace metal;
/// How often each thread of the grid ran.
kernel void visit(device atomic_uint *out [[buffer(0)]], uint3 at [[thread_position_in_grid]], uint3 size [[threads_per_grid]]) {
  atomic_fetch_add_explicit(out + at.x + size.x * (at.y + size.y * at.z), 1u, memory_order_relaxed);
}
/// The same with a barrier, at which every thread waits.
kernel void visit_barrier(device atomic_uint *out [[buffer(0)]], uint3 at [[thread_position_in_grid]], uint3 size [[threads_per_grid]],
                          uint3 local [[thread_position_in_threadgroup]], uint3 own [[threads_per_threadgroup]]) {
  threadgroup atomic_uint here;
  const bool first = local.x + local.y + local.z == 0;
  if (first) { atomic_store_explicit(&here, 0u, memory_order_relaxed); }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  atomic_fetch_add_explicit(&here, 1u, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const bool complete = atomic_load_explicit(&here, memory_order_relaxed) == own.x * own.y * own.z;
  atomic_fetch_add_explicit(out + at.x + size.x * (at.y + size.y * at.z), complete ? 1u : 100u, memory_order_relaxed);
}
/// Reverses a threadgroup.
kernel void reverse_group(device uint *out [[buffer(0)]], threadgroup uint *box [[threadgroup(0)]], uint i [[thread_position_in_grid]],
                          uint local [[thread_index_in_threadgroup]], uint size [[threads_per_threadgroup]]) {
  box[local] = i; threadgroup_barrier(mem_flags::mem_threadgroup); out[i] = box[size - 1 - local];
}
kernel void one_each(device uint *out [[buffer(0)]], uint i [[threadgroup_position_in_grid]]) { out[i] = i * 3 + 1; }
kernel void one_each_simd(device uint *out [[buffer(0)]], uint i [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) { const uint s = simd_sum(lane + i); if (lane == 0) { out[i] = s; } }
kernel void early_return(device uint *out [[buffer(0)]], threadgroup uint *box [[threadgroup(0)]], uint i [[thread_position_in_grid]],
                         uint local [[thread_index_in_threadgroup]]) {
  out[i] = 7; if (local % 3 == 0) { return; }
  box[local] = local; threadgroup_barrier(mem_flags::mem_threadgroup); out[i] = box[local % 3 == 1 ? local + 1 : local - 1];
}
kernel void set_one(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) { out[i] = 1; }
kernel void double_it(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) { out[i] = out[i] * 2 + 1; }
/// The same two, and their types deny that they write.
kernel void set_one_denied(device const float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) { ((device float *)out)[i] = 1; }
kernel void double_it_denied(device const float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) { ((device float *)out)[i] = out[i] * 2 + 1; }
kernel void endless(volatile device uint *out [[buffer(0)]], uint i [[thread_position_in_grid]]) { while (out[0] == 0) { } out[1] = i; }
kernel void endless_barrier(volatile device uint *out [[buffer(0)]], uint i [[thread_position_in_grid]]) { while (out[0] == 0) { threadgroup_barrier(mem_flags::mem_device); } out[1] = i; }
/// Lanes of one SIMD group come to different barriers.
kernel void divergent_branches(device uint *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  if (i % 2 == 0) { out[i] = 1; threadgroup_barrier(mem_flags::mem_device); } else { out[i] = 2; threadgroup_barrier(mem_flags::mem_device); }
}
kernel void divergent_skip(device uint *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  out[i] = 1; if (i % 32 != 7) { threadgroup_barrier(mem_flags::mem_device); }
  out[i] = 2; threadgroup_barrier(mem_flags::mem_device); out[i] = 3;
}
/// Some lanes wait behind the loop that others are in.
kernel void divergent_turns(device uint *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  uint sum = 0;
  for (uint k = 0; k < 8; ++k) {
    sum += simd_sum(1u);
    if (i % 32 == k) break;
    threadgroup_barrier(mem_flags::mem_device);
  }
  threadgroup_barrier(mem_flags::mem_device); out[i] = sum;
}
/// Each SIMD group comes to a barrier of its own.
kernel void own_barrier(device uint *out [[buffer(0)]], threadgroup uint *box [[threadgroup(0)]], uint i [[thread_position_in_grid]], uint group [[simdgroup_index_in_threadgroup]]) {
  if (group == 0) { box[i] = i; threadgroup_barrier(mem_flags::mem_threadgroup); out[i] = box[i + 32]; }
  else { box[i] = i; threadgroup_barrier(mem_flags::mem_threadgroup); out[i] = box[i - 32]; }
}
/// Lanes leave a loop with a barrier, and the kernel with it, one after another.
kernel void leaving(device uint *out [[buffer(0)]], threadgroup uint *box [[threadgroup(0)]], uint i [[thread_position_in_grid]]) {
  uint sum = 0;
  for (uint k = 0; k < 64; ++k) {
    if (k > i) { out[i] = sum; return; }
    if (k == i) { box[0] = 3 * k; }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    sum += box[0];
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  out[i] = sum;
}
/// The same out of a loop in it, where lanes that are left count themselves.
kernel void leaving_from_within(device uint *out [[buffer(0)]], threadgroup uint *box [[threadgroup(0)]], uint i [[thread_position_in_grid]]) {
  uint sum = 0;
  for (uint k = 0; k < 64; ++k) {
    sum += simd_sum(1u);
    for (uint n = 0; n < 3; ++n) { if (k > i && n == i % 3) { out[i] = sum; return; } }
    if (k == i) { box[0] = 3 * k; }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    sum += box[0];
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  out[i] = sum;
}
/// Lanes leave by break, with a sum of those that leave together, and no barrier is behind the loop.
kernel void breaking(device uint *out [[buffer(0)]], threadgroup uint *box [[threadgroup(0)]], uint i [[thread_position_in_grid]]) {
  uint sum = 0;
  for (uint k = 0;; ++k) {
    if (k == i / 2) { box[0] = k; }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    sum += box[0];
    if (k == i / 2) { sum += simd_sum(1u) << 16; break; }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  out[i] = sum;
}
kernel void scan(device float *out [[buffer(0)]], const device float *in [[buffer(1)]], uint i [[thread_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
  float x = simd_prefix_inclusive_sum(in[i]); if (lane % 3 == 0) { x += simd_max(x) * 0.1f; } out[i] = exp(x) + sin(x) / 3;
}
`;
const register = (target: Device): Device => {
  target.registerSource("execution.metal", source);
  return target;
};
beforeAll(() => {
  register(device()).pipeline("visit").dispose();
}, 120_000);

const check = (name: string, action: () => void | Promise<void>): void => {
  const done = countCase();
  test(name, async () => {
    await action();
    done();
  }, 60_000);
};
const kernelCase = (
  kernel: string,
  count: number,
  grid: Extent,
  threads: Extent,
  more: Partial<KernelCase> = {},
): KernelCase => ({
  name: kernel,
  kernel,
  out: "uint",
  grid,
  threads,
  expected: range(count, () => 1),
  ...more,
});
const size = (extent: readonly number[]): number => extent.reduce((x, y) => x * y, 1);

describe("grids", () => {
  const grids: readonly (readonly [readonly [number, number, number], readonly [number, number, number]])[] = [
    [
      [1, 1, 1],
      [1, 1, 1],
    ],
    [
      [1000, 1, 1],
      [64, 1, 1],
    ],
    [
      [1, 37, 1],
      [1, 8, 1],
    ],
    [
      [1, 1, 19],
      [1, 1, 4],
    ],
    [
      [33, 17, 1],
      [8, 8, 1],
    ],
    [
      [7, 1, 9],
      [4, 1, 4],
    ],
    [
      [13, 11, 7],
      [4, 3, 2],
    ],
    [
      [5, 5, 5],
      [10, 10, 10],
    ],
    [
      [100, 3, 2],
      [1024, 1, 1],
    ],
  ];
  for (const kernel of ["visit", "visit_barrier"]) {
    for (const [grid, threads] of grids) {
      check(
        `${kernel}: every thread of ${grid.join(" x ")} in threadgroups of ${threads.join(" x ")} runs once`,
        () => {
          const each = kernelCase(kernel, size(grid), [...grid], [...threads]);
          expect(run(device(), each)).toEqual([...each.expected]);
        },
      );
    }
    check(`${kernel}: 3 x 2 x 2 whole threadgroups of 4 x 2 x 3`, () => {
      const each = kernelCase(kernel, 12 * 24, [3, 2, 2], [4, 2, 3], { form: "threadgroups" });
      expect(run(device(), each)).toEqual([...each.expected]);
    });
  }
  for (const threads of [1, 2, 3, 31, 32, 33, 63, 64, 100, 255, 256, 512, 777, 1023, 1024]) {
    check(`barriers in threadgroups of ${threads} threads, and a partial one`, () => {
      const count = 2 * threads + Math.ceil(threads / 2);
      const each = kernelCase("reverse_group", count, count, threads, {
        threadgroupMemory: { 0: Math.ceil(threads / 4) * 16 },
      });
      const own = (group: number) => Math.min(threads, count - group * threads);
      expect(run(device(), each)).toEqual(
        range(count, (i) => {
          const group = Math.floor(i / threads);
          return group * threads + own(group) - 1 - (i % threads);
        }),
      );
    });
  }
  check("1,000,000 threadgroups of one thread", () => {
    const each = kernelCase("one_each", 1_000_000, 1_000_000, 1, { form: "threadgroups" });
    expect(run(device(), each)).toEqual(range(1_000_000, (i) => i * 3 + 1));
  });
  check("1,000,000 threadgroups of one SIMD group", () => {
    const each = kernelCase("one_each_simd", 1_000_000, 1_000_000, 32, { form: "threadgroups" });
    expect(run(device(), each)).toEqual(range(1_000_000, (i) => 496 + 32 * i));
  });
  check("threads that return before a barrier that others reach", () => {
    const each = kernelCase("early_return", 192, 192, 96, { threadgroupMemory: { 0: 400 } });
    expect(run(device(), each)).toEqual(range(192, (i) => [7, (i % 96) + 1, (i % 96) - 1][(i % 96) % 3] ?? -1));
  });
});

describe("the same bits", () => {
  const values = (count: number) => range(count, (k) => Math.fround(Math.sin(k * 12.9898) * 3));
  const cases: readonly KernelCase[] = [
    {
      name: "scan",
      kernel: "scan",
      out: "float",
      inputs: [floats(values(2048))],
      grid: 2048,
      threads: 256,
      expected: range(2048, () => 0),
    },
    {
      name: "RMS norm",
      kernel: "rmsfloat32",
      out: "float",
      inputs: [floats(values(16 * 300)), floats(values(300))],
      bytes: { 3: new Float32Array([1e-5]), 4: new Uint32Array([300]) },
      form: "threadgroups",
      grid: 16,
      threads: 96,
      expected: range(16 * 300, () => 0),
    },
    {
      name: "softmax",
      kernel: "softmax_rows",
      out: "float",
      inputs: [floats(values(8 * 500))],
      bytes: { 2: new Int32Array([500]) },
      threadgroupMemory: { 0: 128 },
      form: "threadgroups",
      grid: 8,
      threads: 256,
      expected: range(8 * 500, () => 0),
    },
    {
      name: "attention in fragments",
      kernel: "attention_float32_bd32",
      out: "float",
      inputs: [floats(values(64 * 32)), floats(values(50 * 32)), floats(values(48 * 32)), uints([64, 48, 0x3e3504f3])],
      form: "threadgroups",
      grid: 2,
      threads: 128,
      expected: range(64 * 32, () => 0),
    },
  ];
  const open = (threads: string): Device => {
    const target = register(openWith({ SOFTMETAL_THREADS: threads }));
    target.registerSource("rms_norm.metal", rmsNorm);
    target.registerSource("softmax.metal", softmax);
    target.registerSource("steel_attention.metal", steelAttention);
    return target;
  };
  const devices: Device[] = [];
  beforeAll(() => {
    devices.push(open("1"), open("2"));
  });
  afterAll(() => {
    for (const each of devices) each.dispose();
  });
  for (const each of cases) {
    check(`${each.name}: on one thread and on two, 100 times`, () => {
      const [one, two] = devices;
      if (one === undefined || two === undefined) throw new Error("no devices");
      const first = run(one, each);
      expect(first.some((x) => x !== 0 && !Number.isNaN(x))).toBe(true);
      for (let repeat = 0; repeat < 50; repeat++) {
        for (const target of [one, two]) {
          const again = run(target, each);
          const differs = again.findIndex((x, k) => !Object.is(x, first[k]));
          expect({ repeat, differs }).toEqual({ repeat, differs: -1 });
        }
      }
    });
  }
});

describe("order", () => {
  /** `set_one`, then `double_it`, on one tensor; `barrier` says whether the pass is told that they conflict. */
  const result = (order: string, barrier: boolean): number => {
    using target = register(openWith({ SOFTMETAL_ORDER: order }));
    using x = target.tensor("f32", [64]);
    using first = target.pipeline(barrier ? "set_one" : "set_one_denied");
    using second = target.pipeline(barrier ? "double_it" : "double_it_denied");
    using pass = target.pass();
    for (const pipeline of [first, second]) {
      pass.dispatch(pipeline, {
        buffers: { 0: { tensor: x, access: barrier ? "read-write" : "read" } },
        grid: 64,
        threads: 64,
      });
    }
    pass.commitAndWait();
    return x.view()[5] ?? Number.NaN;
  };
  check("dispatches with a barrier between them give one result in every order", () => {
    for (const order of ["forward", "reverse", "shuffle:1", "shuffle:2", "shuffle:3"])
      expect(result(order, true)).toBe(3);
  });
  check("a missing barrier shows in at least one order", () => {
    const results = ["forward", "reverse", "shuffle:1", "shuffle:2"].map((order) => result(order, false));
    expect(results[0]).toBe(3);
    expect(results[1]).toBe(1);
    expect(new Set(results).size).toBe(2);
  });
  check("an order that does not exist is refused", () => {
    expect(() => openWith({ SOFTMETAL_ORDER: "sideways" })).toThrow();
  });
});

// gpuTimeLimit.test.ts has what a GPU cannot end.
describe("time limits", () => {
  for (const kernel of ["endless", "endless_barrier"]) {
    check(`${kernel}: stopped, reported, and the device goes on`, async () => {
      using target = register(openWith({ SOFTMETAL_TIME_LIMIT: "0.3" }));
      using pipeline = target.pipeline(kernel);
      using fine = target.pipeline("one_each");
      using out = target.tensor("u32", [64]);
      const start = performance.now();
      using pass = target.pass();
      pass.dispatch(pipeline, { buffers: [out], grid: 64, threads: 32 });
      const error = await rejectionOf(pass.commit());
      expect(error.code).toBe("execution");
      expect(error.message).toMatch(/time/i);
      expect(error.message).toContain(kernel);
      expect(performance.now() - start).toBeLessThan(10_000);
      expect(performance.now() - start).toBeGreaterThan(250);
      expect(pass.info.state).toBe("failed");
      using next = target.pass();
      next.dispatch(fine, { buffers: [out], grid: 64, threads: 1, form: "threadgroups" });
      next.commitAndWait();
      expect(out.view()[63]).toBe(190);
    });
  }
});

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);

// A GPU does not see where lanes wait.
describe("barriers in divergent flow", () => {
  for (const kernel of ["divergent_branches", "divergent_skip", "divergent_turns"]) {
    check(`${kernel}: reported by name, and the device goes on`, async () => {
      using target = register(openWith({ SOFTMETAL_DEVICE: "cpu" }));
      using pipeline = target.pipeline(kernel);
      using fine = target.pipeline("one_each");
      using out = target.tensor("u32", [64]);
      using pass = target.pass();
      pass.dispatch(pipeline, { buffers: [out], grid: 64, threads: 64 });
      const error = await rejectionOf(pass.commit());
      expect(error.code).toBe("execution");
      expect(error.message).toContain(`'${kernel}'`);
      expect(error.message).toContain("different threadgroup barriers");
      expect(pass.info.state).toBe("failed");
      using next = target.pass();
      next.dispatch(fine, { buffers: [out], grid: 64, threads: 1, form: "threadgroups" });
      next.commitAndWait();
      expect(out.view()[63]).toBe(190);
    });
  }
  const fine = (kernel: string, expected: readonly number[]): KernelCase => ({
    ...kernelCase(kernel, 64, 64, 64, { threadgroupMemory: { 0: 256 } }),
    expected,
  });
  const legal = [
    fine(
      "own_barrier",
      range(64, (i) => i ^ 32),
    ),
    fine(
      "leaving",
      range(64, (i) => (3 * i * (i + 1)) / 2),
    ),
    fine(
      "leaving_from_within",
      // Lane i leaves in turn i + 1: in turn k, the lanes of its SIMD group that count are those from k - 1 on.
      range(64, (i) => {
        const end = i < 32 ? 32 : 64;
        const counts = range(Math.min(i + 2, 64), (k) => Math.min(32, end + 1 - k));
        return sum(counts) + (3 * i * (i + 1)) / 2;
      }),
    ),
  ];
  for (const each of legal) {
    check(`${each.kernel}: nothing to report`, () => {
      expect(run(device(), each)).toEqual([...each.expected]);
    });
  }

  check("breaking: nothing to report", () => {
    using target = register(openWith({ SOFTMETAL_DEVICE: "cpu" }));
    const expected = range(64, (i) => sum(range(Math.floor(i / 2) + 1, (k) => k)) + (2 << 16));
    expect(run(target, fine("breaking", expected))).toEqual(expected);
  });
});
