import { describe, expect, test } from "bun:test";
import { Device, type DeviceOptions, type PassOptions, type PipelineOptions } from "../../src/index.ts";
import { expectRefusal, thrownBy } from "../helpers/errors.ts";

describe("a device", () => {
  test("says what it is", () => {
    using device = Device.open();
    const { info } = device;
    expect(info.name.length).toBeGreaterThan(0);
    expect(info.backend).toBe(process.platform === "darwin" ? "Metal" : "SoftMetal");
    expect(info.maxBufferLength).toBeGreaterThanOrEqual(2 ** 28);
    expect(info.maxThreadgroupMemoryLength).toBe(32_768);
    expect(info.maxThreadsPerThreadgroup[0]).toBe(1024);
    expect(info.simdWidth).toBe(32);
    expect(info.hasUnifiedMemory).toBe(true);
  });

  test("counts the memory of its tensors", () => {
    using device = Device.open();
    const before = device.info.currentAllocatedSize;
    using tensor = device.tensor("f32", [1 << 16]);
    expect(device.info.currentAllocatedSize - before).toBeGreaterThanOrEqual(tensor.byteLength);
  });

  test("names its kernels", () => {
    using device = Device.open();
    const names = device.kernelNames;
    for (const kernel of ["kv_cache_copy", "kv_cache_copy_seq_f32_kv_dual", "flash_attn_prefill_bf16_d256"]) {
      expect(names).toContain(kernel);
    }
    expect(new Set(names).size).toBe(names.length);
  });

  test("refuses every use once disposed, and a second dispose does nothing", () => {
    const device = Device.open();
    device.dispose();
    device.dispose();
    expect(device.disposed).toBe(true);
    const uses = [
      () => device.info,
      () => device.tensor("f32", [1]),
      () => device.pass(),
      () => device.kernelNames,
      () => device.registerSource("a", "b"),
      () => device.pipeline("kv_cache_copy"),
    ];
    for (const use of uses) expect(thrownBy(use).code).toBe("disposed");
  });

  test("is independent of others", () => {
    using first = Device.open();
    const second = Device.open();
    using tensor = first.tensor("f32", [2]);
    second.dispose();
    tensor.set([1, 2]);
    expect([...tensor.toFloat32Array()]).toEqual([1, 2]);
  });
});

describe("options", () => {
  test("of open: an unknown or malformed one is refused", () => {
    expectRefusal(
      () => Device.open({ libary: "x" } as DeviceOptions),
      "invalid-argument",
      "options.libary",
      "did you mean library?",
    );
    for (const library of [1, "", null]) {
      const open = () => Device.open({ library } as unknown as DeviceOptions);
      expectRefusal(open, "invalid-argument", "options.library");
    }
    for (const kernels of [import.meta.path, "/nope.tar", "/dev/null"]) {
      expectRefusal(() => Device.open({ kernels }), "invalid-argument", "options.kernels");
    }
    expectRefusal(() => Device.open(null as unknown as DeviceOptions), "invalid-argument", "options");
  });

  test("of pipeline: an unknown one is refused, at any depth", () => {
    using device = Device.open();
    const options = { constant: [] } as PipelineOptions;
    const misspelt = () => device.pipeline("kv_cache_copy", options);
    expectRefusal(misspelt, "invalid-argument", "options.constant", "did you mean constants?");
    const constants = [{ index: 0, dtype: "f32", values: 1, value: 1 }] as unknown as PipelineOptions["constants"];
    const nested = () => device.pipeline("kv_cache_copy", { constants });
    expectRefusal(nested, "invalid-argument", "options.constants.0.values", "did you mean value?");
  });

  test("of pass: an unknown or malformed one is refused", () => {
    using device = Device.open();
    for (const mode of ["fast", 1, null]) {
      const open = () => device.pass({ mode } as unknown as PassOptions);
      expectRefusal(open, "invalid-argument", "options.mode");
    }
    const misspelt = () => device.pass({ modes: 1 } as PassOptions);
    expectRefusal(misspelt, "invalid-argument", "options.modes", "did you mean mode?");
    expectRefusal(() => device.pass("serial" as PassOptions), "invalid-argument", "options");
  });
});
