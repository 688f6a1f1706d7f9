/**
 * Tests in a project of your own: what a pass computes, beside the oracle in float64. Guard zones fail a pass whose
 * kernels leave their buffers: `SOFTMETAL_GUARD=1 bun test own.test.ts`
 */
import { afterAll, expect, test } from "bun:test";
import { Device, flashAttnPrefill, MetalAttentionError } from "metal-attention";
import { headMajorStrides, maxError, referenceAttention } from "metal-attention/reference";

const device = Device.open();
afterAll(() => device.dispose());

const [heads, tokens, headDim] = [2, 40, 64];
const shape = [1, heads, tokens, headDim];
const random = (seed: number) =>
  device
    .tensor("f16", shape)
    .set(Float32Array.from({ length: heads * tokens * headDim }, (_, i) => Math.sin(i * i * seed)));

test("attention is that of the oracle", async () => {
  using q = random(1.1);
  using k = random(1.3);
  using v = random(1.7);
  using out = device.tensor("f16", shape);
  using pass = device.pass();
  flashAttnPrefill(pass, { q, k, v, out, causal: true });
  await pass.commit();

  const strides = headMajorStrides(heads, tokens, headDim);
  const values = (tensor: typeof q) => ({ values: tensor.toFloat32Array(), strides });
  const lengths = { batch: 1, heads, kvHeads: heads, seqLenQ: tokens, seqLenK: tokens, headDim };
  const problem = { ...lengths, scale: 1 / Math.sqrt(headDim), q: values(q), k: values(k), v: values(v), causal: true };
  const expected = referenceAttention(problem);
  expect(maxError(out.toFloat32Array(), expected)).toBeLessThan(2e-3);
});

test("an output of another shape is refused by name", () => {
  using q = random(1.1);
  using out = device.tensor("f16", [1, heads, tokens + 1, headDim]);
  using pass = device.pass();
  const call = () => flashAttnPrefill(pass, { q, k: q, v: q, out });
  expect(call).toThrow(MetalAttentionError);
  expect(call).toThrow(/^out: /);
});
