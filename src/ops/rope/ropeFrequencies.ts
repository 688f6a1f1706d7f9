import { checkFlag, checkObject, checkPositive, display, refused } from "../../checks.ts";
import { OptionNames } from "../../optionNames.ts";

/** What every kind of rotary embedding has. */
interface RopeBase {
  /** Coordinates that turn, an even number up to 2048: headDim, or a part of it. */
  readonly rotaryDim: number;
  /** Base of the frequencies, for example 10,000 or 500,000. */
  readonly theta: number;
}

/** RoFormer (Su et al. 2021): pair i turns by theta^(-2 i / rotaryDim) a position. */
export interface DefaultRope extends RopeBase {
  readonly type: "default";
}

/** Position interpolation (Chen et al. 2023): every frequency divided by `factor`. */
export interface LinearRope extends RopeBase {
  readonly type: "linear";
  readonly factor: number;
}

/**
 * Llama 3.1 (model card and reference code, 2024): long waves divided by
 * `factor`, short ones kept, those between blended by their wavelength.
 */
export interface Llama3Rope extends RopeBase {
  readonly type: "llama3";
  readonly factor: number;
  readonly lowFreqFactor: number;
  readonly highFreqFactor: number;
  /** Positions that the model was trained on. */
  readonly originalMaxPositions: number;
}

/**
 * YaRN (Peng et al. 2023): pairs that turn more than `betaFast` times over the
 * trained positions are kept, those below `betaSlow` are divided by `factor`,
 * with a ramp between; attention is scaled by 0.1 ln(factor) + 1, or by the
 * quotient of that for `mscale` and for `mscaleAllDim` (DeepSeek).
 */
export interface YarnRope extends RopeBase {
  readonly type: "yarn";
  readonly factor: number;
  readonly originalMaxPositions: number;
  /** 32 unless given. */
  readonly betaFast?: number | undefined;
  /** 1 unless given. */
  readonly betaSlow?: number | undefined;
  /** Whether the ends of the ramp are whole pairs; true unless given. */
  readonly truncate?: boolean | undefined;
  readonly mscale?: number | undefined;
  readonly mscaleAllDim?: number | undefined;
  readonly attentionScale?: number | undefined;
}

/**
 * LongRoPE (Ding et al. 2024): each frequency divided by a factor of its own,
 * of two lists, by whether a sequence is longer than the trained positions.
 * Attention is scaled by sqrt(1 + ln(factor) / ln(originalMaxPositions)).
 */
export interface LongRope extends RopeBase {
  readonly type: "longrope";
  readonly shortFactor: readonly number[];
  readonly longFactor: readonly number[];
  readonly originalMaxPositions: number;
  /** Positions of the extended model over those it was trained on. */
  readonly factor: number;
  /** Tokens of the longest sequence to come, which decides the list. */
  readonly sequenceLength: number;
  readonly attentionScale?: number | undefined;
}

/**
 * Proportional (Gemma 4): the frequencies of the whole head, of which only the
 * first `rotatedPairs` turn; the others are 0, so that their pairs stay. With
 * half pairing, rotaryDim is headDim.
 */
export interface ProportionalRope extends RopeBase {
  readonly type: "proportional";
  readonly rotatedPairs: number;
  /** Divisor of every frequency; 1 unless given. */
  readonly factor?: number | undefined;
}

/** Arguments of {@link ropeFrequencies}: those of one kind of scaling, by `type`. */
export type RopeFrequenciesArgs = DefaultRope | LinearRope | Llama3Rope | YarnRope | LongRope | ProportionalRope;

/** What {@link applyRope} takes: spread it into the arguments. */
export interface RopeFrequencies {
  /** Radians from one position to the next, of each pair: [rotaryDim / 2]. */
  readonly invFreq: Float32Array;
  /** Factor of sine and cosine. */
  readonly attentionScale: number;
}

