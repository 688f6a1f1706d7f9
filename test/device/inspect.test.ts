import { expect, test } from "bun:test";
import { Device, type DType, kvCacheCopy, MetalAttentionError, type TensorValues } from "../../src/index.ts";
import { thrownBy } from "../helpers/errors.ts";

const constants = [0, 1].map((index) => ({ index, dtype: "bool", value: false }) as const);

const tensors: readonly [DType, number[], TensorValues, string][] = [
  ["f32", [2, 2], [0.1, -1.5, Number.NaN, Number.NEGATIVE_INFINITY], "Tensor f32 [2, 2] [0.1, -1.5, NaN, -Infinity]"],
  ["bf16", [3], [1, 2, 1 / 3], "Tensor bf16 [3] [1, 2, 0.3339844]"],
  ["f16", [8], [1, 2, 3, 4, 5, 6, 7, 8], "Tensor f16 [8] [1, 2, 3, 4, 5, 6, ... 8 values]"],
  ["i32", [2], [2 ** 31 - 1, -(2 ** 31)], "Tensor i32 [2] [2147483647, -2147483648]"],
  ["u8", [1], [255], "Tensor u8 [1] [255]"],
  ["i16", [2], [-32768, 32767], "Tensor i16 [2] [-32768, 32767]"],
  ["u16", [1], [65535], "Tensor u16 [1] [65535]"],
  ["i64", [2], [-(2n ** 63n), 1], "Tensor i64 [2] [-9223372036854775808, 1]"],
  ["u64", [1], [2n ** 64n - 1n], "Tensor u64 [1] [18446744073709551615]"],
  ["bool", [2], [true, false], "Tensor bool [2] [true, false]"],
];

test.each(tensors)("a printed tensor of %s shows dtype, shape and values", (dtype, shape, values, text) => {
  using device = Device.open();
  using tensor = device.tensor(dtype, shape).set(values);
  expect(Bun.inspect(tensor)).toBe(text);
  expect(Bun.inspect([tensor])).toContain(text);
});

test("a printed slice shows its own values, and an empty one none", () => {
  using device = Device.open();
  using tensor = device.tensor("i32", [4]).set([1, 2, 3, 4]);
  expect(Bun.inspect(tensor.slice(2))).toBe("Tensor i32 [2] [3, 4]");
  expect(Bun.inspect(tensor.slice(2, 2))).toBe("Tensor i32 [0] []");
});

test("a printed device shows its name and limits", () => {
  using device = Device.open();
  const text = Bun.inspect(device);
  expect(text).toStartWith(`Device ${JSON.stringify(device.info.name)} (${device.info.backend}; `);
  expect(text).toContain("32 KiB of threadgroup memory");
  expect(text).toContain(device.info.maxThreadsPerThreadgroup.join(" x "));
});

test("a printed pass shows its state and dispatches, a pipeline its kernel", () => {
  using device = Device.open();
  using pass = device.pass();
  using src = device.tensor("f32", [1, 4]);
  using cache = device.tensor("f32", [4, 4]);
  kvCacheCopy(pass, { src, cache, writePos: 0 });
  expect(Bun.inspect(pass)).toBe("Pass (encoding, 1 dispatch)");
  pass.commitAndWait();
  expect(Bun.inspect(pass)).toMatch(/^Pass \(completed, 1 dispatch, [0-9.e-]+ ms\)$/);
  using pipeline = device.pipeline("kv_cache_copy", { constants });
  const limits = "at most 1024 threads a threadgroup, 0 bytes of threadgroup memory";
  expect(Bun.inspect(pipeline)).toBe(`Pipeline kv_cache_copy (${limits})`);
});

test("what is disposed is printed as that", () => {
  const device = Device.open();
  const tensor = device.tensor("f32", [1, 4]);
  const slice = tensor.slice(0);
  const pass = device.pass();
  const pipeline = device.pipeline("kv_cache_copy", { constants });
  tensor.dispose();
  expect(Bun.inspect(tensor)).toBe("Tensor f32 [1, 4] (disposed)");
  device.dispose();
  expect(Bun.inspect(slice)).toBe("Tensor f32 [1, 4] (disposed)");
  expect([device, pass, pipeline].map((each) => Bun.inspect(each))).toEqual([
    "Device (disposed)",
    "Pass (disposed)",
    "Pipeline kv_cache_copy (disposed)",
  ]);
  for (const each of [tensor, device, pass, pipeline]) {
    expect(() => Bun.inspect(Object.getPrototypeOf(each))).not.toThrow();
  }
});

test("an error without an argument has no line for it", () => {
  const device = Device.open();
  device.dispose();
  const error = thrownBy(() => device.info);
  expect(error.argument).toBeUndefined();
  expect(Object.keys(error)).not.toContain("argument");
  expect(Bun.inspect(error)).not.toMatch(/^\s*argument:/m);
  const named = new MetalAttentionError("overflow", "q: too large", { argument: "q" });
  expect(Bun.inspect(named)).toMatch(/^\s*argument: "q"/m);
  expect(new MetalAttentionError("overflow", "q: too large", null).argument).toBeUndefined();
});
