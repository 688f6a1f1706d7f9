import {
  bfloat16ToFloat32,
  type Device,
  float16ToFloat32,
  float32ToBfloat16,
  float32ToFloat16,
  KvCache,
  type KvSequence,
  type Pass,
  type Tensor,
} from "metal-attention";
import { ModelError } from "../errors.ts";
import { type ModelConfig, readConfig } from "../files/config.ts";
import { type CacheFormat, cacheFormat } from "./cacheFormat.ts";
import { type FloatDType, Kernels, type RowRun, type SampleRow } from "./kernels.ts";
import { encodeLayer, type LayerCall } from "./layers.ts";
import { loadWeights, type OnProgress, type Weights } from "./weights.ts";
import { type Activations, type Outputs, Workspace } from "./workspace.ts";

/** Tokens of a sequence beyond which the library attends as over a prompt. */
export const mostDecodeTokens = 16;
/** Any longer prompt can be cut into parts of more than {@link mostDecodeTokens} and at most so many tokens. */
const leastChunk = 2 * (mostDecodeTokens + 1);

/** Tokens of a page of a pool. */
export const pageTokens = 32;

/** How a model keeps keys and values. */
export interface ModelOptions {
  /** k8v4 unless given. */
  readonly cache?: string;
  /** Most tokens of a sequence; 4,096 unless given, or what the model was made for where that is less. */
  readonly context?: number;
  /** A token sees the last `window` ones, and the cache holds no more of them. */
  readonly window?: number;
  /** Most tokens of a step of a prompt; 256 unless given. */
  readonly chunk?: number;
  /** Sequences at once; 1 unless given. */
  readonly sequences?: number;
  /** Without a window: sequences lie in pages, share those of a common beginning, and so many may be full at once. */
  readonly pool?: number;
  /** Memory of weights and cache: the device's own where the CPU does not share all of it, unless given. */
  readonly storage?: "shared" | "private";
}

/** Whose logits of a part are computed. */
type LogitsOf = "last" | "all" | "none";

/** New tokens of a sequence. */
export interface StepPart {
  readonly sequence: KvSequence;
  readonly tokens: readonly number[];
  /** As of the step unless given. */
  readonly logits?: LogitsOf;
  readonly isPrompt?: boolean;
}

export interface StepOptions {
  /** Of the last token of each part unless given. */
  readonly logits?: LogitsOf;
  /** Chooses a token for each row of the logits. */
  readonly sample?: readonly SampleRow[];
  /** A part is of a prompt that has more than 16 tokens, so that its products are those of prompts. */
  readonly isPrompt?: boolean;
  /** Where the times of this step are written, for Perfetto. */
  readonly trace?: string | undefined;
}

export interface StepResult {
  /** [rows, vocabSize], until the next step. */
  readonly logits: Tensor<"f32"> | undefined;
  /** A token of each row, where they were to be sampled; undefined for logits that are not numbers. */
  readonly tokens: readonly (number | undefined)[];
}

/** A beginning of a prompt that a sequence has. */
export interface KnownPrefix {
  readonly sequence: KvSequence;
  readonly length: number;
}

/** A model on a device, with the cache of its sequences. One step at a time. */
export class Model {
  readonly config: ModelConfig;
  readonly cache: KvCache;
  readonly format: CacheFormat;
  readonly context: number;
  readonly chunk: number;
  /** Most of the cache's sequences at once. */
  readonly sequences: number;
  /** Whether sequences share the pages of a common beginning. */
  readonly isShared: boolean;
  readonly #device: Device;
  readonly #kernels: Kernels;
  readonly #weights: Weights;
  readonly #workspace: Workspace;
  /** Of recorded steps. */
  readonly #recorded: Workspace[] = [];
  /** A token sees the last so many, and the cache keeps no more. */
  readonly window: number | undefined;
  readonly #embeddingScale: number;

