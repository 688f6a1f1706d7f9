import { describe, expect, test } from "bun:test";
import { type Device, flashAttnPrefill } from "../../src/index.ts";
import type { ElementBits } from "../../src/reference/index.ts";
import {
  type AttentionPlan,
  type AttentionValues,
  attentionProblem,
  bf16Tensor,
  headDim,
  judgeSampled,
  kernel,
  outputRows,
  shapeOf,
} from "../helpers/attention.ts";
import { oneAndTwoThreads } from "../helpers/devices.ts";
import { bitDifferences, bitsOf, fillPattern, newBits, placeTensor } from "../helpers/elements.ts";
import { seededRandom } from "../helpers/random.ts";
import { testTable } from "../helpers/table.ts";

const devices = oneAndTwoThreads();
const [device] = devices;

/** Runs a plan, checks that it is one dispatch and writes nothing but its output, whose bits it returns. */
function run(on: Device, plan: AttentionPlan, problem = attentionProblem(plan)): ElementBits {
  const { heads, kvHeads, seqLenQ, seqLenK, kvCapacity = seqLenK, causal, qOffsetInK, scale, layout } = plan;
  using q = bf16Tensor(on, shapeOf(plan, heads, seqLenQ), problem.q.values);
  using k = bf16Tensor(on, shapeOf(plan, kvHeads, kvCapacity), problem.k.values);
  using v = bf16Tensor(on, shapeOf(plan, kvHeads, kvCapacity), problem.v.values);
  const placed = placeTensor(on, "bf16", shapeOf(plan, heads, seqLenQ), 4);
  fillPattern(bitsOf(placed.whole), 1);
  const inputs = [q, k, v].map((tensor) => bitsOf(tensor).slice());

  using pass = on.pass();
  flashAttnPrefill(pass, {
    q,
    k,
    v,
    out: placed.part,
    seqLenK,
    ...(causal === undefined ? {} : { causal }),
    ...(qOffsetInK === undefined ? {} : { qOffsetInK }),
    ...(scale === undefined ? {} : { scale }),
    ...(layout === undefined ? {} : { layout }),
  });
  const [dispatch, ...more] = pass.describe();
  expect([dispatch?.kernel, more.length]).toEqual([kernel, 0]);
  expect(dispatch?.grid).toEqual([heads, plan.batch ?? 1, Math.ceil(seqLenQ / 32)]);
  expect(dispatch?.threadsPerThreadgroup).toEqual([32, 2, 2]);
  expect(dispatch?.form).toBe("threadgroups");
  pass.commitAndWait();

  const out = bitsOf(placed.part).slice();
  const around = newBits("bf16", placed.whole.length);
  fillPattern(around, 1);
  around.set(out, placed.offset);
  expect(bitDifferences("bf16", bitsOf(placed.whole), around)).toEqual([]);
  for (const [index, tensor] of [q, k, v].entries()) {
    expect(bitDifferences("bf16", bitsOf(tensor), inputs[index] as ElementBits)).toEqual([]);
  }
  placed.part.dispose();
  placed.whole.dispose();
  return out;
}

type PlanCase = AttentionPlan & { readonly name: string };

const lengths = [1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100];
const groups = [
  { heads: 1, kvHeads: 1 },
  { heads: 2, kvHeads: 1 },
  { heads: 4, kvHeads: 1 },
  { heads: 8, kvHeads: 1 },
  { heads: 4, kvHeads: 2 },
  { heads: 3, kvHeads: 3 },
];

function plan(shape: AttentionPlan, note = ""): PlanCase {
  const { batch = 1, heads, kvHeads, seqLenQ, seqLenK, causal, qOffsetInK = 0 } = shape;
  const kind = causal === true ? "causal" : "full";
  const offset = qOffsetInK > 0 ? `, offset ${qOffsetInK}` : "";
  return {
    ...shape,
    name: `${kind} ${seqLenQ} x ${seqLenK}${offset}, heads ${heads}/${kvHeads}, batch ${batch}${note}`,
  };
}

/** q and k stretched so that scores reach about +-300. */
const wide: AttentionValues = { q: (normal) => normal * 9, k: (normal) => normal * 9 };

/** All keys alike, so that all weights are. */
const equalKeys: AttentionValues = { k: (_, { channel }) => Math.sin(channel) };

