import type { Device, DType, Tensor } from "metal-attention";
import type { ModelConfig } from "../files/config.ts";
import type { FloatDType } from "./kernels.ts";

/** What layers hand to each other, of a step of `rows` tokens. */
export interface Activations {
  readonly ids: Tensor<"u32">;
  readonly positions: Tensor<"i32">;
  /** The sum that layers add to, [rows, hiddenSize]. */
  readonly x: Tensor<"f32">;
  /** Of the same shape, for what goes into or comes out of a part of a layer. */
  readonly h: Tensor<"f32">;
  /** [rows, heads, headDim] */
  readonly q: Tensor<"f32">;
  /** [rows, nKvHeads, headDim] */
  readonly k: Tensor<"f32">;
  readonly v: Tensor<"f32">;
  /** q once turned, and what attention gives, in the dtype of attention. */
  readonly turned: Tensor<FloatDType>;
  readonly attended: Tensor<FloatDType>;
  /** [rows, intermediateSize] */
  readonly gate: Tensor<"f32">;
  readonly up: Tensor<"f32">;
}

/** What the rows whose logits are asked for need. */
export interface Outputs {
  readonly rows: Tensor<"u32">;
  readonly x: Tensor<"f32">;
  /** [rows, vocabSize] */
  readonly logits: Tensor<"f32">;
  /** Temperature, top-p and a random number, [rows, 3]. */
  readonly sampling: Tensor<"f32">;
  readonly tokens: Tensor<"u32">;
}

/** Tensors of steps: made for the most rows so far, and shown as those of a step. */
export class Workspace {
  readonly #activations: Views<Activations>;
  readonly #outputs: Views<Outputs>;

  constructor(device: Device, config: ModelConfig, attention: FloatDType) {
    const { hiddenSize, intermediateSize, heads, nKvHeads, headDim, vocabSize } = config;
    this.#activations = new Views<Activations>(device, {
      ids: ["u32", []],
      positions: ["i32", []],
      x: ["f32", [hiddenSize]],
      h: ["f32", [hiddenSize]],
      q: ["f32", [heads, headDim]],
      k: ["f32", [nKvHeads, headDim]],
      v: ["f32", [nKvHeads, headDim]],
      turned: [attention, [heads, headDim]],
      attended: [attention, [heads, headDim]],
      gate: ["f32", [intermediateSize]],
      up: ["f32", [intermediateSize]],
    });
    this.#outputs = new Views<Outputs>(device, {
      rows: ["u32", []],
      x: ["f32", [hiddenSize]],
      logits: ["f32", [vocabSize]],
      sampling: ["f32", [3]],
      tokens: ["u32", []],
    });
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
class Views<T extends { readonly [K in keyof T]: Tensor }> {
  readonly #device: Device;
  readonly #parts: Readonly<Record<keyof T, readonly [dtype: DType, axes: readonly number[]]>>;
  #whole: Partial<Record<keyof T, Tensor>> = {};
  #capacity = 0;
  #views: T | undefined;
  #rows = 0;

  constructor(device: Device, parts: Readonly<Record<keyof T, readonly [DType, readonly number[]]>>) {
    this.#device = device;
    this.#parts = parts;
  }

  get bytes(): number {
    return tensorsOf(this.#whole).reduce((sum, { byteLength }) => sum + byteLength, 0);
  }

  of(rows: number): T {
    if (this.#views !== undefined && this.#rows === rows) return this.#views;
    this.#drop();
    const names = Object.keys(this.#parts) as (keyof T)[];
    if (rows > this.#capacity) {
      this.dispose();
      for (const name of names) {
        const [dtype, axes] = this.#parts[name];
        this.#whole[name] = this.#device.tensor(dtype, [rows, ...axes]);
      }
      this.#capacity = rows;
    }
    const views = Object.fromEntries(names.map((name) => [name, (this.#whole[name] as Tensor).slice(0, rows)]));
    this.#views = views as unknown as T;
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
