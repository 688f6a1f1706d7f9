import { afterAll, describe, expect, test } from "bun:test";
import { runInNewContext } from "node:vm";
import { Device, type DType, dtypeSize, float32ToBfloat16, float32ToFloat16 } from "../../src/index.ts";
import { expectRefusal, thrownBy } from "../helpers/errors.ts";
import { seededRandom } from "../helpers/random.ts";

const device = Device.open();
afterAll(() => device.dispose());

/** For each dtype: values that it holds exactly, and their bytes, least significant first. */
const exact: Readonly<Record<DType, { readonly values: readonly number[]; readonly bytes: readonly number[] }>> = {
  f32: { values: [1, -2.5, 2 ** -149], bytes: [0, 0, 0x80, 0x3f, 0, 0, 0x20, 0xc0, 1, 0, 0, 0] },
  f16: { values: [1, -2.5, 2 ** -24], bytes: [0, 0x3c, 0, 0xc1, 1, 0] },
  bf16: { values: [1, -2.5, 2 ** -133], bytes: [0x80, 0x3f, 0x20, 0xc0, 1, 0] },
  u8: { values: [0, 1, 255], bytes: [0, 1, 255] },
  i8: { values: [-128, -1, 127], bytes: [0x80, 0xff, 0x7f] },
  u16: { values: [0, 1, 0xfffe], bytes: [0, 0, 1, 0, 0xfe, 0xff] },
  i16: { values: [-2, 1, 0x7fff], bytes: [0xfe, 0xff, 1, 0, 0xff, 0x7f] },
  u32: { values: [0, 1, 0x0403_0200], bytes: [0, 0, 0, 0, 1, 0, 0, 0, 0, 2, 3, 4] },
  i32: { values: [-2, 1, 0x0403_0200], bytes: [0xfe, 0xff, 0xff, 0xff, 1, 0, 0, 0, 0, 2, 3, 4] },
  u64: {
    values: [0, 1, 0x0403_0200 * 2 ** 16],
    bytes: [0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 3, 4, 0, 0],
  },
  i64: {
    values: [-2, 1, -0x0403_0200 * 2 ** 16],
    bytes: [0xfe, ...Array<number>(7).fill(0xff), 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xfe, 0xfc, 0xfb, 0xff, 0xff],
  },
  bool: { values: [0, 1, 1], bytes: [0, 1, 1] },
};
const dtypes = Object.keys(exact) as DType[];

