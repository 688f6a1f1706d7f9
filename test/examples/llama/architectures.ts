/** A small random model of each architecture: sizes at the kernels' edges, and all that the architecture can have. */
import { type Json, type RandomModel, vocabSize } from "./randomModel.ts";

interface Sizes {
  readonly hidden: number;
  readonly intermediate: number;
  readonly layers: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
}

interface Parts {
  readonly qkvBias?: boolean;
  readonly outBias?: boolean;
  readonly mlpBias?: boolean;
  readonly qkNorm?: boolean;
  readonly normsAfter?: boolean;
  readonly tied?: boolean;
  readonly sinks?: boolean;
}

/** The tensors of a model, written out by hand from the files of real ones. */
function shapesOf(sizes: Sizes, parts: Parts): Record<string, number[]> {
  const { hidden, intermediate, layers, heads, kvHeads, headDim } = sizes;
  const shapes: Record<string, number[]> = {
    "model.embed_tokens.weight": [vocabSize, hidden],
    "model.norm.weight": [hidden],
  };
  if (!parts.tied) shapes["lm_head.weight"] = [vocabSize, hidden];
  for (let layer = 0; layer < layers; layer++) {
    const at = `model.layers.${layer}.`;
    const put = (name: string, outputs: number, inputs: number, hasBias = false) => {
      shapes[`${at}${name}.weight`] = [outputs, inputs];
      if (hasBias) shapes[`${at}${name}.bias`] = [outputs];
    };
    put("self_attn.q_proj", heads * headDim, hidden, parts.qkvBias);
    put("self_attn.k_proj", kvHeads * headDim, hidden, parts.qkvBias);
    put("self_attn.v_proj", kvHeads * headDim, hidden, parts.qkvBias);
    put("self_attn.o_proj", hidden, heads * headDim, parts.outBias);
    put("mlp.gate_proj", intermediate, hidden, parts.mlpBias);
    put("mlp.up_proj", intermediate, hidden, parts.mlpBias);
    put("mlp.down_proj", hidden, intermediate, parts.mlpBias);
    shapes[`${at}input_layernorm.weight`] = [hidden];
    shapes[`${at}post_attention_layernorm.weight`] = [hidden];
    if (parts.normsAfter) {
      shapes[`${at}pre_feedforward_layernorm.weight`] = [hidden];
      shapes[`${at}post_feedforward_layernorm.weight`] = [hidden];
    }
    if (parts.sinks) shapes[`${at}self_attn.sinks`] = [heads];
    if (parts.qkNorm) {
      shapes[`${at}self_attn.q_norm.weight`] = [headDim];
      shapes[`${at}self_attn.k_norm.weight`] = [headDim];
    }
  }
  return shapes;
}

function model(
  architecture: string,
  sizes: Sizes,
  parts: Parts,
  config: Json,
  { seed, dtype, shards = 1 }: Pick<RandomModel, "seed" | "dtype"> & { shards?: number },
): RandomModel {
  return {
    config: {
      architectures: [architecture],
      vocab_size: vocabSize,
      hidden_size: sizes.hidden,
      intermediate_size: sizes.intermediate,
      num_hidden_layers: sizes.layers,
      num_attention_heads: sizes.heads,
      num_key_value_heads: sizes.kvHeads,
      max_position_embeddings: 512,
      eos_token_id: 257,
      ...config,
    },
    shapes: shapesOf(sizes, parts),
    ...{ seed, dtype, shards },
  };
}

