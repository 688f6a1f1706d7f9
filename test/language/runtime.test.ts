/** What Apple's runtime refuses, with a code and both numbers; the device goes on. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Device, type DispatchOptions, type PipelineOptions, type Tensor } from "../../src/index.ts";
import { thrownBy } from "../helpers/errors.ts";
import { countCase } from "./harness.ts";

const source = `#include <metal_stdlib>
using namespace metal;
struct Params { float scale; uint count; float more[4]; };
constant uint must [[function_constant(0)]];
constant bool may [[function_constant(1)]];
kernel void fine(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) { out[i] = float(i); }
kernel void reads(device float *out [[buffer(0)]], const device float *in [[buffer(1)]], uint i [[thread_position_in_grid]]) { out[i] = in[i]; }
kernel void params(device float *out [[buffer(0)]], constant Params &p [[buffer(1)]], uint i [[thread_position_in_grid]]) { out[i] = p.scale; }
kernel void vectors(device float4 *out [[buffer(0)]], uint i [[thread_position_in_grid]]) { out[i] = float4(i); }
kernel void limited [[max_total_threads_per_threadgroup(64)]] (device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) { out[i] = 1; }
kernel void fixed_memory(device float *out [[buffer(0)]], uint i [[thread_position_in_threadgroup]]) {
  threadgroup float box[5000]; box[i] = i; threadgroup_barrier(mem_flags::mem_threadgroup); out[i] = box[i];
}
kernel void both_memories(device float *out [[buffer(0)]], threadgroup float *more [[threadgroup(0)]], uint i [[thread_position_in_threadgroup]]) {
  threadgroup float box[5000]; box[i] = i; more[i] = i; threadgroup_barrier(mem_flags::mem_threadgroup); out[i] = box[i] + more[i];
}
kernel void dynamic_memory(device float *out [[buffer(0)]], threadgroup float *box [[threadgroup(0)]], uint i [[thread_position_in_threadgroup]]) { box[i] = i; out[i] = box[i]; }
kernel void needs_constant(device float *out [[buffer(0)]]) { out[0] = must; }
kernel void ignores(device float *out [[buffer(0)]], const device float4 *unused [[buffer(1)]], constant Params &other [[buffer(2)]], uint i [[thread_position_in_grid]]) { out[i] = 5; }
kernel void checks_constant(device float *out [[buffer(0)]]) { out[0] = is_function_constant_defined(may) ? 1 : 0; }
`.replace(
  "kernel void limited [[max_total_threads_per_threadgroup(64)]] (",
  "[[kernel, max_total_threads_per_threadgroup(64)]] void limited(",
);
const tooMuch = `#include <metal_stdlib>
using namespace metal;
kernel void too_much(device float *out [[buffer(0)]], uint i [[thread_position_in_threadgroup]]) {
  threadgroup float box[9000]; box[i] = i; threadgroup_barrier(mem_flags::mem_threadgroup); out[i] = box[i];
}
`;

let device: Device;
let out: Tensor<"f32">;
beforeAll(() => {
  device = Device.open();
  device.registerSource("runtime.metal", source);
  device.registerSource("too_much.metal", tooMuch);
  out = device.tensor("f32", [64]);
  device.pipeline("fine").dispose();
}, 120_000);
afterAll(() => device.dispose());

/** One refused dispatch. */
interface Refusal {
  readonly name: string;
  readonly kernel: string;
  readonly options: () => DispatchOptions;
  readonly constants?: PipelineOptions["constants"];
  readonly code: "invalid-argument" | "buffer-too-small" | "overflow";
  readonly says: readonly (string | number)[];
}
const grid = { grid: 16, threads: 16 } as const;
const refusals: readonly Refusal[] = [
  {
    name: "a grid of no threads",
    kernel: "fine",
    options: () => ({ buffers: [out], grid: 0, threads: 16 }),
    code: "invalid-argument",
    says: ["grid", 0],
  },
  {
    name: "a grid of no threads along z",
    kernel: "fine",
    options: () => ({ buffers: [out], grid: [1, 1, 0], threads: 16 }),
    code: "invalid-argument",
    says: ["grid", 0],
  },
  {
    name: "threadgroups of no threads",
    kernel: "fine",
    options: () => ({ buffers: [out], grid: 16, threads: [16, 0, 1] }),
    code: "invalid-argument",
    says: ["threads", 0],
  },
  {
    name: "no threadgroups",
    kernel: "fine",
    options: () => ({ buffers: [out], grid: [0, 1, 1], threads: 16, form: "threadgroups" }),
    code: "invalid-argument",
    says: ["grid", 0],
  },
  {
    name: "more than 1,024 threads",
    kernel: "fine",
    options: () => ({ buffers: [out], grid: 1, threads: [64, 32] }),
    code: "invalid-argument",
    says: ["threads", 64, 32, 1024],
  },
  {
    name: "more threads than max_total_threads_per_threadgroup",
    kernel: "limited",
    options: () => ({ buffers: [out], grid: 1, threads: 65 }),
    code: "invalid-argument",
    says: ["threads", 65, 64],
  },
  {
    name: "more threads along z than the device allows",
    kernel: "fine",
    options: () => ({ buffers: [out], grid: 1, threads: [1, 1, 1025] }),
    code: "invalid-argument",
    says: [1025, 1024],
  },
  {
    name: "bytes beyond 4 KiB",
    kernel: "params",
    options: () => ({ buffers: [out], bytes: { 1: new Uint8Array(4097) }, ...grid }),
    code: "invalid-argument",
    says: [4097, 4096],
  },
  {
    name: "threadgroup memory that is no multiple of 16",
    kernel: "both_memories",
    options: () => ({ buffers: [out], threadgroupMemory: { 0: 40 }, ...grid }),
    code: "invalid-argument",
    says: [40, 16],
  },
  {
    name: "dynamic threadgroup memory beyond 32 KiB",
    kernel: "dynamic_memory",
    options: () => ({ buffers: [out], threadgroupMemory: { 0: 32784 }, ...grid }),
    code: "invalid-argument",
    says: [32784, 32768],
  },
  {
    name: "static plus dynamic threadgroup memory beyond 32 KiB",
    kernel: "both_memories",
    options: () => ({ buffers: [out], threadgroupMemory: { 0: 16384 }, ...grid }),
    code: "invalid-argument",
    says: [36384, 20000, 32768],
  },
  {
    name: "a buffer index beyond 30",
    kernel: "fine",
    options: () => ({ buffers: { 0: out, 31: out }, ...grid }),
    code: "invalid-argument",
    says: [31, 30],
  },
  {
    name: "an unbound buffer that the kernel reads",
    kernel: "reads",
    options: () => ({ buffers: [out], ...grid }),
    code: "invalid-argument",
    says: ["reads", "buffers[1]", "argument in"],
  },
  {
    name: "an unbound struct argument",
    kernel: "params",
    options: () => ({ buffers: [out], ...grid }),
    code: "invalid-argument",
    says: ["params", "buffers[1]", "argument p"],
  },
  {
    name: "no arguments at all",
    kernel: "reads",
    options: () => ({ ...grid }),
    code: "invalid-argument",
    says: ["reads", "buffers[0]", "argument out"],
  },
  {
    name: "a struct argument with fewer bytes than the struct",
    kernel: "params",
    options: () => ({ buffers: [out], bytes: { 1: new Uint8Array(8) }, ...grid }),
    code: "buffer-too-small",
    says: ["params", "bytes[1]", 8, 24],
  },
  {
    name: "a buffer shorter than the struct it is read as",
    kernel: "params",
    options: () => ({ buffers: [out, out.slice(60)], ...grid }),
    code: "buffer-too-small",
    says: ["params", "buffers[1]", 16, 24],
  },
  {
    name: "an offset that is not aligned for the argument's type",
    kernel: "vectors",
    options: () => ({ buffers: [out.slice(1, 33)], grid: 4, threads: 4 }),
    code: "invalid-argument",
    says: ["vectors", "buffers[0]", 16],
  },
  {
    name: "threadgroup memory that was not given a length",
    kernel: "both_memories",
    options: () => ({ buffers: [out], ...grid }),
    code: "invalid-argument",
    says: ["both_memories", "threadgroupMemory[0]", "argument more"],
  },
];