const outlierChannel: AttentionValues = {
  q: (normal, { channel }) => (channel === 77 ? 40 * normal : normal),
  k: (normal, { channel }) => (channel === 77 ? 40 + normal : normal),
  v: (normal, { channel }) => (channel === 200 ? 1000 * normal : normal),
};

/** Scores that grow from key to key, so that the running maximum changes in every tile; and the reverse. */
const rising: AttentionValues = { q: () => 1, k: (normal, { token }) => token / 8 + normal / 64 };
const falling: AttentionValues = { q: () => 1, k: (normal, { token }) => -token / 8 + normal / 64 };

const tiny: AttentionValues = { v: (normal) => normal * 2 ** -120 };
const huge: AttentionValues = { v: (normal) => normal * 2 ** 120 };

/** Shapes that nobody chose. */
function drawnPlans(count: number): PlanCase[] {
  const random = seededRandom(77);
  const draw = (from: number, to: number): number => from + Math.floor(random() * (to - from + 1));
  return Array.from({ length: count }, (_, index) => {
    const kvHeads = draw(1, 3);
    const seqLenK = draw(1, 90);
    const seqLenQ = draw(1, 90);
    const offset = { qOffsetInK: draw(0, Math.max(0, seqLenK - seqLenQ)) };
    const shape = { batch: draw(1, 2), heads: kvHeads * draw(1, 3), kvHeads, seqLenQ, seqLenK, ...offset };
    const rest = { kvCapacity: seqLenK + draw(0, 20), causal: random() < 0.5, seed: index };
    const layout = random() < 0.3 ? "sequence-major" : "head-major";
    return plan({ ...shape, ...rest, layout }, `, drawn ${index}`);
  });
}

const one = { heads: 1, kvHeads: 1 };
const two = { heads: 2, kvHeads: 1 };

const cases: readonly PlanCase[] = [
  ...lengths.flatMap((length, index) =>
    [false, true].map((causal) => {
      const group = groups[(index + (causal ? 3 : 0)) % groups.length] as { heads: number; kvHeads: number };
      return plan({ ...group, batch: 1 + (index % 3), seqLenQ: length, seqLenK: length, causal });
    }),
  ),
  ...groups.map((group) => plan({ ...group, batch: 2, seqLenQ: 40, seqLenK: 40, causal: true }, " (groups)")),
  plan({ ...two, seqLenQ: 1, seqLenK: 100 }),
  plan({ ...two, seqLenQ: 33, seqLenK: 17 }),
  plan({ ...two, seqLenQ: 100, seqLenK: 1 }),
  plan({ ...two, seqLenQ: 17, seqLenK: 65 }),
  plan({ ...two, seqLenQ: 64, seqLenK: 15 }),
  plan({ ...two, seqLenQ: 31, seqLenK: 64, batch: 2 }),
  plan({ ...two, seqLenQ: 33, seqLenK: 17, causal: true }),
  plan({ ...two, seqLenQ: 17, seqLenK: 65, causal: true }),
  plan({ ...two, seqLenQ: 1, seqLenK: 65, causal: true, qOffsetInK: 64 }),
  plan({ ...two, seqLenQ: 33, seqLenK: 100, causal: true, qOffsetInK: 67 }),
  plan({ ...two, seqLenQ: 33, seqLenK: 100, causal: true, qOffsetInK: 16 }),
  plan({ ...two, seqLenQ: 32, seqLenK: 64, causal: true, qOffsetInK: 31 }),
  plan({ ...two, seqLenQ: 33, seqLenK: 100, causal: false, qOffsetInK: 5 }),
  plan({ ...two, seqLenQ: 20, seqLenK: 33, kvCapacity: 50, batch: 2 }, ", NaN beyond the keys"),
  plan({ ...two, seqLenQ: 20, seqLenK: 32, kvCapacity: 33, causal: true, qOffsetInK: 12 }, ", NaN beyond the keys"),
  plan({ ...two, seqLenQ: 1, seqLenK: 1, kvCapacity: 64, batch: 2 }, ", NaN beyond the keys"),
  plan({ ...two, seqLenQ: 33, seqLenK: 47, kvCapacity: 48, causal: true, qOffsetInK: 14 }, ", NaN beyond the keys"),
  plan({ ...one, seqLenQ: 40, seqLenK: 40, values: wide }, ", scores to +-300"),
  plan({ ...one, seqLenQ: 40, seqLenK: 40, values: wide, causal: true }, ", scores to +-300"),
  plan({ ...one, seqLenQ: 40, seqLenK: 50, values: equalKeys }, ", equal keys"),
  plan({ ...one, seqLenQ: 40, seqLenK: 50, values: equalKeys, causal: true }, ", equal keys"),
  plan({ ...one, seqLenQ: 40, seqLenK: 40, values: outlierChannel }, ", outlier channels"),
  plan({ ...one, seqLenQ: 40, seqLenK: 40, values: outlierChannel, causal: true }, ", outlier channels"),
  plan({ ...one, seqLenQ: 20, seqLenK: 100, values: rising }, ", rising scores"),
  plan({ ...one, seqLenQ: 20, seqLenK: 100, values: falling }, ", falling scores"),
  plan({ ...one, seqLenQ: 40, seqLenK: 40, values: rising, causal: true }, ", rising scores"),
  plan({ ...one, seqLenQ: 20, seqLenK: 40, values: tiny }, ", values near 2^-120"),
  plan({ ...one, seqLenQ: 20, seqLenK: 40, values: huge }, ", values near 2^120"),
  plan({ ...one, seqLenQ: 20, seqLenK: 40, scale: 1 }, ", scale 1"),
  plan({ ...one, seqLenQ: 20, seqLenK: 40, scale: 1e-4 }, ", scale 1e-4"),
  plan({ ...two, seqLenQ: 37, seqLenK: 45, batch: 2, layout: "sequence-major" }, ", sequence-major"),
  plan({ ...two, seqLenQ: 37, seqLenK: 37, batch: 2, layout: "sequence-major", causal: true }, ", sequence-major"),
  plan({ ...two, seqLenQ: 300, seqLenK: 300, batch: 2, causal: true }, ", many tiles"),
  ...drawnPlans(16),
];

