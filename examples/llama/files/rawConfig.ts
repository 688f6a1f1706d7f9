/** `config.json` as it is written, by any of the architectures. */
import * as z from "zod";

/** Extents beyond this are no model's, and their products stay exact. */
const count = z
  .int()
  .min(1)
  .max(2 ** 24);
const positive = z.number().positive();

/** How rotary positions are scaled; `rope_type`, in older files `type`. */
const ropeScaling = z.looseObject({
  rope_type: z.string().optional(),
  type: z.string().optional(),
  rope_theta: positive.optional(),
  factor: positive.optional(),
  low_freq_factor: positive.optional(),
  high_freq_factor: positive.optional(),
  original_max_position_embeddings: count.optional(),
  beta_fast: positive.optional(),
  beta_slow: positive.optional(),
  truncate: z.boolean().optional(),
  mscale: positive.optional(),
  mscale_all_dim: positive.optional(),
  attention_factor: positive.nullish(),
  short_factor: z.array(positive).optional(),
  long_factor: z.array(positive).optional(),
});
export type RawRope = z.output<typeof ropeScaling>;

const layerType = z.enum(["full_attention", "sliding_attention"]);
export type LayerType = z.output<typeof layerType>;

export const rawConfig = z.looseObject({
  vocab_size: count,
  hidden_size: count,
  intermediate_size: count,
  num_hidden_layers: z.int().min(1).max(1024),
  num_attention_heads: count,
  num_key_value_heads: count.nullish(),
  head_dim: count.nullish(),
  max_position_embeddings: count.default(2048),
  rms_norm_eps: positive.default(1e-6),
  hidden_act: z.string().nullish(),
  hidden_activation: z.string().nullish(),
  tie_word_embeddings: z.boolean().nullish(),
  attention_bias: z.boolean().nullish(),
  mlp_bias: z.boolean().nullish(),
  rope_theta: positive.nullish(),
  rope_local_base_freq: positive.nullish(),
  partial_rotary_factor: positive.nullish(),
  rope_scaling: ropeScaling.nullish(),
  /** In newer files, in place of `rope_theta` and `rope_scaling`: for all layers, or by the type of a layer. */
  rope_parameters: z
    .union([
      z.strictObject({ full_attention: ropeScaling, sliding_attention: ropeScaling }),
      ropeScaling.refine((value) => !("full_attention" in value), "expected full_attention and sliding_attention"),
    ])
    .nullish(),
  sliding_window: count.nullish(),
  use_sliding_window: z.boolean().nullish(),
  max_window_layers: z.int().min(0).nullish(),
  sliding_window_pattern: count.nullish(),
  layer_types: z.array(layerType).nullish(),
  query_pre_attn_scalar: positive.nullish(),
  attn_logit_softcapping: positive.nullish(),
  final_logit_softcapping: positive.nullish(),
  num_local_experts: z.int().min(0).nullish(),
  num_experts: z.int().min(0).nullish(),
  eos_token_id: z.union([z.int().min(0), z.array(z.int().min(0))]).nullish(),
});
export type RawConfig = z.output<typeof rawConfig>;
