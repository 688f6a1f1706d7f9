import { describe, expect, test } from "bun:test";
import { readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ModelError } from "../../../examples/llama/errors.ts";
import { configOf } from "../../../examples/llama/files/config.ts";
import { TextStream, Tokenizer } from "../../../examples/llama/files/tokenizer.ts";
import { Model } from "../../../examples/llama/model/model.ts";
import { MetalAttentionError } from "../../../src/index.ts";
import type { SafetensorsTensor } from "../../../src/safetensors/index.ts";
import { collectUntil } from "../../helpers/gc.ts";
import { randomModels } from "./architectures.ts";
import { device, folderOf, folderWith, load } from "./models.ts";
import { encodeFloats, type Json, type RandomModel, randomTensors, writeRandomModel } from "./randomModel.ts";

const [name = ""] = Object.keys(randomModels);
const model = randomModels[name] as RandomModel;

async function refusalOf(promise: Promise<unknown>): Promise<{ code: string; message: string }> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof ModelError || error instanceof MetalAttentionError)) {
    throw new Error(`expected a typed error, got ${String(error)}`, { cause: error });
  }
  return { code: error.code, message: error.message };
}

describe("config.json", () => {
  const cases: [what: string, fields: Json, code: string, ...parts: string[]][] = [
    [
      "another architecture",
      { architectures: ["BloomForCausalLM"] },
      "architecture",
      "BloomForCausalLM",
      "Qwen3ForCausalLM",
    ],
    ["a name that every object has", { architectures: ["constructor"] }, "architecture", "constructor"],
    ["no architecture", { architectures: [] }, "config", "architectures"],
    ["no hidden size", { hidden_size: null }, "config", "hidden_size"],
    ["a hidden size with a fraction", { hidden_size: 128.5 }, "config", "hidden_size"],
    ["a size that no model has", { vocab_size: 2 ** 40 }, "config", "vocab_size"],
    ["heads that do not divide", { num_key_value_heads: 3 }, "config", "2", "3"],
    ["a head size that is odd", { head_dim: 63 }, "config", "63"],
    ["an activation that is not known", { hidden_act: "relu" }, "config", "relu", "silu"],
    ["a rope that is not known", { rope_scaling: { rope_type: "dynamic", factor: 2 } }, "config", "dynamic", "llama3"],
    ["a rope that lacks its factor", { rope_scaling: { rope_type: "linear" } }, "config", "factor"],
    [
      "a rope that contradicts itself",
      {
        rope_scaling: {
          ...{ rope_type: "llama3", factor: 8, low_freq_factor: 4, high_freq_factor: 1 },
          original_max_position_embeddings: 64,
        },
      },
      "config",
      "highFreqFactor",
    ],
    ["experts", { num_local_experts: 32 }, "config", "32 experts"],
    ["types of too few layers", { layer_types: ["full_attention"] }, "config", "1 entries for 2"],
    [
      "a sliding layer without a window",
      { layer_types: ["sliding_attention", "full_attention"] },
      "config",
      "sliding_window",
    ],
    ["another number of layers", { num_hidden_layers: 3 }, "weights", "model.layers.2.", "missing"],
    ["fewer layers than there are", { num_hidden_layers: 1 }, "weights", "model.layers.1.", "no tensor"],
    ["another vocabulary", { vocab_size: 301 }, "weights", "[300,128]", "[301,128]"],
    ["biases that are not there", { attention_bias: true }, "weights", "bias", "missing"],
    ["a head size without kernels", { head_dim: 32 }, "weights", "[128,128]", "[64,128]"],
  ];
  test.each(cases)("refuses %s", async (_, fields, code, ...parts) => {
    const { code: got, message } = await refusalOf(load(folderWith(name, fields), {}));
    expect([got, message]).toEqual([code, message]);
    for (const part of parts) expect(message).toContain(part);
  });

  test("refuses what is no JSON, no object, or not there", async () => {
    const folder = folderWith(name, {});
    for (const text of ["{", "[]", "null", "3", '"text"']) {
      writeFileSync(join(folder, "config.json"), text);
      expect((await refusalOf(load(folder, {}))).code).toBe("config");
    }
    rmSync(join(folder, "config.json"));
    expect((await refusalOf(load(folder, {}))).message).toContain("config.json");
  });

  test("says what the published models are", () => {
    // Sizes and fields as in the files of Mistral 7B v0.1 and Gemma 3 1B.
    const mistral = configOf({
      architectures: ["MistralForCausalLM"],
      ...{ hidden_size: 4096, intermediate_size: 14336, num_hidden_layers: 32, num_attention_heads: 32 },
      ...{ num_key_value_heads: 8, vocab_size: 32000, sliding_window: 4096, rms_norm_eps: 1e-5, rope_theta: 10000 },
      ...{ max_position_embeddings: 32768, eos_token_id: 2 },
    });
    expect([mistral.headDim, mistral.scale, mistral.endTokens]).toEqual([128, 1 / Math.sqrt(128), [2]]);
    expect(mistral.layers.every(({ window }) => window === 4096)).toBeTrue();
    const gemma = configOf({
      architectures: ["Gemma3ForCausalLM"],
      ...{ hidden_size: 1152, intermediate_size: 6912, num_hidden_layers: 26, num_attention_heads: 4, head_dim: 256 },
      ...{ num_key_value_heads: 1, vocab_size: 262144, sliding_window: 512, sliding_window_pattern: 6 },
      ...{ rope_theta: 1e6, rope_local_base_freq: 1e4, query_pre_attn_scalar: 256, eos_token_id: [1, 106] },
      ...{ final_logit_softcapping: null, attn_logit_softcapping: null },
    });
    expect(gemma.layers.flatMap(({ window }, i) => (window === undefined ? [i] : []))).toEqual([5, 11, 17, 23]);
    expect([gemma.isTied, gemma.scale, gemma.finalSoftcap, gemma.endTokens]).toEqual([
      true,
      1 / 16,
      undefined,
      [1, 106],
    ]);
    const [local, , , , , global] = gemma.layers;
    expect([local?.rope.invFreq[1], global?.rope.invFreq[1]]).toEqual([
      Math.fround(1e4 ** (-2 / 256)),
      Math.fround(1e6 ** (-2 / 256)),
    ]);
  });
});

