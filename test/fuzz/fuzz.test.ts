import { expect, test } from "bun:test";
import { symbols } from "../../src/ffi/symbols.ts";
import { fuzz } from "./run.ts";
import { table } from "./session.ts";

const mebibyte = 2 ** 20;

test("the fuzz run calls every function of the C ABI", () => {
  const called = table.map(({ name }) => name);
  // Read after every refusal.
  expect(new Set([...called, "ma_last_error"])).toEqual(new Set(Object.keys(symbols)));
});

test("20 s of random calls: no crash, no hang, no leak, a typed status for each", async () => {
  const { calls, counts, growth } = await fuzz({ seconds: 20, seed: 1 });
  expect(calls).toBeGreaterThanOrEqual(50_000);
  for (const { name } of table) {
    const { ok, refused } = counts[name] ?? { ok: 0, refused: 0 };
    expect({ name, ok: ok > 0 }).toEqual({ name, ok: true });
    // Devices are opened and closed too seldom to be sure of a refusal.
    if (!name.startsWith("ma_device_")) expect({ name, refused: refused > 0 }).toEqual({ name, refused: true });
  }
  const sum = (outcome: "ok" | "refused") => Object.values(counts).reduce((total, count) => total + count[outcome], 0);
  expect(sum("ok")).toBeGreaterThan(calls / 4);
  expect(sum("refused")).toBeGreaterThan(calls / 4);
  expect(counts["ma_pass_commit"]?.ok).toBeGreaterThan(200);
  expect(growth?.residentBytes).toBeLessThan(16 * mebibyte);
  expect(growth?.threads).toBeLessThanOrEqual(2);
  expect(growth?.files).toBeLessThanOrEqual(0);
}, 300_000);

const endings = [
  { what: "a crash", signal: "SIGSEGV", reason: "SIGSEGV" },
  { what: "a hang", signal: "SIGSTOP", reason: "made no call for 2 s" },
] as const;

test.each(endings)("$what is reported with the last calls, the seed and the session", async ({ signal, reason }) => {
  let sent = false;
  const run = fuzz({
    seconds: 60,
    seed: 7,
    hangAfter: 2,
    onProgress: (calls, child) => {
      if (calls > 0 && !sent) child.kill(signal);
      sent ||= calls > 0;
    },
  });
  const message = await run.then(
    () => "the run ended well",
    (error: Error) => error.message,
  );
  expect(message).toContain(`the fuzz run ended with ${reason}`);
  expect(message).toMatch(/^#\d+ ma_\w+\(.*\) expecting (ok|refused|any)$/m);
  expect(message).toMatch(/^Again: bun run fuzz --seed 7 --session \d+ --sessions 1$/m);
});