testTable("flashAttnPrefill against the float64 oracle", cases, (entry) => {
  const problem = attentionProblem(entry);
  const out = run(device, entry, problem);
  expect(judgeSampled(problem, outputRows(entry, out))).toBeUndefined();
  // Neither a repeat nor the number of threads changes a bit.
  for (const again of devices) expect(bitDifferences("bf16", run(again, entry, problem), out)).toEqual([]);
});

test("the wide scores are as wide as they are called", () => {
  const { q, k, scale } = attentionProblem({ ...one, seqLenQ: 40, seqLenK: 40, values: wide });
  let largest = 0;
  for (let i = 0; i < 40; i++) {
    for (let j = 0; j < 40; j++) {
      let score = 0;
      for (let d = 0; d < headDim; d++) {
        score += (q.values[i * headDim + d] as number) * (k.values[j * headDim + d] as number);
      }
      largest = Math.max(largest, Math.abs(score * scale));
    }
  }
  expect(largest).toBeGreaterThan(250);
  expect(largest).toBeLessThan(400);
});

describe("flashAttnPrefill, two ways to the same bits", () => {
  /** Rows `first` up to `end` of a head-major output. */
  function rowsOf(out: ElementBits, heads: number, seqLenQ: number, first: number, end: number): number[] {
    return Array.from({ length: heads }, (_, head) => [
      ...out.subarray((head * seqLenQ + first) * headDim, (head * seqLenQ + end) * headDim),
    ]).flat();
  }

  test.each([
    ["at tile edges", [32, 32, 32]],
    ["between them", [17, 51, 28, 4]],
    ["token by token at the end", [93, 1, 1, 1]],
  ])("a causal prompt in chunks %s", (_, chunks) => {
    const total = chunks.reduce((sum, chunk) => sum + chunk, 0);
    const heads = 4;
    const kvHeads = 2;
    const whole: AttentionPlan = { heads, kvHeads, seqLenQ: total, seqLenK: total, causal: true };
    const problem = attentionProblem(whole);
    const expected = run(device, whole, problem);
    let first = 0;
    for (const chunk of chunks) {
      const end = first + chunk;
      // The cache has room to spare, and NaN in what is not written yet.
      const part: AttentionPlan = { heads, kvHeads, seqLenQ: chunk, seqLenK: end, kvCapacity: 128 };
      const partial = { ...part, causal: true, qOffsetInK: first };
      const cut = cutProblem(problem, total, partial);
      const actual = run(device, partial, cut);
      expect(rowsOf(actual, heads, chunk, 0, chunk)).toEqual(rowsOf(expected, heads, total, first, end));
      first = end;
    }
    expect(first).toBe(total);
  });

  /** Queries and keys of a head-major problem that a chunk of it sees. */
  function cutProblem(problem: ReturnType<typeof attentionProblem>, total: number, part: AttentionPlan) {
    const { heads, kvHeads, seqLenQ, seqLenK, kvCapacity = seqLenK, qOffsetInK = 0 } = part;
    const cut = (source: ArrayLike<number>, count: number, first: number, tokens: number, capacity: number) => {
      const values = new Float64Array(count * capacity * headDim).fill(Number.NaN);
      for (let head = 0; head < count; head++) {
        for (let i = 0; i < tokens * headDim; i++) {
          values[head * capacity * headDim + i] = source[(head * total + first) * headDim + i] as number;
        }
      }
      return values;
    };
    return {
      ...problem,
      q: { ...problem.q, values: cut(problem.q.values, heads, qOffsetInK, seqLenQ, seqLenQ) },
      k: { ...problem.k, values: cut(problem.k.values, kvHeads, 0, seqLenK, kvCapacity) },
      v: { ...problem.v, values: cut(problem.v.values, kvHeads, 0, seqLenK, kvCapacity) },
    };
  }

  test.each([false, true])("sequence-major and head-major, causal %p", (causal) => {
    const shape: AttentionPlan = { batch: 2, heads: 4, kvHeads: 2, seqLenQ: 45, seqLenK: 45, causal };
    const sequence: AttentionPlan = { ...shape, layout: "sequence-major" };
    const headMajor = outputRows(shape, run(device, shape));
    expect(outputRows(sequence, run(device, sequence))).toEqual(headMajor);
  });

  test("keys in use from a larger cache, and the same keys alone", () => {
    const shape: AttentionPlan = { heads: 2, kvHeads: 2, seqLenQ: 20, seqLenK: 39 };
    expect(run(device, { ...shape, kvCapacity: 77 })).toEqual(run(device, shape));
  });

  test("grouped heads, and keys repeated for each head", () => {
    const repeatKey = (seed: number): AttentionValues => ({
      k: (_, { token, channel }) => Math.sin(seed + token * 31 + channel),
      v: (_, { token, channel }) => Math.cos(seed + token * 17 + channel),
    });
    const shape: AttentionPlan = { heads: 4, kvHeads: 1, seqLenQ: 33, seqLenK: 40, values: repeatKey(1) };
    expect(run(device, shape)).toEqual(run(device, { ...shape, kvHeads: 4 }));
  });

  test("the default scale is 1 / sqrt(256)", () => {
    const shape: AttentionPlan = { heads: 1, kvHeads: 1, seqLenQ: 9, seqLenK: 40 };
    expect(run(device, shape)).toEqual(run(device, { ...shape, scale: 1 / 16 }));
  });

  test("many dispatches in one pass", () => {
    const shape: AttentionPlan = { heads: 2, kvHeads: 1, seqLenQ: 33, seqLenK: 33, causal: true };
    const problem = attentionProblem(shape);
    const expected = run(device, shape, problem);
    const q = bf16Tensor(device, [1, 2, 33, headDim], problem.q.values);
    const k = bf16Tensor(device, [1, 1, 33, headDim], problem.k.values);
    const v = bf16Tensor(device, [1, 1, 33, headDim], problem.v.values);
    const outs = Array.from({ length: 8 }, () => device.tensor("bf16", [1, 2, 33, headDim]));
    using pass = device.pass();
    for (const out of outs) flashAttnPrefill(pass, { q, k, v, out, causal: true });
    // Each result is the next one's query: a barrier is needed between them.
    using chained = device.tensor("bf16", [1, 2, 33, headDim]);
    flashAttnPrefill(pass, { q: outs[0] ?? q, k, v, out: chained, causal: true });
    expect(pass.describe().length).toBe(9);
    expect(pass.describe().at(-1)?.barrierBefore).toBe(true);
    pass.commitAndWait();
    for (const out of outs) expect(bitDifferences("bf16", bitsOf(out), expected)).toEqual([]);
    const second = { ...problem, q: { ...problem.q, values: Float64Array.from(outs[0]?.toFloat32Array() ?? []) } };
    expect(bitDifferences("bf16", bitsOf(chained), run(device, shape, second))).toEqual([]);
  });
});