  private constructor(device: Device, config: ModelConfig, kernels: Kernels, weights: Weights, options: ModelOptions) {
    const { cache = "k8v4", window, sequences = 1, chunk = 256, pool } = options;
    this.#device = device;
    this.config = config;
    this.#kernels = kernels;
    this.#weights = weights;
    this.format = cacheFormat(cache);
    this.context = options.context ?? Math.min(config.maxPositions, 4096);
    if (chunk < leastChunk) {
      throw new ModelError(
        "request",
        `a chunk of ${chunk} tokens; at least ${leastChunk}, so that each part is a prompt`,
      );
    }
    this.chunk = window === undefined ? Math.min(chunk, this.context) : chunk;
    this.window = window;
    this.sequences = sequences;
    this.isShared = pool !== undefined;
    this.cache = new KvCache(device, {
      layers: config.layers.length,
      nKvHeads: config.nKvHeads,
      headDim: config.headDim,
      // A ring has room for the tokens of a step beside those that they see.
      capacity: window === undefined ? this.context : window + this.chunk - 1,
      k: this.format.k,
      v: this.format.v,
      sequences,
      storage: weights.embedding.storage,
      ...(window !== undefined && { window }),
      ...(pool !== undefined && {
        pages: { tokens: pageTokens, count: pool * Math.ceil(this.context / pageTokens) },
      }),
    });
    this.#workspace = new Workspace(device, config, this.format.attention);
    this.#embeddingScale = config.isGemma ? rounded(Math.sqrt(config.hiddenSize), weights.embedding.dtype) : 1;
  }

  /**
   * Reads a model's files onto a device.
   *
   * Errors: `architecture`, `config`, `weights`; `request` for options that do not fit; the library's.
   */
  static async load(
    device: Device,
    folder: string,
    options: ModelOptions = {},
    onProgress?: OnProgress,
  ): Promise<Model> {
    const config = await readConfig(folder);
    cacheFormat(options.cache ?? "k8v4"); // Refused before anything is read.
    const storage = options.storage ?? (device.info.hasUnifiedMemory ? "shared" : "private");
    const weights = await loadWeights(device, folder, config, storage, onProgress);
    const kernels = await Kernels.compile(device);
    try {
      return new Model(device, config, kernels, weights, options);
    } catch (error) {
      weights.dispose();
      kernels.dispose();
      throw error;
    }
  }

