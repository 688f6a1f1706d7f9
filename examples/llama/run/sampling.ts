import type { SampleRow } from "../model/kernels.ts";

/** How the next token is chosen. */
export interface Sampling {
  /** 0 for the most likely token. */
  readonly temperature: number;
  readonly topP: number;
  /** The same seed gives the same text. */
  readonly seed: number;
}

/** The numbers that a sequence's tokens are drawn by, one after another. */
export class Sampler {
  readonly #sampling: Sampling;
  #state: number;

  constructor(sampling: Sampling) {
    this.#sampling = sampling;
    this.#state = sampling.seed >>> 0;
  }

  /** For the next token. */
  next(): SampleRow {
    const { temperature, topP } = this.#sampling;
    return { temperature, topP, uniform: this.#uniform() };
  }

  /** splitmix32: 23 of its bits, so that f32 holds the number and never rounds it to 1. */
  #uniform(): number {
    this.#state = (this.#state + 0x9e3779b9) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 16), 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return ((mixed ^ (mixed >>> 15)) >>> 9) / 2 ** 23;
  }
}