describe("weights", () => {
  const changed = (change: (tensors: Map<string, SafetensorsTensor>) => void) => {
    const tensors = randomTensors(model);
    change(tensors);
    return writeRandomModel({ ...model, shards: 1 }, tensors);
  };
  const q = "model.layers.0.self_attn.q_proj.weight";
  const cases: [what: string, change: (tensors: Map<string, SafetensorsTensor>) => void, ...parts: string[]][] = [
    ["a missing tensor", (tensors) => tensors.delete(q), q, "missing"],
    [
      "another shape",
      (tensors) => tensors.set(q, encodeFloats("BF16", [64, 128], new Float32Array(64 * 128))),
      "[64,128]",
    ],
    [
      "a dtype that is no float",
      (tensors) => tensors.set(q, { dtype: "U8", shape: [128, 128], bytes: new Uint8Array(128 * 128) }),
      "U8",
    ],
    [
      "a bias that nothing adds",
      (tensors) => tensors.set(`${q}.bias`, encodeFloats("F32", [4], new Float32Array(4))),
      "no tensor",
    ],
  ];
  test.each(cases)("refuses %s", async (_, change, ...parts) => {
    const folder = changed(change);
    try {
      const { code, message } = await refusalOf(load(folder, {}));
      expect(code).toBe("weights");
      for (const part of parts) expect(message).toContain(part);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test("refuses files that are cut, an index that lies, and shards elsewhere; no memory stays", async () => {
    const folder = folderWith(name, {});
    const index = join(folder, "model.safetensors.index.json");
    const good = readFileSync(index, "utf8");
    const before = device.info.currentAllocatedSize;
    const cases: [text: string, part: string][] = [
      ["{", "index.json"],
      ['{"weight_map":{"a":3}}', "weight_map"],
      [good.replace("model-1-of-3.safetensors", "model-2-of-3.safetensors"), "is said to be in"],
      [good.replace("model-1-of-3.safetensors", "../elsewhere.safetensors"), "outside the folder"],
      [good.replace("model-1-of-3.safetensors", "missing.safetensors"), "missing.safetensors"],
    ];
    for (const [text, part] of cases) {
      writeFileSync(index, text);
      expect((await refusalOf(load(folder, {}))).message).toContain(part);
    }
    writeFileSync(index, good);
    truncateSync(join(folder, "model-2-of-3.safetensors"), 5000);
    expect((await refusalOf(load(folder, {}))).code).toBe("invalid-argument");
    rmSync(index);
    expect((await refusalOf(load(folder, {}))).message).toContain("neither");
    expect(device.info.currentAllocatedSize).toBe(before);
  });

  test("an error while weights are read gives all memory back, and progress goes from 0 to the end", async () => {
    // What other tests have left goes first.
    await collectUntil(() => false, 5);
    const before = device.info.currentAllocatedSize;
    const seen: [number, number][] = [];
    const stopped = Model.load(device, folderOf(name), {}, (done, total) => {
      seen.push([done, total]);
      if (seen.length === 9) throw new ModelError("request", "stopped");
    });
    expect((await refusalOf(stopped)).message).toBe("stopped");
    // Memory that bytes of a file were read into stays until its view is collected.
    expect(await collectUntil(() => device.info.currentAllocatedSize === before)).toBeTrue();
    seen.length = 0;
    using _ = await Model.load(device, folderOf(name), {}, (done, total) => seen.push([done, total]));
    const [last] = seen.slice(-1);
    expect(last?.[0]).toBe(last?.[1] as number);
    expect(seen.map(([done]) => done)).toEqual(seen.map(([done]) => done).toSorted((a, b) => a - b));
  });
});

test.each(["k1v4", "k8", "f64", "", "k8v7"])("refuses the cache format %p with those known", async (cache) => {
  const { code, message } = await refusalOf(load(folderOf(name), { cache }));
  expect([code, message.includes("k8v4")]).toEqual(["request", true]);
});

test("a step refuses tokens outside of the vocabulary, and leaves the sequence as it was", async () => {
  using loaded = await load(folderOf(name), {});
  const sequence = loaded.cache.sequence();
  for (const tokens of [[300], [-1], [1.5], [Number.NaN], []]) {
    expect((await refusalOf(loaded.step([{ sequence, tokens }]))).code).toBe("request");
  }
  const long = Array(257).fill(1);
  expect((await refusalOf(loaded.step([{ sequence, tokens: long }]))).code).toBe("overflow");
  expect(sequence.length).toBe(0);
  await loaded.step([{ sequence, tokens: [1, 2, 3] }]);
  expect(sequence.length).toBe(3);
});

describe("the tokenizer", () => {
  test("turns text into tokens and back, whatever the text", async () => {
    const tokenizer = await Tokenizer.read(folderOf(name));
    const text = "Then the señor ate 3 naïve 🍕 in Ωmega, \n\tand more.";
    const tokens = tokenizer.encode(text);
    expect(tokenizer.decode(tokens)).toBe(text);
    expect(tokens.length).toBeLessThan(Buffer.byteLength(text));
    const stream = new TextStream(tokenizer);
    const pieces = tokens.map((token) => stream.push(token));
    expect(pieces.join("") + stream.end()).toBe(text);
    // No piece has half a character, and the text comes as soon as it is whole.
    expect(pieces.join("")).toBe(text);
    expect(pieces.some((piece) => piece.includes("\ufffd"))).toBeFalse();
    expect(tokenizer.endToken).toBe(257);
  });

  test("what never becomes a character is given at the end", async () => {
    const tokenizer = await Tokenizer.read(folderOf(name));
    const stream = new TextStream(tokenizer);
    expect([stream.push(65), stream.push(0xf0), stream.push(0x9f), stream.end()]).toEqual(["A", "", "", "\ufffd"]);
  });

  test("writes conversations as the template says", async () => {
    const tokenizer = await Tokenizer.read(folderOf(name));
    const tokens = tokenizer.encodeChat([{ role: "user", content: "hi" }]);
    expect(tokens[0]).toBe(256);
    expect(tokenizer.decode(tokens)).toBe("[user]hi[assistant]");
  });

  test("refuses a file that is none", async () => {
    const folder = folderWith(name, {});
    for (const text of ["{", "{}", '{"model":{"type":"BPE"}}', '{"model":{"type":"Unheard"}}']) {
      writeFileSync(join(folder, "tokenizer.json"), text);
      expect((await refusalOf(Tokenizer.read(folder))).code).toBe("tokenizer");
    }
  });
});
