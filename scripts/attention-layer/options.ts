import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { decodeTokens, maxTokens, ringSlots } from "./inputs.ts";

/** What the demo was asked to do. */
export interface Options {
  readonly help: boolean;
  /** Text file whose bytes are the tokens. */
  readonly text: string;
  /** Safetensors file with q, k and v, in place of the text. */
  readonly input: string | undefined;
  /** Where the results go. */
  readonly output: string | undefined;
}

/** What `--help` prints. */
export const usage = `usage: scripts/demo [FILE] [--input FILE.safetensors] [--output FILE.safetensors]

Runs one attention layer on the device: causal prefill, K and V into a cache,
then ${decodeTokens} decode tokens into a ring.

  FILE      a text; each of its first ${maxTokens.toLocaleString("en")} bytes is a token. README.md unless given.
            A byte embedding, RMS norm, projections with fixed seeded weights
            and rotary positions make q (8 heads), k and v (4 heads) of size 256.
            The decode tokens are the bytes that follow, or the first ones again.
  --input   takes q [H, L, 256], k and v [Hkv, L, 256] from a file (F64, F32, F16
            or BF16; a leading axis of 1 is allowed; H a multiple of Hkv; L up
            to ${maxTokens.toLocaleString("en")}). The decode tokens are the first rows of k and v again.
  --output  keeps q, k, v, out [1, heads, L, 256], cache.k and cache.v
            [Hkv, L, 256], ring.k and ring.v [Hkv, ${ringSlots.toLocaleString("en")}, 256].
  --help    this text

The exit status is 0 when the results agree with the float64 oracle.`;

/** Reads the command line. Throws with a message that says what to do. */
export function parseOptions(args: readonly string[], readme: string): Options {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      help: { type: "boolean", short: "h", default: false },
      input: { type: "string" },
      output: { type: "string" },
    },
  });
  const [file, second] = positionals;
  if (second !== undefined) throw new Error(`one FILE is expected, got also ${JSON.stringify(second)}; see --help`);
  if (file !== undefined && values.input !== undefined) {
    throw new Error("FILE and --input are both given; the layer takes its input from one of them");
  }
  return { help: values.help, text: resolve(file ?? readme), input: values.input, output: values.output };
}
