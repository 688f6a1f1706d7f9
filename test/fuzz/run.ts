import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Summary } from "./child.ts";
import { Trace } from "./trace.ts";

export interface FuzzOptions {
  readonly seconds: number;
  readonly seed: number;
  /** The session to begin with; 0 unless a failure is to be seen again. */
  readonly session?: number;
  readonly sessions?: number;
  /** Seconds without a new call after which the process counts as hung; 60 unless given. */
  readonly hangAfter?: number;
  /** Called about once a second with the calls made so far and the process that makes them. */
  readonly onProgress?: (calls: number, child: Bun.Subprocess) => void;
}

/** Seconds that one dispatch may take: long for those of the run, short for those that never end. */
const timeLimit = 2;

/** Runs calls in a process of its own; throws with the last of them when it crashes, hangs or finds a wrong answer. */
export async function fuzz(options: FuzzOptions): Promise<Summary> {
  const { seed, seconds, session = 0, sessions = Number.MAX_SAFE_INTEGER, hangAfter = 60 } = options;
  const folder = mkdtempSync(join(tmpdir(), "metal-attention-fuzz-"));
  try {
    const path = join(folder, "trace");
    const trace = Trace.create(path);
    const child = Bun.spawn(
      [process.execPath, join(import.meta.dir, "child.ts"), path, ...[seed, seconds, session, sessions].map(String)],
      { env: { ...process.env, SOFTMETAL_TIME_LIMIT: String(timeLimit) }, stdout: "pipe", stderr: "pipe" },
    );
    const hung = watch(trace, child, hangAfter, options.onProgress);
    const [output, errors, status] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ]);
    if (status === 0) return JSON.parse(output) as Summary;
    const reason = hung() ? `made no call for ${hangAfter} s` : String(child.signalCode ?? `status ${status}`);
    throw new Error(report(reason, trace, errors, seed));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Kills a process that makes no more calls; returns whether it did. */
function watch(
  trace: Trace,
  child: Bun.Subprocess,
  hangAfter: number,
  onProgress?: FuzzOptions["onProgress"],
): () => boolean {
  let [seen, idle, isHung] = [-1, 0, false];
  const timer = setInterval(() => {
    idle = trace.count === seen ? idle + 1 : 0;
    seen = trace.count;
    onProgress?.(seen, child);
    if (idle < hangAfter) return;
    isHung = true;
    child.kill("SIGKILL");
  }, 1000);
  child.exited.finally(() => clearInterval(timer));
  return () => isHung;
}

function report(reason: string, trace: Trace, errors: string, seed: number): string {
  return [
    `the fuzz run ended with ${reason}`,
    errors.trim(),
    "The last calls:",
    ...trace.last(12),
    `Again: bun run fuzz --seed ${seed} --session ${trace.session} --sessions 1`,
  ].join("\n");
}
