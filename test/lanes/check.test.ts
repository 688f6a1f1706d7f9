/** SOFTMETAL_CHECK=lockstep: kernels on both executors, by name where the results differ. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { plainEnvironment, runChecked } from "../helpers/run.ts";

const source = `
#include <metal_stdlib>
using namespace metal;
kernel void relies(device uint *other [[buffer(0)]], device uint *out [[buffer(1)]],
                   uint lane [[thread_index_in_simdgroup]]) {
  threadgroup uint shared[32];
  shared[lane] = lane;
  shared[lane] = shared[31 - lane] + simd_sum(1u) + 7;
  other[lane] = lane;
  out[lane] = shared[31 - lane];
}
kernel void portable(device uint *other [[buffer(0)]], device uint *out [[buffer(1)]],
                     uint lane [[thread_index_in_simdgroup]]) {
  threadgroup uint shared[32];
  shared[lane] = lane + out[lane];
  simdgroup_barrier(mem_flags::mem_threadgroup);
  out[lane] = shared[31 - lane] + simd_sum(1u);
  other[lane] = lane;
}
`;

const script = `
  import { Device } from ${JSON.stringify(join(import.meta.dir, "../../src/index.ts"))};
  using device = Device.open();
  device.registerSource("check.metal", ${JSON.stringify(source)});
  const results = ["relies", "portable"].map((name) => {
    using pipeline = device.pipeline(name);
    using other = device.tensor("u32", [32]);
    using out = device.tensor("u32", [32]).set(new Uint32Array(32).fill(100));
    using pass = device.pass();
    pass.dispatch(pipeline, { buffers: [other, out], grid: 32, threads: 32 });
    try {
      pass.commitAndWait();
      return { message: "", first: out.view()[0] };
    } catch (error) {
      return { message: error.message, first: out.view()[0] };
    }
  });
  console.log(JSON.stringify(results));`;

if (process.platform === "linux")
  test("a kernel that relies on lockstep is named with its buffer, another runs once", async () => {
    const env = { ...plainEnvironment, SOFTMETAL_EXECUTOR: undefined, SOFTMETAL_CHECK: "lockstep" };
    const output = await runChecked([process.execPath, "-e", script], { env });
    const [relies, portable] = JSON.parse(output) as { message: string; first: number }[];
    expect(relies?.message).toContain("kernel 'relies': buffer(1) out differs");
    expect(relies?.message).toContain("lockstep");
    // What the vectors left stays, and the second run begins with what was there before.
    expect(relies?.first).toBe(32 + 7);
    expect(portable).toEqual({ message: "", first: 31 + 100 + 32 });
  });
