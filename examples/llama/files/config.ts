import { join } from "node:path";
import type { RopeFrequencies } from "metal-attention";
import * as z from "zod";
import { ModelError } from "../errors.ts";
import { type Activation, type Architecture, architectureOf } from "./architectures.ts";
import { checked, readJson } from "./json.ts";
import { type LayerType, type RawConfig, type RawRope, rawConfig } from "./rawConfig.ts";
import { ropeOf } from "./rope.ts";

/** What one layer does otherwise than its neighbours. */
export interface LayerConfig {
  /** Keys that a token sees, itself among them; undefined for all. */
  readonly window: number | undefined;
  readonly rope: RopeFrequencies;
}

/** A model as the forward pass needs to know it. */
export interface ModelConfig {
  readonly architecture: string;
  readonly vocabSize: number;
  readonly hiddenSize: number;
  readonly intermediateSize: number;
  readonly heads: number;
  readonly nKvHeads: number;
  readonly headDim: number;
  readonly layers: readonly LayerConfig[];
  readonly maxPositions: number;
  readonly eps: number;
  readonly activation: Activation;
  readonly isTied: boolean;
  readonly hasQkvBias: boolean;
  readonly hasOutBias: boolean;
  readonly hasMlpBias: boolean;
  readonly hasSinks: boolean;
  readonly hasQkNorm: boolean;
  readonly hasNormsAfter: boolean;
  /** Weights of norms are stored less 1, and embeddings are multiplied by the root of their length. */
  readonly isGemma: boolean;
  /** Factor of the attention scores. */
  readonly scale: number;
  readonly attnSoftcap: number | undefined;
  readonly finalSoftcap: number | undefined;
  /** Tokens that end a text. */
  readonly endTokens: readonly number[];
}

const named = z.looseObject({ architectures: z.array(z.string()).min(1) });
const generation = z.looseObject({ eos_token_id: rawConfig.shape.eos_token_id });

/**
 * Reads `config.json`, and the end tokens of `generation_config.json` where there is one.
 *
 * Errors: `architecture` for a name that is not known, with those that are; `config` for what does not fit together.
 */
export async function readConfig(folder: string): Promise<ModelConfig> {
  const path = join(folder, "config.json");
  const json = await readJson(path, named, "config");
  const config = configOf(json, path);
  const more = join(folder, "generation_config.json");
  if (!(await Bun.file(more).exists())) return config;
  const { eos_token_id } = await readJson(more, generation, "config");
  return { ...config, endTokens: [...new Set([...config.endTokens, ...tokens(eos_token_id)])] };
}

/** The model that the value of a `config.json` describes. */
export function configOf(json: unknown, where = "config.json"): ModelConfig {
  const name = checked(named, json, where, "config").architectures[0] as string;
  const architecture = architectureOf(name, where);
  const raw = checked(rawConfig, json, where, "config");
  const { defaults } = architecture;
  const heads = raw.num_attention_heads;
  const nKvHeads = raw.num_key_value_heads ?? heads;
  const headDim = raw.head_dim ?? defaults.headDim ?? raw.hidden_size / heads;
  const wrong = (reason: string) => new ModelError("config", `${where}: ${reason}`);
  if (heads % nKvHeads !== 0) throw wrong(`${heads} attention heads are no multiple of ${nKvHeads} key-value heads`);
  if (!Number.isInteger(headDim)) throw wrong(`hidden_size ${raw.hidden_size} does not divide among ${heads} heads`);
  const experts = raw.num_local_experts ?? raw.num_experts ?? 0;
  if (experts > 0) throw wrong(`${experts} experts; there is no support for other than one feed-forward part a layer`);
  for (const [field, value] of [
    ["hidden_size", raw.hidden_size],
    ["intermediate_size", raw.intermediate_size],
    ["head_dim", headDim],
  ] as const) {
    if (value % 4 !== 0) throw wrong(`${field} ${value} is no multiple of 4, in which the kernels read`);
  }
  const hasAttentionBias = raw.attention_bias ?? defaults.hasAttentionBias ?? false;
  return {
    architecture: name,
    vocabSize: raw.vocab_size,
    hiddenSize: raw.hidden_size,
    intermediateSize: raw.intermediate_size,
    heads,
    nKvHeads,
    headDim,
    layers: layersOf(raw, architecture, headDim, where),
    maxPositions: raw.max_position_embeddings,
    eps: raw.rms_norm_eps,
    activation: activationOf(raw, architecture, where),
    isTied: raw.tie_word_embeddings ?? defaults.isTied,
    hasQkvBias: architecture.qkvBias === "attention_bias" ? hasAttentionBias : architecture.qkvBias,
    hasOutBias: architecture.outBias === "attention_bias" ? hasAttentionBias : architecture.outBias,
    hasMlpBias: architecture.hasMlpBias && (raw.mlp_bias ?? false),
    hasSinks: architecture.hasSinks,
    hasQkNorm: architecture.hasQkNorm,
    hasNormsAfter: architecture.hasNormsAfter,
    isGemma: architecture.isGemma,
    scale: (raw.query_pre_attn_scalar ?? defaults.queryPreAttnScalar ?? headDim) ** -0.5,
    attnSoftcap: or(raw.attn_logit_softcapping, defaults.attnSoftcap),
    finalSoftcap: or(raw.final_logit_softcapping, defaults.finalSoftcap),
    endTokens: tokens(raw.eos_token_id),
  };
}

