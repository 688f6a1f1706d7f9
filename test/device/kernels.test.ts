import { afterAll, describe, expect, test } from "bun:test";
import { Device, type DispatchOptions, kvCacheCopyBatch, type PipelineOptions, type Tensor } from "../../src/index.ts";
import { expectRefusal, thrownBy } from "../helpers/errors.ts";

const device = Device.open();
afterAll(() => device.dispose());

device.registerSource(
  "test.metal",
  `
#include <metal_stdlib>
using namespace metal;

constant float factor [[function_constant(0)]];
constant bool negate [[function_constant(1)]];
constant uint shift [[function_constant(2)]];
constant int bias [[function_constant(3)]];

/// y = factor * x + y, or its negative.
kernel void saxpy(device const float *x [[buffer(0)]], device float *y [[buffer(1)]],
                  uint i [[thread_position_in_grid]]) {
  const float sum = factor * x[i] + y[i];
  y[i] = negate ? -sum : sum;
}

/// out[i] = (i << shift) + bias + offset.
kernel void number(device int *out [[buffer(0)]], constant int &offset [[buffer(1)]],
                   uint i [[thread_position_in_grid]]) {
  out[i] = int(i << shift) + bias + offset;
}

/// Reverses each threadgroup's part of the input through threadgroup memory.
kernel void reverse(device const float *in [[buffer(0)]], device float *out [[buffer(1)]],
                    threadgroup float *tile [[threadgroup(0)]], uint i [[thread_position_in_grid]],
                    uint lane [[thread_index_in_threadgroup]], uint size [[threads_per_threadgroup]]) {
  tile[lane] = in[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = tile[size - 1 - lane];
}

/// out[z][y][x] = 100 * z + 10 * y + x.
kernel void position(device uint *out [[buffer(0)]], uint3 at [[thread_position_in_grid]],
                     uint3 size [[threads_per_grid]]) {
  out[(at.z * size.y + at.y) * size.x + at.x] = 100 * at.z + 10 * at.y + at.x;
}
`,
);

const saxpyConstants = (factor: number, negate: boolean): PipelineOptions => ({
  constants: [
    { index: 0, dtype: "f32", value: factor },
    { index: 1, dtype: "bool", value: negate },
  ],
});

/** x = 0, 1, 2, ... and y = 1000. */
function vectors(length: number): { x: Tensor<"f32">; y: Tensor<"f32"> } {
  const x = device.tensor("f32", [length]).set(Float32Array.from({ length }, (_, i) => i));
  return { x, y: device.tensor("f32", [length]).set(new Float32Array(length).fill(1000)) };
}