describe.each(dtypes)("a tensor of %s", (dtype) => {
  const { values, bytes } = exact[dtype];

  test("is zero-filled", () => {
    using tensor = device.tensor(dtype, [5, 7]);
    expect(tensor.bytes).toEqual(new Uint8Array(35 * dtypeSize(dtype)));
    expect(tensor.toFloat32Array()).toEqual(new Float32Array(35));
  });

  test("knows its shape and sizes", () => {
    using tensor = device.tensor(dtype, [3, 1, 2]);
    expect([tensor.dtype, tensor.shape, tensor.length, tensor.byteOffset]).toEqual([dtype, [3, 1, 2], 6, 0]);
    expect(tensor.byteLength).toBe(6 * dtypeSize(dtype));
    expect(() => (tensor.shape as number[]).push(1)).toThrow();
  });

  test("takes values from an array and a Float32Array, byte for byte", () => {
    for (const source of [[...values], new Float32Array(values)]) {
      using tensor = device.tensor(dtype, [3]);
      tensor.set(source);
      expect([...tensor.bytes]).toEqual([...bytes]);
      expect([...tensor.toFloat32Array()]).toEqual(values.map(Math.fround));
    }
  });

  test("shows the same memory through its views", () => {
    using tensor = device.tensor(dtype, [3]);
    const view = tensor.view();
    expect([view.length, view.BYTES_PER_ELEMENT]).toEqual([3, dtypeSize(dtype)]);
    tensor.bytes.set(bytes);
    expect([...tensor.toFloat32Array()]).toEqual(values.map(Math.fround));
    expect(view.buffer).toBe(tensor.bytes.buffer);
    if (view instanceof BigInt64Array || view instanceof BigUint64Array) view[0] = 0n;
    else view[0] = 0;
    expect([...tensor.bytes.subarray(0, dtypeSize(dtype))]).toEqual(new Array(dtypeSize(dtype)).fill(0));
  });

  test("shares memory with its slices and reshapes, each at its own offset", () => {
    using tensor = device.tensor(dtype, [4, 3]);
    using slice = tensor.slice(1, 3);
    using inner = slice.slice(1);
    using flat = slice.reshape([6]);
    expect([slice.shape, inner.shape, flat.shape]).toEqual([[2, 3], [1, 3], [6]]);
    expect([slice.byteOffset, inner.byteOffset, flat.byteOffset]).toEqual(
      [3, 6, 3].map((elements) => elements * dtypeSize(dtype)),
    );
    inner.set([...values]);
    const none = [0, 0, 0];
    const kept = values.map(Math.fround);
    expect([...tensor.toFloat32Array()]).toEqual([...none, ...none, ...kept, ...none]);
    expect([...flat.toFloat32Array()]).toEqual([...none, ...kept]);
    expect([...inner.bytes]).toEqual([...bytes]);
    expect(inner.view().length).toBe(3);
  });

  test("refuses a count that is not its length, and keeps its values", () => {
    using tensor = device.tensor(dtype, [3]);
    tensor.set([...values]);
    const detached = new Float32Array(3);
    detached.buffer.transfer();
    for (const source of [[], [1, 1], [1, 1, 1, 1], new Float32Array(2), detached]) {
      expectRefusal(() => tensor.set(source), "invalid-argument", "values", 3, source.length);
    }
    expect([...tensor.bytes]).toEqual([...bytes]);
  });

  test("refuses an array whose memory is gone, also where any number of values will do", () => {
    using tensor = device.tensor(dtype, [3]).set([...values]);
    const source = new Float32Array(2);
    source.buffer.transfer();
    expectRefusal(() => tensor.set(source, 0), "invalid-argument", "values", "transferred");
    expect([...tensor.bytes]).toEqual([...bytes]);
  });

  test("compares lengths before it reads any value", () => {
    using tensor = device.tensor(dtype, [3]);
    const source = Object.defineProperty([1, 1], 0, {
      get: () => {
        throw new RangeError("read");
      },
    });
    expectRefusal(() => tensor.set(source), "invalid-argument", "values", 3, 2);
  });

  test("names values that have no text", () => {
    using tensor = device.tensor(dtype, [1]);
    for (const value of [Object.create(null), [Symbol("s")]]) {
      expectRefusal(() => tensor.set([value]), "invalid-argument", "values", "values[0]", "got an");
    }
  });

  test("takes typed arrays of other realms for what they are", () => {
    using tensor = device.tensor(dtype, [3]);
    tensor.set(runInNewContext("Float64Array.of(1, 0, 1)"));
    expect([...tensor.toFloat32Array()]).toEqual([1, 0, 1]);
    const big = () => tensor.set(runInNewContext("BigInt64Array.of(0n, 1n, 0n)"));
    if (dtype === "u64" || dtype === "i64") expect([...big().toFloat32Array()]).toEqual([0, 1, 0]);
    else expectRefusal(big, "invalid-argument", "values");
    expectRefusal(() => tensor.set(runInNewContext("new DataView(new ArrayBuffer(3))")), "invalid-argument", "values");
  });

  test("takes a typed array's own elements, whatever iterator it was given", () => {
    using tensor = device.tensor(dtype, [3]);
    const source = Float64Array.of(1, 0, 1);
    Object.defineProperty(source, Symbol.iterator, { value: () => [9, 9, 9, 9].values() });
    tensor.set(source);
    expect([...tensor.toFloat32Array()]).toEqual([1, 0, 1]);
  });

  test("refuses what is no array of numbers, and keeps its values", () => {
    using tensor = device.tensor(dtype, [3]);
    tensor.set([...values]);
    const sources: unknown[] = [
      undefined,
      null,
      3,
      "abc",
      { length: 3 },
      new DataView(new ArrayBuffer(3)),
      new ArrayBuffer(12),
      ...(dtype === "u64" || dtype === "i64"
        ? [
            [1, 1.5, 0],
            [1, 2 ** 53, 0],
          ]
        : [new BigInt64Array(3), [1, 1n, 0]]),
      [1, "1", 0],
      [1, undefined, 0],
      [1, null, 0],
      [1, {}, 0],
      new Array(3),
      tensor,
    ];
    for (const source of sources) {
      expectRefusal(() => tensor.set(source as number[]), "invalid-argument", "values");
    }
    expect([...tensor.bytes]).toEqual([...bytes]);
  });
});

