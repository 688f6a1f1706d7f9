import type { Device, DType, Tensor } from "metal-attention";
import type { ModelConfig } from "../files/config.ts";
import type { FloatDType } from "./kernels.ts";

/** Dtype and axes of tensors by name, but for the first axis, the rows of a step. */
type Parts = Readonly<Record<string, readonly [dtype: DType, axes: readonly number[]]>>;

type TensorsOf<P extends Parts> = { readonly [K in keyof P]: Tensor<P[K][0]> };

/** What layers hand to each other. */
const activationParts = (config: ModelConfig, attention: FloatDType) =>
  ({
    ids: ["u32", []],
    positions: ["i32", []],
    // The sum that layers add to, and what goes into or comes out of a part of a layer.
    x: ["f32", [config.hiddenSize]],
    h: ["f32", [config.hiddenSize]],
    q: ["f32", [config.heads, config.headDim]],
    k: ["f32", [config.nKvHeads, config.headDim]],
    v: ["f32", [config.nKvHeads, config.headDim]],
    // q once turned, and what attention gives.
    turned: [attention, [config.heads, config.headDim]],
    attended: [attention, [config.heads, config.headDim]],
    gate: ["f32", [config.intermediateSize]],
    up: ["f32", [config.intermediateSize]],
  }) as const satisfies Parts;

/** What the rows whose logits are asked for need. */
const outputParts = (config: ModelConfig) =>
  ({
    rows: ["u32", []],
    x: ["f32", [config.hiddenSize]],
    logits: ["f32", [config.vocabSize]],
    // Temperature, top-p and a random number.
    sampling: ["f32", [3]],
    tokens: ["u32", []],
  }) as const satisfies Parts;

export type Activations = TensorsOf<ReturnType<typeof activationParts>>;
export type Outputs = TensorsOf<ReturnType<typeof outputParts>>;

/** Tensors of steps: made for the most rows so far, and shown as those of a step. */
export class Workspace {
  readonly #activations: Views<ReturnType<typeof activationParts>>;
  readonly #outputs: Views<ReturnType<typeof outputParts>>;

  constructor(device: Device, config: ModelConfig, attention: FloatDType) {
    this.#activations = new Views(device, activationParts(config, attention));
    this.#outputs = new Views(device, outputParts(config));
  }

  get bytes(): number {
    return this.#activations.bytes + this.#outputs.bytes;
  }

  activations(rows: number): Activations {
    return this.#activations.of(rows);
  }

  outputs(rows: number): Outputs {
    return this.#outputs.of(rows);
  }

  dispose(): void {
    this.#activations.dispose();
    this.#outputs.dispose();
  }
}

/** Tensors whose first axis is the rows of a step. */
class Views<P extends Parts> {
  readonly #device: Device;
  readonly #parts: P;
  #whole: Partial<Record<keyof P, Tensor>> = {};
  #capacity = 0;
  #views: TensorsOf<P> | undefined;
  #rows = 0;

  constructor(device: Device, parts: P) {
    this.#device = device;
    this.#parts = parts;
  }

  get bytes(): number {
    return tensorsOf(this.#whole).reduce((sum, { byteLength }) => sum + byteLength, 0);
  }

  of(rows: number): TensorsOf<P> {
    if (this.#views !== undefined && this.#rows === rows) return this.#views;
    this.#drop();
    const names = Object.keys(this.#parts) as (keyof P)[];
    if (rows > this.#capacity) {
      this.dispose();
      for (const name of names) {
        const [dtype, axes] = this.#parts[name] as Parts[string];
        this.#whole[name] = this.#device.tensor(dtype, [rows, ...axes]);
      }
      this.#capacity = rows;
    }
    const views = Object.fromEntries(names.map((name) => [name, (this.#whole[name] as Tensor).slice(0, rows)]));
    this.#views = views as unknown as TensorsOf<P>;
    this.#rows = rows;
    return this.#views;
  }

  dispose(): void {
    this.#drop();
    for (const tensor of tensorsOf(this.#whole)) tensor.dispose();
    this.#whole = {};
    this.#capacity = 0;
  }

  #drop(): void {
    for (const view of tensorsOf(this.#views ?? {})) view.dispose();
    this.#views = undefined;
  }
}

const tensorsOf = (record: object): Tensor[] => Object.values(record);