describe("a kernel of the caller", () => {
  test("is known by name", () => {
    for (const name of ["saxpy", "number", "reverse", "position"]) expect(device.kernelNames).toContain(name);
  });

  test("runs with buffers and function constants, each combination its own", () => {
    for (const [factor, negate] of [
      [2, false],
      [-0.5, true],
      [Number.POSITIVE_INFINITY, false],
    ] as const) {
      using pipeline = device.pipeline("saxpy", saxpyConstants(factor, negate));
      const { x, y } = vectors(1000);
      using pass = device.pass();
      pass.dispatch(pipeline, { buffers: { 0: { tensor: x, access: "read" }, 1: y }, grid: 1000, threads: 64 });
      pass.commitAndWait();
      const sign = negate ? -1 : 1;
      // As arrays: infinity * 0 is NaN, whose sign nobody defines.
      expect([...y.toFloat32Array()]).toEqual(Array.from({ length: 1000 }, (_, i) => sign * (factor * i + 1000)));
    }
  });

  test("runs at the offset of a slice", () => {
    using pipeline = device.pipeline("saxpy", saxpyConstants(1, false));
    const { x, y } = vectors(64);
    using pass = device.pass();
    pass.dispatch(pipeline, { buffers: [x.slice(32), y.slice(16, 48)], grid: [32], threads: [32] });
    pass.commitAndWait();
    const expected = Float32Array.from({ length: 64 }, (_, i) => (i >= 16 && i < 48 ? 1000 + i + 16 : 1000));
    expect(y.toFloat32Array()).toEqual(expected);
  });

  test("takes bytes, copied at the call, and integer constants", () => {
    using pipeline = device.pipeline("number", {
      constants: [
        { index: 2, dtype: "u32", value: 3 },
        { index: 3, dtype: "i32", value: -5 },
      ],
    });
    using out = device.tensor("i32", [10]);
    const offset = new Int32Array([999, 100]).subarray(1);
    using pass = device.pass();
    pass.dispatch(pipeline, { buffers: { 0: out }, bytes: { 1: offset }, grid: 10, threads: 10 });
    offset[0] = 0;
    pass.commitAndWait();
    expect([...out.view()]).toEqual(Array.from({ length: 10 }, (_, i) => 8 * i - 5 + 100));
  });

  test("uses threadgroup memory, in both dispatch forms", () => {
    using pipeline = device.pipeline("reverse");
    for (const [form, grid] of [
      ["threads", 128],
      ["threadgroups", 2],
    ] as const) {
      const { x, y } = vectors(128);
      using pass = device.pass();
      const buffers = { 0: { tensor: x, access: "read" }, 1: { tensor: y, access: "write" } } as const;
      pass.dispatch(pipeline, { buffers, threadgroupMemory: { 0: 256 }, grid, threads: 64, form });
      expect(pass.describe()).toMatchObject([
        { op: "kernel", kernel: "reverse", form, grid: [grid, 1, 1], threadsPerThreadgroup: [64, 1, 1] },
      ]);
      pass.commitAndWait();
      expect(y.toFloat32Array()).toEqual(
        Float32Array.from({ length: 128 }, (_, i) => (i < 64 ? 63 - i : 64 + 127 - i)),
      );
    }
  });

  test("covers a grid of three axes with partial threadgroups at its edges", () => {
    using pipeline = device.pipeline("position");
    using out = device.tensor("u32", [3, 5, 7]);
    using pass = device.pass();
    pass.dispatch(pipeline, { buffers: [out], grid: [7, 5, 3], threads: [4, 2, 2] });
    pass.commitAndWait();
    const expected = Array.from(
      { length: 105 },
      (_, i) => 100 * Math.floor(i / 35) + 10 * (Math.floor(i / 7) % 5) + (i % 7),
    );
    expect([...out.view()]).toEqual(expected);
  });

  test("gets a barrier only where the given accesses conflict", () => {
    using pipeline = device.pipeline("saxpy", saxpyConstants(1, false));
    const { x, y } = vectors(64);
    const { y: z } = vectors(64);
    using pass = device.pass();
    const read = { tensor: x, access: "read" } as const;
    pass.dispatch(pipeline, { buffers: [read, y], grid: 64, threads: 64 });
    pass.dispatch(pipeline, { buffers: [read, z], grid: 64, threads: 64 });
    pass.dispatch(pipeline, { buffers: [{ tensor: y, access: "read" }, z], grid: 64, threads: 64 });
    expect(pass.describe().map(({ barrierBefore }) => barrierBefore)).toEqual([false, false, true]);
    pass.commitAndWait();
    expect(z.toFloat32Array()).toEqual(Float32Array.from({ length: 64 }, (_, i) => 2 * i + 2000));
  });

  test("says what its pipeline allows", () => {
    using pipeline = device.pipeline("reverse");
    expect(pipeline.kernel).toBe("reverse");
    expect(pipeline.info).toEqual({
      maxTotalThreadsPerThreadgroup: 1024,
      threadExecutionWidth: 32,
      staticThreadgroupMemoryLength: 0,
    });
  });
});