describe("conversion on the way in and out", () => {
  const random = seededRandom(1);
  const floats = Float32Array.from({ length: 4096 }, () => (random() - 0.5) * 2 ** Math.floor(random() * 40 - 20));

  test("f16 and bf16 round as the conversion functions do, which have tests of their own", () => {
    using half = device.tensor("f16", [4096]);
    using brain = device.tensor("bf16", [4096]);
    half.set(floats);
    brain.set(floats);
    const view = half.view();
    expect(new Uint16Array(view.buffer, view.byteOffset, view.length)).toEqual(float32ToFloat16(floats));
    expect(brain.view()).toEqual(float32ToBfloat16(floats));
  });

  test("numbers round to f32 first: an array gives what a Float32Array of it gives", () => {
    // Just above the midpoint of 1 and the next f16, but on it as a float: the even one, 1, wins.
    const value = 1 + 2 ** -11 + 2 ** -40;
    using half = device.tensor("f16", [2]);
    half.set([value, -value]);
    expect([...half.toFloat32Array()]).toEqual([1, -1]);
  });

  test("infinities and NaN come through every float type", () => {
    for (const dtype of ["f32", "f16", "bf16"] as const) {
      using tensor = device.tensor(dtype, [3]);
      tensor.set([Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.NaN]);
      expect([...tensor.toFloat32Array()]).toEqual([Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.NaN]);
    }
  });

  test("a view into a larger array is read from its own start", () => {
    using tensor = device.tensor("bf16", [2]);
    tensor.set(Float32Array.of(9, 1, 2, 9).subarray(1, 3));
    expect([...tensor.toFloat32Array()]).toEqual([1, 2]);
  });

  test("integers of 64 bits come as bigints, from arrays and typed arrays, up to their limits", () => {
    using signed = device.tensor("i64", [3]);
    using unsigned = device.tensor("u64", [3]);
    const [least, most] = [-(2n ** 63n), 2n ** 63n - 1n];
    for (const source of [[least, -1, most], BigInt64Array.of(least, -1n, most)]) {
      expect([...signed.set(source).view()]).toEqual([least, -1n, most]);
    }
    for (const source of [[0, 2n ** 64n - 1n, 7], BigUint64Array.of(0n, 2n ** 64n - 1n, 7n)]) {
      expect([...unsigned.set(source).view()]).toEqual([0n, 2n ** 64n - 1n, 7n]);
    }
    expectRefusal(() => unsigned.set(BigInt64Array.of(1n, -1n, 0n)), "invalid-argument", "values", "values[1]", "-1");
    expectRefusal(() => signed.set(BigUint64Array.of(1n, 0n, 2n ** 63n)), "invalid-argument", "values", "values[2]");
    expectRefusal(() => signed.set([0, 0, 2n ** 63n]), "invalid-argument", "values", "values[2]");
    expect([...unsigned.view()]).toEqual([0n, 2n ** 64n - 1n, 7n]);
    // A part of its own memory, moved.
    unsigned.set(unsigned.view().subarray(1), 0);
    expect([...unsigned.view()]).toEqual([2n ** 64n - 1n, 7n, 7n]);
  });

  test("a float of an integer of 64 bits is rounded once", () => {
    using tensor = device.tensor("i64", [4]);
    // Just above the midpoint of two floats, which a double rounds to it.
    const above = 2n ** 60n + 2n ** 36n + 1n;
    tensor.set([above, -above, above - 1n, 2n ** 63n - 1n]);
    const up = 2 ** 60 + 2 ** 37;
    expect([...tensor.toFloat32Array()]).toEqual([up, -up, 2 ** 60, 2 ** 63]);
  });

  test("integer types refuse what they cannot hold, by index", () => {
    const cases: readonly (readonly [DType, number | boolean])[] = [
      ["u8", 256],
      ["u8", -1],
      ["u8", 0.5],
      ["u8", true],
      ["i8", 128],
      ["i8", -129],
      ["u32", 2 ** 32],
      ["u32", -1],
      ["i32", 2 ** 31],
      ["i32", -(2 ** 31) - 1],
      ["i32", Number.NaN],
      ["i32", Number.POSITIVE_INFINITY],
      ["bool", 2],
      ["bool", Number.NaN],
    ];
    for (const [dtype, value] of cases) {
      using tensor = device.tensor(dtype, [2]);
      tensor.set([1, 1]);
      expectRefusal(() => tensor.set([0, value] as number[]), "invalid-argument", "values", "values[1]", String(value));
      expect([...tensor.toFloat32Array()]).toEqual([1, 1]);
    }
  });

  test("bool takes booleans", () => {
    using tensor = device.tensor("bool", [3]);
    tensor.set([true, false, true]);
    expect([...tensor.bytes]).toEqual([1, 0, 1]);
  });

  test("u32 and i32 keep every bit", () => {
    using unsigned = device.tensor("u32", [2]);
    unsigned.set([0xffff_ffff, 0x8000_0001]);
    expect([...unsigned.view()]).toEqual([0xffff_ffff, 0x8000_0001]);
    using signed = device.tensor("i32", [2]);
    signed.set([-0x8000_0000, 0x7fff_ffff]);
    expect([...signed.view()]).toEqual([-0x8000_0000, 0x7fff_ffff]);
  });
});