/** By what is special about each. */
export const randomModels: Readonly<Record<string, RandomModel>> = {
  "Llama, rope of llama3": model(
    "LlamaForCausalLM",
    { hidden: 128, intermediate: 192, layers: 2, heads: 2, kvHeads: 1, headDim: 64 },
    {},
    {
      rms_norm_eps: 1e-5,
      rope_theta: 500_000,
      hidden_act: "silu",
      tie_word_embeddings: false,
      rope_scaling: {
        rope_type: "llama3",
        factor: 8,
        low_freq_factor: 1,
        high_freq_factor: 4,
        original_max_position_embeddings: 64,
      },
    },
    { seed: 1, dtype: "BF16", shards: 3 },
  ),
  "Llama, all biases, linear rope": model(
    "LlamaForCausalLM",
    { hidden: 68, intermediate: 100, layers: 2, heads: 3, kvHeads: 3, headDim: 64 },
    { qkvBias: true, outBias: true, mlpBias: true },
    { head_dim: 64, attention_bias: true, mlp_bias: true, rope_scaling: { type: "linear", factor: 4 } },
    { seed: 2, dtype: "F16" },
  ),
  "Mistral, a window, yarn": model(
    "MistralForCausalLM",
    { hidden: 96, intermediate: 132, layers: 2, heads: 4, kvHeads: 2, headDim: 64 },
    {},
    {
      head_dim: 64,
      sliding_window: 40,
      rope_scaling: { rope_type: "yarn", factor: 4, original_max_position_embeddings: 64, beta_fast: 16, beta_slow: 2 },
    },
    { seed: 3, dtype: "F32" },
  ),
  "Qwen2, biases, upper layers in a window, tied": model(
    "Qwen2ForCausalLM",
    { hidden: 128, intermediate: 164, layers: 3, heads: 2, kvHeads: 2, headDim: 64 },
    { qkvBias: true, tied: true },
    { use_sliding_window: true, sliding_window: 30, max_window_layers: 1, tie_word_embeddings: true, rope_theta: 1e6 },
    { seed: 4, dtype: "BF16" },
  ),
  "Qwen3, q and k normalised": model(
    "Qwen3ForCausalLM",
    { hidden: 72, intermediate: 128, layers: 2, heads: 4, kvHeads: 1, headDim: 64 },
    { qkNorm: true },
    { head_dim: 64, rope_parameters: { rope_type: "default", rope_theta: 1e6 } },
    { seed: 5, dtype: "F16" },
  ),
  "Gemma2, softcaps, windows by turns": model(
    "Gemma2ForCausalLM",
    { hidden: 108, intermediate: 144, layers: 3, heads: 2, kvHeads: 1, headDim: 64 },
    { normsAfter: true, tied: true },
    {
      head_dim: 64,
      sliding_window: 33,
      query_pre_attn_scalar: 100,
      attn_logit_softcapping: 5,
      final_logit_softcapping: 40,
      hidden_act: "gelu_pytorch_tanh",
      hidden_activation: "gelu_pytorch_tanh",
    },
    { seed: 6, dtype: "BF16" },
  ),
  "Gemma3, two ropes, windows but each second layer": model(
    "Gemma3ForCausalLM",
    { hidden: 64, intermediate: 96, layers: 4, heads: 2, kvHeads: 1, headDim: 64 },
    { qkNorm: true, normsAfter: true, tied: true },
    {
      head_dim: 64,
      sliding_window: 21,
      sliding_window_pattern: 2,
      query_pre_attn_scalar: 64,
      rope_theta: 1e6,
      rope_local_base_freq: 1e4,
      rope_scaling: { rope_type: "linear", factor: 8 },
      hidden_activation: "gelu_pytorch_tanh",
    },
    { seed: 7, dtype: "F32" },
  ),
  "gpt-oss without experts, sinks": model(
    "GptOssForCausalLM",
    { hidden: 80, intermediate: 128, layers: 2, heads: 4, kvHeads: 2, headDim: 64 },
    { qkvBias: true, outBias: true, sinks: true },
    {
      sliding_window: 26,
      head_dim: 64,
      rope_theta: 150_000,
      rope_scaling: {
        ...{ rope_type: "yarn", factor: 8, original_max_position_embeddings: 64, beta_fast: 32, beta_slow: 1 },
        truncate: false,
      },
    },
    { seed: 8, dtype: "BF16" },
  ),
};
