import { Device, flashAttnPrefill, kvCacheCopySeq, type SharedTensor, type Tensor } from "../../src/index.ts";

declare const self: Worker;

/** What the test sends: to attend over rows that are there, or to append to free ones. */
export type Task =
  | {
      readonly kind: "attend";
      readonly q: SharedTensor;
      readonly k: SharedTensor;
      readonly v: SharedTensor;
      readonly rows: number;
      readonly repeats: number;
    }
  | {
      readonly kind: "append";
      readonly k: SharedTensor;
      readonly v: SharedTensor;
      readonly from: number;
      readonly to: number;
    };

self.onmessage = async ({ data }: MessageEvent<Task>) => {
  using device = Device.open();
  using k = device.adopt(data.k) as Tensor<"bf16">;
  using v = device.adopt(data.v) as Tensor<"bf16">;
  if (data.kind === "append") {
    const [, heads = 0, , headDim = 0] = k.shape;
    using src = device.tensor("bf16", [1, 1, heads, headDim]);
    for (let row = data.from; row < data.to; row++) {
      src.set(new Float32Array(heads * headDim).fill(row));
      using pass = device.pass();
      kvCacheCopySeq(pass, { k: { src, cache: k }, v: { src, cache: v }, seqPosStart: row });
      await pass.commit();
    }
    self.postMessage("appended");
    return;
  }
  using q = device.adopt(data.q) as Tensor<"bf16">;
  using out = device.tensor("bf16", q.shape);
  const results = new Set<string>();
  for (let i = 0; i < data.repeats; i++) {
    using pass = device.pass();
    flashAttnPrefill(pass, { q, k, v, out, seqLenK: data.rows });
    await pass.commit();
    results.add(Bun.hash(out.bytes).toString(16));
  }
  self.postMessage([...results]);
};