describe("set with an offset", () => {
  test.each(["f32", "f16", "bf16", "u8", "i32", "bool"] as const)(
    "writes so many elements of %s and no other",
    (dtype) => {
      using tensor = device.tensor(dtype, [2, 3]).set([1, 0, 1, 0, 1, 0]);
      tensor.set([1, 1], 3);
      expect([...tensor.toFloat32Array()]).toEqual([1, 0, 1, 1, 1, 0]);
      using row = tensor.slice(1);
      row.set([0], 1).set([], 3);
      expect([...tensor.toFloat32Array()]).toEqual([1, 0, 1, 1, 0, 0]);
      tensor.set(tensor.view().subarray(0, 3), 1);
      if (dtype !== "bf16") expect([...tensor.toFloat32Array()]).toEqual([1, 1, 0, 1, 0, 0]);
    },
  );

  test("refuses what leaves the tensor, and keeps its values", () => {
    using tensor = device.tensor("f32", [2, 2]).set([1, 2, 3, 4]);
    expectRefusal(() => tensor.set([5, 6], 3), "invalid-argument", "values", "2 values from element 3", "length 4");
    for (const offset of [-1, 0.5, 5, Number.NaN, "1"]) {
      expectRefusal(() => tensor.set([5], offset as number), "invalid-argument", "offset", "from 0 to the length 4");
    }
    expectRefusal(() => tensor.set([5, "x"] as never, 1), "invalid-argument", "values");
    expect([...tensor.view()]).toEqual([1, 2, 3, 4]);
  });
});

describe("values from the tensor's own memory", () => {
  test.each(["f32", "f16", "i32", "u8"] as const)("of %s are read before they are written", (dtype) => {
    using device = Device.open();
    using tensor = device.tensor(dtype, [5]).set([1, 2, 3, 4, 5]);
    tensor.slice(1).set(tensor.view().subarray(0, 4));
    expect([...tensor.toFloat32Array()]).toEqual([1, 1, 2, 3, 4]);
    tensor.slice(0, 4).set(tensor.view().subarray(1));
    expect([...tensor.toFloat32Array()]).toEqual([1, 2, 3, 4, 4]);
  });

  test("as floats over a bf16 tensor likewise", () => {
    using device = Device.open();
    using tensor = device.tensor("bf16", [8]);
    const floats = new Float32Array(tensor.bytes.buffer, 0, 4);
    floats.set([1, 2, 3, 4]);
    tensor.slice(1, 5).set(floats);
    expect([...tensor.slice(1, 5).toFloat32Array()]).toEqual([1, 2, 3, 4]);
  });
});

