/**
 * A language model that answers questions about a text, then one attention layer over the text, step by step: what
 * `scripts/demo` and `metal-attention demo` run.
 */
import { join } from "node:path";
import { Device, MetalAttentionError } from "../../src/index.ts";
import { type SafetensorsTensor, writeSafetensors } from "../../src/safetensors/index.ts";
import { needsClang } from "../lib/clang.ts";
import { runMain } from "../lib/command.ts";
import { prepareFile } from "../lib/output.ts";
import { Progress } from "../lib/progress.ts";
import { formatBytes, formatTable, formatTime } from "../lib/table.ts";
import { bitsOf, checkResults } from "./accuracy.ts";
import { inputsFromSafetensors, inputsFromText, type LayerInputs, swapAxes } from "./inputs.ts";
import { parseOptions, usage } from "./options.ts";
import { runRecall } from "./recall.ts";
import { type LayerResults, runLayer, type Step } from "./run.ts";

const readme = join(import.meta.dir, "../../README.md");

process.exitCode = await runMain("demo", process.argv.slice(2), main);

async function main(args: readonly string[]): Promise<number> {
  const options = parseOptions(args, readme);
  if (options.help) {
    console.log(usage);
    return 0;
  }
  if (options.output !== undefined) prepareFile(options.output, "--output");
  using progress = new Progress();
  const { input, recall } = options;
  const start = performance.now();
  const inputs = await progress.wait("q, k, v", () =>
    input === undefined ? inputsFromText(options.text) : inputsFromSafetensors(input),
  );
  const source: Step = {
    name: input === undefined ? "text to q, k, v" : "file to q, k, v",
    kernel: "",
    dispatches: 0,
    bytes: inputs.q.byteLength + inputs.k.byteLength + inputs.v.byteLength,
    hostTime: (performance.now() - start) / 1000,
  };

  using device = Device.open();
  console.log(`on ${device.info.name} (${device.info.backend})\n`);
  if (recall !== undefined) await runRecallIfPossible(device, options.text, recall, progress);
  const { tokens, heads, kvHeads, headDim } = inputs;
  console.log(
    `One attention layer over ${inputs.description};\n${heads} query heads, ${kvHeads} K/V heads of ${headDim}\n`,
  );
  const results = runLayer(device, inputs, options.attention, progress);
  console.log(stepTable([source, ...results.steps]));

  const accuracy = progress.run("comparing with the float64 oracle", () =>
    checkResults(inputs, options.attention, results),
  );
  console.log(`\n${accuracy.lines.join("\n")}`);
  if (options.output !== undefined) {
    const { output } = options;
    await progress.wait(`writing ${output}`, () => writeSafetensors(output, { tensors: keptTensors(inputs, results) }));
    console.log(`\n${tokens} tokens of q, k, v, out, cache and ring are in ${output}`);
  }
  return accuracy.right ? 0 : 1;
}

/** The model's kernels are not built in: without a compiler the layer remains. */
async function runRecallIfPossible(...call: Parameters<typeof runRecall>): Promise<void> {
  try {
    await runRecall(...call);
  } catch (error) {
    if (!(error instanceof MetalAttentionError && error.message.includes(needsClang))) throw error;
    console.log(`The language model is left out, since its kernels cannot be compiled:\n${error.message}\n`);
  }
}

function stepTable(steps: readonly Step[]): string {
  const header = ["step", "kernel", "dispatches", "bytes", "host time", "device time"];
  const rows = steps.map(({ name, kernel, dispatches, bytes, hostTime, deviceTime }) => [
    name,
    kernel || "-",
    dispatches === 0 ? "-" : String(dispatches),
    bytes === 0 ? "-" : formatBytes(bytes),
    formatTime(hostTime),
    deviceTime === undefined ? "-" : formatTime(deviceTime),
  ]);
  return formatTable(header, rows, header.slice(2));
}

/** What `--output` keeps, head-major; q, k and v so that `--input` takes them. */
function keptTensors(inputs: LayerInputs, { out, cache, ring }: LayerResults): Map<string, SafetensorsTensor> {
  const { tokens, heads, kvHeads, headDim } = inputs;
  const float = (values: Float32Array, count: number): SafetensorsTensor => ({
    dtype: "F32",
    shape: [1, count, tokens, headDim],
    bytes: bytesOf(swapAxes(values.subarray(0, tokens * count * headDim), tokens, count, headDim)),
  });
  const half = (tensor: typeof ring.k): SafetensorsTensor => ({
    dtype: "F16",
    shape: tensor.shape,
    bytes: tensor.bytes,
  });
  return new Map([
    ["q", float(inputs.q, heads)],
    ["k", float(inputs.k, kvHeads)],
    ["v", float(inputs.v, kvHeads)],
    [
      "out",
      {
        dtype: out.dtype === "bf16" ? "BF16" : "F16",
        shape: [1, heads, tokens, headDim],
        bytes: bytesOf(swapAxes(bitsOf(out), tokens, heads, headDim)),
      },
    ],
    ["cache.k", half(cache.k)],
    ["cache.v", half(cache.v)],
    ["ring.k", half(ring.k)],
    ["ring.v", half(ring.v)],
  ]);
}

function bytesOf({ buffer, byteOffset, byteLength }: ArrayBufferView<ArrayBuffer>): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}
