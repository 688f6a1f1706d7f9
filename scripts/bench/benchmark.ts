/** What a benchmark is, and how its rounds are run. */

/** Options of the whole run. */
export interface BenchOptions {
  /** Fewer rounds where one takes seconds. */
  readonly quick: boolean;
}

/** One side of a comparison: runs once and gives its figure in the benchmark's unit. */
export type Measurement = () => number | Promise<number>;

/** A benchmark made ready: device open, tensors filled. */
export interface PreparedBenchmark {
  readonly measure: Measurement;
  readonly baseline: Measurement;
  /** Frees what `prepare` made. */
  dispose(): void;
}

/** What a figure has to reach. */
export interface Target {
  /** For the reader: `at most 500 ns`. */
  readonly text: string;
  /** Whether the medians reach it. */
  readonly met: (value: number, ratio: number) => boolean;
}

/** One figure beside its baseline. */
export interface Benchmark {
  readonly name: string;
  readonly unit: string;
  /** What is measured, and what stands beside it. */
  readonly about: string;
  readonly baselineAbout: string;
  readonly target?: Target;
  /** Rounds of which the median is taken. */
  readonly rounds: (options: BenchOptions) => number;
  /** Whether a first round that does not count comes before: not where a first time is what is measured. */
  readonly warmUp: boolean;
  readonly prepare: (options: BenchOptions) => PreparedBenchmark;
}

/** One line of the JSON. `ratio` is value / baseline. */
export interface BenchResult {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  readonly baseline: number;
  readonly ratio: number;
  readonly rounds: number;
}

/**
 * Runs a benchmark: in each round both sides, which of them first alternating,
 * so that a change of clock or load meets both. Medians of each.
 */
export async function runBenchmark(benchmark: Benchmark, options: BenchOptions): Promise<BenchResult> {
  const prepared = benchmark.prepare(options);
  try {
    if (benchmark.warmUp) {
      await prepared.baseline();
      await prepared.measure();
    }
    const rounds = benchmark.rounds(options);
    const values: number[] = [];
    const baselines: number[] = [];
    for (let round = 0; round < rounds; round++) {
      if (round % 2 === 0) baselines.push(await prepared.baseline());
      values.push(await prepared.measure());
      if (round % 2 === 1) baselines.push(await prepared.baseline());
    }
    const value = median(values);
    const baseline = median(baselines);
    return { name: benchmark.name, value, unit: benchmark.unit, baseline, ratio: value / baseline, rounds };
  } finally {
    prepared.dispose();
  }
}

/** The middle value; the mean of the two in the middle for an even count. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  const upper = sorted[Math.floor(middle)];
  const lower = sorted[Math.ceil(middle) - 1];
  if (upper === undefined || lower === undefined) throw new RangeError("no values to take the median of");
  return (upper + lower) / 2;
}

/** Rounds of a benchmark that is quick enough for a quick run as well. */
export const usualRounds = (): number => 9;

/** Seconds that `action` takes. */
export function secondsOf(action: () => void): number {
  const start = Bun.nanoseconds();
  action();
  return (Bun.nanoseconds() - start) * 1e-9;
}
