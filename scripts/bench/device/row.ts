import type { Device, DType, FloatDType, Pass, Pipeline, Tensor } from "../../../src/index.ts";
import { normalArray } from "../../lib/random.ts";

/** Sizes of the rows: those of a GPU, or a thousandth for a look at the table. */
export interface DeviceSizes {
  /** Bytes of a source that is copied, quantized or turned. */
  readonly source: number;
  /** Bytes of the device's own copy, which a row follows. */
  readonly copied: number;
  /** Tokens of a prompt. */
  readonly tokens: number;
  /** Keys that a token attends to. */
  readonly keys: number;
}

/** A kernel at one shape, made ready: its tensors in private storage. */
export interface PreparedRow {
  /** Bytes that it has to read and write. */
  readonly moved: number;
  readonly encode: (pass: Pass) => void;
}

/** A line of the table of a device. */
export interface DeviceRow {
  readonly name: string;
  readonly about: string;
  /** What a second of the device is worth: `GB/s of source`, `TFLOP/s`. */
  readonly unit: string;
  /** It is beside what products of matrices reach. */
  readonly isOfMatrices?: true;
  readonly prepare: (room: DeviceRoom, sizes: DeviceSizes) => PreparedRow & { readonly work: number };
}

/** Elements that are made on the CPU, and copied over a tensor again and again. */
const stagedElements = 1 << 18;

/** Private tensors of a row, filled. */
export class DeviceRoom {
  readonly #device: Device;
  readonly #made: Tensor[];

  /** - `made`: where each tensor is noted, for whoever disposes them. */
  constructor(device: Device, made: Tensor[]) {
    this.#device = device;
    this.#made = made;
  }

  /** A tensor with nothing in it. */
  empty<T extends DType>(dtype: T, shape: readonly number[]): Tensor<T> {
    const tensor = this.#device.tensor(dtype, shape, { storage: "private" });
    this.#made.push(tensor);
    return tensor;
  }

  /** A kernel of a source of the row's own. */
  kernel(file: string, source: string, name: string): Pipeline {
    this.#device.registerSource(file, source, { replace: true });
    return this.#device.pipeline(name);
  }

  /** Normal values. */
  normal<T extends FloatDType>(dtype: T, shape: readonly number[]): Tensor<T> {
    return this.#filled(dtype, shape, (count) => normalArray(count, 1, 1));
  }

  /** Bytes of codes: anything is a code. */
  codes(shape: readonly number[]): Tensor<"u8"> {
    return this.#filled("u8", shape, (count) =>
      Float32Array.from({ length: count }, (_, i) => (i * 167 + (i >> 8)) % 256),
    );
  }

  /** Norms of head vectors. */
  norms(shape: readonly number[]): Tensor<"f32"> {
    return this.#filled("f32", shape, (count) =>
      Float32Array.from({ length: count }, (_, i) => 0.5 + (i % 1000) / 1000),
    );
  }

  #filled<T extends DType>(dtype: T, shape: readonly number[], values: (count: number) => Float32Array): Tensor<T> {
    const tensor = this.empty(dtype, shape);
    using flat = tensor.reshape([tensor.length]);
    const count = Math.min(stagedElements, tensor.length);
    using staged = this.#device.tensor(dtype, [count]);
    staged.set(values(count));
    using pass = this.#device.pass();
    for (let start = 0; start < tensor.length; start += count) {
      const end = Math.min(start + count, tensor.length);
      using part = flat.slice(start, end);
      using values = staged.slice(0, end - start);
      pass.copy(values, part);
    }
    pass.commitAndWait();
    return tensor;
  }
}
