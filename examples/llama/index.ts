/** Continues a text: see `--help`, or run/options.ts. */
import { Device, MetalAttentionError } from "metal-attention";
import { ModelError } from "./errors.ts";
import { TextStream, Tokenizer } from "./files/tokenizer.ts";
import { Model } from "./model/model.ts";
import { generate } from "./run/generate.ts";
import { help, parseRun, type RunOptions } from "./run/options.ts";
import { bytesText, ProgressBar } from "./run/progress.ts";

/** The answer goes to standard output, all else to standard error. */
async function run(options: RunOptions, signal: AbortSignal): Promise<void> {
  const tokenizer = await Tokenizer.read(options.folder);
  const { cache, context, window, prompt } = options;
  using device = Device.open();
  const weights = new ProgressBar("weights", (done, total) => `${bytesText(done)} of ${bytesText(total)}`);
  const onWeights = (done: number, total: number) => {
    signal.throwIfAborted();
    weights.update(done, total);
  };
  const choice = { cache, ...(context && { context }), ...(window && { window }) };
  using model = await Model.load(device, options.folder, choice, onWeights);
  const tokens = options.isChat ? tokenizer.encodeChat([{ role: "user", content: prompt }]) : tokenizer.encode(prompt);
  if (tokens.length === 0) throw new ModelError("request", "the prompt has no tokens");
  const room = window === undefined ? model.context - tokens.length : Number.POSITIVE_INFINITY;
  if (room < 1) {
    throw new ModelError("request", `the prompt has ${tokens.length} tokens, --context is ${model.context}`);
  }
  const bar = new ProgressBar("prompt ", (done, total) => `${done} of ${total} tokens`);
  const text = new TextStream(tokenizer);
  const { endToken } = tokenizer;
  const started = performance.now();
  let first = 0;
  let count = 0;
  const answer = generate(model, model.cache.sequence(), tokens, {
    ...options,
    maxTokens: Math.min(options.maxTokens, room),
    endTokens: endToken === undefined ? [] : [endToken],
    signal,
    onPrompt: bar.update,
    trace: options.profile,
  });
  for await (const token of answer) {
    if (count === 0) first = performance.now();
    count++;
    process.stdout.write(text.push(token));
  }
  process.stdout.write(`${text.end()}\n`);
  const last = performance.now();
  const { memory, format } = model;
  const rate = (tokens: number, ms: number) => (ms > 0 ? `${((1000 * tokens) / ms).toFixed(1)} tokens/s` : "-");
  console.error(
    [
      `prompt  ${tokens.length} tokens, ${count > 0 ? rate(tokens.length, first - started) : "-"}`,
      `answer  ${count} tokens, ${count > 1 ? rate(count - 1, last - first) : "-"}`,
      `memory  weights ${bytesText(memory.weights)}, cache (${format.name}) ${bytesText(memory.cache)}, ` +
        `activations ${bytesText(memory.activations)}`,
    ].join("\n"),
  );
}

/** Returns the exit status: 0, 1 for an error, 2 for arguments that cannot be understood, 130 after Ctrl-C. */
async function main(args: readonly string[]): Promise<number> {
  const stop = new AbortController();
  process.once("SIGINT", () => stop.abort());
  try {
    const options = parseRun(args);
    if (options === undefined) console.log(help);
    else await run(options, stop.signal);
    return stop.signal.aborted ? 130 : 0;
  } catch (error) {
    if (stop.signal.aborted) return 130;
    if (!(error instanceof ModelError || error instanceof MetalAttentionError)) throw error;
    console.error(`llama: ${error.message}`);
    return error.code === "request" ? 2 : 1;
  }
}

if (import.meta.main) process.exitCode = await main(process.argv.slice(2));
