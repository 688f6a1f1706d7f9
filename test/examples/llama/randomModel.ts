/** Writes small random models in the files that real ones have. */
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { normalArray } from "../../../scripts/lib/random.ts";
import { float32ToBfloat16, float32ToFloat16 } from "../../../src/index.ts";
import { encodeSafetensors, type SafetensorsTensor } from "../../../src/safetensors/index.ts";

export type Json = Readonly<Record<string, unknown>>;
export type WeightDType = "BF16" | "F16" | "F32";

export interface RandomModel {
  /** Of `config.json`. */
  readonly config: Json;
  readonly dtype: WeightDType;
  /** Tensors by name, as `config.json` and the architecture have them. */
  readonly shapes: Readonly<Record<string, readonly number[]>>;
  readonly seed: number;
  /** Files that the tensors are spread over; 1 unless given. */
  readonly shards?: number;
}

export function encodeFloats(dtype: WeightDType, shape: readonly number[], values: Float32Array): SafetensorsTensor {
  const bits = dtype === "F32" ? values : dtype === "F16" ? float32ToFloat16(values) : float32ToBfloat16(values);
  return { dtype, shape, bytes: new Uint8Array(bits.buffer as ArrayBuffer, bits.byteOffset, bits.byteLength) };
}

/** Matrices that keep the size of what they multiply; norms near 1; biases that matter. */
function randomTensor(name: string, shape: readonly number[], dtype: WeightDType, seed: number): SafetensorsTensor {
  const [, inputs] = shape;
  const length = shape.reduce((product, extent) => product * extent, 1);
  const deviation =
    name.includes("embed_tokens") || name.endsWith("sinks") ? 1 : inputs === undefined ? 0.2 : 1.2 / Math.sqrt(inputs);
  const values = normalArray(length, deviation, seed);
  return encodeFloats(dtype, shape, name.endsWith("norm.weight") ? values.map((value) => 1 + value) : values);
}

/** The tensors of a random model, by name. */
export function randomTensors({ shapes, dtype, seed }: RandomModel): Map<string, SafetensorsTensor> {
  const names = Object.entries(shapes);
  return new Map(names.map(([name, shape], i) => [name, randomTensor(name, shape, dtype, 1000 * seed + i)]));
}

/** Writes a model into a new temporary folder, which the caller removes. */
export function writeRandomModel(model: RandomModel, tensors = randomTensors(model)): string {
  const folder = mkdtempSync(join(tmpdir(), "metal-attention-model-"));
  writeFileSync(join(folder, "config.json"), JSON.stringify(model.config));
  writeFileSync(join(folder, "tokenizer.json"), JSON.stringify(byteTokenizer()));
  writeFileSync(join(folder, "tokenizer_config.json"), JSON.stringify(tokenizerSettings));
  const { shards = 1 } = model;
  if (shards === 1) {
    writeFileSync(join(folder, "model.safetensors"), encodeSafetensors({ tensors }));
    return folder;
  }
  const weightMap: Record<string, string> = {};
  const entries = [...tensors];
  for (let shard = 0; shard < shards; shard++) {
    const file = `model-${shard + 1}-of-${shards}.safetensors`;
    const part = new Map(entries.filter((_, i) => i % shards === shard));
    for (const name of part.keys()) weightMap[name] = file;
    writeFileSync(join(folder, file), encodeSafetensors({ tensors: part }));
  }
  writeFileSync(join(folder, "model.safetensors.index.json"), JSON.stringify({ metadata: {}, weight_map: weightMap }));
  return folder;
}

export const vocabSize = 300;
export const endToken = 257;

const tokenizerSettings = {
  bos_token: "<s>",
  eos_token: { content: "</s>" },
  chat_template:
    "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}",
};

/** A byte-level BPE of 256 bytes, 2 special tokens and 42 merged pairs. */
function byteTokenizer(): Json {
  const letters = byteLetters();
  const vocab: Record<string, number> = {};
  for (const [byte, letter] of letters.entries()) vocab[letter] = byte;
  const merges: string[] = [];
  for (const first of "aeiou") {
    for (const second of "nrstlmdc") merges.push(`${first} ${second}`);
  }
  merges.push("t h", "th e");
  for (const [i, merge] of merges.entries()) vocab[merge.replace(" ", "")] = 258 + i;
  const special = (id: number, content: string) => ({
    ...{ id, content, special: true, normalized: false },
    ...{ single_word: false, lstrip: false, rstrip: false },
  });
  return {
    version: "1.0",
    truncation: null,
    padding: null,
    added_tokens: [special(256, "<s>"), special(257, "</s>")],
    normalizer: null,
    pre_tokenizer: { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: true },
    post_processor: null,
    decoder: { type: "ByteLevel", add_prefix_space: true, trim_offsets: true, use_regex: true },
    model: {
      type: "BPE",
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: false,
      byte_fallback: false,
      vocab,
      merges,
    },
  };
}

/** The letter that stands for each byte in byte-level vocabularies: itself where it prints, else one from 256 on. */
function byteLetters(): string[] {
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => {
    const prints = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    return String.fromCodePoint(prints ? byte : next++);
  });
}
