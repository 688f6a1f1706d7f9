/** A server over a small random model, what it is asked, and what the answers should be. */
import { TextStream, Tokenizer } from "../../../examples/llama/files/tokenizer.ts";
import { Model, type ModelOptions, type StepPart } from "../../../examples/llama/model/model.ts";
import { generate } from "../../../examples/llama/run/generate.ts";
import { memoryOfSlots } from "../../../examples/llama/serve/sequences.ts";
import { type ModelServer, serve } from "../../../examples/llama/serve/serve.ts";
import { device } from "./models.ts";

export interface Body {
  readonly [field: string]: unknown;
}

export interface ErrorBody {
  readonly error: { message: string; type: string; param: string | null; code: string };
}

export interface AnswerBody {
  readonly choices: readonly { text: string; message: { content: string }; finish_reason: string }[];
  readonly usage: {
    prompt_tokens: number;
    completion_tokens: number;
    total_tokens: number;
    prompt_tokens_details: { cached_tokens: number };
  };
}

/** What the command line says to a prompt. */
export interface Options {
  readonly max_tokens: number;
  readonly temperature: number;
  readonly top_p: number;
  readonly seed: number;
}

export const name = "small";

export class TestServer {
  readonly model: Model;
  readonly tokenizer: Tokenizer;
  readonly folder: string;
  /** The parts of each step so far. */
  readonly steps: (readonly StepPart[])[] = [];
  readonly #server: ModelServer;
  readonly #options: ModelOptions;
  #alone: Model | undefined;

  private constructor(folder: string, model: Model, tokenizer: Tokenizer, slots: number, options: ModelOptions) {
    this.folder = folder;
    this.model = model;
    this.tokenizer = tokenizer;
    this.#options = options;
    const step = model.step.bind(model);
    model.step = (parts, stepOptions) => {
      this.steps.push(parts);
      return step(parts, stepOptions);
    };
    const defaults = { temperature: 1, topP: 1, seed: undefined, maxTokens: undefined };
    this.#server = serve(model, tokenizer, { host: "127.0.0.1", port: 0, slots, name, defaults });
  }

  static async start(folder: string, slots: number, options: ModelOptions = {}): Promise<TestServer> {
    const model = await Model.load(device, folder, { ...options, ...memoryOfSlots(slots, options.window) });
    return new TestServer(folder, model, await Tokenizer.read(folder), slots, options);
  }

  get url(): URL {
    return this.#server.url;
  }

  close(): Promise<void> {
    return this.#server.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
    this.model.dispose();
    this.#alone?.dispose();
  }

  post(path: string, body: Body | string, init: RequestInit = {}): Promise<Response> {
    const text = typeof body === "string" ? body : JSON.stringify({ model: name, ...body });
    return fetch(new URL(path, this.url), { method: "POST", body: text, ...init });
  }

  async answer(path: string, body: Body): Promise<AnswerBody> {
    const response = await this.post(path, body);
    const json = await response.json();
    if (response.status !== 200) throw new Error(JSON.stringify(json));
    return json as AnswerBody;
  }

  complete(prompt: string, options: Body): Promise<AnswerBody> {
    return this.answer("/v1/completions", { prompt, ...options });
  }

  /** The tokens that the command line gives, by a model that does nothing else. */
  async expectedTokens(tokens: readonly number[], options: Options): Promise<number[]> {
    this.#alone ??= await Model.load(device, this.folder, this.#options);
    using sequence = this.#alone.cache.sequence();
    const { max_tokens: maxTokens, temperature, top_p: topP, seed } = options;
    const { endToken } = this.tokenizer;
    const endTokens = endToken === undefined ? [] : [endToken];
    const sampling = { temperature, topP, seed };
    return await Array.fromAsync(generate(this.#alone, sequence, tokens, { ...sampling, maxTokens, endTokens }));
  }

  async expected(tokens: readonly number[], options: Options): Promise<string> {
    const text = new TextStream(this.tokenizer);
    const pieces = (await this.expectedTokens(tokens, options)).map((token) => text.push(token));
    return pieces.join("") + text.end();
  }
}

/** The data of server-sent events. */
export async function eventsOf(response: Response): Promise<string[]> {
  const events = (await response.text()).split("\n\n");
  if (events.pop() !== "") throw new Error("the last event has no end");
  return events.map((event) => {
    if (!event.startsWith("data: ") || event.includes("\n")) throw new Error(`no event: ${event}`);
    return event.slice("data: ".length);
  });
}

/** Waits until something is so. */
export async function until(isSo: () => boolean): Promise<void> {
  const end = performance.now() + 5000;
  while (!isSo()) {
    if (performance.now() > end) throw new Error("it did not come to be so in 5 s");
    await Bun.sleep(2);
  }
}
