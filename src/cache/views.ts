import type { DType } from "../device/dtypes.ts";
import type { Tensor } from "../device/tensor.ts";

/** Slices and shapes of a caller's tensors for the time of a call; those of a recorded pass stay with it. */
export class Views {
  readonly #made: Tensor[] = [];
  readonly #kept: Tensor[] | undefined;

  /** @param kept Gets what a recorded pass goes on using; nothing stays unless given. */
  constructor(kept: Tensor[] | undefined) {
    this.#kept = kept;
  }

  slice<T extends DType>(tensor: Tensor<T>, start: number, end: number): Tensor<T> {
    if (start === 0 && end === tensor.shape[0]) return tensor;
    return this.#note(tensor.slice(start, end));
  }

  reshape<T extends DType>(tensor: Tensor<T>, shape: readonly number[]): Tensor<T> {
    return this.#note(tensor.reshape(shape));
  }

  [Symbol.dispose](): void {
    if (this.#kept !== undefined) this.#kept.push(...this.#made);
    else for (const tensor of this.#made) tensor.dispose();
  }

  #note<T extends Tensor>(tensor: T): T {
    this.#made.push(tensor);
    return tensor;
  }
}
