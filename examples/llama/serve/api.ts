import { ModelError } from "../errors.ts";
import type { Tokenizer } from "../files/tokenizer.ts";
import type { Model } from "../model/model.ts";
import { Answer } from "./answer.ts";
import { ApiError, apiError } from "./apiError.ts";
import type { Batch } from "./batch.ts";
import { type Counts, chatForm, completionForm, Writer } from "./form.ts";
import { type ChatRequest, type CompletionRequest, readChat, readCompletion } from "./request.ts";

/** What a request gets that does not say. */
export interface RequestDefaults {
  readonly temperature: number;
  readonly topP: number;
  /** Any number unless given. */
  readonly seed: number | undefined;
  /** As many as there is room for unless given. */
  readonly maxTokens: number | undefined;
}

/** What answers are made of, and by which name. */
export interface ApiOptions {
  readonly model: Model;
  readonly tokenizer: Tokenizer;
  readonly batch: Batch;
  readonly name: string;
  readonly defaults: RequestDefaults;
}

/** The fields that both endpoints have. */
type Asked = Omit<CompletionRequest, "prompt" | "best_of" | "echo" | "logprobs" | "suffix">;

/** A request under way. */
interface Ask {
  readonly answer: Answer;
  readonly writer: Writer;
  readonly hasUsage: boolean;
  /** Ends it. */
  readonly stop: AbortController;
  counts(): Counts;
}

/** The endpoints of OpenAI's API that the example has. */
export class Api {
  readonly #options: ApiOptions;
  readonly #created = Math.floor(Date.now() / 1000);

  constructor(options: ApiOptions) {
    this.#options = options;
  }

  models(): Response {
    return Response.json({ object: "list", data: [this.#modelObject] });
  }

  /** One of the models. Errors: `ApiError` 404. */
  modelNamed(name: string): Response {
    this.#checkModel(name);
    return Response.json(this.#modelObject);
  }

  /** @param onRead Called once the body is there. */
  async chat(request: Request, onRead: () => void): Promise<Response> {
    const asked = await readChat(request);
    onRead();
    this.#checkModel(asked.model);
    const tokens = this.#encoded("messages", (tokenizer) => tokenizer.encodeChat(asked.messages));
    const max_tokens = asked.max_completion_tokens ?? asked.max_tokens;
    return this.#respond(request, { ...asked, max_tokens }, tokens, "messages", new Writer(chatForm, asked.model));
  }

  /** @param onRead Called once the body is there. */
  async completion(request: Request, onRead: () => void): Promise<Response> {
    const asked = await readCompletion(request);
    onRead();
    this.#checkModel(asked.model);
    const tokens = this.#encoded("prompt", (tokenizer) => tokenizer.encode(asked.prompt));
    return this.#respond(request, asked, tokens, "prompt", new Writer(completionForm, asked.model));
  }

  get #modelObject(): object {
    return { id: this.#options.name, object: "model", created: this.#created, owned_by: "metal-attention" };
  }

  #checkModel(name: string): void {
    const { name: own } = this.#options;
    if (name === own) return;
    const given = JSON.stringify(name.slice(0, 200));
    throw new ApiError(404, "model_not_found", `there is no model ${given}, only ${JSON.stringify(own)}`, "model");
  }

  #encoded(param: string, encode: (tokenizer: Tokenizer) => number[]): number[] {
    try {
      return encode(this.#options.tokenizer);
    } catch (error) {
      if (error instanceof ModelError) throw new ApiError(400, "invalid_value", error.message, param);
      throw error;
    }
  }

  async #respond(
    request: Request,
    asked: Asked | ChatRequest,
    tokens: readonly number[],
    param: string,
    writer: Writer,
  ): Promise<Response> {
    const ask = this.#begin(request.signal, asked, tokens, param, writer);
    if (asked.stream) return streamed(ask);
    const { answer, counts } = ask;
    let text = "";
    for await (const piece of answer.pieces()) text += piece;
    return Response.json(writer.whole(text, answer.finishReason, counts()));
  }

  #begin(
    signal: AbortSignal,
    asked: Asked | ChatRequest,
    tokens: readonly number[],
    param: string,
    writer: Writer,
  ): Ask {
    const { batch, tokenizer, defaults } = this.#options;
    const maxTokens = this.#maxTokens(tokens, asked.max_tokens ?? defaults.maxTokens, param);
    if (batch.isClosed) throw new ApiError(503, "shutting_down", "the server is shutting down");
    if (batch.isFull) throw new ApiError(429, "queue_full", "too many requests wait already; try again later");
    const { endToken } = tokenizer;
    const stop = new AbortController();
    const job = batch.add(tokens, {
      temperature: asked.temperature ?? defaults.temperature,
      // Below this, f32 would keep no token at all.
      topP: Math.max(1e-6, asked.top_p ?? defaults.topP),
      seed: asked.seed ?? defaults.seed ?? Math.floor(Math.random() * 2 ** 32),
      maxTokens,
      endTokens: endToken === undefined ? [] : [endToken],
      signal: AbortSignal.any([signal, stop.signal]),
    });
    const stops = typeof asked.stop === "string" ? [asked.stop] : (asked.stop ?? []);
    const answer = new Answer(job.tokens, tokenizer, stops, maxTokens);
    const counts = () => ({ prompt: tokens.length, cached: job.cached, answer: answer.count });
    return { answer, writer, hasUsage: asked.stream_options?.include_usage ?? false, stop, counts };
  }

  /** Tokens that an answer may have. */
  #maxTokens(tokens: readonly number[], asked: number | undefined, param: string): number {
    const { model } = this.#options;
    if (tokens.length === 0) throw new ApiError(400, "invalid_value", `${param}: the prompt has no tokens`, param);
    const room = model.window === undefined ? model.context - tokens.length : Number.POSITIVE_INFINITY;
    if (room < 1) {
      const message = `${param}: the prompt has ${tokens.length} tokens, prompt and answer together at most ${model.context}`;
      throw new ApiError(400, "context_length_exceeded", message, param);
    }
    return Math.min(asked ?? Math.min(room, model.context), room);
  }
}

/** An answer as server-sent events. */
function streamed(ask: Ask): Response {
  const lines = events(ask);
  const encoder = new TextEncoder();
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { value, done } = await lines.next();
      if (done) controller.close();
      else controller.enqueue(encoder.encode(`data: ${value}\n\n`));
    },
    cancel: () => ask.stop.abort(),
  });
  return new Response(body, { headers: { "Content-Type": "text/event-stream", "Cache-Control": "no-cache" } });
}

/** The data of each event. */
async function* events({ answer, writer, hasUsage, counts }: Ask): AsyncGenerator<string, void> {
  const { first, last, piece } = writer.form;
  const part = (content: object, reason: string | null = null) =>
    JSON.stringify(writer.part(content, reason, hasUsage));
  try {
    if (first !== undefined) yield part(first);
    for await (const text of answer.pieces()) yield part(piece(text));
    yield part(last, answer.finishReason);
    if (hasUsage) yield JSON.stringify(writer.usage(counts()));
    yield "[DONE]";
  } catch (error) {
    yield JSON.stringify(apiError(error).body);
  }
}
