/**
 * Sources of 16 bits, and K and V in formats of their own: the bytes of a run are those that each stream has alone, from
 * f32 of the same values.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { Device, hadamardQuantizeKvSeq, kvCacheBytes, type Tensor } from "../../src/index.ts";
import type { CodeFormat } from "../../src/reference/index.ts";
import { expectRefusal } from "../helpers/errors.ts";
import {
  codeFormats,
  expectRight,
  formatName,
  headSizes,
  isWhole,
  otherSizes,
  sourceValues,
  TestCache,
} from "../helpers/quantized.ts";

const device = Device.open();
afterAll(() => device.dispose());

type SourceDType = "f32" | "f16" | "bf16";
const dtypes: readonly SourceDType[] = ["f32", "f16", "bf16"];

const [heads, tokens, capacity, start] = [3, 5, 7, 4];

/** Values in a dtype, `shift` elements behind the start of a buffer. */
function source(dtype: SourceDType, headDim: number, values: Float32Array, shift = 0): Tensor<SourceDType> {
  const whole: Tensor<SourceDType> = device.tensor(dtype, [values.length + shift]);
  return whole
    .slice(shift, shift + values.length)
    .set(values)
    .reshape([values.length / (heads * headDim), heads, headDim]);
}

/** Codes and norms for a stream, `shift` bytes behind the start of a buffer, with heads behind them that are not its own. */
function cacheOf(headDim: number, format: CodeFormat, shift = 0) {
  const { bytesPerRow, normsPerPos } = kvCacheBytes({ headDim, nKvHeads: heads, capacity, ...format });
  const length = 2 * heads * capacity * bytesPerRow;
  const all = device.tensor("u8", [length + shift]).set(new Uint8Array(length + shift).fill(0xa5));
  const norms = device.tensor("f32", [2 * heads, capacity, normsPerPos]);
  return {
    args: {
      packed: all.slice(shift, shift + length / 2).reshape([heads, capacity, bytesPerRow]),
      norms: norms.slice(0, heads),
      ...format,
    },
    bytes: () => [all.view().slice(shift), norms.bytes.slice()] as const,
  };
}

/** A ring that wraps, without the first token of the source. */
const run = { isSliding: true, writePosStart: capacity * 3 + start, srcTokOffset: 1 } as const;

/** What a stream alone has of f32. */
function alone(headDim: number, format: CodeFormat, values: Float32Array) {
  const cache = cacheOf(headDim, format);
  using pass = device.pass();
  hadamardQuantizeKvSeq(pass, { src: source("f32", headDim, values), ...cache.args, ...run });
  pass.commitAndWait();
  return cache.bytes();
}

/** Expects of K and V in one dispatch what each has alone. */
function expectBoth(
  headDim: number,
  dtype: SourceDType,
  [formatK, formatV]: readonly [CodeFormat, CodeFormat],
  expected: (stream: 0 | 1, format: CodeFormat) => ReturnType<typeof alone>,
  values: readonly [Float32Array, Float32Array],
  shift: number,
): void {
  const [k, v] = [cacheOf(headDim, formatK, shift), cacheOf(headDim, formatV, 3 * shift)];
  using pass = device.pass();
  hadamardQuantizeKvSeq(pass, {
    k: { src: source(dtype, headDim, values[0], shift), ...k.args },
    v: { src: source(dtype, headDim, values[1], shift), ...v.args },
    ...run,
  });
  const [dispatch, ...more] = pass.describe();
  expect(more).toEqual([]);
  expect(dispatch?.kernel.includes("_mixed")).toBe(formatK.packing !== formatV.packing);
  pass.commitAndWait();
  expect(k.bytes()).toEqual(expected(0, formatK));
  expect(v.bytes()).toEqual(expected(1, formatV));
}

const others = otherSizes.filter((size) => [4, 32, 1024].includes(size));

describe("K and V in one dispatch, in every pair of formats", () => {
  for (const headDim of [...headSizes, ...others]) {
    const formats = codeFormats.filter((format) => isWhole(headDim, format));
    for (const dtype of dtypes) {
      test(`D = ${headDim}, ${dtype}`, () => {
        // The values that the dtype has.
        const values = [1, 2].map((seed) =>
          source(dtype, headDim, sourceValues(headDim, (tokens + 1) * heads, seed)).toFloat32Array(),
        ) as [Float32Array, Float32Array];
        const known = new Map<string, ReturnType<typeof alone>>();
        const expected = (stream: 0 | 1, format: CodeFormat) => {
          const key = `${stream} ${formatName(format)}`;
          const bytes = known.get(key) ?? alone(headDim, format, values[stream]);
          known.set(key, bytes);
          return bytes;
        };
        for (const formatK of formats) {
          for (const formatV of formats) expectBoth(headDim, dtype, [formatK, formatV], expected, values, 0);
        }
        // Tensors that begin at no whole word.
        for (const [i, formatK] of formats.entries()) {
          const formatV = formats[(i + 3) % formats.length] as CodeFormat;
          expectBoth(headDim, dtype, [formatK, formatV], expected, values, 1);
        }
      });
    }
  }
});

describe("beside the oracle", () => {
  for (const dtype of ["f16", "bf16"] as const) {
    test(dtype, () => {
      for (const headDim of [...headSizes, ...others]) {
        for (const format of codeFormats.filter((each) => isWhole(headDim, each))) {
          const plan = { headDim, format, nKvHeads: heads, capacity, isSliding: true };
          const src = source(dtype, headDim, sourceValues(headDim, (tokens + 1) * heads, headDim));
          const cache = new TestCache(device, plan);
          using pass = device.pass();
          hadamardQuantizeKvSeq(pass, { src, ...cache.tensors, ...format, ...run });
          pass.commitAndWait();
          expectRight(cache.compare(src.toFloat32Array(), run.writePosStart, tokens, 1));
        }
      }
    });
  }
});