describe("refused", () => {
  test("unknown kernels, with the known names", () => {
    const near = "did you mean saxpy?";
    expectRefusal(() => device.pipeline("saxpi"), "kernel-not-found", "kernel", '"saxpi"', near, "kv_cache_copy");
    const none = thrownBy(() => device.pipeline("nothing_like_it"));
    expect(none.message).not.toContain("did you mean");
    expect(none.message).toContain("saxpy");
  });

  test("source that does not compile, with the line at fault", () => {
    using other = Device.open();
    other.registerSource(
      "broken.metal",
      "#include <metal_stdlib>\nusing namespace metal;\nkernel void broken(device float *x [[buffer(0)]]) {\n  x[0] = nothing;\n}\n",
    );
    const error = thrownBy(() => other.pipeline("broken"));
    expect(error.code).toBe("shader-compilation");
    expect(error.message).toContain("broken.metal");
    expect(error.message).toContain("nothing");
    expect(other.pipeline("kv_cache_copy", { constants: copyConstants }).kernel).toBe("kv_cache_copy");
  });

  const copyConstants = [
    { index: 0, dtype: "bool", value: false },
    { index: 1, dtype: "bool", value: false },
  ] as const satisfies PipelineOptions["constants"];

  test("kernel names that are taken", () => {
    const source = "#include <metal_stdlib>\nkernel void saxpy(device float *x [[buffer(0)]]) { x[0] = 1; }";
    const error = thrownBy(() => device.registerSource("again.metal", source));
    expect(error.code).toBe("invalid-argument");
    expect(error.message).toContain("saxpy");
  });

  describe("kernels that have the names of built-in ones", () => {
    const body = "(device float *x [[buffer(0)]], uint i [[thread_position_in_grid]]) { x[i] = 42; }";
    const copyConstants: PipelineOptions = {
      constants: [
        { index: 0, dtype: "bool", value: false },
        { index: 1, dtype: "bool", value: false },
      ],
    };
    const first = (own: Device): number | undefined => {
      using pipeline = own.pipeline("kv_cache_copy_batch_f32");
      using x = own.tensor("f32", [4]);
      using pass = own.pass();
      pass.dispatch(pipeline, { buffers: [x], grid: 4, threads: 4 });
      pass.commitAndWait();
      return x.toFloat32Array()[0];
    };
    const sources = {
      "in the text": `kernel void kv_cache_copy_batch_f32${body}`,
      "by a macro": `#define MAKE(form) kernel void kv_cache_copy_##form${body}\nMAKE(batch_f32)`,
      "by a host name": `[[host_name("kv_cache_copy_batch_f32")]] kernel void other${body}`,
      "by a host name that a macro makes": `#define NAME(x) "kv_cache_copy_" #x\ntemplate <typename T> kernel void k(device T *x [[buffer(0)]], uint i [[thread_position_in_grid]]) { x[i] = 42; }\ntemplate [[host_name(NAME(batch_f32))]] kernel void k<float>(device float *, uint);`,
    };
    for (const [form, source] of Object.entries(sources)) {
      test(form, () => {
        using own = Device.open();
        // The built-in kernel may have been asked for before.
        own.pipeline("kv_cache_copy_batch_f32", copyConstants).dispose();
        own.registerSource("own.metal", `#include <metal_stdlib>\nusing namespace metal;\n${source}\n`);
        expect(first(own)).toBe(42);
        expect(own.kernelNames.filter((name) => name === "kv_cache_copy_batch_f32")).toHaveLength(1);
        // Operations have the library's.
        using cache = own.tensor("f32", [1, 4, 8]);
        using tokens = own.tensor("f32", [1, 8]).set(new Float32Array(8).fill(7));
        using pass = own.pass();
        kvCacheCopyBatch(pass, { src: tokens, cache, seqPos: 0 });
        pass.commitAndWait();
        expect(cache.toFloat32Array()[0]).toBe(7);
      });
    }
  });

  test("names and sources that are no text", () => {
    for (const text of ["", "a\0b", undefined, null, 1, {}]) {
      expectRefusal(() => device.registerSource(text as string, "source"), "invalid-argument", "name");
      expectRefusal(() => device.registerSource("name", text as string), "invalid-argument", "source");
      expectRefusal(() => device.pipeline(text as string), "invalid-argument", "kernel");
    }
  });

  test("constants that do not fit their type", () => {
    const constants: unknown[] = [
      { index: 0, dtype: "bool", value: 1 },
      { index: 0, dtype: "u8", value: 256 },
      { index: 0, dtype: "i8", value: -129 },
      { index: 0, dtype: "u32", value: -1 },
      { index: 0, dtype: "u32", value: 0.5 },
      { index: 0, dtype: "i32", value: 2 ** 31 },
      { index: 0, dtype: "f32", value: "1" },
      { index: 0, dtype: "f32", value: 1n },
      { index: 0, dtype: "bf16", value: true },
      { index: 0, dtype: "f64", value: 1 },
      { index: 0, dtype: "u16", value: 65_536 },
      { index: 0, dtype: "i16", value: -32_769 },
      { index: 0, dtype: "u64", value: -1 },
      { index: 0, dtype: "u64", value: 2n ** 64n },
      { index: 0, dtype: "u64", value: 2 ** 53 },
      { index: 0, dtype: "i64", value: -(2n ** 63n) - 1n },
      { index: 0, dtype: "i64", value: 0.5 },
      { index: 0, dtype: "f32", value: [] },
      { index: 0, dtype: "f32", value: [1] },
      { index: 0, dtype: "f32", value: [1, 2, 3, 4, 5] },
      { index: 0, dtype: "f32", value: new Array(3) },
      { index: 0, dtype: "u8", value: [0, 256] },
      { index: 0, dtype: "bool", value: [true, 1] },
      { index: 0, dtype: "u64", value: [1n, [2n]] },
      { index: -1, dtype: "f32", value: 1 },
      { index: 65_536, dtype: "f32", value: 1 },
      { index: Number.NaN, dtype: "f32", value: 1 },
      { dtype: "f32", value: 1 },
      { index: 0, dtype: "f32", value: 1, name: "factor" },
      null,
      1,
    ];
    for (const constant of constants) {
      const create = () => device.pipeline("saxpy", { constants: [constant] } as PipelineOptions);
      const error = thrownBy(create);
      expect(error.code).toBe("invalid-argument");
      expect(error.argument).toStartWith("options.constants.0");
    }
    expectRefusal(() => device.pipeline("saxpy", null as unknown as PipelineOptions), "invalid-argument", "options");
  });

  const twin = device.pipeline("saxpy", saxpyConstants(1, false));
  const pipeline = device.pipeline("saxpy", saxpyConstants(1, false));
  const { x, y } = vectors(64);
  const valid: DispatchOptions = { buffers: [x, y], grid: 64, threads: 64 };

  /** Refused by name; nothing encoded, and the pass still takes the valid dispatch. */
  function refuses(options: object, argument: string, ...parts: (string | number)[]): void {
    using pass = device.pass();
    const dispatch = () => pass.dispatch(pipeline, { ...valid, ...options } as DispatchOptions);
    expectRefusal(dispatch, "invalid-argument", argument, ...parts);
    expect(pass.describe()).toEqual([]);
    pass.dispatch(pipeline, valid);
    expect(pass.describe().length).toBe(1);
  }

  test("dispatches whose sizes are none", () => {
    for (const bad of [undefined, null, Number.NaN, -1, 0.5, 2 ** 32, "64", 1n, {}]) {
      refuses({ grid: bad }, "grid");
      refuses({ threads: bad }, "threads");
      refuses({ grid: [64, bad ?? null] }, "grid");
    }
    refuses({ grid: [] }, "grid", 0);
    refuses({ grid: [1, 1, 1, 1] }, "grid", 4);
    refuses({ grid: 0 }, "grid");
    refuses({ threads: 0 }, "threads");
    refuses({ threads: 1025 }, "threads", 1025, 1024);
    refuses({ threads: [64, 64] }, "threads", 64, 1024);
    for (const form of ["thread", 0, null]) refuses({ form }, "form");
  });

  test("dispatches whose arguments are none", () => {
    for (const bad of [undefined, null, 1, "x", {}, new Float32Array(64), device]) {
      using pass = device.pass();
      const dispatch = () => pass.dispatch(pipeline, { ...valid, buffers: { 0: x, 1: bad as Tensor } });
      expectRefusal(dispatch, "invalid-argument", "buffers[1]");
    }
    refuses({ buffers: { 0: x, 1: { tensor: y, access: "rw" } } }, "buffers[1].access");
    refuses({ buffers: { 0: x, 1: y, 31: y } }, "buffers[31]", 31, 30);
    refuses({ buffers: { 0: x, y } }, "buffers[y]");
    refuses({ buffers: 1 }, "buffers");
    refuses({ bytes: { 2: [1] } }, "bytes[2]");
    refuses({ bytes: { 2: 1 } }, "bytes[2]");
    refuses({ bytes: { 2: new Uint8Array() } }, "bytes[2]");
    refuses({ bytes: { 2: new Uint8Array(4097) } }, "bytes[2]", 4097, 4096);
    refuses({ bytes: { 1: new Uint8Array(4) } }, "bytes[1]");
    refuses({ threadgroupMemory: { 0: 8 } }, "threadgroupMemory[0]", 8, 16);
    refuses({ threadgroupMemory: { 0: -16 } }, "threadgroupMemory[0]");
    for (const key of ["00", "1.5", "-1", " ", "0x1", "1e0"]) refuses({ buffers: { [key]: y } }, `buffers[${key}]`, 30);
  });

  test("names that dispatch does not know, with the nearest that it does", () => {
    refuses({ buffer: { 0: x } }, "buffer", "did you mean buffers?");
    refuses({ bytess: {} }, "bytess", "did you mean bytes?");
    refuses({ threadgroupmemory: {} }, "threadgroupmemory", "did you mean threadgroupMemory?");
    refuses({ gird: 64 }, "gird", "did you mean grid?");
    refuses({ label: "a" }, "label", "it takes buffers, bytes, uses, threadgroupMemory, grid, threads, form");
    refuses({ buffers: { 0: { tensor: x, acess: "read" }, 1: y } }, "buffers[0].acess", "did you mean access?");
    refuses({ buffers: { 0: { tenser: x }, 1: y } }, "buffers[0].tenser", "did you mean tensor?");
    class Read {
      readonly tensor = x;
      readonly acess = "read";
    }
    for (const made of [new Read(), Object.assign(Object.create(null), new Read()), Object.create(new Read())]) {
      refuses({ buffers: { 0: made, 1: y } }, "buffers[0].acess", "did you mean access?");
    }
  });

  test("arguments that the kernel does not have, and those that it lacks, by their names", () => {
    refuses({ buffers: [x, y, x] }, "buffers[2]", "saxpy has no argument buffer(2)", "buffer(0) x, buffer(1) y");
    refuses({ bytes: { 3: new Uint8Array(4) } }, "bytes[3]", "no argument buffer(3)");
    refuses({ threadgroupMemory: { 0: 16 } }, "threadgroupMemory[0]", "no argument threadgroup(0)");
    refuses({ buffers: [x] }, "buffers[1]", "argument y of kernel saxpy is missing");
    refuses({ buffers: { 1: y } }, "buffers[0]", "argument x of kernel saxpy is missing");
    refuses({ buffers: undefined }, "buffers[0]", "argument x of kernel saxpy is missing");
    using reverse = device.pipeline("reverse");
    using pass = device.pass();
    const message = "argument tile of kernel reverse is missing";
    expectRefusal(() => pass.dispatch(reverse, valid), "invalid-argument", "threadgroupMemory[0]", message);
    expect(pass.describe()).toEqual([]);
  });

  test("an access that leaves out what the kernel may do", () => {
    refuses({ buffers: [x, { tensor: y, access: "read" }] }, "buffers[1]", "argument y of kernel saxpy");
    using number = device.pipeline("number", {
      constants: [
        { index: 2, dtype: "u32", value: 0 },
        { index: 3, dtype: "i32", value: 0 },
      ],
    });
    using pass = device.pass();
    const bytes = { 0: new Int32Array(4), 1: new Int32Array(1) };
    const written = () => pass.dispatch(number, { bytes, grid: 4, threads: 4 });
    expectRefusal(written, "invalid-argument", "bytes[0]", "argument out of kernel number", "lost");
    using out = device.tensor("i32", [4]);
    const short = { buffers: [out], bytes: { 1: new Uint8Array(3) }, grid: 4, threads: 4 };
    expectRefusal(() => pass.dispatch(number, short), "buffer-too-small", "bytes[1]", "3 bytes", "offset", 4);
    expect(pass.describe()).toEqual([]);
  });

  test("a dispatch from a getter of another's arguments leaves both whole", () => {
    using out = device.tensor("i32", [2, 4]);
    using number = device.pipeline("number", {
      constants: [
        { index: 2, dtype: "u32", value: 0 },
        { index: 3, dtype: "i32", value: 0 },
      ],
    });
    using pass = device.pass();
    const dispatch = (row: number, offset: number, before: () => void) =>
      pass.dispatch(number, {
        buffers: [out.slice(row, row + 1)],
        bytes: { 1: new Int32Array([offset]) },
        get threadgroupMemory() {
          before();
          return {};
        },
        grid: 4,
        threads: 4,
      });
    dispatch(0, 100, () => dispatch(1, 200, () => {}));
    pass.commitAndWait();
    expect([...out.view()]).toEqual([100, 101, 102, 103, 200, 201, 202, 203]);
  });

  test("more threadgroup memory than the device has, with both numbers", () => {
    using pass = device.pass();
    using reverse = device.pipeline("reverse");
    const error = thrownBy(() => pass.dispatch(reverse, { ...valid, threadgroupMemory: { 0: 32_784 } }));
    expect(error.code).toBe("invalid-argument");
    expect(error.message).toContain("32784");
    expect(error.message).toContain("32768");
    expect(pass.describe()).toEqual([]);
  });

  test("dispatches of what is no pipeline, is disposed, or of another device", () => {
    using pass = device.pass();
    for (const bad of [undefined, null, 1, {}, x, device]) {
      const dispatch = () => pass.dispatch(bad as typeof pipeline, valid);
      expectRefusal(dispatch, "invalid-argument", "pipeline");
    }
    const gone = device.pipeline("reverse");
    gone.dispose();
    gone.dispose();
    expectRefusal(() => pass.dispatch(gone, valid), "disposed", "pipeline");
    using other = Device.open();
    const foreign = other.pipeline("kv_cache_copy", { constants: [...copyConstants] });
    expectRefusal(() => pass.dispatch(foreign, valid), "invalid-handle", "pipeline");
    using foreignTensor = other.tensor("f32", [64]);
    const dispatch = () => pass.dispatch(pipeline, { ...valid, buffers: [x, foreignTensor] });
    expectRefusal(dispatch, "invalid-handle", "buffers[1]");
    expect(pass.describe()).toEqual([]);
  });

  test("a pipeline outlives another one of the same kernel and constants", () => {
    twin.dispose();
    using pass = device.pass();
    pass.dispatch(pipeline, valid);
    pass.commitAndWait();
    expect(pass.info.state).toBe("completed");
  });
});
