import { afterAll, describe, expect, test } from "bun:test";
import { buildCausalMask, buildSlidingWindowMask, classifyMaskTiles, Device } from "../../src/index.ts";
import { type AttentionMask, referenceSlidingWindowMask, referenceTileClasses } from "../../src/reference/index.ts";
import { seededRandom } from "../helpers/random.ts";
import { testTable } from "../helpers/table.ts";

const device = Device.open();
afterAll(() => device.dispose());

const dtypes = ["bf16", "f16", "bool"] as const;
type MaskDType = (typeof dtypes)[number];

/** What a mask of a dtype holds where a key is attended or not, read as numbers. */
const element = { bf16: [Number.NEGATIVE_INFINITY, 0], f16: [Number.NEGATIVE_INFINITY, 0], bool: [0, 1] } as const;

interface BuildCase {
  readonly name: string;
  readonly dtype: MaskDType;
  readonly qL: number;
  readonly kL: number;
  readonly window: number | undefined;
  readonly offset: number;
}

const shapes = [
  [1, 1],
  [1, 100],
  [7, 8],
  [33, 47],
  [64, 64],
  [100, 9],
  [3, 516],
  [3, 528],
] as const;

const buildCases: readonly BuildCase[] = dtypes.flatMap((dtype) =>
  shapes.flatMap(([qL, kL]) =>
    [undefined, 1, 2, 16, 50, 2 ** 31 - 1].flatMap((window) =>
      [0, 1, 13, 2 ** 31 - 1 - qL].map((offset) => {
        const name = `${dtype} ${qL} x ${kL}, window ${window}, offset ${offset}`;
        return { name, dtype, qL, kL, window, offset };
      }),
    ),
  ),
);

testTable("builders against the oracle", buildCases, ({ dtype, qL, kL, window, offset }) => {
  using whole = device.tensor(dtype, [qL + 2, kL]);
  whole.set(new Float32Array(whole.length).fill(1));
  using mask = whole.slice(1, qL + 1);
  using pass = device.pass();
  if (window === undefined) buildCausalMask(pass, { mask, qOffsetInK: offset });
  else buildSlidingWindowMask(pass, { mask, window, qOffsetInK: offset });
  pass.commitAndWait();
  const attends = referenceSlidingWindowMask({
    seqLenQ: qL,
    seqLenK: kL,
    qOffsetInK: offset,
    window: window ?? Number.POSITIVE_INFINITY,
  });
  const around = new Array<number>(kL).fill(1);
  const expected = [...around, ...attends.map((attend) => element[dtype][attend ? 1 : 0]), ...around];
  expect([...whole.toFloat32Array()]).toEqual(expected);
});

// A thread stores runs of 16 bytes where all rows begin with one.
test.each([300, 304])("bool masks of %p keys may begin anywhere, and nothing around them is written", (kL) => {
  const qL = 5;
  for (const start of [1, 2, 3, 4, 8, 16]) {
    using whole = device.tensor("bool", [qL * kL + 16]);
    whole.set(new Float32Array(whole.length).fill(1));
    using part = whole.slice(start, start + qL * kL);
    using mask = part.reshape([qL, kL]);
    using pass = device.pass();
    buildSlidingWindowMask(pass, { mask, window: 7, qOffsetInK: 250 });
    pass.commitAndWait();
    const attends = referenceSlidingWindowMask({ seqLenQ: qL, seqLenK: kL, qOffsetInK: 250, window: 7 });
    const around = (count: number) => new Array<number>(count).fill(1);
    const expected = [...around(start), ...attends.map((attend) => (attend ? 1 : 0)), ...around(16 - start)];
    expect([...whole.toFloat32Array()]).toEqual(expected);
  }
});

describe("what the builders encode", () => {
  test("one dispatch of the kernel of the dtype, that writes the mask", () => {
    for (const dtype of dtypes) {
      using mask = device.tensor(dtype, [5, 9]);
      using pass = device.pass();
      buildCausalMask(pass, { mask });
      buildSlidingWindowMask(pass, { mask, window: 3 });
      const described = pass.describe();
      expect(described.map(({ kernel }) => kernel)).toEqual([
        `build_causal_mask_${dtype}`,
        `build_sliding_window_mask_${dtype}`,
      ]);
      expect(described.map(({ op }) => op)).toEqual(["buildMask", "buildMask"]);
      expect(described[1]?.barrierBefore).toBe(true);
      expect(described[0]?.writes.map(({ length }) => length)).toEqual([mask.byteLength]);
    }
  });
});

