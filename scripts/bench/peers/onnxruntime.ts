import { attentionInputs, attentionModel, attentionOutput, decodeModel } from "./onnx-model.ts";
import type { DecodeProblem, Peer, Problem } from "./problem.ts";

/** `MultiHeadAttention` of ONNX Runtime on the CPU, in f32. */
export async function prepareOnnxRuntime(problem: Problem, threads: number): Promise<Peer> {
  const { Tensor } = await load();
  const { tokens, heads, headDim, causal } = problem;
  const model = attentionModel({ batch: 1, tokens, heads, headDim, scale: 1 / Math.sqrt(headDim), causal });
  const session = await createSession(model, threads);
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

/** `GroupQueryAttention` of ONNX Runtime on the CPU, in f32, with one cache for what was and what is. */
export async function prepareOnnxDecode(problem: DecodeProblem, threads: number): Promise<Peer> {
  const { Tensor } = await load();
  const { heads, kvHeads, headDim, keys } = problem;
  const model = decodeModel({ heads, kvHeads, headDim, keys, scale: 1 / Math.sqrt(headDim) });
  const session = await createSession(model, threads);
  const tensor = (values: Float32Array, shape: readonly number[]) => new Tensor("float32", values, shape);
  const last = (values: Float32Array) =>
    Float32Array.from({ length: kvHeads * headDim }, (_, i) => {
      const head = Math.floor(i / headDim);
      return values[(head * keys + keys - 1) * headDim + (i % headDim)] as number;
    });
  const cache = [problem.k, problem.v].map((values) => tensor(values.slice(), [1, kvHeads, keys, headDim]));
  const [k, v] = cache as [InstanceType<typeof Tensor>, InstanceType<typeof Tensor>];
  const row = [1, 1, kvHeads * headDim];
  const output = new Float32Array(heads * headDim);
  const out = tensor(output, [1, 1, heads * headDim]);
  const feeds = {
    query: tensor(problem.q, [1, 1, heads * headDim]),
    key: tensor(last(problem.k), row),
    value: tensor(last(problem.v), row),
    past_key: k,
    past_value: v,
    seqlens_k: new Tensor("int32", Int32Array.of(keys - 1), [1]),
    total_sequence_length: new Tensor("int32", Int32Array.of(keys), [1]),
  };
  return {
    async run() {
      await session.run(feeds, { [attentionOutput]: out, present_key: k, present_value: v });
    },
    output: () => output,
    dispose: () => void session.release(),
  };
}

async function createSession(model: Uint8Array, threads: number) {
  const { InferenceSession } = await load();
  return await InferenceSession.create(model, {
    executionProviders: ["cpu"],
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    // Its threads spin for more work; without this, also during the next measurement.
    extra: { session: { force_spinning_stop: "1" } },
  });
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
