import { type Device, type Pass, type Pipeline, struct, type Tensor } from "metal-attention";
import type { Activation } from "../files/architectures.ts";

/** Dtypes of weights, and of what attention takes and gives. */
export type FloatDType = "f32" | "f16" | "bf16";

/** Weights [outputs, inputs] of a matrix product, and what is added to each output. */
export interface Projection {
  readonly weights: Tensor<FloatDType>;
  readonly bias: Tensor<"f32"> | undefined;
}

/** How the next token of a row is chosen. */
export interface SampleRow {
  /** 0 for the most likely token. */
  readonly temperature: number;
  /** Part of the probability that the tokens to choose from make up. */
  readonly topP: number;
  /** In [0, 1). */
  readonly uniform: number;
}

/** Rows `from` up to `to` of a matrix product: of a prompt, or of sequences that decode. */
export interface RowRun {
  readonly from: number;
  readonly to: number;
  readonly isPrompt: boolean;
}

const gatherArgs = struct({ width: "u32", scale: "f32" });
const normArgs = struct({ width: "u32", eps: "f32", adds: "u32" });
const matrixArgs = struct({ inputs: "u32", outputs: "u32", rows: "u32", hasBias: "u32", adds: "u32" });
const sampleArgs = struct({ vocabulary: "u32" });

/** Outputs of a threadgroup of `matvec`, and its threads. */
const matvecOutputs = 4;
const matvecThreads = 128;
const matmulTile = { rows: 32, outputs: 64, threads: 128 };
const sampleThreads = 1024;

const read = (tensor: Tensor) => ({ tensor, access: "read" as const });
const write = (tensor: Tensor) => ({ tensor, access: "write" as const });

/** The kernels of `llama.metal`: a method encodes one dispatch. Activations are f32, [rows, width]. */
export class Kernels {
  readonly #device: Device;
  readonly #pipelines = new Map<string, Pipeline>();
  /** Stands where a kernel has an argument that it does not read. */
  readonly #nothing: Tensor<"f32">;

  private constructor(device: Device) {
    this.#device = device;
    this.#nothing = device.tensor("f32", [1]);
  }

  static async compile(device: Device): Promise<Kernels> {
    const source = await Bun.file(new URL("./llama.metal", import.meta.url)).text();
    device.registerSource("llama.metal", source, { replace: true });
    return new Kernels(device);
  }

  /** y = scale * table at the rows `ids`. */
  gather(pass: Pass, table: Tensor<FloatDType>, ids: Tensor<"u32">, y: Tensor<"f32">, scale = 1): void {
    const width = table.shape[1] as number;
    pass.dispatch(this.#pipeline(`gather_${table.dtype}`), {
      buffers: [read(table), read(ids), write(y)],
      bytes: { 3: gatherArgs.pack({ width, scale }) },
      grid: [width, ids.length],
      threads: [Math.min(256, width), 1],
    });
  }

  /** y = norm(x) * weight, or with `adds` y += that; y may be x. The last axis is normalised. */
  norm(pass: Pass, x: Tensor<"f32">, weight: Tensor<"f32">, y: Tensor<"f32">, eps: number, adds = false): void {
    const width = weight.length;
    pass.dispatch(this.#pipeline("rms_norm"), {
      buffers: [read(x), read(weight), y],
      bytes: { 3: normArgs.pack({ width, eps, adds: Number(adds) }) },
      grid: x.length / width,
      threads: Math.min(256, 32 * Math.ceil(width / 32)),
      form: "threadgroups",
    });
  }

  /**
   * y = x weights^T + bias, or with `adds` y += that: rows of a prompt by SIMD-group matrices, others an output at a time,
   * all of them unless `runs` are given.
   */
  product(
    pass: Pass,
    x: Tensor<FloatDType>,
    projection: Projection,
    y: Tensor<"f32">,
    { runs = [], adds = false }: { readonly runs?: readonly RowRun[]; readonly adds?: boolean } = {},
  ): void {
    if (runs.length < 2) {
      this.#product(pass, x, projection, y, runs[0]?.isPrompt ?? false, adds);
      return;
    }
    for (const { from, to, isPrompt } of runs) {
      using rowsOfX = x.slice(from, to);
      using rowsOfY = y.slice(from, to);
      this.#product(pass, rowsOfX, projection, rowsOfY, isPrompt, adds);
    }
  }

  /** gate = activation(gate) * up. */
  gated(pass: Pass, activation: Activation, gate: Tensor<"f32">, up: Tensor<"f32">): void {
    const buffers = [gate, read(up)];
    pass.dispatch(this.#pipeline(`gated_${activation}`), { buffers, grid: gate.length, threads: 256 });
  }

  /** x = cap * tanh(x / cap). */
  softcap(pass: Pass, x: Tensor<"f32">, cap: number): void {
    const bytes = { 1: Float32Array.of(cap) };
    pass.dispatch(this.#pipeline("softcap"), { buffers: [x], bytes, grid: x.length, threads: 256 });
  }

  /** A token of each row of the logits; `rows` has temperature, top-p and the random number of each, f32 [rows, 3]. */
  sample(pass: Pass, logits: Tensor<"f32">, rows: Tensor<"f32">, tokens: Tensor<"u32">): void {
    const [count, vocabulary] = logits.shape as readonly [number, number];
    pass.dispatch(this.#pipeline("sample"), {
      buffers: [read(logits), read(rows), write(tokens)],
      bytes: { 3: sampleArgs.pack({ vocabulary }) },
      grid: count,
      threads: sampleThreads,
      form: "threadgroups",
    });
  }

  dispose(): void {
    for (const pipeline of this.#pipelines.values()) pipeline.dispose();
    this.#nothing.dispose();
  }

  #product(
    pass: Pass,
    x: Tensor<FloatDType>,
    { weights, bias }: Projection,
    y: Tensor<"f32">,
    isPrompt: boolean,
    adds: boolean,
  ): void {
    const [outputs, inputs] = weights.shape as readonly [number, number];
    const rows = x.length / inputs;
    const rowsAtOnce = rows === 1 ? 1 : 4;
    const name = isPrompt ? "matmul" : `matvec${rowsAtOnce}`;
    const hasBias = Number(bias !== undefined);
    pass.dispatch(this.#pipeline(`${name}_${weights.dtype}_${x.dtype}`), {
      buffers: [read(weights), read(x), read(bias ?? this.#nothing), y],
      bytes: { 4: matrixArgs.pack({ inputs, outputs, rows, hasBias, adds: Number(adds) }) },
      grid: isPrompt
        ? [Math.ceil(outputs / matmulTile.outputs), Math.ceil(rows / matmulTile.rows)]
        : [Math.ceil(outputs / matvecOutputs), Math.ceil(rows / rowsAtOnce)],
      threads: isPrompt ? matmulTile.threads : matvecThreads,
      form: "threadgroups",
    });
  }

  #pipeline(name: string): Pipeline {
    const known = this.#pipelines.get(name);
    if (known !== undefined) return known;
    const pipeline = this.#device.pipeline(name);
    this.#pipelines.set(name, pipeline);
    return pipeline;
  }
}
