/** `bun run fuzz`: random calls of the C ABI, in a process of their own. */
import { parseArgs } from "node:util";
import { fuzz } from "./run.ts";

const usage = `Usage: bun run fuzz [--seconds N] [--seed S] [--session N] [--sessions N]

  --seconds   how long to make calls; 300 unless given
  --seed      what decides them; made up, and printed, unless given
  --session   the session to begin with, as a failure names it
  --sessions  how many, at most
`;

function refuse(reason: string): never {
  console.error(`${reason}\n\n${usage}`);
  process.exit(2);
}

function number(name: string, text: string | undefined, fallback: number): number {
  const value = text === undefined ? fallback : Number(text);
  if (Number.isSafeInteger(value) && value >= 0) return value;
  return refuse(`--${name} is "${text}"; expected a whole number`);
}

function options() {
  try {
    return parseArgs({
      options: {
        seconds: { type: "string" },
        seed: { type: "string" },
        session: { type: "string" },
        sessions: { type: "string" },
        help: { type: "boolean" },
      },
    }).values;
  } catch (error) {
    return refuse(error instanceof Error ? error.message : String(error));
  }
}

const values = options();
if (values.help) {
  console.log(usage);
  process.exit(0);
}
const seconds = number("seconds", values.seconds, 300);
const seed = number("seed", values.seed, Math.floor(Math.random() * 2 ** 32));
console.log(`seed ${seed}, ${seconds} s`);
try {
  const summary = await fuzz({
    seconds,
    seed,
    session: number("session", values.session, 0),
    sessions: number("sessions", values.sessions, Number.MAX_SAFE_INTEGER),
    ...(process.stdout.isTTY ? { onProgress: (calls) => process.stdout.write(`\r${calls} calls`) } : {}),
  });
  if (process.stdout.isTTY) process.stdout.write("\r");
  for (const [name, { ok, refused }] of Object.entries(summary.counts)) {
    console.log(`${name.padEnd(28)} ${String(ok).padStart(9)} ok ${String(refused).padStart(9)} refused`);
  }
  const { calls, sessions, growth } = summary;
  console.log(`${calls} calls in ${sessions} sessions, ${Math.round(calls / summary.seconds)} a second`);
  if (growth !== undefined) {
    const { residentBytes, threads, files } = growth;
    console.log(`since the warm-up: ${(residentBytes / 2 ** 20).toFixed(1)} MiB, ${threads} threads, ${files} files`);
  }
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exit(1);
}
