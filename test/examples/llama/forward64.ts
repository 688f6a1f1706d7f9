/**
 * The forward pass in float64, from the formulas of the models and out of their files alone: no code is shared with the
 * example, neither what reads `config.json` nor the kernels.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { decodeSafetensors, floatValues } from "../../../src/safetensors/index.ts";

type Raw = Record<string, number | undefined> & {
  architectures: string[];
  rope_scaling?: Record<string, number | string | boolean>;
  rope_parameters?: Record<string, number | string | boolean>;
  use_sliding_window?: boolean;
};

/** Logits of every token, [tokens][vocabulary]. */
export function forward64(folder: string, ids: readonly number[]): Float64Array[] {
  const raw = JSON.parse(readFileSync(join(folder, "config.json"), "utf8")) as Raw;
  const weights = new Map<string, Float64Array>();
  let embeddingDType = "";
  for (const file of readdirSync(folder).filter((name) => name.endsWith(".safetensors"))) {
    for (const [name, tensor] of decodeSafetensors(readFileSync(join(folder, file))).tensors) {
      weights.set(name, Float64Array.from(floatValues(tensor)));
      if (name.includes("embed_tokens")) embeddingDType = tensor.dtype;
    }
  }
  return new Forward(raw, weights, embeddingDType).run(ids);
}

class Forward {
  readonly #raw: Raw;
  readonly #weights: Map<string, Float64Array>;
  readonly #name: string;
  readonly #isGemma: boolean;
  readonly #embeddingDType: string;

  constructor(raw: Raw, weights: Map<string, Float64Array>, embeddingDType: string) {
    this.#raw = raw;
    this.#weights = weights;
    this.#name = raw.architectures[0] ?? "";
    this.#isGemma = this.#name.startsWith("Gemma");
    this.#embeddingDType = embeddingDType;
  }

