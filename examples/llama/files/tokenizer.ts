import { join } from "node:path";
import { Template } from "@huggingface/jinja";
import { Tokenizer as Encoder } from "@huggingface/tokenizers";
import * as z from "zod";
import { ModelError } from "../errors.ts";
import { readJson } from "./json.ts";

const tokenizerFile = z.looseObject({ model: z.looseObject({}) });
const token = z.union([z.string(), z.looseObject({ content: z.string() }).transform(({ content }) => content)]);
const namedTemplate = z.looseObject({ name: z.string(), template: z.string() });
const settingsFile = z.looseObject({
  chat_template: z.union([z.string(), z.array(namedTemplate)]).nullish(),
  bos_token: token.nullish(),
  eos_token: token.nullish(),
});
type Settings = z.output<typeof settingsFile>;

/** A message of a conversation. */
export interface ChatMessage {
  readonly role: string;
  readonly content: string;
}

/** Text to tokens and back, as `tokenizer.json` has it. */
export class Tokenizer {
  readonly #encoder: Encoder;
  readonly #settings: Settings;
  readonly #template: string | undefined;

  private constructor(encoder: Encoder, settings: Settings, template: string | undefined) {
    this.#encoder = encoder;
    this.#settings = settings;
    this.#template = template;
  }

  /**
   * Reads `tokenizer.json`, and `tokenizer_config.json` and `chat_template.jinja` where they are.
   *
   * Errors: `tokenizer`.
   */
  static async read(folder: string): Promise<Tokenizer> {
    const path = join(folder, "tokenizer.json");
    const json = await readJson(path, tokenizerFile, "tokenizer");
    const settingsPath = join(folder, "tokenizer_config.json");
    const settings = (await Bun.file(settingsPath).exists())
      ? await readJson(settingsPath, settingsFile, "tokenizer")
      : {};
    const template = Bun.file(join(folder, "chat_template.jinja"));
    try {
      return new Tokenizer(
        new Encoder(json, settings),
        settings,
        (await template.exists()) ? await template.text() : chatTemplate(settings),
      );
    } catch (error) {
      throw new ModelError("tokenizer", `${path}: ${error instanceof Error ? error.message : String(error)}`, error);
    }
  }

  /** The token that ends a text by `tokenizer_config.json`, if it names one. */
  get endToken(): number | undefined {
    const { eos_token } = this.#settings;
    return eos_token ? this.#encoder.token_to_id(eos_token) : undefined;
  }

  /** Tokens of a text, with those that the model wants around it unless `isBare`. */
  encode(text: string, isBare = false): number[] {
    return this.#encoder.encode(text, { add_special_tokens: !isBare }).ids;
  }

  decode(tokens: readonly number[]): string {
    // One that cleans up would change what was said before.
    const options = { skip_special_tokens: true, clean_up_tokenization_spaces: false };
    return tokens.length === 0 ? "" : this.#encoder.decode([...tokens], options);
  }

  /** Whether the model says how a conversation is written. */
  get hasChat(): boolean {
    return this.#template !== undefined;
  }

  /** Tokens of a conversation, up to where the model answers. Errors: `tokenizer`. */
  encodeChat(messages: readonly ChatMessage[]): number[] {
    if (this.#template === undefined) throw new ModelError("tokenizer", "the model has no chat template");
    const { bos_token, eos_token } = this.#settings;
    let text: string;
    try {
      const names = { messages, add_generation_prompt: true, bos_token: bos_token ?? "", eos_token: eos_token ?? "" };
      text = new Template(this.#template).render(names);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new ModelError("tokenizer", `the chat template: ${reason}`, error);
    }
    return this.encode(text, true);
  }
}

function chatTemplate({ chat_template: given }: Settings): string | undefined {
  if (!Array.isArray(given)) return given ?? undefined;
  return (given.find(({ name }) => name === "default") ?? given[0])?.template;
}

/** Turns tokens into text as they come, holding back what later tokens may still change. */
export class TextStream {
  readonly #tokenizer: Tokenizer;
  readonly #tokens: number[] = [];
  /** Tokens before this one are not decoded again. */
  #start = 0;
  /** Text of the tokens up to this one has been given. */
  #given = 0;

  constructor(tokenizer: Tokenizer) {
    this.#tokenizer = tokenizer;
  }

  /** The text that `next` completes: none in the midst of a character of several tokens. */
  push(next: number): string {
    this.#tokens.push(next);
    return this.#text(false);
  }

  /** What was held back. */
  end(): string {
    return this.#text(true);
  }

  /** Some decoders treat the beginning of a text otherwise, so a few tokens before stay in front of the new ones. */
  #text(isEnd: boolean): string {
    const before = this.#tokenizer.decode(this.#tokens.slice(this.#start, this.#given));
    const text = this.#tokenizer.decode(this.#tokens.slice(this.#start));
    if (!isEnd && (text.endsWith("\ufffd") || text.length <= before.length)) return "";
    this.#start = this.#given;
    this.#given = this.#tokens.length;
    return text.slice(before.length);
  }
}
