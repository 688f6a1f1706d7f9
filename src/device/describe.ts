import type { DispatchForm, Extent3 } from "../ffi/records.ts";
import { checkStatus } from "../ffi/status.ts";
import { readText } from "../ffi/text.ts";
import { inspectSymbol } from "./inspect.ts";
import type { PassLifetime } from "./lifetime.ts";

/** A byte range of a buffer that a dispatch reads or writes. */
export interface BufferRange {
  /** Number of the buffer, the same for a tensor and its slices. */
  readonly buffer: number;
  /** Bytes. */
  readonly offset: number;
  /** Bytes. */
  readonly length: number;
}

/** One dispatch of a pass, as `Pass.describe` gives it. */
export interface DispatchDescription {
  /** Kind of operation. */
  readonly op: string;
  /** Name of the kernel that runs. */
  readonly kernel: string;
  /** What runs it: `GPU`, or on the software device `loop`, `vectors`, or `threads` with the reason. */
  readonly executor: string;
  /** What `grid` counts. */
  readonly form: DispatchForm;
  readonly grid: Extent3;
  readonly threadsPerThreadgroup: Extent3;
  readonly reads: readonly BufferRange[];
  readonly writes: readonly BufferRange[];
  /** Whether the dispatch waits for those before it. */
  readonly barrierBefore: boolean;
  /** The device's time, of a pass that was profiled and has completed. */
  readonly microseconds?: number | undefined;
  /**
   * Where that time was sampled: `dispatch`, between dispatches, or `stage`, where an encoder begins and ends, of which
   * each dispatch then has its own.
   */
  readonly sampledAt?: "dispatch" | "stage" | undefined;
  /** Bytes of `reads` and `writes` in that time, in 10^9 a second. */
  readonly gbPerSecond?: number | undefined;
}

/** A dispatch with the times of its start and its end in seconds, where they are known. */
export type TimedDispatch = DispatchDescription & { readonly startTime?: number; readonly endTime?: number };

/** As a cell of `console.table` shows it. */
class PrintedRange implements BufferRange {
  readonly buffer: number;
  readonly offset: number;
  readonly length: number;

  constructor({ buffer, offset, length }: BufferRange) {
    this.buffer = buffer;
    this.offset = offset;
    this.length = length;
  }

  [inspectSymbol](): string {
    return `${this.buffer}: ${this.offset} + ${this.length}`;
  }
}

/** @internal The dispatches of a pass with their times. */
export function timedDispatches({ native, handle }: PassLifetime): TimedDispatch[] {
  const json = readText((buffer, capacity, needed) =>
    checkStatus(native, native.ma_pass_describe(handle, buffer, capacity, needed)),
  );
  return (JSON.parse(json) as TimedDispatch[]).map((dispatch) => {
    const reads = dispatch.reads.map((range) => new PrintedRange(range));
    const writes = dispatch.writes.map((range) => new PrintedRange(range));
    const { startTime, endTime } = dispatch;
    if (startTime === undefined || endTime === undefined) return { ...dispatch, reads, writes };
    const seconds = endTime - startTime;
    const rates = { microseconds: rounded(seconds * 1e6), gbPerSecond: rounded(bytesOf(dispatch) / seconds / 1e9) };
    return { ...dispatch, reads, writes, ...rates };
  });
}

/** @internal The dispatches of a pass. */
export function describePass(pass: PassLifetime): DispatchDescription[] {
  return timedDispatches(pass).map(({ startTime, endTime, ...dispatch }) => dispatch);
}

/** Bytes that a dispatch reads and writes, as far as its arguments tell. */
export function bytesOf({ reads, writes }: DispatchDescription): number {
  return [...reads, ...writes].reduce((sum, { length }) => sum + length, 0);
}

/** To four digits, for people. */
function rounded(value: number): number {
  return Number.isFinite(value) ? Number(value.toPrecision(4)) : 0;
}
