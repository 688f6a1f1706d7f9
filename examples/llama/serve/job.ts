import type { KvSequence } from "metal-attention";
import type { GenerateOptions } from "../run/generate.ts";
import { Sampler } from "../run/sampling.ts";

/** What a request asks of a batch. */
export type JobOptions = Omit<GenerateOptions, "onPrompt" | "trace">;

/** A request in a batch, and the tokens of its answer as they come. */
export class Job {
  readonly prompt: readonly number[];
  readonly sampler: Sampler;
  /** The answer: closed at its end, failed where it could not be computed. To cancel it ends the request. */
  readonly tokens: ReadableStream<number>;
  /** While it runs. */
  sequence: KvSequence | undefined;
  /** Parts of the prompt that were not computed yet. */
  parts: (readonly [from: number, to: number])[] = [];
  /** Tokens of the prompt that another sequence had. */
  cached = 0;
  /** The token that the next step begins from, once the prompt was computed. */
  last: number | undefined;
  readonly #ends: ReadonlySet<number>;
  readonly #maxTokens: number;
  #controller: ReadableStreamDefaultController<number> | undefined;
  #count = 0;
  #state: "open" | "ended" | "failed" = "open";

  /** @param ends Tokens that end the text. */
  constructor(prompt: readonly number[], options: JobOptions, ends: readonly number[]) {
    this.prompt = prompt;
    this.sampler = new Sampler(options);
    this.#ends = new Set(ends);
    this.#maxTokens = options.maxTokens;
    this.tokens = new ReadableStream<number>({
      start: (controller) => {
        this.#controller = controller;
      },
      cancel: () => {
        this.#state = "ended";
      },
    });
    const { signal } = options;
    if (signal?.aborted) this.#end();
    signal?.addEventListener("abort", () => this.#end(), { once: true });
  }

  /** Whether it needs no more steps. */
  get isOver(): boolean {
    return this.#state !== "open";
  }

  /** Whether its sequence may hold what is not right. */
  get hasFailed(): boolean {
    return this.#state === "failed";
  }

  /** Takes the token that was chosen. */
  take(token: number): void {
    if (this.isOver) return;
    if (this.#ends.has(token)) {
      this.#end();
      return;
    }
    this.last = token;
    this.#count++;
    this.#controller?.enqueue(token);
    if (this.#count === this.#maxTokens) this.#end();
  }

  fail(error: unknown): void {
    if (!this.isOver) this.#controller?.error(error);
    this.#state = "failed";
  }

  #end(): void {
    if (this.isOver) return;
    this.#state = "ended";
    this.#controller?.close();
  }
}
