/** Mask builders and tile classes over drawn shapes, windows, offsets and patterns: the oracle's elements. */
import { afterAll, describe, expect } from "bun:test";
import fc from "fast-check";
import { openWithThreads } from "../../scripts/lib/open-device.ts";
import {
  buildCausalMask,
  buildSlidingWindowMask,
  classifyMaskTiles,
  flashAttnPrefillSupport,
} from "../../src/index.ts";
import { referenceSlidingWindowMask, referenceTileClasses } from "../../src/reference/index.ts";
import { seededRandom } from "../helpers/random.ts";
import { property } from "./property.ts";

const device = openWithThreads(2);
afterAll(() => device.dispose());

const from1To = (max: number) => fc.integer({ min: 1, max });
const dtypes = fc.constantFrom("bf16", "f16", "bool");
const blocked = { bf16: Number.NEGATIVE_INFINITY, f16: Number.NEGATIVE_INFINITY, bool: 0 } as const;
const attended = { bf16: 0, f16: 0, bool: 1 } as const;

describe("masks against the oracle", () => {
  property(
    "buildCausalMask and buildSlidingWindowMask",
    fc.record({
      dtype: dtypes,
      qL: from1To(90),
      kL: from1To(120),
      window: fc.option(fc.oneof(from1To(140), fc.constant(2 ** 31 - 1)), { nil: undefined }),
      qOffsetInK: fc.oneof(fc.nat(140), fc.constant(2 ** 31 - 1 - 90)),
    }),
    300,
    ({ dtype, qL, kL, window, qOffsetInK }) => {
      using whole = device.tensor(dtype, [qL + 2, kL]);
      whole.set(new Float32Array(whole.length).fill(1));
      using mask = whole.slice(1, qL + 1);
      using pass = device.pass();
      if (window === undefined) buildCausalMask(pass, { mask, qOffsetInK });
      else buildSlidingWindowMask(pass, { mask, window, qOffsetInK });
      pass.commitAndWait();
      const shape = { seqLenQ: qL, seqLenK: kL, qOffsetInK, window: window ?? Number.POSITIVE_INFINITY };
      const expected = referenceSlidingWindowMask(shape).map((attends) => (attends ? attended : blocked)[dtype]);
      const around = new Array<number>(kL).fill(1);
      expect([...whole.toFloat32Array()]).toEqual([...around, ...expected, ...around]);
    },
  );

  property(
    "classifyMaskTiles",
    fc.record({
      dtype: dtypes,
      support: fc.constantFrom(...flashAttnPrefillSupport()),
      batches: from1To(2),
      heads: from1To(3),
      qL: from1To(100),
      kL: from1To(100),
      // Few of either, so that tiles of all classes occur.
      part: fc.constantFrom(0, 0.002, 0.5, 0.998, 1),
      biases: fc.boolean(),
      seed: fc.nat(1000),
    }),
    200,
    ({ dtype, support, batches, heads, qL, kL, part, biases, seed }) => {
      const random = seededRandom(seed);
      const bias = biases && dtype !== "bool" && random() < 0.5 ? -1 : attended[dtype];
      const data = Float32Array.from({ length: batches * heads * qL * kL }, () =>
        random() < part ? blocked[dtype] : random() < 0.01 ? bias : attended[dtype],
      );
      using mask = device.tensor(dtype, [batches, heads, qL, kL]);
      mask.set(data);
      using pass = device.pass();
      using classes = classifyMaskTiles(pass, { mask, headDim: support.headDim });
      pass.commitAndWait();
      const strides = { batch: heads * qL * kL, head: qL * kL, token: kL };
      const kind = dtype === "bool" ? "bool" : "additive";
      const tiles = { tileRows: support.queryTile, tileKeys: support.keyTile };
      const shape = { batches, heads, seqLenQ: qL, seqLenK: kL, ...tiles };
      const expected = referenceTileClasses({ kind, values: data, strides }, shape);
      expect([...classes.tensor.bytes]).toEqual([...expected]);
    },
  );
});
