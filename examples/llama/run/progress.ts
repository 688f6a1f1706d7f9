/** A bar on standard error, drawn again at most ten times a second; a line at the end where that is no terminal. */
export class ProgressBar {
  readonly #label: string;
  readonly #text: (done: number, total: number) => string;
  readonly #started = performance.now();
  #drawn = 0;

  /** @param text What stands behind the bar, of the amounts done and in all. */
  constructor(label: string, text: (done: number, total: number) => string) {
    this.#label = label;
    this.#text = text;
  }

  readonly update = (done: number, total: number): void => {
    const now = performance.now();
    const isLast = done >= total;
    if (!process.stderr.isTTY && !isLast) return;
    if (!isLast && now - this.#drawn < 100) return;
    this.#drawn = now;
    const width = 30;
    const filled = Math.floor((width * done) / Math.max(1, total));
    const seconds = ((now - this.#started) / 1000).toFixed(1);
    const line = `${this.#label} [${"#".repeat(filled).padEnd(width, ".")}] ${this.#text(done, total)}, ${seconds} s`;
    process.stderr.write(process.stderr.isTTY ? `\r${line}${isLast ? "\n" : ""}` : `${line}\n`);
  };
}

/** Bytes for people. */
export function bytesText(bytes: number): string {
  const units = ["B", "KiB", "MiB", "GiB"];
  const unit = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log2(Math.max(1, bytes)) / 10)));
  return `${(bytes / 1024 ** unit).toFixed(unit === 0 ? 0 : 1)} ${units[unit]}`;
}
