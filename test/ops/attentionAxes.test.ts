import { afterAll, describe, expect, test } from "bun:test";
import { type AttentionDType, type AttentionLayout, Device, flashAttnPrefill, type Tensor } from "../../src/index.ts";
import { headMajorStrides, sequenceMajorStrides } from "../../src/reference/index.ts";
import { bitsOf } from "../helpers/elements.ts";
import { expectRefusal } from "../helpers/errors.ts";
import { strideRules } from "../helpers/prefill.ts";
import { testTable } from "../helpers/table.ts";

// qLayout and kvLayout: the order of the axes of q and out apart from that of k and v.

const device = Device.open();
afterAll(() => device.dispose());

const [batch, heads, kvHeads, qL, kL] = [2, 4, 2, 9, 20];
const orders = ["head-major", "sequence-major"] as const;

function shaped(dtype: AttentionDType, order: AttentionLayout, count: number, tokens: number, D: number, seed: number) {
  const shape = order === "head-major" ? [batch, count, tokens, D] : [batch, tokens, count, D];
  const tensor = device.tensor(dtype, shape);
  const bits = bitsOf(tensor);
  for (let i = 0; i < bits.length; i++) bits[i] = 0x3c00 + ((i * 31 + seed * 97) % 512);
  return tensor;
}

const cases = (["bf16", "f16"] as const).flatMap((dtype) =>
  [64, 512].flatMap((headDim) =>
    orders.flatMap((qOrder) =>
      orders.flatMap((kvOrder) =>
        [undefined, ...orders].map((layout) => ({
          ...{ dtype, headDim, qOrder, kvOrder, layout },
          name: `${dtype}, D=${headDim}: q ${qOrder}, k ${kvOrder}${layout === undefined ? "" : `, in a ${layout} layout`}`,
        })),
      ),
    ),
  ),
);

testTable("the bits of the same strides given by hand", cases, ({ dtype, headDim, qOrder, kvOrder, layout }) => {
  const q = shaped(dtype, qOrder, heads, qL, headDim, 1);
  const k = shaped(dtype, kvOrder, kvHeads, kL, headDim, 2);
  const v = shaped(dtype, kvOrder, kvHeads, kL, headDim, 3);
  const outs = [1, 2].map(() => device.tensor(dtype, q.shape)) as [Tensor<typeof dtype>, Tensor<typeof dtype>];
  const options = { causal: true, qOffsetInK: 5, seqLenK: 17 };
  using pass = device.pass();
  const named = {
    ...(qOrder === (layout ?? "head-major") ? {} : { qLayout: qOrder }),
    ...(kvOrder === (layout ?? "head-major") ? {} : { kvLayout: kvOrder }),
    ...(layout === undefined ? {} : { layout }),
  };
  flashAttnPrefill(pass, { q, k, v, out: outs[0], ...options, ...named });
  flashAttnPrefill(pass, {
    ...{ q, k, v, out: outs[1], ...options, kvCapacity: kL },
    layout: {
      ...{ batch, heads, kvHeads, seqLenQ: qL, headDim },
      q: strideRules[qOrder](heads, qL, headDim),
      k: strideRules[kvOrder](kvHeads, kL, headDim),
      v: strideRules[kvOrder](kvHeads, kL, headDim),
      out: strideRules[qOrder](heads, qL, headDim),
    },
  });
  const [first, second] = pass.describe();
  expect(first?.reads).toEqual(second?.reads ?? []);
  pass.commitAndWait();
  expect(outs[0].bytes).toEqual(outs[1].bytes);
  expect(new Set(bitsOf(outs[0])).size).toBeGreaterThan(50);
  for (const tensor of [q, k, v, ...outs]) tensor.dispose();
});

test("both given: the layout of the whole does not count", () => {
  const [q, k] = [shaped("bf16", "sequence-major", heads, qL, 64, 1), shaped("bf16", "head-major", kvHeads, kL, 64, 2)];
  const outs = [1, 2].map(() => device.tensor("bf16", q.shape)) as [Tensor<"bf16">, Tensor<"bf16">];
  using pass = device.pass();
  const apart = { qLayout: "sequence-major", kvLayout: "head-major" } as const;
  flashAttnPrefill(pass, { q, k, v: k, out: outs[0], ...apart });
  flashAttnPrefill(pass, { q, k, v: k, out: outs[1], ...apart, layout: "sequence-major" });
  pass.commitAndWait();
  expect(outs[0].bytes).toEqual(outs[1].bytes);
});

test("tensors without a batch axis", () => {
  const tokens = device.tensor("f16", [qL, heads, 64]);
  const cache = device.tensor("f16", [kvHeads, kL, 64]);
  bitsOf(cache).fill(0x3c00);
  using pass = device.pass();
  const out = device.tensor("f16", tokens.shape);
  flashAttnPrefill(pass, { q: tokens, k: cache, v: cache, out, qLayout: "sequence-major", seqLenK: 3 });
  pass.commitAndWait();
  expect(bitsOf(out).every((bits) => bits === 0x3c00)).toBe(true);
});

describe("refused", () => {
  const q = shaped("bf16", "sequence-major", heads, qL, 64, 1);
  const k = shaped("bf16", "head-major", kvHeads, kL, 64, 2);
  const out = device.tensor("bf16", q.shape);
  const valid = { q, k, v: k, out, qLayout: "sequence-major" } as const;
  const strides = {
    ...{ batch, heads, kvHeads, seqLenQ: qL, headDim: 64 },
    ...{ q: sequenceMajorStrides(heads, qL, 64), out: sequenceMajorStrides(heads, qL, 64) },
    ...{ k: headMajorStrides(kvHeads, kL, 64), v: headMajorStrides(kvHeads, kL, 64) },
  };
  const wrong = (spoil: Readonly<Record<string, unknown>>, argument: string, ...says: string[]) => {
    using pass = device.pass();
    const args = { ...valid, ...spoil } as unknown as typeof valid;
    expectRefusal(() => flashAttnPrefill(pass, args), "invalid-argument", argument, ...says);
    expect(pass.describe()).toEqual([]);
    flashAttnPrefill(pass, valid);
    expect(pass.describe().length).toBe(1);
  };

  test.each(["qLayout", "kvLayout"])("%s that is none", (name) => {
    for (const value of ["token-major", "", 1, null, strides]) wrong({ [name]: value }, name, "head-major");
  });

  test("an order beside strides, which say it all", () => {
    wrong({ layout: strides, seqLenK: kL }, "qLayout", "strides");
    wrong({ layout: strides, seqLenK: kL, qLayout: undefined, kvLayout: "head-major" }, "kvLayout", "strides");
  });

  test("an out in the other order than q", () => {
    wrong({ out: device.tensor("bf16", [batch, heads, qL, 64]) }, "out", `${batch},${qL},${heads},64`);
  });

  test("a v in the other order than k", () => {
    wrong({ v: device.tensor("bf16", [batch, kL, kvHeads, 64]) }, "v", `${batch},${kvHeads},${kL},64`);
  });

  test("q taken for head-major", () => {
    wrong({ qLayout: undefined }, "k", "key heads");
  });
});
