/** Draws a file that `pass.trace` wrote: bun scripts/trace-picture.ts TRACE.json OUT.svg */
import type { TraceEvent } from "../src/device/trace.ts";
import { laneChart } from "./lib/chart.ts";

const [from, to] = process.argv.slice(2);
if (from === undefined || to === undefined) {
  console.error("usage: bun scripts/trace-picture.ts TRACE.json OUT.svg");
  process.exit(2);
}
const { traceEvents } = (await Bun.file(from).json()) as { readonly traceEvents: readonly TraceEvent[] };
const spans = traceEvents.filter(({ ph }) => ph === "X");
const first = Math.min(...spans.map(({ ts = 0 }) => ts));
const processes = new Map(
  traceEvents.filter(({ name }) => name === "process_name").map(({ pid, args }) => [pid, String(args["name"])]),
);
const lanes = traceEvents
  .filter(({ name }) => name === "thread_name")
  .map(({ pid, tid, args }) => ({
    name: `${pid === 1 ? processes.get(pid) : "device"}: ${args["name"]}`,
    spans: spans
      .filter((span) => span.pid === pid && span.tid === tid)
      .map(({ ts = 0, dur = 0 }) => [ts - first, ts - first + dur] as const),
  }));
await Bun.write(
  to,
  laneChart({
    title: "A profiled pass",
    subtitle: `on ${processes.get(2)}`,
    xTitle: "microseconds",
    lanes,
  }),
);
