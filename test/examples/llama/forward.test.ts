import { describe, expect, test } from "bun:test";
import { partsOf } from "../../../examples/llama/model/model.ts";
import { randomModels } from "./architectures.ts";
import { compare, folderOf, folderWith, ids, lastOf, load, truthOf, wholeOf } from "./models.ts";
import type { Json } from "./randomModel.ts";

/** Largest error of a logit by the cache's format, over the root mean square of all logits. */
const bounds = { f32: 2e-5, f16: 1e-2, bf16: 8e-2, k8v8: 0.3 } as const;
const names = Object.keys(randomModels);

describe.each(names)("%s", (name) => {
  test.each(Object.entries(bounds))("a prompt in %s is the forward pass in float64", async (cache, bound) => {
    using model = await load(folderOf(name), { cache });
    const { worst, certain, wrong } = compare(truthOf(name), await wholeOf(model, ids), bound);
    expect(worst).toBeLessThan(bound);
    expect(wrong).toBe(0);
    if (cache !== "k8v8") expect(certain).toBeGreaterThan(bound < 0.05 ? 190 : 110);
  });

  test("token by token through the cache is the forward pass in float64, and has the bits of one step", async () => {
    using model = await load(folderOf(name), { cache: "f32" });
    const whole = await wholeOf(model, ids, false);
    using sequence = model.cache.sequence();
    const logits = new Float32Array(whole.length);
    for (const [i, id] of ids.entries()) {
      logits.set(await lastOf(model.step([{ sequence, tokens: [id] }])), i * (whole.length / ids.length));
    }
    const { worst, wrong } = compare(truthOf(name), logits, bounds.f32);
    expect(worst).toBeLessThan(bounds.f32);
    expect(wrong).toBe(0);
    expect(logits).toEqual(whole);
  });

  test("a prompt in chunks has the bits of the whole, and so has what follows", async () => {
    using model = await load(folderOf(name), { cache: "f16", chunk: 40, sequences: 2 });
    const prompt = ids.slice(0, 131);
    const next = { tokens: [7] };
    const one = model.cache.sequence();
    const whole = await lastOf(model.step([{ sequence: one, tokens: prompt }]));
    const afterWhole = await lastOf(model.step([{ sequence: one, ...next }]));
    const other = model.cache.sequence();
    const seen: number[] = [];
    expect(await lastOf(model.prompt(other, prompt, {}, (done) => seen.push(done)))).toEqual(whole);
    expect(seen).toEqual([32, 65, 98, 131]);
    expect(await lastOf(model.step([{ sequence: other, ...next }]))).toEqual(afterWhole);
  });

  test("weights and cache in the device's own memory give the bits of those that the CPU shares", async () => {
    const logitsOf = async (storage: "shared" | "private") => {
      using model = await load(folderOf(name), { cache: "k8v4", storage });
      const sequence = model.cache.sequence();
      await model.prompt(sequence, ids.slice(0, 40));
      return { logits: await lastOf(model.step([{ sequence, tokens: [7] }])), memory: model.memory };
    };
    expect(await logitsOf("private")).toEqual(await logitsOf("shared"));
  });

  test("sequences in a batch have the bits of each by itself", async () => {
    using model = await load(folderOf(name), { cache: "k8v4", sequences: 5 });
    const alone: Float32Array<ArrayBuffer>[] = [];
    const lengths = [3, 60, 17, 1, 100];
    const sequences = [];
    for (const length of lengths) {
      const sequence = model.cache.sequence();
      sequences.push(sequence);
      await model.prompt(sequence, ids.slice(0, length));
      alone.push(await lastOf(model.step([{ sequence, tokens: [ids[length] as number] }])));
    }
    for (const sequence of sequences) sequence.trim(1);
    const parts = sequences.map((sequence, i) => ({ sequence, tokens: [ids[lengths[i] as number] as number] }));
    const together = await lastOf(model.step(parts));
    const width = together.length / parts.length;
    for (const [i, logits] of alone.entries()) expect(together.slice(i * width, (i + 1) * width)).toEqual(logits);
  });

  test("a recorded step gives the tokens and leaves the keys of one that is encoded", async () => {
    using model = await load(folderOf(name), { cache: "k8v4", sequences: 2 });
    const sequences = [model.cache.sequence(), model.cache.sequence()] as const;
    for (const sequence of sequences) await model.prompt(sequence, ids.slice(0, 30));
    const [one, other] = sequences;
    const step = model.recordStep(other);
    for (const [i, id] of ids.slice(30, 70).entries()) {
      const sample = { temperature: (i % 3) / 2, topP: 0.9, uniform: ((i * 37) % 64) / 64 };
      const { tokens } = await model.step([{ sequence: one, tokens: [id] }], { sample: [sample] });
      expect(await step(id, sample)).toBe(tokens[0] as number);
    }
    const last = await lastOf(model.step([{ sequence: one, tokens: [7] }]));
    expect(await lastOf(model.step([{ sequence: other, tokens: [7] }]))).toEqual(last);
    for (const token of [300, -1, 0.5])
      await expect(step(token, { temperature: 0, topP: 1, uniform: 0 })).rejects.toThrow("vocab");
    expect(other.length).toBe(71);
  });

  test("answers beside parts of prompts, in pages and behind a shared beginning, have the bits of each by itself", async () => {
    using alone = await load(folderOf(name), { cache: "k8v4" });
    const [first, other, short] = [ids.slice(0, 90), [...ids.slice(0, 50), ...ids.slice(120, 160)], ids.slice(7, 12)];
    /** The last logits of a prompt, and those after one token more. */
    const expected = async (prompt: readonly number[]) => {
      using sequence = alone.cache.sequence();
      const last = await lastOf(alone.prompt(sequence, prompt));
      return [last, await lastOf(alone.step([{ sequence, tokens: [9] }]))] as const;
    };
    using model = await load(folderOf(name), { cache: "k8v4", chunk: 60, sequences: 3, pool: 3 });
    const one = model.cache.sequence();
    await model.prompt(one, first);
    // An answer's token is no part of a prompt, though it be the same.
    await model.step([{ sequence: one, tokens: [other[50] as number] }]);
    expect(model.match(other)).toEqual({ sequence: one, length: 50 });
    expect(model.match(other.slice(0, 60))?.length).toBe(43);
    expect(model.match(first.slice(0, 16))).toBeUndefined();
    one.trim(1);
    const two = one.fork(50);
    const three = model.cache.sequence();
    const together = await lastOf(
      model.step([
        { sequence: three, tokens: short },
        { sequence: two, tokens: other.slice(50, 70), logits: "none" },
        { sequence: one, tokens: [9] },
      ]),
    );
    const last = await lastOf(
      model.step([
        { sequence: two, tokens: other.slice(70) },
        { sequence: three, tokens: [9] },
      ]),
    );
    const width = together.length / 2;
    const rowsOf = (logits: Float32Array) => [logits.slice(0, width), logits.slice(width)];
    expect(rowsOf(together)).toEqual([(await expected(short))[0], (await expected(first))[1]]);
    expect(rowsOf(last)).toEqual([(await expected(other))[0], (await expected(short))[1]]);
  });
});

