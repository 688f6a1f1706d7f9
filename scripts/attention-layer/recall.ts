/** The part of the demo where a language model reads a text and answers questions about it. */
import { join } from "node:path";
import { Model } from "../../examples/llama/model/model.ts";
import { generate } from "../../examples/llama/run/generate.ts";
import { asked, plant, Writer } from "../../examples/recall/facts.ts";
import type { Device, KvSequence } from "../../src/index.ts";
import type { Progress } from "../lib/progress.ts";
import { formatBytes, formatNumber } from "../lib/table.ts";
import { readText } from "./inputs.ts";

const folder = join(import.meta.dir, "../../examples/recall");
/** Tokens that the cache holds; the text leaves room for facts, a question and its answer. */
const context = 8192;
/** Bytes of a text that are read. */
export const mostRead = 6144;
const answerTokens = 96;

export interface RecallOptions {
  /** How keys and values are kept, as `--cache` of examples/llama has it. */
  readonly cache: string;
  /** Facts to plant and to ask for. */
  readonly questions: number;
}

/**
 * Plants `questions` facts in the text at `path`, has the model read it, asks for each fact, and prints the answers as
 * they come.
 */
export async function runRecall(
  device: Device,
  path: string,
  { cache, questions }: RecallOptions,
  progress: Progress,
): Promise<void> {
  const whole = await readText(path);
  const part = whole.subarray(0, mostRead);
  const writer = new Writer(part.length);
  const { text, facts } = plant(
    part,
    Array.from({ length: questions }, () => writer.fact()),
  );
  using model = await progress.wait("the model's weights and kernels", () =>
    Model.load(device, folder, { cache, context }),
  );
  const { memory } = model;
  console.log(
    `A language model of ${formatNumber(memory.weights / 2e6)} million parameters reads ${part.length} of the ` +
      `${whole.length} bytes of ${path},\nin which ${questions} facts were planted. Its cache (${model.format.name}, ` +
      `${context} tokens) takes ${formatBytes(memory.cache)}.\n`,
  );
  const sequence = model.cache.sequence();
  await progress.wait("compiling the kernels (kept for the next run)", () => compileAll(model, sequence));
  const readStart = performance.now();
  await progress.wait("reading", () => model.prompt(sequence, [10, ...text]));
  const readTime = (performance.now() - readStart) / 1000;
  let right = 0;
  let steps = 0;
  let stepTime = 0;
  for (const fact of facts) {
    console.log(`Q  ${fact.question}`);
    process.stdout.write("A  ");
    const answer: number[] = [];
    let before = performance.now();
    const sampling = { temperature: 0, topP: 1, seed: 0 };
    for await (const token of generate(model, sequence, [...asked(fact.question)], {
      maxTokens: answerTokens,
      ...sampling,
    })) {
      process.stdout.write(Buffer.of(token));
      const now = performance.now();
      // The first token is of the question's own step.
      if (answer.length > 0) {
        steps++;
        stepTime += (now - before) / 1000;
      }
      before = now;
      answer.push(token);
    }
    const isRight = Buffer.from(answer).toString().includes(fact.value);
    if (isRight) right++;
    const back = sequence.length - fact.at;
    console.log(`  (${isRight ? "right" : `wrong, it was ${fact.value}`}; ${back} tokens back)`);
    // The next question finds the text as it was read.
    sequence.crop(text.length + 1);
  }
  console.log(
    `\n${right} of ${questions} answers right; the text at ${formatNumber((text.length + 1) / readTime)} tokens/s, ` +
      `answers at ${steps > 0 ? formatNumber(steps / stepTime) : "-"} tokens/s\n`,
  );
}

/** Runs a prompt and a step as they will come, so that no time below is a compiler's. */
async function compileAll(model: Model, sequence: KvSequence): Promise<void> {
  const sample = [{ temperature: 0, topP: 1, uniform: 0 }];
  await model.prompt(sequence, new Array(32).fill(10), { sample });
  await model.step([{ sequence, tokens: [10] }], { sample });
  sequence.crop(0);
}