interface ClassCase {
  readonly name: string;
  readonly dtype: MaskDType;
  readonly headDim: number;
  readonly shape: readonly number[];
  readonly blocked: number;
}

const classCases: readonly ClassCase[] = dtypes.flatMap((dtype) =>
  [64, 256, 512].flatMap((headDim) =>
    [
      [1, 1],
      [32, 16],
      [33, 17],
      [65, 100],
      [64, 32],
      [129, 33],
      [7, 8],
      [9, 7],
      [2, 3, 33, 40],
      [1, 3, 33, 40],
      [2, 1, 40, 33],
      [1, 1, 9, 70],
    ].flatMap((shape) =>
      [0, 0.02, 0.5, 1].map((blocked) => {
        const name = `${dtype}, D = ${headDim}, [${shape}], ${blocked} blocked`;
        return { name, dtype, headDim, shape, blocked };
      }),
    ),
  ),
);

testTable("tile classes against the oracle", classCases, ({ dtype, headDim, shape, blocked }) => {
  const random = seededRandom(shape.length * 100 + headDim + blocked * 10);
  const [qL, kL] = shape.slice(-2) as [number, number];
  const [batches, heads] = shape.length === 4 ? (shape.slice(0, 2) as [number, number]) : [1, 1];
  using mask = device.tensor(dtype, shape);
  const [no, yes] = element[dtype];
  // Blocks of 8 x 8 are alike for the most part, so that each class occurs.
  const data = Float32Array.from({ length: mask.length }, () => yes);
  for (let plane = 0; plane < batches * heads; plane++) {
    for (let i = 0; i < qL; i += 8) {
      for (let j = 0; j < kL; j += 8) {
        const value = random() < blocked ? no : dtype !== "bool" && random() < 0.05 ? -0.5 : yes;
        for (let a = i; a < Math.min(i + 8, qL); a++) {
          data.fill(value, (plane * qL + a) * kL + j, (plane * qL + a) * kL + Math.min(j + 8, kL));
        }
      }
    }
  }
  mask.set(data);
  using pass = device.pass();
  using classes = classifyMaskTiles(pass, { mask, headDim });
  pass.commitAndWait();
  const [tileRows, tileKeys] = headDim === 512 ? [16, 16] : headDim === 256 ? [32, 16] : [64, 32];
  const reference: AttentionMask = {
    kind: dtype === "bool" ? "bool" : "additive",
    values: mask.toFloat32Array(),
    strides: { batch: heads * qL * kL, head: qL * kL, token: kL },
  };
  const expected = referenceTileClasses(reference, {
    batches,
    heads,
    seqLenQ: qL,
    seqLenK: kL,
    tileRows,
    tileKeys,
  });
  expect([...classes.tensor.view()]).toEqual([...expected]);
  expect([classes.queryTile, classes.keyTile]).toEqual([tileRows, tileKeys]);
  expect(classes.maskShape).toEqual(shape);
  const tiles = [Math.ceil(qL / tileRows), Math.ceil(kL / tileKeys)];
  expect(classes.tensor.shape).toEqual([...shape.slice(0, -2), ...tiles]);
});

describe("tile classes", () => {
  test("-0 is nothing, the lowest finite bias is not -infinity", () => {
    using mask = device.tensor("f16", [1, 48]);
    mask.set(
      Float32Array.from({ length: 48 }, (_, key) => (key < 16 ? -0 : key < 32 ? -65504 : Number.NEGATIVE_INFINITY)),
    );
    using pass = device.pass();
    using classes = classifyMaskTiles(pass, { mask, headDim: 256 });
    pass.commitAndWait();
    expect([...classes.tensor.view()]).toEqual([2, 1, 0]);
  });

  test("memory of earlier classes is written again", () => {
    using mask = device.tensor("bool", [40, 40]);
    using pass = device.pass();
    using classes = classifyMaskTiles(pass, { mask, headDim: 192 });
    buildCausalMask(pass, { mask });
    expect(classifyMaskTiles(pass, { mask, headDim: 256, reuse: classes })).toBe(classes);
    const described = pass.describe();
    expect(described.map(({ barrierBefore }) => barrierBefore)).toEqual([false, true, true]);
    pass.commitAndWait();
    expect([...classes.tensor.view()]).toEqual([1, 1, 0, 2, 2, 1]);
  });
});
