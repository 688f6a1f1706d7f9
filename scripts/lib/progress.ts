/** What the ticking thread is told: a step begins, or none is under way. */
export type ProgressMessage = { readonly step: string } | { readonly step: undefined };

/**
 * Prints a line each second that a step takes. A step may block this thread
 * (a call into the library, a long loop), so another thread does the printing.
 *
 * @example
 * using progress = new Progress();
 * const sum = progress.run("adding up", () => values.reduce((a, b) => a + b));
 */
export class Progress {
  readonly #ticker = new Worker(new URL("./progress-ticker.ts", import.meta.url).href);

  constructor() {
    this.#ticker.unref();
  }

  /** Runs `action`, with lines that name it `step`. */
  run<T>(step: string, action: () => T): T {
    this.#tell({ step });
    try {
      return action();
    } finally {
      this.#tell({ step: undefined });
    }
  }

  /** As `run`, until the promise of `action` settles. */
  async wait<T>(step: string, action: () => Promise<T>): Promise<T> {
    this.#tell({ step });
    try {
      return await action();
    } finally {
      this.#tell({ step: undefined });
    }
  }

  [Symbol.dispose](): void {
    this.#ticker.terminate();
  }

  #tell(message: ProgressMessage): void {
    this.#ticker.postMessage(message);
  }
}
