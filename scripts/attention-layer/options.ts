import { resolve } from "node:path";
import { cacheFormat } from "../../examples/llama/model/cacheFormat.ts";
import { parseArguments, UsageError } from "../lib/command.ts";
import { type AttentionChoice, attentionDTypes, kvFormats, maskKinds } from "./choice.ts";
import { decodeTokens, maxTokens, ringSlots } from "./inputs.ts";
import { mostRead, type RecallOptions } from "./recall.ts";

/** What the demo was asked to do. */
export interface Options {
  readonly help: boolean;
  /** Text file whose bytes are the tokens. */
  readonly text: string;
  /** Safetensors file with q, k and v, in place of the text. */
  readonly input: string | undefined;
  /** Where the results go. */
  readonly output: string | undefined;
  /** What the language model does; absent where it takes no part. */
  readonly recall: RecallOptions | undefined;
  readonly attention: AttentionChoice;
}

const mostQuestions = 16;

/** What `--help` prints. */
export const usage = `usage: metal-attention demo [FILE] [--cache FORMAT] [--questions N] [--layer]
                            [--input FILE.safetensors] [--output FILE.safetensors]
                            [--dtype bf16|f16] [--mask none|additive|bool] [--window N]
                            [--chunk N] [--kv 2|3|4|5|6|8|f16|f32]
       (in a checkout: scripts/demo)

Plants facts in a text, has a small language model read it, and asks for them:
the answers come by the library's attention over its cache. Then runs one
attention layer on the device: causal prefill, K and V into a cache, then
${decodeTokens} decode tokens into a ring.

  FILE      a text; each byte is a token. README.md unless given. The model
            (examples/recall, trained for this) reads its first ${mostRead.toLocaleString("en")} bytes, the
            layer ${maxTokens.toLocaleString("en")}: a byte embedding, RMS norm, projections with fixed seeded weights
            and rotary positions make q (8 heads), k and v (4 heads) of size 256.
            The decode tokens are the bytes that follow, or the first ones again.
  --cache   how the model's keys and values are kept: k8v4 unless given, other
            bits of 2, 3, 4, 5, 6, 8 alike, f16, bf16 or f32
  --questions
            how many facts are planted and asked for; 8 unless given, at most ${mostQuestions}
  --layer   no model, the layer alone; also with --input
  --input   takes q [H, L, 256], k and v [Hkv, L, 256] from a file (F64, F32, F16
            or BF16; a leading axis of 1 is allowed; H a multiple of Hkv; L up
            to ${maxTokens.toLocaleString("en")}). The decode tokens are the first rows of k and v again.
  --output  keeps q, k, v, out [1, heads, L, 256], cache.k and cache.v
            [Hkv, L, 256], ring.k and ring.v [Hkv, ${ringSlots.toLocaleString("en")}, 256].
  --dtype   of attention; bf16 unless given
  --mask    builds the causal mask on the device, with its tile classes, and
            attends by it; none (the kernel compares positions) unless given
  --window  a sliding window: each token attends N keys, itself the last of
            them. By a bool mask unless --mask says additive
  --chunk   does the prompt a second time, N tokens at a time, and shows that
            each bit of the result is the same
  --kv      also writes K and V of the prompt into a Hadamard-quantized cache of
            2 to 8 bits (or a plain one of f16 or f32), reads it back, attends
            by what was read, and prints the memory saved against f16 and the
            change in the output
  --help    this text
  --version which version this is

The exit status is 0 when the results agree with the float64 oracle.`;

/** Reads the command line. Throws with a message that says what to do. */
export function parseOptions(args: readonly string[], readme: string): Options {
  const { values, positionals } = parseArguments(args, {
    help: { type: "boolean", short: "h", default: false },
    input: { type: "string" },
    output: { type: "string" },
    dtype: { type: "string" },
    mask: { type: "string" },
    window: { type: "string" },
    chunk: { type: "string" },
    kv: { type: "string" },
    cache: { type: "string" },
    questions: { type: "string" },
    layer: { type: "boolean", default: false },
  });
  const [file, second] = positionals;
  if (second !== undefined) throw new UsageError(`one FILE is expected, got also ${JSON.stringify(second)}`);
  if (file !== undefined && values.input !== undefined) {
    throw new UsageError("FILE and --input are both given; the layer takes its input from one of them");
  }
  const window = count(values.window, "--window");
  const mask = choose(values.mask ?? (window === undefined ? "none" : "bool"), maskKinds, "--mask");
  if (window !== undefined && mask === "none") {
    throw new UsageError("--window needs a mask: --mask bool or --mask additive, or no --mask at all");
  }
  const dtype = choose(values.dtype ?? "bf16", attentionDTypes, "--dtype");
  const kv = values.kv === undefined ? undefined : choose(values.kv, kvFormats, "--kv");
  return {
    help: values.help,
    text: resolve(file ?? readme),
    input: values.input,
    output: values.output,
    recall:
      values.layer || values.input !== undefined
        ? undefined
        : {
            cache: format(values.cache ?? "k8v4"),
            questions: count(values.questions, "--questions", mostQuestions) ?? 8,
          },
    attention: { dtype, mask, window, chunk: count(values.chunk, "--chunk"), kv },
  };
}

function choose<T extends string>(value: string, choices: readonly T[], option: string): T {
  const chosen = choices.find((choice) => choice === value);
  if (chosen === undefined) throw new UsageError(`${option} is ${JSON.stringify(value)}; it is ${choices.join(", ")}`);
  return chosen;
}

/** A whole number from 1 to `most`. */
function count(value: string | undefined, option: string, most = maxTokens): number | undefined {
  if (value === undefined) return undefined;
  const number = Number(value);
  if (!/^\d+$/.test(value) || number < 1 || number > most) {
    throw new UsageError(`${option} is ${JSON.stringify(value)}; it is a whole number from 1 to ${most}`);
  }
  return number;
}

function format(name: string): string {
  try {
    return cacheFormat(name).name;
  } catch (error) {
    throw new UsageError(`--${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
}
