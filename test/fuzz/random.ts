import { seededRandom } from "../helpers/random.ts";

const edges32 = [0, 1, 2, 7, 255, 4095, 65535, 2 ** 30, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 2, 2 ** 32 - 1];
const edges64 = [0n, 1n, 2n ** 31n, 2n ** 32n - 1n, 2n ** 32n, 2n ** 62n, 2n ** 63n - 1n, 2n ** 63n, 2n ** 64n - 1n];

/** Choices of a generator that a seed decides. */
export class Random {
  readonly #next: () => number;

  constructor(seed: number) {
    this.#next = seededRandom(seed);
  }

  /** A whole number from 0 to `limit` - 1. */
  below(limit: number): number {
    return Math.floor(this.#next() * limit);
  }

  /** A whole number from `first` to `last`. */
  between(first: number, last: number): number {
    return first + this.below(last - first + 1);
  }

  chance(probability: number): boolean {
    return this.#next() < probability;
  }

  /** One of a list, undefined of an empty one. */
  maybe<T>(list: readonly T[]): T | undefined {
    return list[this.below(list.length)];
  }

  /** One of a list that is not empty. */
  pick<T>(list: readonly [T, ...T[]]): T {
    return this.maybe(list) ?? list[0];
  }

  /** Any 32 bits, the limits of integers above all. */
  u32(): number {
    if (this.chance(0.5)) return this.maybe(edges32) ?? 0;
    return this.below(2 ** this.between(1, 32));
  }

  /** Any 64 bits, the limits of integers above all. */
  u64(): bigint {
    if (this.chance(0.5)) return this.maybe(edges64) ?? 0n;
    return (BigInt(this.below(2 ** 32)) << 32n) | BigInt(this.below(2 ** 32));
  }
}
