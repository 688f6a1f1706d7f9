import { flashAttnDecode, flashAttnPrefill } from "../../../src/index.ts";
import { openWithThreads } from "../../lib/open-device.ts";
import type { DecodeProblem, Peer, Problem } from "./problem.ts";

/** `flashAttnPrefill` in bf16, submission included. */
export function prepareOurs({ tokens, heads, headDim, causal, ...values }: Problem, threads: number): Peer {
  const device = openWithThreads(threads);
  const shape = [1, tokens, heads, headDim];
  const tensor = (each: Float32Array) => device.tensor("bf16", shape).set(each);
  const [q, k, v] = [tensor(values.q), tensor(values.k), tensor(values.v)];
  const out = device.tensor("bf16", shape);
  return {
    run() {
      using pass = device.pass();
      flashAttnPrefill(pass, { q, k, v, out, causal, layout: "sequence-major" });
      pass.commitAndWait();
    },
    output: () => out.toFloat32Array(),
    dispose: () => device.dispose(),
  };
}

/** `flashAttnDecode` over f32, submission included. */
export function prepareOurDecode({ heads, kvHeads, headDim, keys, ...values }: DecodeProblem, threads: number): Peer {
  const device = openWithThreads(threads);
  const cache = (each: Float32Array) => device.tensor("f32", [1, kvHeads, keys, headDim]).set(each);
  const [k, v] = [cache(values.k), cache(values.v)];
  const q = device.tensor("f32", [1, heads, 1, headDim]).set(values.q);
  const out = device.tensor("f32", [1, heads, 1, headDim]);
  return {
    run() {
      using pass = device.pass();
      flashAttnDecode(pass, { q, k, v, out, seqLen: keys });
      pass.commitAndWait();
    },
    output: () => out.toFloat32Array(),
    dispose: () => device.dispose(),
  };
}