const base = { type: true, rotaryDim: true, theta: true } as const;
const argNames = {
  default: new OptionNames<DefaultRope>("ropeFrequencies", base),
  linear: new OptionNames<LinearRope>("ropeFrequencies", { ...base, factor: true }),
  llama3: new OptionNames<Llama3Rope>("ropeFrequencies", {
    ...base,
    factor: true,
    lowFreqFactor: true,
    highFreqFactor: true,
    originalMaxPositions: true,
  }),
  yarn: new OptionNames<YarnRope>("ropeFrequencies", {
    ...base,
    factor: true,
    originalMaxPositions: true,
    betaFast: true,
    betaSlow: true,
    truncate: true,
    mscale: true,
    mscaleAllDim: true,
    attentionScale: true,
  }),
  longrope: new OptionNames<LongRope>("ropeFrequencies", {
    ...base,
    shortFactor: true,
    longFactor: true,
    originalMaxPositions: true,
    factor: true,
    sequenceLength: true,
    attentionScale: true,
  }),
  proportional: new OptionNames<ProportionalRope>("ropeFrequencies", { ...base, rotatedPairs: true, factor: true }),
};

/**
 * The frequencies of a model's rotary embedding, by the published formulas, in
 * float64 rounded once to f32.
 *
 * Errors: `invalid-argument` for a type, size or factor outside its range;
 * `unsupported` for a `rotaryDim` beyond 2048, the most that {@link applyRope}
 * takes.
 *
 * @example
 * const rope = ropeFrequencies({
 *   type: "llama3", rotaryDim: 128, theta: 500_000,
 *   factor: 8, lowFreqFactor: 1, highFreqFactor: 4, originalMaxPositions: 8192,
 * });
 * applyRope(pass, { x: q, start: 17, pairing: "half", ...rope });
 */
export function ropeFrequencies(args: RopeFrequenciesArgs): RopeFrequencies {
  const { type } = checkObject(args, "args");
  if (typeof type !== "string" || !Object.hasOwn(argNames, type)) {
    throw refused("type", `expected one of ${Object.keys(argNames).join(", ")}, got ${display(type)}`);
  }
  (argNames[type] as OptionNames<RopeFrequenciesArgs>).check(args);
  checkRotaryDim(args.rotaryDim);
  checkPositive(args.theta, "theta");
  const frequencies = Array.from({ length: args.rotaryDim / 2 }, (_, i) => args.theta ** ((-2 * i) / args.rotaryDim));
  const { invFreq, attentionScale } = scaled(args, frequencies);
  const beyond = invFreq.findIndex((f) => !Number.isFinite(f));
  if (beyond >= 0) {
    throw refused(
      "factor" in args ? "factor" : "theta",
      `pair ${beyond} turns by more than f32 holds: by ${invFreq[beyond]}`,
    );
  }
  return { invFreq, attentionScale };
}

/** The frequencies of theta as the type of `args` scales them. */
function scaled(args: RopeFrequenciesArgs, frequencies: readonly number[]): RopeFrequencies {
  switch (args.type) {
    case "default":
      return { invFreq: Float32Array.from(frequencies), attentionScale: 1 };
    case "linear": {
      const factor = checkPositive(args.factor, "factor");
      return { invFreq: Float32Array.from(frequencies, (f) => f / factor), attentionScale: 1 };
    }
    case "llama3":
      return { invFreq: llama3(args, frequencies), attentionScale: 1 };
    case "yarn":
      return { invFreq: yarn(args, frequencies), attentionScale: yarnScale(args) };
    case "longrope":
      return { invFreq: longrope(args, frequencies), attentionScale: longropeScale(args) };
    case "proportional": {
      const { rotatedPairs, factor: givenFactor = 1 } = args;
      if (!Number.isInteger(rotatedPairs) || rotatedPairs < 0 || rotatedPairs > frequencies.length) {
        throw refused("rotatedPairs", `expected 0 to ${frequencies.length} pairs, got ${display(rotatedPairs)}`);
      }
      const factor = checkPositive(givenFactor, "factor");
      return {
        invFreq: Float32Array.from(frequencies, (f, i) => (i < rotatedPairs ? f / factor : 0)),
        attentionScale: 1,
      };
    }
  }
}

function llama3(args: Llama3Rope, frequencies: readonly number[]): Float32Array {
  const factor = checkPositive(args.factor, "factor");
  const low = checkPositive(args.lowFreqFactor, "lowFreqFactor");
  const high = checkPositive(args.highFreqFactor, "highFreqFactor");
  if (high <= low) throw refused("highFreqFactor", `${high} is not above lowFreqFactor ${low}`);
  const positions = checkPositive(args.originalMaxPositions, "originalMaxPositions");
  return Float32Array.from(frequencies, (f) => {
    const turns = (positions * f) / (2 * Math.PI);
    const kept = Math.min(1, Math.max(0, (turns - low) / (high - low)));
    return kept * f + ((1 - kept) * f) / factor;
  });
}

