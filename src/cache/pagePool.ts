/** Pages of a pool, each with the number of sequences that have it. */
export class PagePool {
  readonly #uses: Uint32Array;
  /** The lowest free page last. */
  readonly #free: number[];

  constructor(count: number) {
    this.#uses = new Uint32Array(count);
    this.#free = Array.from({ length: count }, (_, i) => count - 1 - i);
  }

  get free(): number {
    return this.#free.length;
  }

  /** A free page, of which there has to be one. */
  take(): number {
    const page = this.#free.pop() as number;
    this.#uses[page] = 1;
    return page;
  }

  /** One more sequence has it. */
  share(page: number): void {
    this.#uses[page] = this.uses(page) + 1;
  }

  /** One sequence less has it. */
  release(page: number): void {
    this.#uses[page] = this.uses(page) - 1;
    if (this.uses(page) === 0) this.#free.push(page);
  }

  /** Takes a certain page, free or not, for one more sequence. */
  claim(page: number): void {
    if (this.uses(page) === 0) this.#free.splice(this.#free.indexOf(page), 1);
    this.share(page);
  }

  uses(page: number): number {
    return this.#uses[page] as number;
  }
}
