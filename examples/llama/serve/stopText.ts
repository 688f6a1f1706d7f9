/** Cuts a text off where one of some strings first ends, and holds back what may be the beginning of one. */
export class StopText {
  readonly #stops: readonly string[];
  #held = "";
  #isFound = false;

  constructor(stops: readonly string[]) {
    this.#stops = stops;
  }

  get isFound(): boolean {
    return this.#isFound;
  }

  /** What of the text so far is certain, and was not given before. */
  push(text: string): string {
    if (this.#isFound) return "";
    this.#held += text;
    const found = this.#firstFound();
    if (found !== undefined) {
      this.#isFound = true;
      return this.#held.slice(0, found);
    }
    const given = this.#held.length - Math.max(0, ...this.#stops.map((stop) => begun(this.#held, stop)));
    const certain = this.#held.slice(0, given);
    this.#held = this.#held.slice(given);
    return certain;
  }

  /** What was held back, of a text that ends. */
  end(): string {
    return this.#isFound ? "" : this.#held;
  }

  /** Where the string begins that ends first, so that it does not matter in which pieces the text came. */
  #firstFound(): number | undefined {
    let first: { start: number; end: number } | undefined;
    for (const stop of this.#stops) {
      const start = this.#held.indexOf(stop);
      if (start < 0) continue;
      const end = start + stop.length;
      if (first === undefined || end < first.end || (end === first.end && start < first.start)) first = { start, end };
    }
    return first?.start;
  }
}

/** Characters at the end of a text that are the beginning of `stop`. */
function begun(text: string, stop: string): number {
  for (let length = Math.min(stop.length - 1, text.length); length > 0; length--) {
    if (text.endsWith(stop.slice(0, length))) return length;
  }
  return 0;
}