function yarn(args: YarnRope, frequencies: readonly number[]): Float32Array {
  const { theta, rotaryDim } = args;
  const truncate = args.truncate === undefined || checkFlag(args.truncate, "truncate") === 1;
  if (theta <= 1) throw refused("theta", `expected a base above 1, whose pairs turn ever more slowly, got ${theta}`);
  const factor = checkPositive(args.factor, "factor");
  const positions = checkPositive(args.originalMaxPositions, "originalMaxPositions");
  const { betaFast = 32, betaSlow = 1 } = args;
  const fast = checkPositive(betaFast, "betaFast");
  const slow = checkPositive(betaSlow, "betaSlow");
  if (fast < slow) throw refused("betaFast", `${fast} is below betaSlow ${slow}`);
  /** The pair, as a fraction, that turns this often over the trained positions. */
  const pairOf = (turns: number): number =>
    (rotaryDim * Math.log(positions / (turns * 2 * Math.PI))) / (2 * Math.log(theta));
  const [first, last] = truncate ? [Math.floor(pairOf(fast)), Math.ceil(pairOf(slow))] : [pairOf(fast), pairOf(slow)];
  const low = Math.max(first, 0);
  const high = Math.min(last, rotaryDim - 1);
  const width = high === low ? 0.001 : high - low;
  return Float32Array.from(frequencies, (f, i) => {
    const ramp = Math.min(1, Math.max(0, (i - low) / width));
    return (f / factor) * ramp + f * (1 - ramp);
  });
}

function yarnScale({ factor, mscale, mscaleAllDim, attentionScale }: YarnRope): number {
  if (attentionScale !== undefined) return checkPositive(attentionScale, "attentionScale");
  const scale = (m: number): number => (factor <= 1 ? 1 : 0.1 * m * Math.log(factor) + 1);
  const ofAll = mscaleAllDim === undefined ? undefined : scale(checkPositive(mscaleAllDim, "mscaleAllDim"));
  const ofQuotient = mscale === undefined ? undefined : scale(checkPositive(mscale, "mscale"));
  return ofAll === undefined || ofQuotient === undefined ? scale(1) : ofQuotient / ofAll;
}

function longrope(args: LongRope, frequencies: readonly number[]): Float32Array {
  const positions = checkPositive(args.originalMaxPositions, "originalMaxPositions");
  const isLong = checkPositive(args.sequenceLength, "sequenceLength") > positions;
  const name = isLong ? "longFactor" : "shortFactor";
  const factors = args[name];
  if (!Array.isArray(factors) || factors.length !== frequencies.length) {
    throw refused(
      name,
      `expected ${frequencies.length} factors, got ${Array.isArray(factors) ? factors.length : display(factors)}`,
    );
  }
  return Float32Array.from(frequencies, (f, i) => f / checkPositive(factors[i], `${name}[${i}]`));
}

function longropeScale({ factor, originalMaxPositions, attentionScale }: LongRope): number {
  if (attentionScale !== undefined) return checkPositive(attentionScale, "attentionScale");
  checkPositive(factor, "factor");
  if (factor <= 1) return 1;
  if (originalMaxPositions <= 1) {
    throw refused(
      "originalMaxPositions",
      `expected more than 1 position beside a factor of ${factor}, got ${originalMaxPositions}`,
    );
  }
  return Math.sqrt(1 + Math.log(factor) / Math.log(originalMaxPositions));
}

/** The most that an operation's table of frequencies has room for. */
const mostRotaryDim = 2048;

/** Coordinates that turn: an even number. */
export function checkRotaryDim(value: unknown, argument = "rotaryDim"): number {
  if (typeof value !== "number" || !Number.isInteger(value) || value < 2 || value % 2 !== 0) {
    throw refused(argument, `expected an even number from 2 to ${mostRotaryDim}, got ${display(value)}`);
  }
  if (value > mostRotaryDim) throw refused(argument, `${value} exceeds ${mostRotaryDim}`, "unsupported");
  return value;
}
