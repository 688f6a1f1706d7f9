/** Attention over drawn shapes, dtypes, masks, offsets and strides, within the error contract of its row of the table. */
import { afterAll, describe, expect } from "bun:test";
import fc from "fast-check";
import { openWithThreads } from "../../scripts/lib/open-device.ts";
import { type Device, flashAttnPrefill, flashAttnPrefillSupport } from "../../src/index.ts";
import { type AttentionProblem, type AttentionStrides, offsetOf } from "../../src/reference/index.ts";
import { bitsOf, fillPattern } from "../helpers/elements.ts";
import {
  encodePrefill,
  GuardedOutput,
  headMajorRows,
  judge,
  maskPatterns,
  maskShapes,
  type PrefillCase,
  prefillScene,
  valueKinds,
} from "../helpers/prefill.ts";
import { seededRandom } from "../helpers/random.ts";
import { property } from "./property.ts";

const device = openWithThreads(2);
afterAll(() => device.dispose());

const from1To = (max: number) => fc.integer({ min: 1, max });

/** Any problem that the table supports, small enough for a float64 oracle. */
const cases: fc.Arbitrary<PrefillCase> = fc
  .record({
    row: fc.constantFrom(...flashAttnPrefillSupport()),
    batch: from1To(2),
    kvHeads: from1To(3),
    group: from1To(3),
    qL: from1To(70),
    kL: from1To(90),
    spare: fc.nat(20),
    causal: fc.boolean(),
    offset: fc.nat(1000),
    layout: fc.constantFrom("head-major", "sequence-major"),
    values: fc.constantFrom(...valueKinds),
    pattern: fc.constantFrom(...maskPatterns),
    maskShape: fc.constantFrom(...maskShapes),
    tileClasses: fc.boolean(),
    seed: fc.nat(10_000),
  })
  .map(({ group, spare, offset, ...rest }) => ({
    ...rest,
    heads: rest.kvHeads * group,
    capacity: rest.kL + spare,
    qOffsetInK: rest.qL > rest.kL ? 0 : offset % (rest.kL - rest.qL + 1),
  }));

/** Orders in which batch, head and token may lie in memory, outermost first. */
const orders = [
  ["batch", "head", "token"],
  ["batch", "token", "head"],
  ["token", "batch", "head"],
  ["head", "token", "batch"],
  ["head", "batch", "token"],
  ["token", "head", "batch"],
] as const;

/** Strides of rows of `headDim` elements in an order, with `gap` elements after each extent. */
function stridesOf(
  order: (typeof orders)[number],
  extents: Readonly<Record<keyof AttentionStrides, number>>,
  headDim: number,
  gap: number,
): AttentionStrides & { readonly length: number } {
  const strides = { batch: 0, head: 0, token: 0 };
  let step = headDim + gap;
  for (const axis of order.toReversed()) {
    strides[axis] = step;
    step = step * extents[axis] + gap;
  }
  return { ...strides, length: step };
}

interface StridedCase {
  readonly row: ReturnType<typeof flashAttnPrefillSupport>[number];
  readonly batch: number;
  readonly kvHeads: number;
  readonly group: number;
  readonly qL: number;
  readonly kL: number;
  readonly orders: readonly (typeof orders)[number][];
  readonly gaps: readonly number[];
  readonly sharesKeys: boolean;
  readonly seed: number;
}