test("every value of 16 bits: infinities, NaNs, those below the normal ones", () => {
  const [headDim, nKvHeads, count] = [64, 1, 1024];
  for (const dtype of ["f16", "bf16"] as const) {
    const src: Tensor<"f16" | "bf16"> = device.tensor(dtype, [count, nKvHeads, headDim]);
    new Uint16Array(src.bytes.buffer, src.bytes.byteOffset, 65_536).set(
      Uint16Array.from({ length: 65_536 }, (_, i) => i),
    );
    const floats = device.tensor("f32", src.shape).set(src.toFloat32Array());
    const encoded = (given: Tensor<SourceDType>) => {
      const packed = device.tensor("u8", [nKvHeads, count, headDim]);
      const norms = device.tensor("f32", [nKvHeads, count, 1]);
      using pass = device.pass();
      hadamardQuantizeKvSeq(pass, { src: given, packed, norms, bits: 8, writePosStart: 0 });
      pass.commitAndWait();
      return [packed.view().slice(), norms.bytes.slice()];
    };
    expect(encoded(src)).toEqual(encoded(floats));
  }
});

test("a format of one stream, and that of the call for the other", () => {
  const headDim = 64;
  const values = sourceValues(headDim, (tokens + 1) * heads, 1);
  const nibbles = { bits: 4, packing: "nibble" } as const;
  const dense = { bits: 6, packing: "dense" } as const;
  const cases = [
    { k: { bits: 8 }, call: { bits: 4 }, wanted: [{ bits: 8, packing: "byte" }, nibbles] },
    { v: { bits: 4 }, call: { bits: 6 }, wanted: [{ bits: 6, packing: "byte" }, nibbles] },
    { k: { packing: "dense" }, call: { bits: 6 }, wanted: [dense, { bits: 6, packing: "byte" }] },
    { v: { bits: 5 }, call: { bits: 6, packing: "dense" }, wanted: [dense, { bits: 5, packing: "dense" }] },
  ] as const;
  for (const { wanted, call, ...own } of cases) {
    const [k, v] = [cacheOf(headDim, wanted[0]), cacheOf(headDim, wanted[1])];
    const stream = ({ args }: typeof k, given: object | undefined) => {
      const { packed, norms } = args;
      return { src: source("f16", headDim, values), packed, norms, ...given };
    };
    using pass = device.pass();
    const [ownK, ownV] = ["k" in own ? own.k : undefined, "v" in own ? own.v : undefined];
    hadamardQuantizeKvSeq(pass, { k: stream(k, ownK), v: stream(v, ownV), ...call, ...run });
    pass.commitAndWait();
    const rounded = source("f16", headDim, values).toFloat32Array();
    expect(k.bytes()).toEqual(alone(headDim, wanted[0], rounded));
    expect(v.bytes()).toEqual(alone(headDim, wanted[1], rounded));
  }
});

test("refusals", () => {
  const tensor = (...shape: number[]) => device.tensor("u8", shape);
  const [packed8, packed4] = [tensor(1, 4, 64), tensor(1, 4, 32)];
  const norms = () => device.tensor("f32", [1, 4, 1]);
  const src = (dtype: SourceDType = "f16") => device.tensor(dtype, [2, 1, 64]);
  const valid = {
    k: { src: src(), packed: packed8, norms: norms(), bits: 8 },
    v: { src: src(), packed: packed4, norms: norms(), bits: 4 },
  };
  const refuse = (
    change: { k?: object; v?: object; bits?: unknown; packing?: unknown },
    code: "invalid-argument" | "unsupported",
    argument: string,
    ...parts: (string | number)[]
  ) => {
    using pass = device.pass();
    const { k, v, ...call } = change;
    const args = { ...call, k: { ...valid.k, ...k }, v: { ...valid.v, ...v }, writePosStart: 0 };
    expectRefusal(() => hadamardQuantizeKvSeq(pass, args as never), code, argument, ...parts);
    expect(pass.describe()).toEqual([]);
  };
  refuse({ k: { bits: 7 } }, "unsupported", "k.bits", 7, "8 byte");
  refuse({ v: { bits: 4.5 } }, "invalid-argument", "v.bits", 4.5);
  refuse({ v: { bits: undefined } }, "invalid-argument", "bits", "undefined");
  refuse({ v: { bits: undefined }, bits: 7 }, "unsupported", "bits", 7);
  refuse({ k: { packing: "nibble" } }, "unsupported", "k.packing", "nibble", 8);
  refuse({ v: { packing: 3 } }, "invalid-argument", "v.packing", 3);
  refuse({ packing: "byte" }, "unsupported", "packing", "byte", 4);
  refuse({ v: { bits: 8 } }, "invalid-argument", "v.packed", 32, 64);
  refuse({ v: { bit: 8 } }, "invalid-argument", "v.bit", "bits");
  refuse({ v: { src: src("bf16") } }, "unsupported", "v.src", "bf16", "k.src", "f16");
  refuse({ k: { src: device.tensor("i32", [2, 1, 64]) } }, "unsupported", "k.src", "i32", "f32, f16 or bf16");
  refuse({ v: { packed: packed8, bits: 8 } }, "invalid-argument", "k.packed", "v.packed", "overlap");
});