  run(ids: readonly number[]): Float64Array[] {
    const raw = this.#raw;
    const hidden = raw["hidden_size"] as number;
    const table = this.#weights.get("model.embed_tokens.weight") as Float64Array;
    let factor = 1;
    if (this.#isGemma) {
      factor = Math.fround(Math.sqrt(hidden));
      if (this.#embeddingDType === "BF16") factor = nearestBfloat(factor);
    }
    const x = ids.map((id) => table.subarray(id * hidden, (id + 1) * hidden).map((value) => value * factor));
    for (let layer = 0; layer < (raw["num_hidden_layers"] as number); layer++) this.#layer(layer, x);
    const head = this.#weights.get("lm_head.weight") ?? table;
    const cap = raw["final_logit_softcapping"];
    return x.map((row) => {
      const logits = multiply(head, this.#norm("model.norm.weight", row));
      return cap === undefined ? logits : logits.map((value) => cap * Math.tanh(value / cap));
    });
  }

  #layer(layer: number, x: Float64Array[]): void {
    const at = `model.layers.${layer}.`;
    const heads = this.#raw["num_attention_heads"] as number;
    const kvHeads = this.#raw["num_key_value_heads"] as number;
    const hidden = this.#raw["hidden_size"] as number;
    const dim = this.#raw["head_dim"] ?? hidden / heads;
    const turn = this.#rope(layer, dim);
    const q: Float64Array[] = [];
    const k: Float64Array[] = [];
    const v: Float64Array[] = [];
    for (const [position, row] of x.entries()) {
      const h = this.#norm(`${at}input_layernorm.weight`, row);
      const prepared = (name: "q" | "k", count: number) => {
        const all = this.#project(`${at}self_attn.${name}_proj`, h);
        for (let head = 0; head < count; head++) {
          const part = all.subarray(head * dim, (head + 1) * dim);
          if (this.#weights.has(`${at}self_attn.${name}_norm.weight`)) {
            part.set(this.#norm(`${at}self_attn.${name}_norm.weight`, part));
          }
          turn(part, position);
        }
        return all;
      };
      q.push(prepared("q", heads));
      k.push(prepared("k", kvHeads));
      v.push(this.#project(`${at}self_attn.v_proj`, h));
    }
    const scale = 1 / Math.sqrt(this.#raw["query_pre_attn_scalar"] ?? dim);
    const cap = this.#raw["attn_logit_softcapping"];
    const window = this.#window(layer);
    for (const [position, row] of x.entries()) {
      const out = new Float64Array(heads * dim);
      for (let head = 0; head < heads; head++) {
        const kv = Math.floor(head / (heads / kvHeads)) * dim;
        const query = (q[position] as Float64Array).subarray(head * dim, (head + 1) * dim);
        const first = Math.max(0, position - window + 1);
        const scores: number[] = [];
        for (let j = first; j <= position; j++) {
          const s = dot(query, k[j] as Float64Array, kv) * scale;
          scores.push(cap === undefined ? s : cap * Math.tanh(s / cap));
        }
        const most = Math.max(...scores);
        const powers = scores.map((s) => Math.exp(s - most));
        const sink = this.#weights.get(`${at}self_attn.sinks`)?.[head] ?? -Infinity;
        const sum = powers.reduce((a, b) => a + b) + Math.exp(sink - most);
        for (const [i, power] of powers.entries()) {
          const value = v[first + i] as Float64Array;
          for (let d = 0; d < dim; d++) {
            out[head * dim + d] = (out[head * dim + d] as number) + (power / sum) * (value[kv + d] as number);
          }
        }
      }
      let attended = this.#project(`${at}self_attn.o_proj`, out);
      if (this.#isGemma) attended = this.#norm(`${at}post_attention_layernorm.weight`, attended);
      add(row, attended);
      const before = this.#isGemma ? "pre_feedforward_layernorm" : "post_attention_layernorm";
      const h = this.#norm(`${at}${before}.weight`, row);
      const up = this.#project(`${at}mlp.up_proj`, h);
      const gated = this.#project(`${at}mlp.gate_proj`, h).map((g, i) => this.#activate(g) * (up[i] as number));
      let down = this.#project(`${at}mlp.down_proj`, gated);
      if (this.#isGemma) down = this.#norm(`${at}post_feedforward_layernorm.weight`, down);
      add(row, down);
    }
  }

  #activate(x: number): number {
    if (!this.#isGemma) return x / (1 + Math.exp(-x));
    return 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));
  }

  #norm(name: string, x: Float64Array): Float64Array {
    const weight = this.#weights.get(name) as Float64Array;
    const eps = this.#raw["rms_norm_eps"] ?? 1e-6;
    const root = Math.sqrt(x.reduce((sum, value) => sum + value * value, 0) / x.length + eps);
    return x.map((value, i) => (value / root) * ((weight[i] as number) + (this.#isGemma ? 1 : 0)));
  }

  #project(name: string, x: Float64Array): Float64Array {
    const y = multiply(this.#weights.get(`${name}.weight`) as Float64Array, x);
    const bias = this.#weights.get(`${name}.bias`);
    return bias === undefined ? y : y.map((value, i) => value + (bias[i] as number));
  }

  /** Keys that a token of the layer sees. */
  #window(layer: number): number {
    const window = this.#raw["sliding_window"] ?? Infinity;
    switch (this.#name) {
      case "MistralForCausalLM":
        return window;
      case "Qwen2ForCausalLM":
        return this.#raw.use_sliding_window && layer >= (this.#raw["max_window_layers"] as number) ? window : Infinity;
      case "Gemma2ForCausalLM":
      case "GptOssForCausalLM":
        return layer % 2 === 0 ? window : Infinity;
      case "Gemma3ForCausalLM":
        return (layer + 1) % (this.#raw["sliding_window_pattern"] as number) === 0 ? Infinity : window;
      default:
        return Infinity;
    }
  }

  /** Turns a head vector in place: coordinate i and i + dim / 2 are a pair. */
  #rope(layer: number, dim: number): (x: Float64Array, position: number) => void {
    const isLocal = this.#name === "Gemma3ForCausalLM" && this.#window(layer) !== Infinity;
    const parameters = isLocal ? undefined : (this.#raw.rope_parameters ?? this.#raw.rope_scaling);
    const base = isLocal
      ? (this.#raw["rope_local_base_freq"] as number)
      : Number(parameters?.["rope_theta"] ?? this.#raw["rope_theta"] ?? 10_000);
    const { frequencies, factor } = scaled(base, dim, parameters);
    return (x, position) => {
      for (const [i, frequency] of frequencies.entries()) {
        const [cos, sin] = [Math.cos(position * frequency) * factor, Math.sin(position * frequency) * factor];
        const [a, b] = [x[i] as number, x[i + dim / 2] as number];
        x[i] = a * cos - b * sin;
        x[i + dim / 2] = b * cos + a * sin;
      }
    };
  }
}

/** Radians a position of each pair, after the papers, and the factor of attention that goes with them. */
function scaled(base: number, dim: number, parameters: Record<string, number | string | boolean> | undefined) {
  const plain = Array.from({ length: dim / 2 }, (_, i) => base ** ((-2 * i) / dim));
  const type = parameters?.["rope_type"] ?? parameters?.["type"] ?? "default";
  const number = (name: string) => Number(parameters?.[name]);
  const isWhole = String(parameters?.["truncate"]) !== "false";
  const factor = number("factor");
  const original = number("original_max_position_embeddings");
  if (type === "linear") return { frequencies: plain.map((f) => f / factor), factor: 1 };
  if (type === "llama3") {
    const [low, high] = [number("low_freq_factor"), number("high_freq_factor")];
    const frequencies = plain.map((f) => {
      const wavelength = (2 * Math.PI) / f;
      if (wavelength < original / high) return f;
      if (wavelength > original / low) return f / factor;
      const smooth = (original / wavelength - low) / (high - low);
      return ((1 - smooth) * f) / factor + smooth * f;
    });
    return { frequencies, factor: 1 };
  }
  if (type === "yarn") {
    const pair = (turns: number) => (dim * Math.log(original / (turns * 2 * Math.PI))) / (2 * Math.log(base));
    const low = Math.max(0, isWhole ? Math.floor(pair(number("beta_fast"))) : pair(number("beta_fast")));
    const high = Math.min(dim - 1, isWhole ? Math.ceil(pair(number("beta_slow"))) : pair(number("beta_slow")));
    const frequencies = plain.map((f, i) => {
      const interpolated = Math.min(1, Math.max(0, (i - low) / (high - low)));
      return (f / factor) * interpolated + f * (1 - interpolated);
    });
    return { frequencies, factor: 0.1 * Math.log(factor) + 1 };
  }
  return { frequencies: plain, factor: 1 };
}

/** To 8 bits, to nearest: of a positive number. */
function nearestBfloat(value: number): number {
  const unit = 2 ** (Math.floor(Math.log2(value)) - 7);
  return Math.round(value / unit) * unit;
}

function multiply(matrix: Float64Array, x: Float64Array): Float64Array {
  const y = new Float64Array(matrix.length / x.length);
  for (let i = 0; i < y.length; i++) y[i] = dot(x, matrix, i * x.length);
  return y;
}

function dot(a: Float64Array, b: Float64Array, offset: number): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += (a[i] as number) * (b[offset + i] as number);
  return sum;
}

function add(to: Float64Array, values: Float64Array): void {
  for (let i = 0; i < to.length; i++) to[i] = (to[i] as number) + (values[i] as number);
}