test("floats that a bf16 tensor's own elements lie over are read before they are written", () => {
  using tensor = device.tensor("bf16", [16]);
  const floats = new Float32Array(tensor.bytes.buffer, tensor.byteOffset, 8);
  floats.set([1, 2, 3, 4, 5, 6, 7, 8]);
  using middle = tensor.slice(4, 12).set(floats);
  expect([...middle.toFloat32Array()]).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
});

describe("arguments whose getters dispose the tensor", () => {
  /** An array of two numbers; reading the second calls `before`. */
  function trap(before: () => void): number[] {
    return Object.defineProperty([1, 2], 1, {
      get() {
        before();
        return 2;
      },
    });
  }

  test("are refused, and no freed memory is touched", () => {
    using device = Device.open();
    const size = 1 << 22;
    const values = device.tensor("i32", [2]);
    expect(thrownBy(() => values.set(trap(() => values.dispose()))).code).toBe("disposed");
    const shaped = device.tensor("u8", [2]);
    expect(thrownBy(() => shaped.reshape(trap(() => shaped.dispose()))).code).toBe("disposed");
    const large = device.tensor("u8", [size]);
    class Trap extends Uint8Array {
      override get length(): number {
        large.dispose();
        return size;
      }
    }
    large.set(new Trap(size).fill(7));
    expect(large.disposed).toBe(false);
    expect(large.view()[size - 1]).toBe(7);
  });

  test("and values that change while they are read are checked as they are written", () => {
    using device = Device.open();
    using tensor = device.tensor("u8", [2]);
    let reads = 0;
    const values = [1, 2];
    Object.defineProperty(values, 0, { get: () => (reads++ === 0 ? 5 : 300) });
    tensor.set(values);
    expect([...tensor.view()]).toEqual([5, 2]);
  });
});

describe("refused", () => {
  test("dtypes that do not exist", () => {
    for (const dtype of ["f64", "", "toString", "__proto__", undefined, null, 1, {}]) {
      expectRefusal(() => device.tensor(dtype as DType, [1]), "invalid-argument", "dtype", "f32, f16, bf16");
    }
  });

  test("shapes that are none", () => {
    const shapes: unknown[] = [undefined, null, 4, "4", {}, [], new Array(9).fill(1), new Uint32Array([2])];
    for (const shape of shapes) {
      expectRefusal(() => device.tensor("f32", shape as number[]), "invalid-argument", "shape");
    }
    for (const axis of [-1, 1.5, Number.NaN, 2 ** 32, "2", null, undefined, 1n, [2], true]) {
      expectRefusal(() => device.tensor("f32", [2, axis as number]), "invalid-argument", "shape[1]");
    }
    expectRefusal(() => device.tensor("f32", new Array(2)), "invalid-argument", "shape[0]");
  });

  test("empty tensors", () => {
    for (const shape of [[0], [3, 0], [0, 2 ** 31]]) {
      expectRefusal(() => device.tensor("f32", shape), "invalid-argument", "shape", `[${shape}]`);
    }
  });

  test("tensors beyond maxBufferLength, with both numbers", () => {
    const { maxBufferLength } = device.info;
    const rows = Math.ceil((maxBufferLength + 1) / 2 ** 20);
    expectRefusal(
      () => device.tensor("u8", [rows, 2 ** 20]),
      "invalid-argument",
      "shape",
      rows * 2 ** 20,
      maxBufferLength,
    );
    expectRefusal(() => device.tensor("f32", [2 ** 31, 2 ** 31]), "overflow", "shape");
    expectRefusal(() => device.tensor("f32", new Array(8).fill(2 ** 31)), "overflow", "shape");
  });

  test("slices that leave the first axis", () => {
    using tensor = device.tensor("f32", [4, 2]);
    expectRefusal(() => tensor.slice(0, 5), "invalid-argument", "end", 5, "[4,2]");
    expectRefusal(() => tensor.slice(3, 2), "invalid-argument", "start", 3, 2);
    for (const bad of [-1, 1.5, Number.NaN, 2 ** 32, null, "1"]) {
      expectRefusal(() => tensor.slice(bad as number), "invalid-argument", "start");
      if (bad !== undefined) expectRefusal(() => tensor.slice(0, bad as number), "invalid-argument", "end");
    }
    expectRefusal(() => tensor.slice(undefined as unknown as number), "invalid-argument", "start");
  });

  test("reshapes to another count", () => {
    using tensor = device.tensor("f32", [4, 2]);
    expectRefusal(() => tensor.reshape([3, 3]), "invalid-argument", "shape", 9, 8);
    expectRefusal(() => tensor.reshape([2 ** 31, 2 ** 31]), "overflow", "shape");
    expectRefusal(() => tensor.reshape([]), "invalid-argument", "shape");
  });
});

