import { parseArgs } from "node:util";
import { ModelError } from "../errors.ts";

export const help = `usage: bun examples/llama MODEL_DIR "PROMPT" [OPTIONS]

Continues a text with a model of the Llama family: a folder with config.json, model.safetensors or its shards with
their index, and tokenizer.json.

  --chat            the prompt is a message, written as the model's chat template says
  --cache FORMAT    how keys and values are kept: k8v4 (unless given), other bits alike, f16, bf16 or f32
  --context N       most tokens of prompt and answer; 4096 unless given, or the model's if that is less
  --window N        a token sees the last N ones, and the cache keeps no more
  --max-tokens N    most tokens of the answer; 256 unless given
  --temperature T   0 (unless given) takes the most likely token each time
  --top-p P         draws from the most likely tokens that make up this part; 1 unless given
  --seed N          the same seed gives the same text; 0 unless given
  --profile FILE    writes the times of the first step after the prompt, for Perfetto
  --help            this text`;

/** What the command line asks for. */
export interface RunOptions {
  readonly folder: string;
  readonly prompt: string;
  readonly isChat: boolean;
  readonly cache: string;
  readonly context: number | undefined;
  readonly window: number | undefined;
  readonly maxTokens: number;
  readonly temperature: number;
  readonly topP: number;
  readonly seed: number;
  readonly profile: string | undefined;
}

/** Reads the command line; undefined where it asks for help. Errors: `request`. */
export function parseRun(args: readonly string[]): RunOptions | undefined {
  const { values, positionals } = parsed(args);
  if (values.help) return undefined;
  const [folder, prompt, ...more] = positionals;
  if (folder === undefined || prompt === undefined || more.length > 0) {
    throw new ModelError("request", `expected MODEL_DIR and one PROMPT, got ${positionals.length} arguments`);
  }
  const count = (name: "context" | "window" | "max-tokens") => whole(values[name], name, 1);
  return {
    folder,
    prompt,
    isChat: values.chat ?? false,
    cache: values.cache ?? "k8v4",
    context: count("context"),
    window: count("window"),
    maxTokens: count("max-tokens") ?? 256,
    temperature: number(values.temperature ?? "0", "temperature", 0, 100),
    // Below this, f32 would keep no token at all.
    topP: number(values["top-p"] ?? "1", "top-p", 1e-6, 1),
    seed: whole(values.seed, "seed", 0) ?? 0,
    profile: values.profile,
  };
}

function parsed(args: readonly string[]) {
  const text = { type: "string" } as const;
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        chat: { type: "boolean" },
        help: { type: "boolean" },
        cache: text,
        context: text,
        window: text,
        "max-tokens": text,
        temperature: text,
        "top-p": text,
        seed: text,
        profile: text,
      },
    });
  } catch (error) {
    throw new ModelError("request", error instanceof Error ? error.message : String(error), error);
  }
}

function number(text: string, name: string, least: number, most: number): number {
  const value = text.trim() === "" ? Number.NaN : Number(text);
  if (value >= least && value <= most) return value;
  throw new ModelError("request", `--${name}: expected a number from ${least} to ${most}, got ${JSON.stringify(text)}`);
}

function whole(text: string | undefined, name: string, least: number): number | undefined {
  if (text === undefined) return undefined;
  const value = number(text, name, least, 2 ** 30);
  if (Number.isInteger(value)) return value;
  throw new ModelError("request", `--${name}: expected a whole number, got ${JSON.stringify(text)}`);
}
