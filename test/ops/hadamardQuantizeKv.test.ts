import { afterAll, describe, expect, test } from "bun:test";
import { normalArray } from "../../scripts/lib/random.ts";
import {
  Device,
  type DType,
  dequantizeKv,
  hadamardQuantizeKv,
  hadamardQuantizeKvSeq,
  kvCacheBytes,
  type Pass,
  type Tensor,
} from "../../src/index.ts";
import { at } from "../../src/reference/at.ts";
import {
  type FloatName,
  normsPerPos,
  quantizeVector,
  referenceDequantizeKv,
  roundTo,
} from "../../src/reference/index.ts";
import {
  type CachePlan,
  codeFormats,
  expectRight,
  formatName,
  headSizes,
  isWhole,
  otherSizes,
  sourceValues,
  TestCache,
} from "../helpers/quantized.ts";
import { seededRandom } from "../helpers/random.ts";
import { testTable } from "../helpers/table.ts";

/** Milliseconds for tests that may compile many kernels. */
const timeout = 120_000;

const device = Device.open();
afterAll(() => device.dispose());

/** Names of the kernels that serve a cache, as the reference forms them. */
function kernelName(task: "quantize_kv" | "quantize_kv_seq" | "dequantize_kv", { headDim, format }: CachePlan): string {
  const sized = { nibble: "_fast", byte: "_hb", dense: "_dense" }[format.packing];
  if (headSizes.includes(headDim)) return `hadamard_${task}${sized}_d${headDim}`;
  return `hadamard_${task}${format.packing === "nibble" ? "" : sized}`;
}

/** Commits what `encode` appends; the dispatches must be of these kernels and no others. */
function run(kernels: readonly string[], encode: (pass: Pass) => void): void {
  using pass = device.pass();
  encode(pass);
  expect(pass.describe().map(({ kernel }) => kernel)).toEqual([...kernels]);
  pass.commitAndWait();
}

const sourceOf = ({ nKvHeads, headDim }: CachePlan, values: Float32Array): Tensor<"f32"> =>
  device.tensor("f32", [values.length / (nKvHeads * headDim), nKvHeads, headDim]).set(values);

/** One token of a source, as one token is given. */
const tokenOf = (src: Tensor<"f32">, token: number): Tensor<"f32"> =>
  src.slice(token, token + 1).reshape(src.shape.slice(1));

interface Case extends Omit<CachePlan, "nKvHeads" | "capacity" | "isSliding"> {
  readonly name: string;
}

const cases: readonly Case[] = codeFormats.flatMap((format) =>
  [...headSizes, ...otherSizes]
    .filter((headDim) => isWhole(headDim, format))
    .map((headDim) => ({ name: `D=${headDim}, ${formatName(format)}`, headDim, format })),
);
const factors: readonly Case[] = [512, 2048].flatMap((headDim) =>
  [0.5, 16, Math.sqrt(512)].map((scaleFactorD512) => {
    const format = { bits: 4, packing: "nibble" } as const;
    return { name: `D=${headDim}, factor ${scaleFactorD512}`, headDim, format, scaleFactorD512 };
  }),
);
/** What all cases of the table below compared. */
const total = { codes: 0, neighbours: 0 };

