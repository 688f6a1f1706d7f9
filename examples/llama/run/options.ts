import { parseArgs } from "node:util";
import { ModelError } from "../errors.ts";
import type { RequestDefaults } from "../serve/api.ts";

export const help = `usage: bun examples/llama MODEL_DIR "PROMPT" [OPTIONS]
       bun examples/llama MODEL_DIR --serve [OPTIONS]

Continues a text with a model of the Llama family: a folder with config.json, model.safetensors or its shards with
their index, and tokenizer.json. Or answers requests over HTTP, until Ctrl-C.

  --chat            the prompt is a message, written as the model's chat template says
  --serve           answers as OpenAI's API does: /v1/chat/completions, /v1/completions, /v1/models. What requests do not
                    say is as below, or a temperature of 1, any seed, and as many tokens as there is room for
  --host H          address to serve at; 127.0.0.1 unless given
  --port N          port to serve at; 8080 unless given, 0 for a free one
  --slots N         requests that run at once, each with room for --context tokens; 4 unless given
  --cache FORMAT    how keys and values are kept: k8v4 (unless given), other bits alike, f16, bf16 or f32
  --context N       most tokens of prompt and answer; 4096 unless given, or the model's if that is less
  --window N        a token sees the last N ones, and the cache keeps no more
  --max-tokens N    most tokens of the answer; 256 unless given
  --temperature T   0 (unless given) takes the most likely token each time
  --top-p P         draws from the most likely tokens that make up this part; 1 unless given
  --seed N          the same seed gives the same text; 0 unless given
  --profile FILE    writes the times of the first step after the prompt, for Perfetto
  --help            this text`;

/** What model is read, and how it keeps keys and values. */
interface ModelChoice {
  readonly folder: string;
  readonly cache: string;
  readonly context: number | undefined;
  readonly window: number | undefined;
}

/** To continue a text. */
export interface RunOptions extends ModelChoice {
  readonly command: "run";
  readonly prompt: string;
  readonly isChat: boolean;
  readonly maxTokens: number;
  readonly temperature: number;
  readonly topP: number;
  readonly seed: number;
  readonly profile: string | undefined;
}

/** To answer requests. */
export interface ServeCommand extends ModelChoice {
  readonly command: "serve";
  readonly host: string;
  readonly port: number;
  readonly slots: number;
  readonly defaults: RequestDefaults;
}

type Values = ReturnType<typeof parsed>["values"];

/** Reads the command line; undefined where it asks for help. Errors: `request`. */
export function parseCommand(args: readonly string[]): RunOptions | ServeCommand | undefined {
  const { values, positionals } = parsed(args);
  if (values.help) return undefined;
  const [folder, ...prompts] = positionals;
  const isServer = values.serve ?? false;
  if (folder === undefined || prompts.length !== (isServer ? 0 : 1)) {
    const expected = isServer ? "MODEL_DIR and no PROMPT with --serve" : "MODEL_DIR and one PROMPT";
    throw new ModelError("request", `expected ${expected}, got ${positionals.length} arguments`);
  }
  const choice = {
    folder,
    cache: values.cache ?? "k8v4",
    context: whole(values, "context", 1),
    window: whole(values, "window", 1),
  };
  return isServer ? serveCommand(choice, values) : runOptions(choice, prompts[0] as string, values);
}

function runOptions(choice: ModelChoice, prompt: string, values: Values): RunOptions {
  refuse(values, ["host", "port", "slots"], "without --serve");
  return {
    ...choice,
    command: "run",
    prompt,
    isChat: values.chat ?? false,
    maxTokens: whole(values, "max-tokens", 1) ?? 256,
    temperature: temperature(values) ?? 0,
    topP: topP(values),
    seed: whole(values, "seed", 0) ?? 0,
    profile: values.profile,
  };
}

function serveCommand(choice: ModelChoice, values: Values): ServeCommand {
  refuse(values, ["chat", "profile"], "with --serve");
  return {
    ...choice,
    command: "serve",
    host: values.host ?? "127.0.0.1",
    port: whole(values, "port", 0, 65_535) ?? 8080,
    slots: whole(values, "slots", 1, 256) ?? 4,
    defaults: {
      maxTokens: whole(values, "max-tokens", 1),
      temperature: temperature(values) ?? 1,
      topP: topP(values),
      seed: whole(values, "seed", 0),
    },
  };
}

function temperature(values: Values): number | undefined {
  return number(values, "temperature", 0, 100);
}

function topP(values: Values): number {
  // Below this, f32 would keep no token at all.
  return number(values, "top-p", 1e-6, 1) ?? 1;
}

function refuse(values: Values, names: readonly (keyof Values)[], where: string): void {
  const given = names.find((name) => values[name] !== undefined);
  if (given !== undefined) throw new ModelError("request", `--${given} ${where}`);
}

function parsed(args: readonly string[]) {
  const text = { type: "string" } as const;
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        chat: { type: "boolean" },
        serve: { type: "boolean" },
        help: { type: "boolean" },
        cache: text,
        context: text,
        window: text,
        "max-tokens": text,
        temperature: text,
        "top-p": text,
        seed: text,
        profile: text,
        host: text,
        port: text,
        slots: text,
      },
    });
  } catch (error) {
    throw new ModelError("request", error instanceof Error ? error.message : String(error), error);
  }
}

type NumberName = "context" | "window" | "max-tokens" | "temperature" | "top-p" | "seed" | "port" | "slots";

function number(values: Values, name: NumberName, least: number, most: number): number | undefined {
  const text = values[name];
  if (text === undefined) return undefined;
  const value = text.trim() === "" ? Number.NaN : Number(text);
  if (value >= least && value <= most) return value;
  throw new ModelError("request", `--${name}: expected a number from ${least} to ${most}, got ${JSON.stringify(text)}`);
}

function whole(values: Values, name: NumberName, least: number, most = 2 ** 30): number | undefined {
  const value = number(values, name, least, most);
  if (value === undefined || Number.isInteger(value)) return value;
  throw new ModelError("request", `--${name}: expected a whole number, got ${JSON.stringify(values[name])}`);
}
