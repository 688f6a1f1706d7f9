import type { Device } from "../device/device.ts";
import type { DType } from "../device/dtypes.ts";
import { elementCount, type Tensor } from "../device/tensor.ts";

/** Memory for results between two dispatches, by name; the dispatches of all layers use the same in turn. */
export class Scratch {
  readonly #device: Device;
  readonly #flat = new Map<string, Tensor>();
  readonly #shaped = new Map<string, Tensor>();
  /** What was too small, and may be in a recorded pass. */
  readonly #former: Tensor[] = [];
  bytes = 0;

  constructor(device: Device) {
    this.#device = device;
  }

  /** A tensor of such a shape over the memory `name`, made with room for `most` elements; it grows where that is too small. */
  tensor<T extends DType>(name: string, dtype: T, shape: readonly number[], most = 0): Tensor<T> {
    const key = `${name} ${dtype} ${shape}`;
    const known = this.#shaped.get(key);
    if (known !== undefined) return known as Tensor<T>;
    const length = elementCount(shape);
    const flat = this.#memory(`${name} ${dtype}`, dtype, length, most);
    const part = flat.slice(0, length);
    const shaped = part.reshape(shape);
    part.dispose();
    this.#shaped.set(key, shaped);
    return shaped as Tensor<T>;
  }

  dispose(): void {
    for (const tensor of [...this.#flat.values(), ...this.#shaped.values(), ...this.#former]) tensor.dispose();
  }

  #memory(name: string, dtype: DType, length: number, most: number): Tensor {
    const known = this.#flat.get(name);
    if (known !== undefined && known.length >= length) return known;
    // Twice as much at least, so that all former ones together are no more than it.
    const flat = this.#device.tensor(dtype, [Math.max(length, most, 2 * (known?.length ?? 0))]);
    if (known !== undefined) this.#former.push(known);
    this.#flat.set(name, flat);
    this.bytes += flat.byteLength;
    return flat;
  }
}