/** q, k, v and out wherever the strides say, in tensors full of a pattern. */
function checkStrided(on: Device, entry: StridedCase): void {
  const { row, batch, kvHeads, group, qL, kL } = entry;
  const { dtype, headDim } = row;
  const heads = kvHeads * group;
  const random = seededRandom(entry.seed);
  const place = (index: number, count: number, tokens: number, isShared: boolean) => {
    const extents = { batch: isShared ? 1 : batch, head: count, token: tokens };
    const { length, ...strides } = stridesOf(
      entry.orders[index] ?? orders[0],
      extents,
      headDim,
      entry.gaps[index] ?? 0,
    );
    const tensor = on.tensor(dtype, [length]);
    fillPattern(bitsOf(tensor), index);
    return { tensor, strides: isShared ? { ...strides, batch: 0 } : strides, count, tokens };
  };
  const [q, k, v] = [
    place(0, heads, qL, false),
    place(1, kvHeads, kL, entry.sharesKeys),
    place(2, kvHeads, kL, entry.sharesKeys),
  ];
  const out = place(3, heads, qL, false);
  for (const { tensor, strides, count, tokens } of [q, k, v]) {
    const values = tensor.toFloat32Array();
    for (let b = 0; b < batch; b++) {
      for (let head = 0; head < count; head++) {
        for (let token = 0; token < tokens; token++) {
          const start = offsetOf(strides, b, head, token);
          for (let d = 0; d < headDim; d++) values[start + d] = (random() + random() + random() - 1.5) * 2;
        }
      }
    }
    tensor.set(values);
  }
  const before = bitsOf(out.tensor).slice();
  using pass = on.pass();
  const layout = {
    batch,
    heads,
    kvHeads,
    seqLenQ: qL,
    headDim,
    q: q.strides,
    k: k.strides,
    v: v.strides,
    out: out.strides,
  };
  flashAttnPrefill(pass, { q: q.tensor, k: k.tensor, v: v.tensor, out: out.tensor, seqLenK: kL, causal: true, layout });
  pass.commitAndWait();

  const written = out.tensor.toFloat32Array();
  const after = bitsOf(out.tensor).slice();
  const rows: number[] = [];
  for (let b = 0; b < batch; b++) {
    for (let head = 0; head < heads; head++) {
      for (let token = 0; token < qL; token++) {
        const start = offsetOf(out.strides, b, head, token);
        rows.push(...written.subarray(start, start + headDim));
        after.set(before.subarray(start, start + headDim), start);
      }
    }
  }
  // What lies between the rows of the output is as it was.
  expect(after).toEqual(before);
  const shape = { batch, heads, kvHeads, seqLenQ: qL, seqLenK: kL, headDim };
  const valuesOf = ({ tensor, strides }: typeof q) => ({ values: tensor.toFloat32Array(), strides });
  const problem: AttentionProblem = {
    ...shape,
    scale: 1 / Math.sqrt(headDim),
    causal: true,
    q: valuesOf(q),
    k: valuesOf(k),
    v: valuesOf(v),
  };
  expect(judge({ row, qL }, problem, Float32Array.from(rows))).toBeUndefined();
  for (const { tensor } of [q, k, v, out]) tensor.dispose();
}

describe("attention against the oracle", () => {
  property("flashAttnPrefill", cases, 250, (entry) => {
    const scene = prefillScene(device, entry);
    const output = new GuardedOutput(device, entry);
    using pass = device.pass();
    const classes = encodePrefill(pass, entry, scene, output.out);
    pass.commitAndWait();
    expect(judge(entry, scene.problem, headMajorRows(entry, output.out))).toBeUndefined();
    expect(output.intact).toBe(true);
    classes?.dispose();
    output.dispose();
    scene.dispose();
  });

  property(
    "flashAttnPrefill with strides",
    fc.record({
      row: fc.constantFrom(...flashAttnPrefillSupport().filter(({ mask }) => mask === "none")),
      batch: from1To(3),
      kvHeads: from1To(2),
      group: from1To(3),
      qL: from1To(40),
      kL: from1To(50),
      orders: fc.array(fc.constantFrom(...orders), { minLength: 4, maxLength: 4 }),
      gaps: fc.array(fc.nat(9), { minLength: 4, maxLength: 4 }),
      sharesKeys: fc.boolean(),
      seed: fc.nat(10_000),
    }),
    200,
    (entry) => checkStrided(device, entry),
  );
});
