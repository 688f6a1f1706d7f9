import { TextStream, type Tokenizer } from "../files/tokenizer.ts";
import { StopText } from "./stopText.ts";

/** The text of a request's answer. */
export class Answer {
  readonly #tokens: ReadableStream<number>;
  readonly #tokenizer: Tokenizer;
  readonly #stops: readonly string[];
  readonly #maxTokens: number;
  #count = 0;
  #isStopped = false;

  constructor(tokens: ReadableStream<number>, tokenizer: Tokenizer, stops: readonly string[], maxTokens: number) {
    this.#tokens = tokens;
    this.#tokenizer = tokenizer;
    this.#stops = stops;
    this.#maxTokens = maxTokens;
  }

  /** Tokens so far, the one that ends a text not among them. */
  get count(): number {
    return this.#count;
  }

  /** Why it ended, in the words of OpenAI's API. */
  get finishReason(): "stop" | "length" {
    return this.#isStopped || this.#count < this.#maxTokens ? "stop" : "length";
  }

  /** The text as it comes, up to a stop string. */
  async *pieces(): AsyncGenerator<string, void> {
    const text = new TextStream(this.#tokenizer);
    const stop = new StopText(this.#stops);
    const given = (piece: string) => {
      const certain = stop.push(piece);
      this.#isStopped = stop.isFound;
      return certain;
    };
    for await (const token of this.#tokens) {
      this.#count++;
      const piece = given(text.push(token));
      if (piece !== "") yield piece;
      if (this.#isStopped) return;
    }
    const rest = given(text.end()) + stop.end();
    if (rest !== "") yield rest;
  }
}
