import { checkObject, display, refused } from "../../checks.ts";
import type { FloatDType } from "../../device/dtypes.ts";
import type { DeviceLifetime, PassLifetime } from "../../device/lifetime.ts";
import { Pass } from "../../device/pass.ts";
import { Tensor, type TensorRange } from "../../device/tensor.ts";
import { Block } from "../../ffi/block.ts";
import { packMAApplyRopeArgs, structSizes } from "../../ffi/generated/structs.ts";
import { addressOf } from "../../ffi/memory.ts";
import { checkStatus } from "../../ffi/status.ts";
import { OptionNames } from "../../optionNames.ts";
import { Parameter } from "../../parameter.ts";
import { type AttentionLayout, checkAxisOrder } from "../attention/attentionLayout.ts";
import { batchOf, checkAxis, checkShapeIs, fromEnd, useBatched } from "../shapes.ts";
import { isDual } from "../streams.ts";
import { type RopeAngles, useAngles, usePositions } from "./ropeAngles.ts";

/** Element types of head vectors. */
export type RopeDType = FloatDType;

/** Head vectors and where they go once turned. */
export interface RopeStream {
  /** [nHeads, nTokens, headDim] or, sequence-major, [nTokens, nHeads, headDim]; with a batch before it or not. */
  readonly x: Tensor<RopeDType>;
  /** Of the same shape, in any of the dtypes; `x` itself unless given. */
  readonly out?: Tensor<RopeDType> | undefined;
}

/** One stream, or q and k of the same dtypes, which may differ in their number of heads. */
export type RopeStreams =
  | (RopeStream & { readonly q?: undefined; readonly k?: undefined })
  | { readonly q: RopeStream; readonly k: RopeStream; readonly x?: undefined; readonly out?: undefined };

/** Arguments of {@link applyRope}. */
export type ApplyRopeArgs = RopeStreams &
  RopeAngles & {
    /** Position of the first token, of all batches; 0 unless given. Not beside `positions`. */
    readonly start?: number | undefined;
    /** Positions in device memory: i32 [nTokens], of all batches, or [B, nTokens]. Within 2^24 of 0. */
    readonly positions?: Tensor<"i32"> | undefined;
    /** Order of the axes; head-major unless given. */
    readonly layout?: AttentionLayout | undefined;
  };

const argNames = new OptionNames<ApplyRopeArgs>("applyRope", {
  x: true,
  out: true,
  q: true,
  k: true,
  start: true,
  positions: true,
  theta: true,
  invFreq: true,
  pairing: true,
  rotaryDim: true,
  attentionScale: true,
  layout: true,
});
const streamNames = new OptionNames<RopeStream>("a stream", { x: true, out: true });
const block = new Block(structSizes.MAApplyRopeArgs);

/**
 * Turns head vectors by their rotary positions, of one tensor or of q and k in
 * one dispatch, with a change of dtype where the output has another.
 *
 * Pair i at position p turns by p * invFreq[i] (Su et al. 2021, "RoFormer").
 * The angle is reduced before it is rounded, so that sine and cosine are
 * accurate to f32 at every position up to 2^24 (for frequencies up to 1, as all
 * published ones are). Negative positions turn back.
 *
 * Errors: `invalid-argument` when shapes disagree, tensors overlap (an output
 * may be its own input) or a size is odd; `overflow` for a position beyond 2^24;
 * `unsupported` for another dtype, q and k of different dtypes, or more than
 * 2048 coordinates that turn.
 *
 * @example
 * applyRope(pass, { q: { x: q }, k: { x: k }, start: 17, theta: 500_000, pairing: "half" });
 */
export function applyRope(pass: Pass, args: ApplyRopeArgs): void {
  Pass.encode(pass, args, encode);
}

function encode({ native, handle, device }: PassLifetime, args: ApplyRopeArgs): void {
  argNames.check(checkObject(args, "args"));
  // A field is read once, so that a getter can neither change it nor call in between.
  const { q, k, x, out, positions: givenPositions } = args;
  const isSequenceMajor = checkAxisOrder(args.layout, false, "layout");
  const dual = isDual(q, k, x !== undefined || out !== undefined, "x", "x and out", ["q", "k"]);
  const first = useStream(q ?? { x, out }, device, dual ? "q." : "");
  const second = k === undefined ? undefined : useStream(k, device, "k.");

  const [tokenAxis, headAxis] = isSequenceMajor ? [3, 2] : [2, 3];
  const batch = batchOf(first.x, 3);
  const nTokens = fromEnd(first.x, tokenAxis);
  const headDim = fromEnd(first.x, 1);
  if (second !== undefined) {
    checkAxis("k.x", "B", batchOf(second.x, 3), batch, "q.x");
    checkAxis("k.x", "nTokens", fromEnd(second.x, tokenAxis), nTokens, "q.x");
    checkAxis("k.x", "headDim", fromEnd(second.x, 1), headDim, "q.x");
  }
  const { invFreq, rotaryDim, pairing, attentionScale } = useAngles(args, headDim);
  const start = checkStart(args.start, givenPositions !== undefined);
  const positions = givenPositions === undefined ? undefined : usePositions(givenPositions, device, batch, nTokens);

  packMAApplyRopeArgs(block, 0, {
    q: first.x,
    outQ: first.out,
    k: second?.x,
    outK: second?.out,
    positions,
    params: {
      batch,
      nHeads: fromEnd(first.x, headAxis),
      nKvHeads: second === undefined ? 0 : fromEnd(second.x, headAxis),
      nTokens,
      headDim,
      rotaryDim,
      sequenceMajor: isSequenceMajor ? 1 : 0,
      positionsPerBatch: positions?.shape.length === 2 ? 1 : 0,
      start,
      attentionScale,
    },
    pairing,
    invFreq: addressOf(invFreq),
    invFreqCount: invFreq.length,
  });
  checkStatus(native, native.ma_apply_rope(handle, block.address));
}

/** A stream before it is checked. */
interface StreamFields {
  readonly x?: unknown | undefined;
  readonly out?: unknown | undefined;
}

/** The tensors of a stream, of one shape; `prefix` is "", "q." or "k.". */
function useStream(stream: StreamFields, device: DeviceLifetime, prefix: string): { x: TensorRange; out: TensorRange } {
  if (prefix !== "") streamNames.check(stream as RopeStream, prefix);
  const { x: givenX, out: givenOut } = stream;
  const x = useBatched(givenX, device, `${prefix}x`, 3, "[nHeads, nTokens, headDim], or [nTokens, nHeads, headDim]");
  if (givenOut === undefined) return { x, out: x };
  const out = Tensor.use(givenOut, device, `${prefix}out`);
  checkShapeIs(`${prefix}out`, out, x.shape, `, that of ${prefix}x`);
  return { x, out };
}

function checkStart(value: unknown, hasPositions: boolean): number {
  if (value === undefined) return 0;
  if (hasPositions) throw refused("start", "positions say where the tokens are; leave it out");
  if (value instanceof Parameter) return value.take("start", 0, 0x7fff_ffff);
  if (typeof value !== "number" || !Number.isInteger(value) || Math.abs(value) > 0x7fff_ffff) {
    throw refused("start", `expected a whole number of at most 31 bits, got ${display(value)}`);
  }
  return value;
}
