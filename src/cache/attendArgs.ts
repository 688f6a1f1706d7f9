import { checkFlag, checkLength, checkObject, checkPositive, refused } from "../checks.ts";
import type { DeviceLifetime } from "../device/lifetime.ts";
import { Tensor } from "../device/tensor.ts";
import type { DecodeDType } from "../ops/decode/decodeCache.ts";
import { checkApart, checkShapeIs } from "../ops/shapes.ts";
import { OptionNames } from "../optionNames.ts";
import type { AttendCall, ScoreOptions } from "./attend.ts";
import { checkRowDType } from "./format.ts";
import { type KvCacheConfig, mostPositions } from "./options.ts";

/** Arguments of `KvCache.attend`. */
export interface KvAttendArgs {
  /** Queries of the step's tokens, [nTokens, H, headDim], turned by their positions; H is a multiple of nKvHeads. */
  readonly q: Tensor<DecodeDType>;
  /** Written: of the shape of `q`. Must overlap no input. */
  readonly out: Tensor<DecodeDType>;
  /** Written: [nTokens, H], the natural logarithm of each row's sum of exponentials. */
  readonly lse?: Tensor<"f32"> | undefined;
  /** Factor of the scores; 1 / sqrt(headDim) unless given. */
  readonly scale?: number | undefined;
  /** Keys that a token sees, itself among them: that of the cache unless given, and no more than that. */
  readonly window?: number | undefined;
  /** Makes of a score s softcap * tanh(s / softcap). */
  readonly softcap?: number | undefined;
  /** [H]: one extra logit per head in the softmax, with no value; neither scaled nor soft-capped. */
  readonly sinks?: Tensor<"f32"> | undefined;
  /** [H]: adds slope * (j - p) to the score of key j for a token at position p. */
  readonly alibiSlopes?: Tensor<"f32"> | undefined;
  /**
   * True for rows of a prompt, however few: attended as more than 16 are, so that a prompt in chunks has the bits of the
   * whole. False unless given, and in a step that is recorded.
   */
  readonly isPrompt?: boolean | undefined;
}

const argNames = new OptionNames<KvAttendArgs>("attend", {
  q: true,
  out: true,
  lse: true,
  scale: true,
  window: true,
  softcap: true,
  sinks: true,
  alibiSlopes: true,
  isPrompt: true,
});

/**
 * @internal Queries, results and options of an attend of `rows` tokens. All that a caller gives is checked here, since
 * several operations may serve a call, and a refusal by a later one would leave what the first ones encoded.
 */
export function useAttendArgs(
  args: KvAttendArgs,
  { nKvHeads, headDim, window: ring }: KvCacheConfig,
  rows: number,
  device: DeviceLifetime,
): Omit<AttendCall, "pass" | "layer" | "views"> {
  const given = argNames.read(checkObject(args, "args"));
  const { q, out, lse, scale, window, softcap, sinks, alibiSlopes, isPrompt } = given;
  const queries = Tensor.use(q, device, "q");
  const { shape } = queries;
  const [tokens, heads = 0, dim] = shape;
  if (shape.length !== 3 || dim !== headDim)
    throw refused("q", `expected shape [nTokens, H, ${headDim}], got [${shape}]`);
  if (tokens !== rows) throw refused("q", `it has ${tokens} tokens, but ${rows} were appended in this step`);
  if (heads % nKvHeads !== 0) throw refused("q", `its ${heads} heads are no multiple of the ${nKvHeads} of the cache`);
  checkRowDType("q", q);
  const results = Tensor.use(out, device, "out");
  checkShapeIs("out", results, shape);
  checkRowDType("out", out);
  checkApart("out", results, "q", queries);
  const use = (name: "lse" | "sinks" | "alibiSlopes", expected: readonly number[]) => {
    const tensor = given[name];
    if (tensor === undefined) return undefined;
    const range = Tensor.use(tensor, device, name);
    checkShapeIs(name, range, expected);
    if (tensor.dtype !== "f32") throw refused(name, `expected f32, got ${tensor.dtype}`, "unsupported");
    checkApart("out", results, name, range);
    return range;
  };
  const sums = use("lse", [rows, heads]);
  if (sums !== undefined) checkApart("lse", sums, "q", queries);
  for (const name of ["sinks", "alibiSlopes"] as const) {
    const range = use(name, [heads]);
    if (range !== undefined && sums !== undefined) checkApart("lse", sums, name, range);
  }
  // No parameter: what a row sees of each part of the cache follows from the window.
  const seen = window === undefined ? ring : checkLength(window, "window");
  if (seen > mostPositions) throw refused("window", `${seen} exceeds ${mostPositions} positions`);
  if (window === 0) throw refused("window", "0 leaves a token not even itself; it is at least 1");
  if (ring > 0 && seen > ring)
    throw refused("window", `${seen} is larger than the ${ring} that the cache was made for`);
  const scores: ScoreOptions = {
    ...(scale !== undefined && { scale: checkPositive(scale, "scale") }),
    ...(softcap !== undefined && { softcap: checkPositive(softcap, "softcap") }),
    ...(sinks !== undefined && { sinks }),
    ...(alibiSlopes !== undefined && { alibiSlopes }),
  };
  return { q, out, lse, window: seen, scores, isPrompt: checkFlag(isPrompt, "isPrompt") === 1 };
}
