/** What the architectures of the family differ in. To support another, add a line. */
import { ModelError } from "../errors.ts";
import type { LayerType, RawConfig } from "./rawConfig.ts";

export type Activation = "silu" | "gelu_tanh";

/** What a name in `architectures` means beside what `config.json` says. */
export interface Architecture {
  /** Sizes and names that a file may leave out. */
  readonly defaults: {
    readonly headDim?: number;
    readonly slidingWindow?: number;
    readonly slidingWindowPattern?: number;
    readonly maxWindowLayers?: number;
    readonly queryPreAttnScalar?: number;
    readonly attnSoftcap?: number;
    readonly finalSoftcap?: number;
    readonly ropeTheta: number;
    readonly ropeThetaLocal?: number;
    readonly isTied: boolean;
    readonly hasAttentionBias?: boolean;
    readonly activation: Activation;
  };
  /** Biases of the projections to q, k and v, and of the one back: always, never, or as `attention_bias` says. */
  readonly qkvBias: boolean | "attention_bias";
  readonly outBias: boolean | "attention_bias";
  readonly hasMlpBias: boolean;
  /** Each head has a logit that takes part in its softmax without a value. */
  readonly hasSinks: boolean;
  /** q and k of each head are normalised before they are turned. */
  readonly hasQkNorm: boolean;
  /** Norms also after attention and after the feed-forward part, before their sums. */
  readonly hasNormsAfter: boolean;
  /** Weights of norms are stored less 1, and embeddings are multiplied by the root of their length. */
  readonly isGemma: boolean;
  /** Which layers see a window alone, where `layer_types` does not say. */
  layerType(layer: number, raw: RawConfig, defaults: Architecture["defaults"]): LayerType;
}

const full = (): LayerType => "full_attention";
const plain = {
  defaults: { ropeTheta: 10_000, isTied: false, activation: "silu" },
  qkvBias: false,
  outBias: false,
  hasMlpBias: false,
  hasSinks: false,
  hasQkNorm: false,
  hasNormsAfter: false,
  isGemma: false,
  layerType: full,
} as const satisfies Architecture;

/** Qwen: with `use_sliding_window`, the layers from `max_window_layers` on. */
const upperLayers: Architecture["layerType"] = (layer, raw, { maxWindowLayers = 0 }) =>
  raw.use_sliding_window && layer >= (raw.max_window_layers ?? maxWindowLayers) ? "sliding_attention" : full();

const gemma = {
  ...plain.defaults,
  isTied: true,
  activation: "gelu_tanh",
  headDim: 256,
  queryPreAttnScalar: 256,
} as const;

/** By the name that `config.json` gives. */
const architectures: Readonly<Record<string, Architecture>> = {
  LlamaForCausalLM: { ...plain, qkvBias: "attention_bias", outBias: "attention_bias", hasMlpBias: true },
  MistralForCausalLM: {
    ...plain,
    defaults: { ...plain.defaults, slidingWindow: 4096 },
    layerType: (_, raw) => (raw.sliding_window === null ? full() : "sliding_attention"),
  },
  Qwen2ForCausalLM: {
    ...plain,
    defaults: { ...plain.defaults, slidingWindow: 4096, maxWindowLayers: 28 },
    qkvBias: true,
    layerType: upperLayers,
  },
  Qwen3ForCausalLM: {
    ...plain,
    defaults: { ...plain.defaults, headDim: 128, slidingWindow: 4096, maxWindowLayers: 28 },
    qkvBias: "attention_bias",
    outBias: "attention_bias",
    hasQkNorm: true,
    layerType: upperLayers,
  },
  Gemma2ForCausalLM: {
    ...plain,
    defaults: { ...gemma, slidingWindow: 4096, attnSoftcap: 50, finalSoftcap: 30 },
    hasNormsAfter: true,
    isGemma: true,
    layerType: (layer) => (layer % 2 === 0 ? "sliding_attention" : full()),
  },
  Gemma3ForCausalLM: {
    ...plain,
    defaults: { ...gemma, slidingWindow: 4096, slidingWindowPattern: 6, ropeTheta: 1_000_000, ropeThetaLocal: 10_000 },
    hasQkNorm: true,
    hasNormsAfter: true,
    isGemma: true,
    layerType: (layer, raw, { slidingWindowPattern = 6 }) =>
      (layer + 1) % (raw.sliding_window_pattern ?? slidingWindowPattern) === 0 ? full() : "sliding_attention",
  },
  /** What it has of its own in attention; its experts are refused. */
  GptOssForCausalLM: {
    ...plain,
    defaults: { ...plain.defaults, headDim: 64, slidingWindow: 128, ropeTheta: 150_000, hasAttentionBias: true },
    qkvBias: "attention_bias",
    outBias: "attention_bias",
    hasSinks: true,
    layerType: (layer) => (layer % 2 === 0 ? "sliding_attention" : full()),
  },
};

/** The architecture of a name. Errors: `architecture`, with the names that are known. */
export function architectureOf(name: string, where: string): Architecture {
  if (Object.hasOwn(architectures, name)) return architectures[name] as Architecture;
  const known = Object.keys(architectures).join(", ");
  throw new ModelError(
    "architecture",
    `${where}: no support for ${JSON.stringify(name.slice(0, 100))}; known: ${known}`,
  );
}
