/** Private storage, and copies into it, out of it and within it. */
import { describe, expect, test } from "bun:test";
import {
  Device,
  type DType,
  dtypeSize,
  flashAttnPrefill,
  hadamardQuantizeKvSeq,
  kvCacheCopySeq,
  type Tensor,
  type TensorOptions,
} from "../../src/index.ts";
import { expectRefusal } from "../helpers/errors.ts";
import { collectUntil } from "../helpers/gc.ts";

const device = Device.open();
const hidden = { storage: "private" } as const;

/** Runs a pass of copies. */
function copied(...pairs: readonly (readonly [Tensor, Tensor])[]): void {
  using pass = device.pass();
  for (const [from, to] of pairs) pass.copy(from, to);
  pass.commitAndWait();
}

/** Bytes that differ from their neighbours and from zero. */
function fill(tensor: Tensor, seed = 1): Uint8Array<ArrayBuffer> {
  for (let i = 0; i < tensor.byteLength; i++) tensor.bytes[i] = 1 + ((i * 37 + seed) % 255);
  return tensor.bytes.slice();
}

describe("private storage", () => {
  test("is told by the tensor and its parts, and by what console.log shows", () => {
    using tensor = device.tensor("f32", [4, 3], hidden);
    using part = tensor.slice(1).reshape([9]);
    using seen = device.tensor("f32", [4, 3], { storage: "shared" });
    expect([tensor.storage, part.storage, seen.storage, device.tensor("u8", [1]).storage]).toEqual([
      "private",
      "private",
      "shared",
      "shared",
    ]);
    expect(Bun.inspect(tensor)).toBe("Tensor f32 [4, 3] (private)");
    expect(part.gpuAddress - tensor.gpuAddress).toBe(12n);
  });

  test("has zeros at first", () => {
    using tensor = device.tensor("u8", [5000], hidden);
    using out = device.tensor("u8", [5000]);
    fill(out);
    copied([tensor, out]);
    expect(out.bytes.every((byte) => byte === 0)).toBeTrue();
  });

  const looks: Readonly<Record<string, (tensor: Tensor) => unknown>> = {
    bytes: (tensor) => tensor.bytes,
    "view()": (tensor) => tensor.view(),
    "set()": (tensor) => tensor.set([1, 2]),
    "set() of no values": (tensor) => tensor.set([], 0),
    "toFloat32Array()": (tensor) => tensor.toFloat32Array(),
    "share()": (tensor) => tensor.share(),
  };
  for (const [name, look] of Object.entries(looks)) {
    test(`${name} is refused, of a part too`, () => {
      using tensor = device.tensor("f32", [2], hidden);
      using part = tensor.slice(0, 2);
      for (const each of [tensor, part]) expectRefusal(() => look(each), "unsupported", undefined, "private storage");
    });
  }

  test.each([
    [null, "options"],
    ["private", "options"],
    [{ storage: "managed" }, "options.storage"],
    [{ storage: 1 }, "options.storage"],
    [{ store: "private" }, "options.store"],
  ])("the option %j is refused", (options, argument) => {
    const make = () => device.tensor("f32", [1], options as unknown as TensorOptions);
    expectRefusal(make, "invalid-argument", argument);
  });

  test("is counted, and given back when disposed or collected, once", async () => {
    using own = Device.open();
    const before = own.info.currentAllocatedSize;
    const size = 1 << 20;
    const tensor = own.tensor("u8", [size], hidden);
    const part = tensor.slice(1);
    expect(own.info.currentAllocatedSize - before).toBeGreaterThanOrEqual(size);
    tensor.dispose();
    tensor.dispose();
    expect(own.info.currentAllocatedSize - before).toBeGreaterThanOrEqual(size);
    part.dispose();
    expect(own.info.currentAllocatedSize).toBe(before);
    (() => {
      for (let i = 0; i < 20; i++) own.tensor("u8", [size], hidden);
    })();
    expect(await collectUntil(() => own.info.currentAllocatedSize === before)).toBeTrue();
  });

  test("a tensor may outlive its device", () => {
    const own = Device.open();
    const tensor = own.tensor("u8", [100], hidden);
    own.dispose();
    expect(tensor.disposed).toBeTrue();
    tensor.dispose();
  });

  test("operations take it and give the same bits", () => {
    const [heads, tokens, headDim] = [2, 40, 64];
    const result = (options: TensorOptions) => {
      const make = <T extends DType>(dtype: T, ...shape: number[]) => device.tensor(dtype, shape, options);
      const staged = device.tensor("f32", [tokens, heads, headDim]);
      staged.set(Float32Array.from({ length: staged.length }, (_, i) => Math.sin(i * 12.9898)));
      const src = make("f32", tokens, heads, headDim);
      const cache = make("bf16", 1, heads, tokens, headDim);
      const q = make("bf16", 1, heads, tokens, headDim);
      const out = make("bf16", 1, heads, tokens, headDim);
      const [packed, norms] = [make("u8", heads, tokens, headDim / 2), make("f32", heads, tokens, 1)];
      using pass = device.pass();
      pass.copy(staged, src);
      kvCacheCopySeq(pass, { src, cache, seqPosStart: 0 });
      pass.copy(cache, q);
      flashAttnPrefill(pass, { q, k: cache, v: cache, out, causal: true });
      hadamardQuantizeKvSeq(pass, { src, packed, norms, bits: 4, writePosStart: 0 });
      const seen = [out as Tensor, packed, norms].map((tensor) => {
        const copy: Tensor = device.tensor(tensor.dtype, tensor.shape);
        pass.copy(tensor, copy);
        return copy;
      });
      pass.commitAndWait();
      return seen.map(({ bytes }) => Bun.hash(bytes));
    };
    expect(result(hidden)).toEqual(result({}));
  });
});