describe("refused", () => {
  for (const { name, kernel, options, constants, code, says } of refusals) {
    const done = countCase();
    test(name, () => {
      using pipeline = device.pipeline(kernel, { constants: [...(constants ?? [])] });
      out.view().fill(-1);
      const error = thrownBy(() => {
        using pass = device.pass();
        pass.dispatch(pipeline, options());
        pass.commitAndWait();
      });
      expect(error.code).toBe(code);
      for (const part of says) expect(error.message).toContain(String(part));
      // Nothing ran, and the device goes on.
      expect([...out.view()]).toEqual(Array.from({ length: 64 }, () => -1));
      using fine = device.pipeline("fine");
      using pass = device.pass();
      pass.dispatch(fine, { buffers: [out], grid: 64, threads: 64 });
      pass.commitAndWait();
      expect(out.view()[63]).toBe(63);
      done();
    });
  }

  const pipelineCase = (name: string, create: () => unknown, code: string, ...says: (string | number)[]): void => {
    const done = countCase();
    test(name, () => {
      const error = thrownBy(create);
      expect(error.code).toBe(code as typeof error.code);
      for (const part of says) expect(error.message).toContain(String(part));
      done();
    });
  };
  pipelineCase(
    "static threadgroup memory beyond 32 KiB",
    () => device.pipeline("too_much"),
    "shader-compilation",
    "too_much",
    36000,
    32768,
  );
  pipelineCase(
    "a function constant that is used but not set",
    () => device.pipeline("needs_constant"),
    "shader-compilation",
    "needs_constant",
    "must",
  );
  pipelineCase(
    "a function constant of another type",
    () => device.pipeline("needs_constant", { constants: [{ index: 0, dtype: "f32", value: 1 }] }),
    "shader-compilation",
    "must",
    "uint",
    "float",
  );
  pipelineCase(
    "a kernel that is not there, with those that are",
    () => device.pipeline("nothing_of_the_kind"),
    "kernel-not-found",
    "nothing_of_the_kind",
    "fine",
    "reads",
    "limited",
  );

  const encoding = countCase();
  test("encoding after the commit", () => {
    using pipeline = device.pipeline("fine");
    using pass = device.pass();
    pass.dispatch(pipeline, { buffers: [out], ...grid });
    pass.commitAndWait();
    const again = () => pass.dispatch(pipeline, { buffers: [out], ...grid });
    expect(thrownBy(again).code).toBe("invalid-state");
    expect(thrownBy(() => pass.commitAndWait()).code).toBe("invalid-state");
    encoding();
  });

  const unused = countCase();
  test("an argument that the kernel does not use needs no buffer, and any will do", () => {
    using pipeline = device.pipeline("ignores");
    for (const buffers of [[out], [out, out.slice(1, 3)]]) {
      out.view().fill(-1);
      using pass = device.pass();
      pass.dispatch(pipeline, { buffers, ...grid });
      pass.commitAndWait();
      expect(out.view()[15]).toBe(5);
    }
    unused();
  });

  const perKernel = countCase();
  test("a constant that another kernel asks for is needed all the same", () => {
    device.registerSource(
      "asks_and_uses.metal",
      `#include <metal_stdlib>
constant int option [[function_constant(9)]];
kernel void asks(device float *out [[buffer(0)]]) { out[0] = is_function_constant_defined(option) ? option : 7; }
kernel void uses(device float *out [[buffer(0)]]) { out[0] = option; }
`,
    );
    device.pipeline("asks").dispose();
    const error = thrownBy(() => device.pipeline("uses"));
    expect(error.code).toBe("shader-compilation");
    expect(error.message).toContain("option");
    device.pipeline("uses", { constants: [{ index: 9, dtype: "i32", value: 1 }] }).dispose();
    perKernel();
  });

  const optional = countCase();
  test("a constant that is only asked for may be missing", () => {
    using pipeline = device.pipeline("checks_constant");
    using pass = device.pass();
    pass.dispatch(pipeline, { buffers: [out], grid: 1, threads: 1 });
    pass.commitAndWait();
    expect(out.view()[0]).toBe(0);
    optional();
  });
});