test("an empty slice is a tensor without elements", () => {
  using tensor = device.tensor("f32", [4, 2]);
  using empty = tensor.slice(4);
  expect([empty.shape, empty.length, empty.bytes.length]).toEqual([[0, 2], 0, 0]);
  empty.set([]);
  using other = empty.reshape([2, 0, 7]);
  expect(other.shape).toEqual([2, 0, 7]);
});

describe("disposed", () => {
  test("a tensor refuses every use, and disposing it again does nothing", () => {
    const tensor = device.tensor("f32", [2, 2]);
    tensor.dispose();
    tensor.dispose();
    tensor[Symbol.dispose]();
    expect(tensor.disposed).toBe(true);
    const uses = [
      () => tensor.set([1, 2, 3, 4]),
      () => tensor.toFloat32Array(),
      () => tensor.bytes,
      () => tensor.view(),
      () => tensor.slice(0),
      () => tensor.reshape([4]),
    ];
    for (const use of uses) expect(thrownBy(use).code).toBe("disposed");
    expect(tensor.shape).toEqual([2, 2]);
  });

  test("a slice outlives the tensor that it came from", () => {
    const tensor = device.tensor("f32", [2, 2]);
    tensor.set([1, 2, 3, 4]);
    using slice = tensor.slice(1);
    tensor.dispose();
    expect([...slice.toFloat32Array()]).toEqual([3, 4]);
    slice.set([5, 6]);
    expect([...slice.toFloat32Array()]).toEqual([5, 6]);
  });

  test("a tensor outlives its slices", () => {
    using tensor = device.tensor("f32", [2, 2]);
    for (let i = 0; i < 10; i++) {
      const slice = tensor.slice(1);
      slice.dispose();
      slice.dispose();
    }
    tensor.set([1, 2, 3, 4]);
    expect([...tensor.toFloat32Array()]).toEqual([1, 2, 3, 4]);
  });

  test("the memory goes back when the last tensor over it is disposed", () => {
    const before = device.info.currentAllocatedSize;
    const tensor = device.tensor("u8", [1 << 20]);
    const slice = tensor.slice(1 << 19);
    expect(device.info.currentAllocatedSize).toBeGreaterThanOrEqual(before + (1 << 20));
    tensor.dispose();
    expect(device.info.currentAllocatedSize).toBeGreaterThanOrEqual(before + (1 << 20));
    slice.dispose();
    expect(device.info.currentAllocatedSize).toBe(before);
  });

  test("the device's tensors are disposed with it", () => {
    const other = Device.open();
    const tensor = other.tensor("f32", [2]);
    other.dispose();
    expect(tensor.disposed).toBe(true);
    for (const use of [() => tensor.set([1, 2]), () => tensor.toFloat32Array(), () => tensor.bytes]) {
      expect(thrownBy(use).code).toBe("disposed");
    }
    tensor.dispose();
  });
});