describe("copy", () => {
  const dtypes: readonly DType[] = ["f32", "bf16", "u8", "i64", "bool"];
  const places = [
    [0, 0, 96],
    [16, 32, 48],
    [4, 8, 52],
    [1, 0, 37],
    [3, 5, 1],
    [0, 7, 89],
  ] as const;
  for (const dtype of dtypes) {
    for (const [from, to, count] of places) {
      test(`${count} elements of ${dtype} from ${from} to ${to}, and nothing else`, () => {
        using source = device.tensor(dtype, [96]);
        using target = device.tensor(dtype, [96]);
        using own = device.tensor(dtype, [96], hidden);
        const bytes = fill(source);
        const expected = fill(target, 100);
        using read = source.slice(from, from + count);
        using there = own.slice(from, from + count);
        using written = target.slice(to, to + count);
        // By way of private storage.
        copied([read, there], [there, written]);
        const size = dtypeSize(dtype);
        expected.set(bytes.subarray(from * size, (from + count) * size), to * size);
        expect(target.bytes).toEqual(expected);
        expect(source.bytes).toEqual(bytes);
      });
    }
  }

  test("the size of what a thread moves follows from where it begins and ends", () => {
    using source = device.tensor("u8", [64]);
    using target = device.tensor("u8", [64]);
    const kernelOf = (from: number, to: number, count: number) => {
      using pass = device.pass();
      using read = source.slice(from, from + count);
      using written = target.slice(to, to + count);
      pass.copy(read, written);
      return pass.describe().map(({ kernel }) => kernel);
    };
    expect(kernelOf(16, 32, 24)).toEqual(["copy_8"]);
    expect(kernelOf(16, 36, 16)).toEqual(["copy_4"]);
    expect(kernelOf(8, 16, 12)).toEqual(["copy_4"]);
    expect(kernelOf(2, 16, 16)).toEqual(["copy_2"]);
    expect(kernelOf(16, 0, 15)).toEqual(["copy_1"]);
    expect(kernelOf(5, 5, 0)).toEqual([]);
  });

  test("shapes may differ, and a tensor may be copied within itself", () => {
    using tensor = device.tensor("u8", [2, 32]);
    const bytes = fill(tensor);
    using first = tensor.slice(0, 1).reshape([4, 8]);
    using second = tensor.slice(1);
    copied([first, second]);
    expect(tensor.bytes.subarray(32)).toEqual(bytes.subarray(0, 32));
  });

  test("waits for what is written before it, in a concurrent pass", () => {
    using chain = device.tensor("u8", [17, 4096]);
    const bytes = fill(chain.slice(0, 1));
    using pass = device.pass();
    for (let i = 0; i < 16; i++) pass.copy(chain.slice(i, i + 1), chain.slice(i + 1, i + 2));
    pass.commitAndWait();
    expect(chain.slice(16).bytes).toEqual(bytes);
  });

  test("is recorded, with another tensor in each run", async () => {
    using to = device.tensor("u8", [64]);
    using first = device.tensor("u8", [64]);
    using second = device.tensor("u8", [64]);
    fill(first, 1);
    fill(second, 2);
    using step = device.record((pass) => {
      pass.tensor("from", first);
      pass.copy(first, to);
    });
    await step.commit();
    expect(to.bytes).toEqual(first.bytes);
    await step.commit({ from: second });
    expect(to.bytes).toEqual(second.bytes);
  });

  test("what it cannot do is refused, and nothing encoded", () => {
    using other = Device.open();
    using foreign = other.tensor("f32", [4]);
    using tensor = device.tensor("f32", [8]);
    using half = tensor.slice(0, 4);
    using middle = tensor.slice(3, 7);
    using pass = device.pass();
    const gone = device.tensor("f32", [4]);
    gone.dispose();
    const copy = (from: unknown, to: unknown) => () => pass.copy(from as Tensor, to as Tensor);
    expectRefusal(copy(tensor, half), "invalid-argument", "from", "has 32 bytes", "to has 16");
    expectRefusal(copy(half, middle), "invalid-argument", "to", "overlap", "bytes 12 to 28 and 0 to 16");
    expectRefusal(copy(half, half), "invalid-argument", "to", "overlap");
    expectRefusal(copy(half, device.tensor("u32", [4])), "unsupported", "from", "is f32", "to is u32");
    expectRefusal(copy(half, foreign), "invalid-handle", "to");
    expectRefusal(copy(foreign, half), "invalid-handle", "from");
    expectRefusal(copy(gone, half), "disposed", "from");
    expectRefusal(copy(half, gone), "disposed", "to");
    expectRefusal(copy(undefined, half), "invalid-argument", "from");
    expectRefusal(copy(half, new Float32Array(4)), "invalid-argument", "to");
    expect(pass.info.dispatches).toBe(0);
    pass.commitAndWait();
    expectRefusal(copy(half, device.tensor("f32", [4])), "invalid-state", undefined, "committed");
  });
});
