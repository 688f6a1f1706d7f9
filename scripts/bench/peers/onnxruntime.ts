import { attentionInputs, attentionModel, attentionOutput } from "./onnx-model.ts";
import type { Peer, Problem } from "./problem.ts";

/** `MultiHeadAttention` of ONNX Runtime on the CPU, in f32. */
export async function prepareOnnxRuntime(problem: Problem, threads: number): Promise<Peer> {
  const { InferenceSession, Tensor } = await load();
  const { tokens, heads, headDim, causal } = problem;
  const model = attentionModel({ batch: 1, tokens, heads, headDim, scale: 1 / Math.sqrt(headDim), causal });
  const session = await InferenceSession.create(model, {
    executionProviders: ["cpu"],
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    // Its threads spin for more work; without this, also during the next measurement.
    extra: { session: { force_spinning_stop: "1" } },
  });
  const tensor = (values: Float32Array) => new Tensor("float32", values, [1, tokens, heads * headDim]);
  const values = [problem.q, problem.k, problem.v].map(tensor);
  const feeds = Object.fromEntries(attentionInputs.map((name, i) => [name, values[i] as InstanceType<typeof Tensor>]));
  let output = new Float32Array(0);
  return {
    async run() {
      const results = await session.run(feeds);
      output = results[attentionOutput]?.data as Float32Array<ArrayBuffer>;
    },
    output: () => output,
    dispose: () => void session.release(),
  };
}

/** A development dependency: absent from an installed package. */
async function load() {
  try {
    return await import("onnxruntime-node");
  } catch (error) {
    throw new Error(`onnxruntime-node cannot be loaded; run bun install in the checkout (${String(error)})`, {
      cause: error,
    });
  }
}