testTable("K and V of a run in one dispatch, token by token, and back", [...cases, ...factors], (entry) => {
  const { headDim, format, scaleFactorD512 } = entry;
  const plan: CachePlan = { ...entry, nKvHeads: 3, capacity: 7, isSliding: true };
  const options = { ...format, isSliding: true, ...(scaleFactorD512 === undefined ? {} : { scaleFactorD512 }) };
  const [nTokens, srcTokOffset, start] = [5, 2, 7 * 11 + 4];
  const values = [1, 2].map((seed) => sourceValues(headDim, 8 * 3, seed)) as [Float32Array, Float32Array];
  const [srcK, srcV] = values.map((value) => sourceOf(plan, value)) as [Tensor<"f32">, Tensor<"f32">];
  const [k, v] = [new TestCache(device, plan), new TestCache(device, plan)];
  run([kernelName("quantize_kv_seq", plan)], (pass) => {
    const streams = { k: { src: srcK, ...k.tensors }, v: { src: srcV, ...v.tensors } };
    hadamardQuantizeKvSeq(pass, { ...streams, ...options, writePosStart: start, nTokens, srcTokOffset });
  });
  for (const [cache, value] of [
    [k, values[0]],
    [v, values[1]],
  ] as const) {
    const comparison = cache.compare(value, start, nTokens, srcTokOffset);
    expectRight(comparison);
    total.codes += comparison.codes;
    total.neighbours += comparison.neighbours;
  }

  const [singleK, singleV, alone] = [0, 1, 2].map(() => new TestCache(device, plan)) as [
    TestCache,
    TestCache,
    TestCache,
  ];
  using pass = device.pass();
  for (let token = 0; token < nTokens; token++) {
    const src = { k: tokenOf(srcK, srcTokOffset + token), v: tokenOf(srcV, srcTokOffset + token) };
    const writePos = start + token;
    const streams = { k: { src: src.k, ...singleK.tensors }, v: { src: src.v, ...singleV.tensors } };
    hadamardQuantizeKv(pass, { ...streams, ...options, writePos });
    hadamardQuantizeKv(pass, { src: src.k, ...alone.tensors, ...options, writePos });
  }
  expect(pass.describe().map(({ kernel }) => kernel)).toEqual(Array(2 * nTokens).fill(kernelName("quantize_kv", plan)));
  pass.commitAndWait();
  expect(singleK.snapshot()).toEqual(k.snapshot());
  expect(singleV.snapshot()).toEqual(v.snapshot());
  expect(alone.snapshot()).toEqual(k.snapshot());

  const outs = ["f32", "f16", "bf16"].map((dtype) =>
    [0, 1].map(() => device.tensor(dtype as "f32" | "f16" | "bf16", [3, nTokens, headDim])),
  ) as [Tensor<FloatName>, Tensor<FloatName>][];
  run(Array(3).fill(kernelName("dequantize_kv", plan)), (decode) => {
    for (const [outK, outV] of outs) {
      const streams = { k: { ...k.tensors, out: outK }, v: { ...v.tensors, out: outV } };
      dequantizeKv(decode, { ...streams, ...options, readPosStart: start });
    }
  });
  for (const [index, cache] of [k, v].entries()) {
    const stored = { packed: cache.packed.view(), norms: cache.norms.view() };
    const expected = referenceDequantizeKv(
      stored,
      { ...plan, posStart: start, nTokens },
      { ...format, scaleFactorD512: scaleFactorD512 ?? 1 },
    );
    const [f32, f16, bf16] = outs.map((pair) => (pair[index] as Tensor).toFloat32Array()) as Float32Array[];
    expect(worstOfRows(f32 as Float32Array, expected, headDim)).toBeLessThan(2e-6);
    expect(f16).toEqual((f32 as Float32Array).map((value) => roundTo("f16", value)));
    expect(bf16).toEqual((f32 as Float32Array).map((value) => roundTo("bf16", value)));
  }
});

test("of all those codes at most 1 in 100,000 is the neighbour of the oracle's", () => {
  expect(total.codes).toBeGreaterThan(1_000_000);
  expect(total.neighbours).toBeLessThanOrEqual(total.codes * 1e-5);
});

/** The largest error of any value, relative to the largest value of its head vector. */
function worstOfRows(actual: Float32Array, expected: Float64Array, headDim: number): number {
  let worst = 0;
  for (let first = 0; first < expected.length; first += headDim) {
    const row = expected.subarray(first, first + headDim);
    const largest = row.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
    for (const [i, value] of row.entries()) {
      worst = Math.max(worst, Math.abs(at(actual, first + i) - value) / largest);
    }
  }
  return worst;
}

describe("any offset and any wrap", () => {
  const random = seededRandom(6);
  const below = (end: number) => Math.floor(random() * end);
  const plans = Array.from({ length: 40 }, (_, index) => {
    const headDim = [64, 96, 128, 512, 16][index % 5] as number;
    const format = codeFormats.filter((entry) => isWhole(headDim, entry))[below(7)] as CachePlan["format"];
    const capacity = 1 + below(9);
    const nTokens = 1 + below(capacity);
    const isSliding = random() < 0.7;
    const start = isSliding ? below(2 ** 32 - 1 - nTokens) : below(capacity - nTokens + 1);
    const plan = { headDim, format, capacity, nKvHeads: 1 + below(4), isSliding };
    const name = `D=${headDim}, ${formatName(format)}: ${nTokens} from ${start} on, ${isSliding ? "ring" : "linear"} of ${capacity}`;
    return { name, plan, nTokens, start, srcTokOffset: below(4) };
  });
  test.each(plans)(
    "$name",
    ({ plan, nTokens, start, srcTokOffset }) => {
      const { headDim, nKvHeads, isSliding, format } = plan;
      const values = sourceValues(headDim, (srcTokOffset + nTokens + 1) * nKvHeads, start % 1000);
      const src = sourceOf(plan, values);
      const [bulk, single] = [new TestCache(device, plan), new TestCache(device, plan)];
      const options = { ...format, isSliding };
      using pass = device.pass();
      hadamardQuantizeKvSeq(pass, {
        src,
        ...bulk.tensors,
        ...options,
        writePosStart: start,
        nTokens,
        srcTokOffset,
      });
      for (let token = 0; token < nTokens; token++) {
        const writePos = start + token;
        hadamardQuantizeKv(pass, { src: tokenOf(src, srcTokOffset + token), ...single.tensors, ...options, writePos });
      }
      using whole = device.tensor("f32", [nKvHeads, nTokens, headDim]);
      dequantizeKv(pass, { ...bulk.tensors, out: whole, ...options, readPosStart: start });
      const skip = nTokens >> 1;
      using part = device.tensor("f32", [nKvHeads, nTokens - skip, headDim]);
      dequantizeKv(pass, {
        ...bulk.tensors,
        out: part,
        ...options,
        readPosStart: start + skip,
        nTokens: nTokens - skip,
      });
      pass.commitAndWait();
      expectRight(bulk.compare(values, start, nTokens, srcTokOffset));
      expect(single.snapshot()).toEqual(bulk.snapshot());
      for (let head = 0; head < nKvHeads; head++) {
        const from = (head * nTokens + skip) * headDim;
        const length = (nTokens - skip) * headDim;
        expect(part.view().slice(head * length, (head + 1) * length)).toEqual(whole.view().slice(from, from + length));
      }
    },
    timeout,
  );
});

