import { normalArray } from "../../lib/random.ts";
import type { Benchmark, Measurement } from "../benchmark.ts";
import { compareOutputs } from "./all.ts";
import { prepareOnnxDecode } from "./onnxruntime.ts";
import { prepareOurDecode } from "./ours.ts";
import type { DecodeProblem, Peer } from "./problem.ts";

const extents = { heads: 32, kvHeads: 8, headDim: 128 };

/** A token here beside ONNX Runtime on as many threads. */
export const decodePeerBenchmarks: readonly Benchmark[] = [1, 2].map((threads) => ({
  name: `peers-decode-f32-${threads}t`,
  unit: "us",
  about: `flashAttnDecode over f32, 32 / 8 heads, D = 128, 4,096 keys, threads: ${threads}`,
  baselineAbout: "GroupQueryAttention of onnxruntime-node in f32 with a cache of its own, on as many threads",
  target: { text: "at most its time", met: (_, ratio) => ratio <= 1 },
  rounds: ({ quick }) => (quick ? 3 : 15),
  warmUp: true,
  prepare: () => prepare(threads),
}));

async function prepare(threads: number) {
  const { heads, kvHeads, headDim } = extents;
  const keys = 4096;
  const cache = (seed: number) => normalArray(kvHeads * keys * headDim, 1, seed);
  const problem: DecodeProblem = { ...extents, keys, q: normalArray(heads * headDim, 1, 3), k: cache(1), v: cache(2) };
  using stack = new DisposableStack();
  const add = (peer: Peer) => stack.adopt(peer, (each) => each.dispose());
  const ours = add(prepareOurDecode(problem, threads));
  const onnxRuntime = add(await prepareOnnxDecode(problem, threads));
  await compareOutputs({ "onnxruntime-node": onnxRuntime, "this library": ours });
  const microseconds =
    (peer: Peer): Measurement =>
    async () => {
      const start = Bun.nanoseconds();
      await peer.run();
      return (Bun.nanoseconds() - start) / 1000;
    };
  const peers = stack.move();
  return { measure: microseconds(ours), baseline: microseconds(onnxRuntime), dispose: () => peers.dispose() };
}
