import type { KvSequence } from "metal-attention";
import { type Model, notNumbers } from "../model/model.ts";
import type { OnProgress } from "../model/weights.ts";
import { Sampler, type Sampling } from "./sampling.ts";

export interface GenerateOptions extends Sampling {
  readonly maxTokens: number;
  /** Tokens that end the text, beside those of `config.json`. */
  readonly endTokens?: readonly number[];
  readonly signal?: AbortSignal;
  readonly onPrompt?: OnProgress;
  /** Where the times of the first step after the prompt are written. */
  readonly trace?: string | undefined;
}

/** The tokens that follow a prompt, as they come: up to one that ends the text, `maxTokens`, or an abort. */
export async function* generate(
  model: Model,
  sequence: KvSequence,
  prompt: readonly number[],
  options: GenerateOptions,
): AsyncGenerator<number, void> {
  const { maxTokens, endTokens = [], signal, onPrompt } = options;
  const ends = new Set([...model.config.endTokens, ...endTokens]);
  const sampler = new Sampler(options);
  const first = { sample: [sampler.next()], ...(signal && { signal }) };
  const { tokens } = await model.prompt(sequence, prompt, first, onPrompt);
  let [token] = tokens;
  let step: ReturnType<Model["recordStep"]> | undefined;
  for (let count = 0; count < maxTokens; count++) {
    if (token === undefined) throw notNumbers();
    if (ends.has(token) || signal?.aborted) return;
    yield token;
    if (count + 1 === maxTokens || signal?.aborted) return;
    const trace = count === 0 ? options.trace : undefined;
    if (trace !== undefined) {
      [token] = (await model.step([{ sequence, tokens: [token] }], { sample: [sampler.next()], trace })).tokens;
    } else {
      step ??= model.recordStep(sequence);
      token = await step(token, sampler.next());
    }
  }
}
