import { flashAttnPrefill } from "../../../src/index.ts";
import { openWithThreads } from "../../lib/open-device.ts";
import type { Peer, Problem } from "./problem.ts";

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
