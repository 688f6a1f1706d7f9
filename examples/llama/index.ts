/** Continues a text, or answers requests: see `--help`, or run/options.ts. */
import { basename, resolve } from "node:path";
import { Device, MetalAttentionError } from "metal-attention";
import { ModelError } from "./errors.ts";
import { TextStream, Tokenizer } from "./files/tokenizer.ts";
import { Model } from "./model/model.ts";
import { generate } from "./run/generate.ts";
import { help, parseCommand, type RunOptions, type ServeCommand } from "./run/options.ts";
import { bytesText, ProgressBar } from "./run/progress.ts";
import { memoryOfSlots } from "./serve/sequences.ts";
import { serve } from "./serve/serve.ts";

type Command = NonNullable<ReturnType<typeof parseCommand>>;

/** Reads the model that is asked for, with a bar on standard error. */
function loadModel(device: Device, options: Command, signal: AbortSignal): Promise<Model> {
  const { folder, cache, context, window } = options;
  const weights = new ProgressBar("weights", (done, total) => `${bytesText(done)} of ${bytesText(total)}`);
  const onWeights = (done: number, total: number) => {
    signal.throwIfAborted();
    weights.update(done, total);
  };
  const memory = options.command === "serve" ? memoryOfSlots(options.slots, window) : {};
  const choice = { cache, ...(context && { context }), ...(window && { window }), ...memory };
  return Model.load(device, folder, choice, onWeights);
}

/** Answers requests until `signal`. */
async function runServer(options: ServeCommand, signal: AbortSignal): Promise<void> {
  const tokenizer = await Tokenizer.read(options.folder);
  using device = Device.open();
  using model = await loadModel(device, options, signal);
  const name = basename(resolve(options.folder));
  const server = serve(model, tokenizer, { ...options, name });
  console.error(`serving ${JSON.stringify(name)} at ${new URL("/v1", server.url)}, ${options.slots} requests at once`);
  if (!signal.aborted) await new Promise((stop) => signal.addEventListener("abort", stop, { once: true }));
  await server.close();
}

/** The answer goes to standard output, all else to standard error. */
async function run(options: RunOptions, signal: AbortSignal): Promise<void> {
  const tokenizer = await Tokenizer.read(options.folder);
  const { window, prompt } = options;
  using device = Device.open();
  using model = await loadModel(device, options, signal);
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
    const options = parseCommand(args);
    if (options === undefined) console.log(help);
    else if (options.command === "serve") await runServer(options, stop.signal);
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
