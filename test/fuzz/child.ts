/**
 * The process that makes the calls of a fuzz run, so that a crash ends it and
 * nobody else: `bun child.ts TRACE SEED SECONDS FIRST_SESSION MAX_SESSIONS`.
 * Prints one line of JSON, a `Summary`.
 */
import { loadLibrary } from "../../src/ffi/library.ts";
import { type Counts, processObjects, Session } from "./session.ts";
import { Trace } from "./trace.ts";

/** Calls of a session; then all is closed and checked. */
const sessionCalls = 5_000;
/** Sessions before growth counts. */
const warmUp = 4;
/** Sessions at either end of which the least counts: the collector of JavaScript lets memory go up and down. */
const compared = 3;

export interface Summary {
  readonly calls: number;
  readonly sessions: number;
  /** Since the end of the first session. */
  readonly seconds: number;
  readonly counts: Counts;
  /** From the end of the warm-up to the end of the run; undefined for a run that was shorter. */
  readonly growth?: Resources;
}

export interface Resources {
  /** Memory of the process. */
  readonly residentBytes: number;
  readonly threads: number;
  /** Open files. */
  readonly files: number;
}

const [path = "", ...numbers] = process.argv.slice(2);
const [seed = 0, seconds = 0, firstSession = 0, maxSessions = 0] = numbers.map(Number);
const trace = Trace.open(path);
const native = loadLibrary();
const counts: Counts = {};

function resources(): Resources {
  Bun.gc(true);
  return { residentBytes: process.memoryUsage.rss(), ...processObjects() };
}

function growth(history: readonly Resources[]): Resources {
  const least = (of: readonly Resources[], field: keyof Resources) => Math.min(...of.map((each) => each[field]));
  const change = (field: keyof Resources) =>
    least(history.slice(-compared), field) - least(history.slice(0, compared), field);
  return { residentBytes: change("residentBytes"), threads: change("threads"), files: change("files") };
}

let started = performance.now();
const history: Resources[] = [];
let sessions = 0;
while (sessions < maxSessions && performance.now() - started < seconds * 1000) {
  const session = new Session(native, (seed + (firstSession + sessions) * 0x9e3779b1) >>> 0, trace, counts);
  trace.session = firstSession + sessions;
  session.run(sessionCalls);
  session.close();
  // The first compiles the kernels, which may take longer than all the rest.
  if (sessions === 0) started = performance.now();
  sessions++;
  if (sessions > warmUp) history.push(resources());
}
const summary: Summary = {
  calls: sessions * sessionCalls,
  sessions,
  seconds: (performance.now() - started) / 1000,
  counts,
  ...(history.length < 2 * compared ? {} : { growth: growth(history) }),
};
console.log(JSON.stringify(summary));
