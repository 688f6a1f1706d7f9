import { nmse } from "../../../src/reference/index.ts";
import type { Benchmark, Measurement, PreparedBenchmark } from "../benchmark.ts";
import { operationsOf } from "../prefill.ts";
import { prepareOnnxRuntime } from "./onnxruntime.ts";
import { prepareOurs } from "./ours.ts";
import { preparePlainC } from "./plain-c.ts";
import { makeProblem, type Peer, type Problem } from "./problem.ts";

const heads = 8;
const tokens = 1024;

/** Outputs are compared before anything is timed: bf16 products and weights are within a third of this. */
const largestNmse = 1e-5;

/** What is compared, on one thread and on two. */
const problems = [64, 128, 256].flatMap((headDim) => [false, true].map((causal) => ({ headDim, causal })));

/** Attention here beside ONNX Runtime on as many threads, and beside C. */
export const peerBenchmarks: readonly Benchmark[] = problems.flatMap((problem) =>
  [1, 2].map((threads) => peerBenchmark(problem, threads)),
);

/** The name of one side in the further sides of a benchmark. */
export const plainC = "plain C";

function peerBenchmark({ headDim, causal }: (typeof problems)[number], threads: number): Benchmark {
  return {
    name: `peers-d${headDim}${causal ? "-causal" : ""}-${threads}t`,
    unit: "GFLOP/s",
    about: `flashAttnPrefill in bf16, D = ${headDim}, ${heads} heads, 1,024 tokens, ${causal ? "" : "not "}causal, threads: ${threads}`,
    baselineAbout: "MultiHeadAttention of onnxruntime-node in f32, on as many threads",
    rounds: ({ quick }) => (quick ? 3 : 9),
    warmUp: false,
    prepare: () => prepare(makeProblem({ tokens, heads, headDim, causal }), threads),
  };
}

async function prepare(problem: Problem, threads: number): Promise<PreparedBenchmark> {
  using stack = new DisposableStack();
  const add = (peer: Peer) => stack.adopt(peer, (each) => each.dispose());
  const ours = add(prepareOurs(problem, threads));
  const onnxRuntime = add(await prepareOnnxRuntime(problem, threads));
  // The loops in C know one thread.
  const others = threads === 1 ? { [plainC]: add(preparePlainC(problem)) } : {};
  await compareOutputs({ "onnxruntime-node": onnxRuntime, "this library": ours, ...others });
  const rate =
    (peer: Peer): Measurement =>
    async () => {
      const start = Bun.nanoseconds();
      await peer.run();
      return operationsOf(problem) / (Bun.nanoseconds() - start);
    };
  const peers = stack.move();
  return {
    measure: rate(ours),
    baseline: rate(onnxRuntime),
    others: Object.fromEntries(Object.entries(others).map(([name, peer]) => [name, rate(peer)])),
    dispose: () => peers.dispose(),
  };
}

/** Runs every peer once, and throws where one computes something else than the first. */
export async function compareOutputs(peers: Readonly<Record<string, Peer>>): Promise<void> {
  const [first, ...rest] = Object.entries(peers);
  if (first === undefined) return;
  const [firstName, reference] = first;
  await reference.run();
  for (const [name, peer] of rest) {
    await peer.run();
    const error = nmse(peer.output(), reference.output());
    // Not `error > largest`: a NaN is an error too.
    if (!(error <= largestNmse)) {
      throw new Error(
        `${name} and ${firstName} differ: NMSE ${error.toExponential(2)}, at most ${largestNmse} expected`,
      );
    }
  }
}
