import { applyRope, type KvCache, type KvSequence, type Pass } from "metal-attention";
import type { ModelConfig } from "../files/config.ts";
import type { Kernels, RowRun } from "./kernels.ts";
import type { LayerWeights } from "./weights.ts";
import type { Activations } from "./workspace.ts";

/** A step through all layers: whose tokens it has, and by which kernels. */
export interface LayerCall {
  readonly pass: Pass;
  readonly kernels: Kernels;
  readonly config: ModelConfig;
  readonly cache: KvCache;
  readonly sequences: readonly KvSequence[];
  readonly counts: readonly number[];
  /** All rows, by the kind of their products. */
  readonly runs: readonly RowRun[];
  /** The ring of the cache, which no layer sees beyond. */
  readonly ring: number | undefined;
  readonly activations: Activations;
}

/** Encodes a layer: attention, then the feed-forward part, each added to x. */
export function encodeLayer(call: LayerCall, layer: number, weights: LayerWeights): void {
  encodeAttention(call, layer, weights);
  encodeMlp(call, weights);
}

function encodeAttention(call: LayerCall, layer: number, weights: LayerWeights): void {
  const { pass, kernels, config, cache, sequences, counts, runs } = call;
  const { x, h, q, k, v, turned, attended, positions } = call.activations;
  const { window, rope } = config.layers[layer] as ModelConfig["layers"][number];
  const seen = Math.min(window ?? Infinity, call.ring ?? Infinity);
  kernels.norm(pass, x, weights.inputNorm, h, config.eps);
  kernels.product(pass, h, weights.q, q, { runs });
  kernels.product(pass, h, weights.k, k, { runs });
  kernels.product(pass, h, weights.v, v, { runs });
  if (weights.qNorm !== undefined) kernels.norm(pass, q, weights.qNorm, q, config.eps);
  if (weights.kNorm !== undefined) kernels.norm(pass, k, weights.kNorm, k, config.eps);
  // The library's part: keys are turned as they are written, queries as they become what attention takes.
  const turn = { ...rope, pairing: "half" } as const;
  cache.append(pass, layer, { k, v, rope: turn, sequences, counts });
  applyRope(pass, { x: q, out: turned, positions, layout: "sequence-major", ...turn });
  cache.attend(pass, layer, {
    q: turned,
    out: attended,
    scale: config.scale,
    ...(Number.isFinite(seen) && { window: seen }),
    ...(weights.sinks !== undefined && { sinks: weights.sinks }),
    ...(config.attnSoftcap !== undefined && { softcap: config.attnSoftcap }),
  });
  if (weights.afterAttention === undefined) {
    kernels.product(pass, attended, weights.out, x, { runs, adds: true });
  } else {
    kernels.product(pass, attended, weights.out, h, { runs });
    kernels.norm(pass, h, weights.afterAttention, x, config.eps, true);
  }
}

function encodeMlp({ pass, kernels, config, runs, activations }: LayerCall, weights: LayerWeights): void {
  const { x, h, gate, up } = activations;
  kernels.norm(pass, x, weights.mlpNorm, h, config.eps);
  kernels.product(pass, h, weights.gate, gate, { runs });
  kernels.product(pass, h, weights.up, up, { runs });
  kernels.gated(pass, config.activation, gate, up);
  if (weights.afterMlp === undefined) {
    kernels.product(pass, gate, weights.down, x, { runs, adds: true });
  } else {
    kernels.product(pass, gate, weights.down, h, { runs });
    kernels.norm(pass, h, weights.afterMlp, x, config.eps, true);
  }
}