  /** Bytes on the device by what they are for. */
  get memory(): { readonly weights: number; readonly cache: number; readonly activations: number } {
    const activations = [this.#workspace, ...this.#recorded].reduce((sum, { bytes }) => sum + bytes, 0);
    return { weights: this.#weights.bytes, cache: this.cache.bytes, activations };
  }

  /**
   * Takes new tokens of one or more sequences through all layers, as one pass. A step that fails leaves the sequences as
   * they were.
   */
  async step(parts: readonly StepPart[], options: StepOptions = {}): Promise<StepResult> {
    const { trace } = options;
    const ids = parts.flatMap(({ tokens }) => tokens);
    if (parts.length === 0 || parts.some(({ tokens }) => tokens.length === 0)) {
      throw new ModelError("request", "a step without tokens");
    }
    this.checkTokens(ids);
    const counts = parts.map(({ tokens }) => tokens.length);
    const isPrompt = parts.map((part) => part.isPrompt ?? options.isPrompt ?? part.tokens.length > mostDecodeTokens);
    const activations = this.#workspace.activations(ids.length);
    activations.ids.set(ids);
    activations.positions.set(parts.flatMap(({ sequence, tokens }) => tokens.map((_, i) => sequence.length + i)));
    const sequences = parts.map(({ sequence }) => sequence);
    const rows = rowsOfLogits(parts, options.logits);
    const outputs = rows.length > 0 ? this.#outputs(this.#workspace, rows, options.sample) : undefined;
    using pass = this.#device.pass({ profile: trace !== undefined });
    const { cache } = this;
    try {
      this.#encode(
        pass,
        { sequences, counts, runs: runsOf(counts, isPrompt) },
        activations,
        outputs,
        options.sample !== undefined,
      );
      await pass.commit();
      const keys = parts.flatMap(({ tokens }, i) => this.#matchKeys(tokens, isPrompt[i] as boolean));
      cache.advance(ids.length, keys);
      if (trace !== undefined) await pass.trace(trace);
      return { logits: outputs?.logits, tokens: options.sample === undefined ? [] : this.#tokensOf(outputs) };
    } catch (error) {
      if (!cache.disposed) cache.abandon();
      throw error;
    }
  }

  /**
   * Takes the tokens of a prompt through the model, in parts of about `chunk` tokens, and gives the result of the last
   * one. The parts have the bits of the whole: each has more than 16 tokens, or the prompt has not.
   */
  async prompt(
    sequence: KvSequence,
    tokens: readonly number[],
    options: Omit<StepOptions, "logits" | "isPrompt"> & { readonly signal?: AbortSignal } = {},
    onProgress: OnProgress = () => {},
  ): Promise<StepResult> {
    const { signal, ...last } = options;
    const isPrompt = tokens.length > mostDecodeTokens;
    const parts = partsOf(tokens.length, this.chunk);
    let result: StepResult = { logits: undefined, tokens: [] };
    for (const [i, [from, to]] of parts.entries()) {
      signal?.throwIfAborted();
      const isLast = i === parts.length - 1;
      const part = { sequence, tokens: tokens.slice(from, to) };
      result = await this.step([part], isLast ? { ...last, isPrompt } : { logits: "none", isPrompt });
      onProgress(to, tokens.length);
    }
    return result;
  }

  /**
   * A step of one token of a sequence, recorded: a run of it costs little of the host's time, and gives the token that
   * `step` would. The one that was recorded last can be run; its memory stays as long as the model.
   */
  recordStep(sequence: KvSequence): (token: number, sample: SampleRow) => Promise<number | undefined> {
    const workspace = new Workspace(this.#device, this.config, this.format.attention);
    this.#recorded.push(workspace);
    const activations = workspace.activations(1);
    const outputs = workspace.outputs(1);
    const rows = { sequences: [sequence], counts: [1], runs: runsOf([1], [false]) };
    const recorded = this.#device.record((pass) => this.#encode(pass, rows, activations, outputs, true));
    const { cache } = this;
    return async (token, sample) => {
      this.checkTokens([token]);
      activations.ids.set([token]);
      activations.positions.set([sequence.length]);
      outputs.sampling.set(samplingOf([sample]));
      try {
        await recorded.commit(cache.prepare());
        cache.advance(1, this.#matchKeys([token], false));
      } catch (error) {
        if (!cache.disposed) cache.abandon();
        throw error;
      }
      return this.#tokensOf(outputs)[0];
    };
  }

  /** Errors: `request` for a token that is not in the vocabulary. */
  checkTokens(ids: readonly number[]): void {
    const { vocabSize } = this.config;
    const odd = ids.find((id) => !Number.isInteger(id) || id < 0 || id >= vocabSize);
    if (odd !== undefined) throw new ModelError("request", `token ${odd} is not in the vocabulary of ${vocabSize}`);
  }

  /**
   * The longest beginning of a prompt that a sequence has with the bits that the prompt would give it, and after which
   * the rest has the bits of the whole: at least one token remains, and more than 16 of a prompt that has as many.
   */
  match(tokens: readonly number[]): KnownPrefix | undefined {
    const isPrompt = tokens.length > mostDecodeTokens;
    const most = tokens.length - (isPrompt ? mostDecodeTokens + 1 : 1);
    return this.cache.match(this.#matchKeys(tokens, isPrompt).slice(0, most));
  }

  dispose(): void {
    this.cache.dispose();
    for (const workspace of [this.#workspace, ...this.#recorded]) workspace.dispose();
    this.#weights.dispose();
    this.#kernels.dispose();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  /** Tensors for the rows whose logits are computed, and what they are sampled by. */
  #outputs(workspace: Workspace, rows: readonly number[], sample: readonly SampleRow[] | undefined): Outputs {
    if (sample !== undefined && sample.length !== rows.length) {
      throw new ModelError("request", `${sample.length} ways to sample ${rows.length} rows of logits`);
    }
    const outputs = workspace.outputs(rows.length);
    outputs.rows.set(rows);
    if (sample !== undefined) outputs.sampling.set(samplingOf(sample));
    return outputs;
  }

  /** Encodes a step: embeddings, layers, and logits with their tokens where there are any. */
  #encode(
    pass: Pass,
    rows: Pick<LayerCall, "sequences" | "counts" | "runs">,
    activations: Activations,
    outputs: Outputs | undefined,
    isSampled: boolean,
  ): void {
    const { config, cache, window: ring } = this;
    const [kernels, weights] = [this.#kernels, this.#weights];
    kernels.gather(pass, weights.embedding, activations.ids, activations.x, this.#embeddingScale);
    const call: LayerCall = { pass, kernels, config, cache, ...rows, ring, activations };
    for (const [layer, layerWeights] of weights.layers.entries()) encodeLayer(call, layer, layerWeights);
    if (outputs === undefined) return;
    const { x, logits, sampling, tokens } = outputs;
    kernels.gather(pass, activations.x, outputs.rows, x);
    kernels.norm(pass, x, weights.lastNorm, x, config.eps);
    kernels.product(pass, x, weights.head, logits);
    if (config.finalSoftcap !== undefined) kernels.softcap(pass, logits, config.finalSoftcap);
    if (isSampled) kernels.sample(pass, logits, sampling, tokens);
  }

  /** The tokens that were chosen; undefined for the kernel's word for a row without a number in it. */
  #tokensOf(outputs: Outputs | undefined): (number | undefined)[] {
    return Array.from(outputs?.tokens.view() ?? [], (token) => (token < this.config.vocabSize ? token : undefined));
  }

  /** What tokens are found again by: those of a prompt and those of an answer have keys and values of other bits. */
  #matchKeys(tokens: readonly number[], isPrompt: boolean): number[] {
    return tokens.map((token) => (isPrompt ? token + this.config.vocabSize : token));
  }
}

function samplingOf(sample: readonly SampleRow[]): number[] {
  return sample.flatMap(({ temperature, topP, uniform }) => [temperature, topP, uniform]);
}

/** Of logits that no token can be chosen by. */
export function notNumbers(): ModelError {
  return new ModelError("weights", "the logits are not numbers: the weights, or the range of the cache's dtype");
}

/** The reference multiplies embeddings by a factor in their own dtype. */
function rounded(value: number, dtype: FloatDType): number {
  const one = Float32Array.of(value);
  if (dtype === "bf16") return bfloat16ToFloat32(float32ToBfloat16(one))[0] as number;
  if (dtype === "f16") return float16ToFloat32(float32ToFloat16(one))[0] as number;
  return one[0] as number;
}

/** Rows of the step whose logits are computed. */
function rowsOfLogits(parts: readonly StepPart[], ofStep: LogitsOf = "last"): number[] {
  let end = 0;
  return parts.flatMap(({ tokens, logits = ofStep }) => {
    const start = end;
    end += tokens.length;
    if (logits === "none") return [];
    return logits === "last" ? [end - 1] : tokens.map((_, i) => start + i);
  });
}

/** Rows after one another whose products are of one kind, of parts of so many tokens. */
function runsOf(counts: readonly number[], isPrompt: readonly boolean[]): RowRun[] {
  const runs: RowRun[] = [];
  let from = 0;
  for (const [i, count] of counts.entries()) {
    const to = from + count;
    const last = runs.at(-1);
    const kind = isPrompt[i] as boolean;
    if (last?.isPrompt === kind) runs[runs.length - 1] = { ...last, to };
    else runs.push({ from, to, isPrompt: kind });
    from = to;
  }
  return runs;
}

/** Cuts a prompt into nearly equal parts of at most `chunk` tokens, and of more than 16 if it has as many. */
export function partsOf(length: number, chunk: number): [from: number, to: number][] {
  const most = Math.max(1, Math.floor(length / (mostDecodeTokens + 1)));
  const count = Math.max(1, Math.min(Math.ceil(length / chunk), most));
  return Array.from({ length: count }, (_, i) => [
    Math.floor((i * length) / count),
    Math.floor(((i + 1) * length) / count),
  ]);
}