describe("a mistake in what config.json says is seen", () => {
  const mistakes: [model: number, what: string, fields: Json][] = [
    [0, "the base of the rope", { rope_theta: 400_000 }],
    [0, "the eps", { rms_norm_eps: 1e-3 }],
    [0, "a rope without its scaling", { rope_scaling: null }],
    [1, "the factor of the rope", { rope_scaling: { type: "linear", factor: 3 } }],
    [2, "a window of one more", { sliding_window: 41 }],
    [2, "no window", { sliding_window: null }],
    [3, "one layer less in a window", { max_window_layers: 2 }],
    [4, "the older place of the rope's base", { rope_parameters: null }],
    [5, "the softcap of scores", { attn_logit_softcapping: 5.1 }],
    [5, "the softcap of logits", { final_logit_softcapping: null }],
    [5, "the scale", { query_pre_attn_scalar: 101 }],
    [6, "the pattern of windows", { sliding_window_pattern: 3 }],
    [6, "the base of local layers", { rope_local_base_freq: 9e3 }],
    [7, "layers in a window the other way round", { layer_types: ["full_attention", "sliding_attention"] }],
  ];
  test.each(mistakes)("model %i: %s", async (index, _, fields) => {
    const name = names[index] as string;
    using model = await load(folderWith(name, fields), { cache: "f32" });
    expect(compare(truthOf(name), await wholeOf(model, ids), bounds.f32).worst).toBeGreaterThan(2 * bounds.f32);
  });
});

test("layer_types and rope_parameters by type mean what older fields mean", async () => {
  const types = ["sliding_attention", "full_attention", "sliding_attention", "full_attention"];
  const name = names[6] as string;
  const fields = {
    layer_types: types,
    sliding_window_pattern: null,
    rope_theta: null,
    rope_local_base_freq: null,
    rope_scaling: null,
    rope_parameters: {
      full_attention: { rope_type: "linear", factor: 8, rope_theta: 1e6 },
      sliding_attention: { rope_type: "default", rope_theta: 1e4 },
    },
  };
  using model = await load(folderWith(name, fields), { cache: "f32" });
  using older = await load(folderOf(name), { cache: "f32" });
  expect(await wholeOf(model, ids)).toEqual(await wholeOf(older, ids));
});

test("a ring sees what a window of the same length sees", async () => {
  const name = names[0] as string;
  using ring = await load(folderOf(name), { cache: "f32", window: 50, chunk: 64 });
  // The model with that window by its config: Mistral has the same tensors.
  const mistral = folderWith(name, { architectures: ["MistralForCausalLM"], sliding_window: 50 });
  using window = await load(mistral, { cache: "f32" });
  const sequence = ring.cache.sequence();
  const other = window.cache.sequence();
  const last = await lastOf(ring.prompt(sequence, ids));
  const expected = await lastOf(window.prompt(other, ids));
  // Keys lie at other places, and so are summed in other blocks.
  for (const [i, value] of last.entries()) expect(Math.abs(value - (expected[i] as number))).toBeLessThan(1e-4);
  expect(ring.cache.bytes).toBeLessThan(window.cache.bytes);
});

test("prompts are cut into parts of 17 to `chunk` tokens that follow each other", () => {
  for (const chunk of [34, 40, 256]) {
    for (let length = 1; length < 1000; length++) {
      const parts = partsOf(length, chunk);
      expect(parts[0]?.[0]).toBe(0);
      expect(parts.at(-1)?.[1]).toBe(length);
      for (const [i, [from, to]] of parts.entries()) {
        if (i > 0) expect(from).toBe(parts[i - 1]?.[1] as number);
        expect(to - from).toBeLessThanOrEqual(chunk);
        expect(to - from).toBeGreaterThanOrEqual(Math.min(length, 17));
      }
    }
  }
});