describe("what has no codes of its own", () => {
  test.each([64, 80, 128, 256, 512, 16, 1024])(
    "D=%p: zero, tiny, NaN, infinite and too large",
    (headDim) => {
      for (const format of codeFormats.filter((entry) => isWhole(headDim, entry))) {
        const plan = { format, headDim, nKvHeads: 1, capacity: 7, isSliding: false };
        const values = normalArray(7 * headDim, 1, 5);
        values.fill(0, 0, headDim);
        for (let i = headDim; i < 2 * headDim; i++) values[i] = 1e-14;
        values[2 * headDim + 3] = Number.NaN;
        values[3 * headDim + headDim - 1] = Number.NEGATIVE_INFINITY;
        for (let i = 4 * headDim; i < 5 * headDim; i++) values[i] = at(values, i) > 0 ? 3e38 : -3e38;
        values.fill(-0, 5 * headDim, 6 * headDim);
        const cache = new TestCache(device, plan);
        using out = device.tensor("f32", [1, 7, headDim]);
        using half = device.tensor("f16", [1, 7, headDim]);
        const src = sourceOf(plan, values);
        run([kernelName("quantize_kv_seq", plan), ...Array(2).fill(kernelName("dequantize_kv", plan))], (pass) => {
          hadamardQuantizeKvSeq(pass, { src, ...cache.tensors, ...format, writePosStart: 0 });
          dequantizeKv(pass, { ...cache.tensors, out, ...format });
          dequantizeKv(pass, { ...cache.tensors, out: half, ...format });
        });
        expectRight(cache.compare(values, 0, 7, 0));
        const perPos = normsPerPos(headDim);
        const norms = [...cache.norms.view()];
        const extents = { headDim, nKvHeads: 1, capacity: 7, ...format };
        const { bytesPerRow } = kvCacheBytes(extents as Parameters<typeof kvCacheBytes>[0]);
        for (const token of [0, 1, 5]) {
          expect(norms.slice(token * perPos, (token + 1) * perPos).every((norm) => Object.is(norm, 0))).toBe(true);
          expect(
            out
              .view()
              .subarray(token * headDim, (token + 1) * headDim)
              .every((value) => Object.is(value, 0)),
          ).toBe(true);
        }
        expect(norms.slice(2 * perPos, 5 * perPos).every(Number.isNaN)).toBe(true);
        expect(
          cache.packed
            .view()
            .subarray(2 * bytesPerRow, 5 * bytesPerRow)
            .every((byte) => byte === 0),
        ).toBe(true);
        for (const read of [out.view(), half.toFloat32Array()]) {
          expect(read.subarray(2 * headDim, 5 * headDim).every(Number.isNaN)).toBe(true);
          expect(read.subarray(6 * headDim).some(Number.isNaN)).toBe(false);
        }
      }
    },
    timeout,
  );
});

test.each([64, 80, 128, 192, 256, 512, 4, 32, 1024, 2048, 4096])(
  "D=%p: a norm counts as 0 up to 1e-10, and not beyond",
  (headDim) => {
    const format = { bits: 4, packing: "nibble" } as const;
    const plan = { format, headDim, nKvHeads: 1, capacity: 2, isSliding: false };
    // One coordinate alone makes all norms of a vector equal: |x|, or |x| / sqrt(headDim) of several.
    const length = 1e-10 * Math.sqrt(headDim > 256 ? headDim : 1);
    const values = new Float32Array(2 * headDim);
    [values[1], values[headDim + 1]] = [0.9999 * length, 1.0001 * length];
    for (const oneByOne of [false, true]) {
      const cache = new TestCache(device, plan);
      using out = device.tensor("f32", [1, 2, headDim]);
      using pass = device.pass();
      const src = sourceOf(plan, values);
      if (oneByOne) {
        for (const writePos of [0, 1]) {
          hadamardQuantizeKv(pass, { src: tokenOf(src, writePos), ...cache.tensors, ...format, writePos });
        }
      } else hadamardQuantizeKvSeq(pass, { src, ...cache.tensors, ...format, writePosStart: 0 });
      dequantizeKv(pass, { ...cache.tensors, out, ...format });
      pass.commitAndWait();
      expectRight(cache.compare(values, 0, 2, 0));
      const isZero = Array.from(cache.norms.view(), (norm) => norm === 0);
      const perPos = normsPerPos(headDim);
      expect(isZero).toEqual([...Array(perPos).fill(true), ...Array(perPos).fill(false)]);
      expect(
        out
          .view()
          .slice(0, headDim)
          .every((value) => Object.is(value, 0)),
      ).toBe(true);
      expect(
        out
          .view()
          .slice(headDim)
          .some((value) => value !== 0),
      ).toBe(true);
    }
  },
  timeout,
);

