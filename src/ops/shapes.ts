import { checkU32, refused } from "../checks.ts";
import type { DeviceLifetime } from "../device/lifetime.ts";
import { Tensor, type TensorRange } from "../device/tensor.ts";
import { Parameter } from "../parameter.ts";

/** The tensor `value`, refused unless it has the axes that `axes` names, for example `[nNew, rowSize]`. */
export function useTensor(
  value: unknown,
  device: DeviceLifetime,
  argument: string,
  rank: number,
  axes: string,
  mayHaveBatch = false,
): TensorRange {
  const range = Tensor.use(value, device, argument);
  const { length } = range.shape;
  if (length === rank || (mayHaveBatch && length === rank + 1)) return range;
  const expected = mayHaveBatch ? `${axes}, or with a batch before it` : axes;
  throw refused(argument, `expected shape ${expected}, got [${range.shape}]`);
}

/**
 * The tensor `value` with the axes that `axes` names, for example
 * `[nHeads, capacity, headDim]`, or with a batch axis before them.
 */
export function useBatched(
  value: unknown,
  device: DeviceLifetime,
  argument: string,
  rank: number,
  axes: string,
): TensorRange {
  return useTensor(value, device, argument, rank, axes, true);
}

/** Batches of a tensor from {@link useBatched}: 1 where it has no such axis. */
export function batchOf({ shape }: TensorRange, rank: number): number {
  return shape.length === rank ? 1 : (shape[0] as number);
}

/** Refuses a tensor whose axes are not the three of `axes` and `lastAxis`, or these with a batch before them. */
export function checkPlanes({ shape }: TensorRange, argument: string, axes: string, lastAxis: string): void {
  if (shape.length !== 3 && shape.length !== 4) {
    throw refused(argument, `expected shape [${axes}, ${lastAxis}], got [${shape}]`);
  }
}

/** The length of an axis, counted from the last one, which is 1. */
export function fromEnd({ shape }: TensorRange, axis: number): number {
  return shape[shape.length - axis] as number;
}

/** Refuses `argument` when its `axis` differs from what another tensor gives. */
export function checkAxis(argument: string, axis: string, got: number, expected: number, where: string): void {
  if (got !== expected) throw refused(argument, `${axis} is ${got}, but ${expected} in ${where}`);
}

/**
 * Refuses a tensor [.., ..., headDim] whose heads are not on `headAxis`, counted from the end, but on the axis beside
 * it, as the heads of its cache show; `other` says what takes that order.
 */
export function checkHeadAxis(
  argument: string,
  tensor: TensorRange,
  headAxis: number,
  nHeads: number,
  axes: string,
  other = "",
): void {
  if (fromEnd(tensor, headAxis) === nHeads || fromEnd(tensor, 5 - headAxis) !== nHeads) return;
  const [order, given] = headAxis === 2 ? ["token-major", "head-major"] : ["head-major", "token-major"];
  throw refused(
    argument,
    `expected ${order} ${axes}, got [${tensor.shape}], which looks ${given} for a cache of ${nHeads} heads${other}`,
  );
}

/** Refuses a tensor whose shape is not `expected`; `which` says of what else it is, such as `, that of q.x`. */
export function checkShapeIs(argument: string, { shape }: TensorRange, expected: readonly number[], which = ""): void {
  if (shape.length !== expected.length || shape.some((extent, axis) => extent !== expected[axis])) {
    throw refused(argument, `expected shape [${expected}]${which}, got [${shape}]`);
  }
}

/** The argument `nTokens`; unless given, the tokens from `srcTokOffset`, given as `givenOffset`, to the end of the source. */
export function checkTokens(nTokens: unknown, nSrcTokens: number, srcTokOffset: number, givenOffset: unknown): number {
  if (nTokens !== undefined) return checkU32(nTokens, "nTokens");
  if (givenOffset instanceof Parameter) {
    throw refused(
      "nTokens",
      `missing beside srcTokOffset, parameter ${givenOffset.name}: each run has tokens of its own`,
    );
  }
  if (srcTokOffset > nSrcTokens) {
    throw refused(
      "srcTokOffset",
      `${srcTokOffset} is beyond the ${nSrcTokens} tokens of the source`,
      "buffer-too-small",
    );
  }
  return nSrcTokens - srcTokOffset;
}

/** Refuses `value` where it leaves the signed 32 bits of the kernels' parameters. */
export function checkI32(value: number, argument: string, what: string): number {
  if (value > 0x7fff_ffff) throw refused(argument, `${what} ${value} exceeds ${0x7fff_ffff}`, "overflow");
  return value;
}

/**
 * The slots of a sequence: those of a plane of its cache, or, with a block table, those of as many pages as that has for
 * each sequence. Refused beyond the signed 32 bits of the kernels' parameters.
 */
export function slotsOfSequence(slotsOfPlane: number, blockTable: TensorRange | undefined): number {
  if (blockTable === undefined) return slotsOfPlane;
  return checkI32(slotsOfPlane * fromEnd(blockTable, 1), "blockTable", "the slots of a sequence,");
}

/** Refuses an extent of 0, and one that leaves the signed 32 bits of the kernels' parameters. */
export function checkExtent(extent: number, argument: string, axis: string): number {
  if (extent === 0) throw refused(argument, `${axis} is 0; it is at least 1`);
  return checkI32(extent, argument, axis);
}

/** Refuses tensors that share bytes. */
export function checkApart(argument: string, range: TensorRange, otherName: string, other: TensorRange): void {
  if (range.buffer !== other.buffer) return;
  const [start, end] = bytesOf(range);
  const [otherStart, otherEnd] = bytesOf(other);
  if (start < otherEnd && otherStart < end) {
    throw refused(
      argument,
      `${argument} and ${otherName} overlap in one buffer: bytes ${start} to ${end} and ${otherStart} to ${otherEnd}`,
    );
  }
}

function bytesOf({ offsetLow, offsetHigh, lengthLow, lengthHigh }: TensorRange): [start: number, end: number] {
  const start = offsetHigh * 2 ** 32 + offsetLow;
  return [start, start + lengthHigh * 2 ** 32 + lengthLow];
}