/** null says that there is none; what is left out has a default. */
function or<T>(value: T | null | undefined, fallback: T | undefined): T | undefined {
  return value === null ? undefined : (value ?? fallback);
}

function tokens(value: number | number[] | null | undefined): number[] {
  return value === null || value === undefined ? [] : [value].flat();
}

const activations: Readonly<Record<string, Activation>> = {
  silu: "silu",
  swish: "silu",
  gelu_pytorch_tanh: "gelu_tanh",
};

function activationOf(raw: RawConfig, { defaults, isGemma }: Architecture, where: string): Activation {
  // Gemma's files once named another in `hidden_act` than the models have.
  const name = isGemma ? raw.hidden_activation : raw.hidden_act;
  if (name === null || name === undefined) return defaults.activation;
  if (Object.hasOwn(activations, name)) return activations[name] as Activation;
  const known = Object.keys(activations).join(", ");
  throw new ModelError(
    "config",
    `${where}: no support for the activation ${JSON.stringify(name.slice(0, 100))}; known: ${known}`,
  );
}

function layersOf(raw: RawConfig, architecture: Architecture, headDim: number, where: string): LayerConfig[] {
  const { defaults } = architecture;
  const types = raw.layer_types ?? [];
  if (raw.layer_types && types.length !== raw.num_hidden_layers) {
    throw new ModelError(
      "config",
      `${where}: layer_types has ${types.length} entries for ${raw.num_hidden_layers} layers`,
    );
  }
  const typeOf = (layer: number) => types[layer] ?? architecture.layerType(layer, raw, defaults);
  const window = raw.sliding_window ?? defaults.slidingWindow;
  const ropes = new Map<LayerType, RopeFrequencies>();
  return Array.from({ length: raw.num_hidden_layers }, (_, layer) => {
    const type = typeOf(layer);
    const rope = ropes.get(type) ?? ropeOfType(type, raw, architecture, headDim, where);
    ropes.set(type, rope);
    if (type === "full_attention") return { window: undefined, rope };
    if (window === undefined) throw new ModelError("config", `${where}: sliding layers, but no sliding_window`);
    return { window, rope };
  });
}

function ropeOfType(
  type: LayerType,
  raw: RawConfig,
  { defaults }: Architecture,
  headDim: number,
  where: string,
): RopeFrequencies {
  const hasLocal = type === "sliding_attention" && defaults.ropeThetaLocal !== undefined;
  const theta = hasLocal
    ? (raw.rope_local_base_freq ?? (defaults.ropeThetaLocal as number))
    : (raw.rope_theta ?? defaults.ropeTheta);
  const newer = raw.rope_parameters;
  const byType = newer && isByType(newer) ? newer[type] : newer;
  // Older files scale the layers that see everything alone, where the others have a base of their own.
  const scaling = byType ?? (hasLocal ? undefined : raw.rope_scaling);
  const rotaryDim = headDim * (raw.partial_rotary_factor ?? 1);
  return ropeOf({ rotaryDim, theta, scaling: scaling ?? undefined, maxPositions: raw.max_position_embeddings, where });
}

function isByType(rope: NonNullable<RawConfig["rope_parameters"]>): rope is Record<LayerType, RawRope> {
  return "full_attention" in rope;
}
