import type { ModelConfig } from "../files/config.ts";

export const embeddingName = "model.embed_tokens.weight";
export const lastNormName = "model.norm.weight";
export const headName = "lm_head.weight";

/** The part of a layer's tensor names before their own. */
export const layerPrefix = (layer: number): string => `model.layers.${layer}.`;

/** Shapes of all tensors that a model's files must have, by name. */
export function tensorShapes(config: ModelConfig): ReadonlyMap<string, readonly number[]> {
  const { vocabSize, hiddenSize, layers, isTied } = config;
  const shapes = new Map<string, readonly number[]>([
    [embeddingName, [vocabSize, hiddenSize]],
    [lastNormName, [hiddenSize]],
  ]);
  if (!isTied) shapes.set(headName, [vocabSize, hiddenSize]);
  for (const layer of layers.keys()) {
    for (const [name, shape] of layerShapes(config)) shapes.set(layerPrefix(layer) + name, shape);
  }
  return shapes;
}

function layerShapes(config: ModelConfig): [name: string, shape: readonly number[]][] {
  const { hiddenSize, intermediateSize, heads, nKvHeads, headDim } = config;
  const projection = (name: string, outputs: number, inputs: number, hasBias: boolean) => [
    [`${name}.weight`, [outputs, inputs]] as [string, number[]],
    ...(hasBias ? [[`${name}.bias`, [outputs]] as [string, number[]]] : []),
  ];
  const norm = (name: string, width = hiddenSize): [string, number[]] => [`${name}.weight`, [width]];
  return [
    norm("input_layernorm"),
    ...projection("self_attn.q_proj", heads * headDim, hiddenSize, config.hasQkvBias),
    ...projection("self_attn.k_proj", nKvHeads * headDim, hiddenSize, config.hasQkvBias),
    ...projection("self_attn.v_proj", nKvHeads * headDim, hiddenSize, config.hasQkvBias),
    ...projection("self_attn.o_proj", hiddenSize, heads * headDim, config.hasOutBias),
    ...(config.hasQkNorm ? [norm("self_attn.q_norm", headDim), norm("self_attn.k_norm", headDim)] : []),
    ...(config.hasSinks ? [["self_attn.sinks", [heads]] as [string, number[]]] : []),
    norm("post_attention_layernorm"),
    ...(config.hasNormsAfter ? [norm("pre_feedforward_layernorm"), norm("post_feedforward_layernorm")] : []),
    ...projection("mlp.gate_proj", intermediateSize, hiddenSize, config.hasMlpBias),
    ...projection("mlp.up_proj", intermediateSize, hiddenSize, config.hasMlpBias),
    ...projection("mlp.down_proj", hiddenSize, intermediateSize, config.hasMlpBias),
  ];
}

/** Whether a file may have this tensor though nothing reads it. */
export function isSpare(name: string, { isTied }: ModelConfig): boolean {
  return name.endsWith("rotary_emb.inv_freq") || (isTied && name === headName);
}
