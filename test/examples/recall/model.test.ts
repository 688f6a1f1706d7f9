/** The model of examples/recall: that it is in the usual files, and that it needs its cache. */
import { describe, expect, test } from "bun:test";
import { resolve } from "node:path";
import { readConfig } from "../../../examples/llama/files/config.ts";
import { Tokenizer } from "../../../examples/llama/files/tokenizer.ts";
import { measure, type Text, writeTexts } from "../../../scripts/report/measure.ts";
import { Device } from "../../../src/index.ts";
import { readSafetensorsHeader } from "../../../src/safetensors/index.ts";

const folder = resolve(import.meta.dir, "../../../examples/recall");

describe("files", () => {
  test("a Llama model of one to three million parameters", async () => {
    const { architecture, layers, heads, nKvHeads, headDim } = await readConfig(folder);
    expect({ architecture, layers: layers.length, heads, nKvHeads, headDim }).toEqual({
      architecture: "LlamaForCausalLM",
      layers: 6,
      heads: 4,
      nKvHeads: 2,
      headDim: 64,
    });
    const { tensors } = await readSafetensorsHeader(resolve(folder, "model.safetensors"));
    let parameters = 0;
    for (const { dtype, shape } of tensors.values()) {
      expect(dtype).toBe("BF16");
      parameters += shape.reduce((product, extent) => product * extent, 1);
    }
    expect(parameters).toBe(2_263_488);
  });

  test("a token is a byte", async () => {
    const tokenizer = await Tokenizer.read(folder);
    const text = "A line.\n\tTwo: 100 % café, 世界, 🙂\r\n";
    expect(tokenizer.encode(text)).toEqual([...Buffer.from(text)]);
    expect(tokenizer.decode([...Buffer.from(text)])).toBe(text);
    expect(Buffer.from(tokenizer.encodeChat([{ role: "user", content: "Who?" }])).toString()).toBe("\nWho?\nAnswer: ");
  });

  test("the example answers from them", () => {
    const prompt =
      "\nDrano lives in Stailport. The old wheel finds the lamp. \nQuestion: Where does Drano live?\nAnswer: ";
    const { exitCode, stdout } = Bun.spawnSync([process.execPath, "examples/llama", folder, prompt], {
      cwd: resolve(folder, "../.."),
    });
    expect({ exitCode, answer: stdout.toString() }).toEqual({
      exitCode: 0,
      answer: expect.stringContaining("Stailport"),
    });
  });
});

describe("recall", () => {
  const texts = writeTexts(2);

  test("above 95 % of what stands 2,000 tokens back or more, with a cache of f16", async () => {
    const far = texts.map(
      ({ bytes, answers }): Text => ({ bytes, answers: answers.filter(({ back }) => back >= 2000) }),
    );
    expect(far.reduce((sum, { answers }) => sum + answers.length, 0)).toBeGreaterThan(30);
    using device = Device.open();
    const { measured } = await measure(device, "f16", far, undefined);
    expect(measured.recallOfAll).toBeGreaterThan(0.95);
    expect(measured.bitsPerValue).toBeCloseTo(16, 3);
  }, 60_000);

  test("what a cache of 2 bits keeps is not enough, and its next bytes differ", async () => {
    using device = Device.open();
    const [text] = texts;
    const one = [text as Text];
    const { measured: wide, likeliest } = await measure(device, "f16", one, undefined);
    expect(wide.agreement).toBe(1);
    const { measured: again } = await measure(device, "f16", one, likeliest);
    expect({ ...again, tokensPerSecond: 0 }).toEqual({ ...wide, tokensPerSecond: 0 });
    const { measured: narrow } = await measure(device, "k2v2", one, likeliest);
    expect(narrow.recallOfAll).toBeLessThan(0.5);
    expect(narrow.agreement).toBeLessThan(0.9);
    expect(narrow.perplexity).toBeGreaterThan(1.2 * wide.perplexity);
    // 2 bits a value and one f32 norm for a head vector of 64.
    expect(narrow.bitsPerValue).toBeWithin(2.5, 2.6);
  }, 60_000);
});
