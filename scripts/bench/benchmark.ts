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
  /** More sides, by name, where one baseline does not say enough. */
  readonly others?: Readonly<Record<string, Measurement>>;
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
  readonly prepare: (options: BenchOptions) => PreparedBenchmark | Promise<PreparedBenchmark>;
}

/** One line of the JSON. `ratio` is value / baseline; `others` are medians as well. */
export interface BenchResult {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  readonly baseline: number;
  readonly ratio: number;
  readonly rounds: number;
  readonly others?: Readonly<Record<string, number>>;
}

/**
 * Runs a benchmark: in each round every side, in an order that is turned round
 * from round to round, so that a change of clock or load affects all. Medians of each.
 */
export async function runBenchmark(benchmark: Benchmark, options: BenchOptions): Promise<BenchResult> {
  const { name, unit, warmUp } = benchmark;
  const prepared = await benchmark.prepare(options);
  try {
    const { others = {} } = prepared;
    const sides = [prepared.baseline, prepared.measure, ...Object.values(others)];
    const values = sides.map((): number[] => []);
    if (warmUp) for (const side of sides) await side();
    const rounds = benchmark.rounds(options);
    const inOrder = [...sides.entries()];
    for (let round = 0; round < rounds; round++) {
      for (const [i, side] of round % 2 === 0 ? inOrder : inOrder.toReversed()) values[i]?.push(await side());
    }
    const [baseline, value, ...rest] = values.map(median) as [number, number, ...number[]];
    const result = { name, value, unit, baseline, ratio: value / baseline, rounds };
    if (rest.length === 0) return result;
    return { ...result, others: Object.fromEntries(Object.keys(others).map((other, i) => [other, rest[i] as number])) };
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