test.each([64, 80, 128, 192, 256, 512, 4, 32, 1024, 2048, 4096])(
  "D=%p: a length of 1e18 is like any other, one of 1e-9 too",
  (headDim) => {
    const format = { bits: 4, packing: "nibble" } as const;
    const plan = { format, headDim, nKvHeads: 1, capacity: 2, isSliding: false };
    const values = normalArray(2 * headDim, 1, 8).map(
      (value, i) => (value * (i < headDim ? 1e18 : 1e-8)) / headDim ** 0.5,
    );
    const cache = new TestCache(device, plan);
    run([kernelName("quantize_kv_seq", plan)], (pass) => {
      hadamardQuantizeKvSeq(pass, { src: sourceOf(plan, values), ...cache.tensors, ...format, writePosStart: 0 });
    });
    expectRight(cache.compare(values, 0, 2, 0));
    expect(cache.norms.view().every((norm) => norm > 0)).toBe(true);
  },
  timeout,
);

test.each([...headSizes, 4, 1024, 4096])(
  "D=%p: the probe gets every scaled coordinate",
  (headDim) => {
    const format = { bits: 4, packing: "nibble" } as const;
    const plan = { format, headDim, nKvHeads: 3, capacity: 2, isSliding: false, scaleFactorD512: 2 };
    const values = sourceValues(headDim, 3, 9);
    const [cache, without] = [new TestCache(device, plan), new TestCache(device, plan)];
    using scratch = device.tensor("f32", [3, headDim]);
    const args = { src: tokenOf(sourceOf(plan, values), 0), bits: 4, writePos: 1, scaleFactorD512: 2 } as const;
    run(Array(2).fill(kernelName("quantize_kv", plan)), (pass) => {
      hadamardQuantizeKv(pass, { ...args, ...cache.tensors, rmsScratch: scratch });
      hadamardQuantizeKv(pass, { ...args, ...without.tensors });
    });
    const expected = [0, 1, 2].flatMap((head) => {
      const x = values.subarray(head * headDim, (head + 1) * headDim);
      return [...quantizeVector(x, { ...format, scaleFactorD512: 2 }).scaled];
    });
    const worst = expected.reduce((most, value, i) => Math.max(most, Math.abs(at(scratch.view(), i) - value)), 0);
    expect(worst).toBeLessThan(2e-5);
    expectRight(cache.compare(values, 1, 1, 0));
    expect(without.snapshot()).toEqual(cache.snapshot());
  },
  timeout,
);

describe("nothing to do", () => {
  const none = <T extends DType>(dtype: T, shape: readonly number[]) =>
    device.tensor(dtype, [2]).slice(0, 0).reshape(shape);
  const cache = { packed: device.tensor("u8", [2, 4, 32]), norms: device.tensor("f32", [2, 4, 1]) };
  test("a run of no token, and a range of none", () => {
    run([], (pass) => {
      const src = device.tensor("f32", [3, 2, 64]);
      hadamardQuantizeKvSeq(pass, { src, ...cache, bits: 4, writePosStart: 0, nTokens: 0 });
      hadamardQuantizeKvSeq(pass, { src, ...cache, bits: 4, writePosStart: 4, srcTokOffset: 3 });
      dequantizeKv(pass, { ...cache, out: none("f32", [2, 0, 64]), bits: 4 });
    });
  });
  test("no head", () => {
    run([], (pass) => {
      const empty = { packed: none("u8", [0, 4, 32]), norms: none("f32", [0, 4, 1]) };
      hadamardQuantizeKv(pass, { src: none("f32", [0, 64]), ...empty, bits: 4, writePos: 0 });
      hadamardQuantizeKvSeq(pass, { src: none("f32", [3, 0, 64]), ...empty, bits: 4, writePosStart: 0 });
      dequantizeKv(pass, { ...empty, out: none("f32", [0, 3, 64]), bits: 4 });
    });
  });
});
