import type { Device, Tensor } from "metal-attention";
import { floatValues, type SafetensorsDType } from "metal-attention/safetensors";
import { ModelError } from "../errors.ts";
import type { ModelConfig } from "../files/config.ts";
import { findWeights, type StoredTensor, WeightReader } from "../files/weightFiles.ts";
import type { FloatDType, Projection } from "./kernels.ts";
import { embeddingName, headName, isSpare, lastNormName, layerPrefix, tensorShapes } from "./tensorNames.ts";

/** Weights of one layer. */
export interface LayerWeights {
  readonly inputNorm: Tensor<"f32">;
  readonly q: Projection;
  readonly k: Projection;
  readonly v: Projection;
  readonly out: Projection;
  readonly qNorm: Tensor<"f32"> | undefined;
  readonly kNorm: Tensor<"f32"> | undefined;
  /** [heads] */
  readonly sinks: Tensor<"f32"> | undefined;
  /** After attention, before its sum. */
  readonly afterAttention: Tensor<"f32"> | undefined;
  readonly mlpNorm: Tensor<"f32">;
  readonly gate: Projection;
  readonly up: Projection;
  readonly down: Projection;
  /** After the feed-forward part, before its sum. */
  readonly afterMlp: Tensor<"f32"> | undefined;
}

/** All weights of a model in memory of the device. */
export interface Weights {
  readonly embedding: Tensor<FloatDType>;
  readonly layers: readonly LayerWeights[];
  readonly lastNorm: Tensor<"f32">;
  readonly head: Projection;
  readonly bytes: number;
  dispose(): void;
}

/** Bytes read so far, and in all. */
export type OnProgress = (done: number, total: number) => void;

const dtypes: Partial<Record<SafetensorsDType, FloatDType>> = { F32: "f32", F16: "f16", BF16: "bf16" };

/**
 * Reads a model's weights into memory of the device: matrices in the dtype of the file, straight to where kernels read
 * them, or from there into memory of the device's own; norms and biases as f32.
 *
 * Errors: `weights` for a tensor that is missing, has another shape or dtype, or that no part of the model reads; nothing
 * is read before all have been checked.
 */
export async function loadWeights(
  device: Device,
  folder: string,
  config: ModelConfig,
  storage: "shared" | "private",
  onProgress: OnProgress = () => {},
): Promise<Weights> {
  const stored = checkTensors(await findWeights(folder), config, folder);
  const total = stored.reduce((sum, [, { start, end }]) => sum + (end - start), 0);
  let done = 0;
  const loaded = new Map<string, Tensor<FloatDType>>();
  await using reader = new WeightReader();
  try {
    for (const [name, tensor] of stored) {
      const onBytes = (count: number) => {
        done += count;
        onProgress(done, total);
      };
      const read = await loadTensor(device, reader, name, tensor, config, onBytes);
      loaded.set(name, storage === "private" ? await movedToDevice(device, read) : read);
    }
  } catch (error) {
    for (const tensor of loaded.values()) tensor.dispose();
    throw error;
  }
  return assemble(loaded, config);
}

/** The tensors that the model has, once each is known to be what it should be. */
function checkTensors(
  found: ReadonlyMap<string, StoredTensor>,
  config: ModelConfig,
  folder: string,
): [string, StoredTensor][] {
  const shapes = tensorShapes(config);
  const wrong = (name: string, reason: string) =>
    new ModelError("weights", `${found.get(name)?.path ?? folder}: ${JSON.stringify(name.slice(0, 200))} ${reason}`);
  for (const name of found.keys()) {
    if (!shapes.has(name) && !isSpare(name, config)) throw wrong(name, `is no tensor of a ${config.architecture}`);
  }
  return [...shapes].map(([name, shape]) => {
    const tensor = found.get(name);
    if (tensor === undefined) throw wrong(name, `is missing, which config.json says has shape [${shape}]`);
    if (`${tensor.shape}` !== `${shape}`) throw wrong(name, `has shape [${tensor.shape}], by config.json [${shape}]`);
    if (dtypes[tensor.dtype] === undefined) throw wrong(name, `is ${tensor.dtype}, not F32, F16 or BF16`);
    return [name, tensor];
  });
}

async function loadTensor(
  device: Device,
  reader: WeightReader,
  name: string,
  stored: StoredTensor,
  { isGemma }: ModelConfig,
  onBytes: (count: number) => void,
): Promise<Tensor<FloatDType>> {
  const { dtype, shape } = stored;
  if (shape.length === 2) {
    const tensor = device.tensor(dtypes[dtype] as FloatDType, shape);
    try {
      await reader.read(stored, tensor.bytes, onBytes);
      return tensor;
    } catch (error) {
      tensor.dispose();
      throw error;
    }
  }
  const bytes = new Uint8Array(stored.end - stored.start);
  await reader.read(stored, bytes, onBytes);
  const values = floatValues({ dtype, shape, bytes }, name);
  const isNorm = isGemma && name.endsWith("norm.weight");
  return device.tensor("f32", shape).set(isNorm ? values.map((value) => 1 + value) : values);
}

/** The same in private storage, in its place. */
async function movedToDevice(device: Device, shared: Tensor<FloatDType>): Promise<Tensor<FloatDType>> {
  using from = shared;
  const to = device.tensor(from.dtype, from.shape, { storage: "private" });
  try {
    using pass = device.pass();
    pass.copy(from, to);
    await pass.commit();
    return to;
  } catch (error) {
    to.dispose();
    throw error;
  }
}

function assemble(loaded: ReadonlyMap<string, Tensor<FloatDType>>, config: ModelConfig): Weights {
  const take = (name: string) => loaded.get(name) as Tensor<FloatDType>;
  const projection = (name: string): Projection => ({
    weights: take(`${name}.weight`),
    bias: loaded.get(`${name}.bias`) as Tensor<"f32"> | undefined,
  });
  const layers = config.layers.map((_, layer): LayerWeights => {
    const prefix = layerPrefix(layer);
    const norm = (name: string) => take(`${prefix}${name}.weight`) as Tensor<"f32">;
    const of = (name: string) => projection(prefix + name);
    const { hasQkNorm, hasNormsAfter } = config;
    return {
      inputNorm: norm("input_layernorm"),
      q: of("self_attn.q_proj"),
      k: of("self_attn.k_proj"),
      v: of("self_attn.v_proj"),
      out: of("self_attn.o_proj"),
      qNorm: hasQkNorm ? norm("self_attn.q_norm") : undefined,
      kNorm: hasQkNorm ? norm("self_attn.k_norm") : undefined,
      sinks: loaded.get(`${prefix}self_attn.sinks`) as Tensor<"f32"> | undefined,
      // The same name stands for one norm or another, by whether there are norms after.
      afterAttention: hasNormsAfter ? norm("post_attention_layernorm") : undefined,
      mlpNorm: norm(hasNormsAfter ? "pre_feedforward_layernorm" : "post_attention_layernorm"),
      gate: of("mlp.gate_proj"),
      up: of("mlp.up_proj"),
      down: of("mlp.down_proj"),
      afterMlp: hasNormsAfter ? norm("post_feedforward_layernorm") : undefined,
    };
  });
  return {
    embedding: take(embeddingName),
    layers,
    lastNorm: take(lastNormName) as Tensor<"f32">,
    head: { weights: take(config.isTied ? embeddingName : headName), bias: undefined },
    bytes: [...loaded.values()].reduce((sum, { byteLength }) => sum + byteLength, 0),
    dispose() {
      for (const tensor of loaded.values()) tensor.dispose();
    },
  };
}
