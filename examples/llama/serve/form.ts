/** How an endpoint of OpenAI's API writes answers. */
interface Form {
  readonly idPrefix: string;
  /** Kind of object of a whole answer and of a part of one. */
  readonly whole: string;
  readonly part: string;
  /** A whole text, or a piece of one, in a choice. */
  text(text: string): object;
  piece(text: string): object;
  /** What a choice has before any text, and after all of it. */
  readonly first: object | undefined;
  readonly last: object;
}

export const chatForm: Form = {
  idPrefix: "chatcmpl-",
  whole: "chat.completion",
  part: "chat.completion.chunk",
  text: (content) => ({ message: { role: "assistant", content, refusal: null } }),
  piece: (content) => ({ delta: { content } }),
  first: { delta: { role: "assistant", content: "" } },
  last: { delta: {} },
};

export const completionForm: Form = {
  idPrefix: "cmpl-",
  whole: "text_completion",
  part: "text_completion",
  text: (text) => ({ text }),
  piece: (text) => ({ text }),
  first: undefined,
  last: { text: "" },
};

/** Tokens of a request. */
export interface Counts {
  readonly prompt: number;
  /** Of those, computed for a request before. */
  readonly cached: number;
  readonly answer: number;
}

/** Writes one answer. */
export class Writer {
  readonly form: Form;
  readonly #head: object;

  constructor(form: Form, model: string) {
    this.form = form;
    this.#head = {
      id: `${form.idPrefix}${crypto.randomUUID()}`,
      created: Math.floor(Date.now() / 1000),
      model,
    };
  }

  whole(text: string, finishReason: string, counts: Counts): object {
    const { form } = this;
    const choices = [choice(form.text(text), finishReason)];
    return { ...this.#head, object: form.whole, choices, usage: usage(counts) };
  }

  /** A part of an answer; `hasUsage` where the last one will say how many tokens there were. */
  part(content: object, finishReason: string | null, hasUsage: boolean): object {
    const choices = [choice(content, finishReason)];
    return { ...this.#head, object: this.form.part, choices, ...(hasUsage && { usage: null }) };
  }

  usage(counts: Counts): object {
    return { ...this.#head, object: this.form.part, choices: [], usage: usage(counts) };
  }
}

function choice(content: object, finishReason: string | null): object {
  return { index: 0, ...content, logprobs: null, finish_reason: finishReason };
}

function usage({ prompt, cached, answer }: Counts): object {
  return {
    prompt_tokens: prompt,
    completion_tokens: answer,
    total_tokens: prompt + answer,
    prompt_tokens_details: { cached_tokens: cached },
  };
}
