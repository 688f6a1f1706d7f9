/** What a cache format does to the model of `examples/recall`. */
import { join } from "node:path";
import { Model } from "../../examples/llama/model/model.ts";
import { asked, plant, Writer } from "../../examples/recall/facts.ts";
import type { Device } from "../../src/index.ts";

const folder = join(import.meta.dir, "../../examples/recall");
const context = 8192;
const factsOfText = 24;
/** Bytes of prose, so that facts and questions fit behind it. */
const proseBytes = 4600;
/** Tokens of which the logits come at a time. */
const chunk = 256;
/** Bounds of the distances by which recall is counted. */
export const distances = [0, 2000, 4000, 8192] as const;

/** Prose with facts in it, and behind it the questions with their answers. */
export interface Text {
  readonly bytes: Uint8Array;
  /** Values asked for: where they begin and end, and how many bytes back the fact has the same. */
  readonly answers: readonly { readonly begin: number; readonly end: number; readonly back: number }[];
}

/** Writes the texts that all formats are measured on. */
export function writeTexts(count: number): Text[] {
  return Array.from({ length: count }, (_, seed) => {
    const writer = new Writer(1 + seed);
    let prose = "\n";
    while (prose.length < proseBytes) prose += `${writer.prose()} `;
    const { text, facts } = plant(
      Buffer.from(prose),
      Array.from({ length: factsOfText }, () => writer.fact()),
    );
    let bytes: Uint8Array = text;
    const answers = writer.shuffled(facts).map(({ question, sentence, value, at }) => {
      const before = Buffer.concat([
        bytes,
        asked(question),
        Buffer.from(sentence.slice(0, sentence.lastIndexOf(value))),
      ]);
      bytes = Buffer.concat([before, Buffer.from(`${sentence.slice(sentence.lastIndexOf(value))}\n`)]);
      return { begin: before.length, end: before.length + value.length, back: before.length - at };
    });
    return { bytes, answers };
  });
}

/** The most likely byte behind each byte of each text: what other formats are held to. */
export type Likeliest = readonly Uint8Array[];

export interface Measured {
  readonly format: string;
  /** Of a value of K or V, norms included. */
  readonly bitsPerValue: number;
  /** Two to the mean number of bits that the next byte costs, over all bytes. */
  readonly perplexity: number;
  /** Part of all bytes whose most likely successor is that of the reference. */
  readonly agreement: number;
  /** Part of the values asked for that are right in every byte, of those not nearer than each of `distances`. */
  readonly recall: readonly number[];
  readonly recallOfAll: number;
  /** Of one sequence after a text. */
  readonly tokensPerSecond: number;
}

/** Runs every text through the model with its cache in `format`. */
export async function measure(
  device: Device,
  format: string,
  texts: readonly Text[],
  reference: Likeliest | undefined,
): Promise<{ measured: Measured; likeliest: Likeliest }> {
  using model = await Model.load(device, folder, { cache: format, context, chunk });
  const { nKvHeads, headDim, layers } = model.config;
  let bits = 0;
  let count = 0;
  let agreed = 0;
  let seconds = 0;
  const hits = distances.slice(1).map(() => ({ right: 0, all: 0 }));
  const likeliest: Uint8Array[] = [];
  for (const [i, { bytes, answers }] of texts.entries()) {
    const sequence = model.cache.sequence();
    const best = new Uint8Array(bytes.length);
    for (let at = 0; at < bytes.length; at += chunk) {
      const tokens = [...bytes.subarray(at, at + chunk)];
      const { logits } = await model.step([{ sequence, tokens }], { logits: "all", isPrompt: true });
      if (logits === undefined) throw new Error("a step without logits");
      const values = logits.view();
      for (let row = 0; row < tokens.length; row++) {
        const of = values.subarray(row * 256, (row + 1) * 256);
        best[at + row] = highest(of);
        const next = bytes[at + row + 1];
        if (next === undefined) continue;
        bits += cost(of, next);
        count++;
      }
    }
    seconds += await timeOfSteps(model, sequence);
    sequence.drop();
    likeliest.push(best);
    agreed += best.filter((byte, at) => byte === (reference ?? likeliest)[i]?.[at]).length;
    for (const { begin, end, back } of answers) {
      const group = hits[distances.findLastIndex((least) => back >= least)] ?? hits.at(-1);
      if (group === undefined) continue;
      group.all++;
      if (bytes.subarray(begin, end).every((byte, j) => best[begin + j - 1] === byte)) group.right++;
    }
  }
  const total = texts.reduce((sum, { bytes }) => sum + bytes.length, 0);
  const measured = {
    format,
    bitsPerValue: (8 * model.memory.cache) / (2 * layers.length * nKvHeads * headDim * context),
    perplexity: 2 ** (bits / count),
    agreement: agreed / total,
    recall: hits.map(({ right, all }) => right / all),
    recallOfAll: hits.reduce((sum, { right }) => sum + right, 0) / hits.reduce((sum, { all }) => sum + all, 0),
    tokensPerSecond: texts.length / seconds,
  };
  return { measured, likeliest };
}

const stepsTimed = 16;

/** Seconds of a step of one token: the median. */
async function timeOfSteps(model: Model, sequence: Parameters<Model["step"]>[0][number]["sequence"]): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < stepsTimed; i++) {
    const start = performance.now();
    await model.step([{ sequence, tokens: [97] }]);
    times.push((performance.now() - start) / 1000);
  }
  return times.toSorted((a, b) => a - b)[stepsTimed / 2] as number;
}

function highest(values: Float32Array): number {
  let best = 0;
  for (let i = 1; i < values.length; i++) if ((values[i] as number) > (values[best] as number)) best = i;
  return best;
}

/** Bits that `next` costs by the logits before it. */
function cost(logits: Float32Array, next: number): number {
  const most = logits[highest(logits)] as number;
  let sum = 0;
  for (const logit of logits) sum += Math.exp(logit - most);
  return (Math.log(sum) + most - (logits[next] as number)) / Math.LN2;
}
