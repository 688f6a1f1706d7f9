/** Random models, their files written once for all tests of a process, and their logits in float64. */
import { afterAll } from "bun:test";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Model, type ModelOptions } from "../../../examples/llama/model/model.ts";
import { Device } from "../../../src/index.ts";
import { randomModels } from "./architectures.ts";
import { forward64 } from "./forward64.ts";
import { type Json, type RandomModel, vocabSize, writeRandomModel } from "./randomModel.ts";

export const device = Device.open();
const folders = new Map<string, string>();
const truths = new Map<string, Float64Array[]>();
const copies: string[] = [];

afterAll(() => {
  for (const folder of [...folders.values(), ...copies]) rmSync(folder, { recursive: true, force: true });
  folders.clear();
  truths.clear();
});

/** 220 tokens. */
export const ids: readonly number[] = Array.from({ length: 220 }, (_, i) => (i * 7919 + ((i * i) % 13)) % vocabSize);

/** The folder of a model of `randomModels`. */
export function folderOf(name: string): string {
  const known = folders.get(name);
  if (known !== undefined) return known;
  const folder = writeRandomModel(randomModels[name] as RandomModel);
  folders.set(name, folder);
  return folder;
}

/** A copy of a model's folder with other fields in `config.json`. */
export function folderWith(name: string, fields: Json): string {
  const folder = mkdtempSync(join(tmpdir(), "metal-attention-model-"));
  copies.push(folder);
  cpSync(folderOf(name), folder, { recursive: true });
  const path = join(folder, "config.json");
  writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, "utf8")), ...fields }));
  return folder;
}

/** The logits of {@link ids} in float64. */
export function truthOf(name: string): Float64Array[] {
  const known = truths.get(name);
  if (known !== undefined) return known;
  const truth = forward64(folderOf(name), ids);
  truths.set(name, truth);
  return truth;
}

export function load(folder: string, options: ModelOptions): Promise<Model> {
  return Model.load(device, folder, { context: 256, ...options });
}

/** Logits of all of `tokens`, in one step of a new sequence. */
export async function wholeOf(
  model: Model,
  tokens: readonly number[],
  isPrompt?: boolean,
): Promise<Float32Array<ArrayBuffer>> {
  using sequence = model.cache.sequence();
  const { logits } = await model.step([{ sequence, tokens }], {
    logits: "all",
    ...(isPrompt !== undefined && { isPrompt }),
  });
  return (logits as NonNullable<typeof logits>).toFloat32Array();
}

/** The logits of the last token of a step. */
export async function lastOf(step: ReturnType<Model["step"]>): Promise<Float32Array<ArrayBuffer>> {
  const { logits } = await step;
  return (logits as NonNullable<typeof logits>).toFloat32Array();
}

/** How logits differ from the truth. */
export interface Difference {
  /** The largest, over the root mean square of the true logits. */
  readonly worst: number;
  /** Tokens whose largest logit leads by more than twice the bound, of which each has to be the largest. */
  readonly certain: number;
  /** Those of them where another is. */
  readonly wrong: number;
}

export function compare(truth: readonly Float64Array[], logits: Float32Array, bound: number): Difference {
  const size = Math.sqrt(truth.reduce((sum, row) => sum + row.reduce((s, v) => s + v * v, 0), 0) / logits.length);
  let worst = 0;
  let certain = 0;
  let wrong = 0;
  for (const [i, row] of truth.entries()) {
    const own = logits.subarray(i * vocabSize, (i + 1) * vocabSize);
    for (const [j, value] of row.entries()) {
      const error = Math.abs(value - (own[j] as number)) / size;
      if (!(error <= worst)) worst = error;
    }
    const [first = 0, second = 0] = row.toSorted((a, b) => b - a);
    if (first - second <= 2 * bound * size) continue;
    certain++;
    if (own.indexOf(Math.max(...own)) !== row.indexOf(first)) wrong++;
  }
  return { worst, certain, wrong };
}
