import type { PassInfo } from "../ffi/records.ts";
import { bytesOf, type TimedDispatch } from "./describe.ts";

/** @internal What Chrome's trace format calls a complete event; times in microseconds. */
export interface TraceEvent {
  readonly name: string;
  readonly ph: "X" | "M";
  readonly pid: number;
  readonly tid: number;
  readonly ts?: number | undefined;
  readonly dur?: number | undefined;
  readonly args: Readonly<Record<string, unknown>>;
}

const [host, device] = [1, 2];
const [encoding, queued, running] = [1, 2, 3];

/**
 * A pass in Chrome's trace format: on the host the time in which it was
 * encoded, and in which it waited for the device; on the device the pass, and
 * a lane for each kind of operation.
 */
export function traceOf(deviceName: string, info: PassInfo, dispatches: readonly TimedDispatch[]): string {
  const { openTime, commitTime, gpuStartTime, gpuEndTime } = info;
  const lanes = [...new Set(dispatches.map(({ op }) => op))];
  const timed = dispatches.flatMap((dispatch) => {
    const { op, kernel, grid, threadsPerThreadgroup, form, barrierBefore, startTime, endTime, gbPerSecond } = dispatch;
    if (startTime === undefined || endTime === undefined) return [];
    const args = {
      op,
      grid,
      form,
      threadsPerThreadgroup,
      barrierBefore,
      bytes: bytesOf(dispatch),
      "GB/s": gbPerSecond,
    };
    return [span(device, running + 1 + lanes.indexOf(op), kernel, startTime, endTime, args)];
  });
  const traceEvents: TraceEvent[] = [
    name("process_name", host, 0, "host"),
    name("thread_name", host, encoding, "encode"),
    name("thread_name", host, queued, "queue"),
    name("process_name", device, 0, deviceName),
    name("thread_name", device, running, "pass"),
    ...lanes.map((op, lane) => name("thread_name", device, running + 1 + lane, op)),
    span(host, encoding, `encode ${dispatches.length} dispatches`, openTime, commitTime),
    span(host, queued, "queue", commitTime, Math.max(commitTime, gpuStartTime)),
    span(device, running, "pass", gpuStartTime, gpuEndTime),
    ...timed,
  ];
  return `${JSON.stringify({ displayTimeUnit: "ns", traceEvents })}\n`;
}

function span(pid: number, tid: number, label: string, start: number, end: number, args = {}): TraceEvent {
  return { name: label, ph: "X", pid, tid, ts: start * 1e6, dur: (end - start) * 1e6, args };
}

/** Names a process or a thread. */
function name(kind: "process_name" | "thread_name", pid: number, tid: number, label: string): TraceEvent {
  return { name: kind, ph: "M", pid, tid, args: { name: label } };
}
