import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { symbols } from "../../src/ffi/generated/symbols.ts";
import { loadLibrary, type Native } from "../../src/ffi/library.ts";
import { fuzz } from "./run.ts";
import { Session, table } from "./session.ts";
import { Trace } from "./trace.ts";

const mebibyte = 2 ** 20;

test("the fuzz run calls every function of the C ABI", () => {
  const called = table.map(({ name }) => name);
  // Called as the library is loaded, and after every refusal: what they return is no status.
  expect(new Set([...called, "ma_abi_version", "ma_last_error"])).toEqual(new Set(Object.keys(symbols)));
});

test("80,000 random calls: no crash, no hang, no leak, a typed status for each", async () => {
  // Counted, not timed: a busy machine makes fewer calls a second.
  const { calls, counts, growth } = await fuzz({ seconds: 250, sessions: 16, seed: 1 });
  expect(calls).toBe(80_000);
  for (const { name } of table) {
    const { ok, refused } = counts[name] ?? { ok: 0, refused: 0 };
    // A hold is let go where it was taken, which is not counted; kernels made up at random are none.
    if (name !== "ma_hold_release" && name !== "ma_kernels_provide")
      expect({ name, ok: ok > 0 }).toEqual({ name, ok: true });
    // Devices are opened and closed too seldom to be sure of a refusal; what a collector calls refuses nothing.
    if (!name.startsWith("ma_device_") && name !== "ma_buffer_collected")
      expect({ name, refused: refused > 0 }).toEqual({ name, refused: true });
  }
  const sum = (outcome: "ok" | "refused") => Object.values(counts).reduce((total, count) => total + count[outcome], 0);
  expect(sum("ok")).toBeGreaterThan(calls / 4);
  expect(sum("refused")).toBeGreaterThan(calls / 4);
  expect(counts["ma_pass_commit"]?.ok).toBeGreaterThan(200);
  expect(growth?.residentBytes).toBeLessThan(16 * mebibyte);
  expect(growth?.threads).toBeLessThanOrEqual(2);
  expect(growth?.files).toBeLessThanOrEqual(0);
}, 300_000);

// Mistakes planted in the library: the run must see each.

/** The library with `ma_buffer_info` changed. */
function withBufferInfo(change: (status: number, length: Uint8Array) => number): Native {
  const native = loadLibrary();
  const changed = (handle: number, length: Uint8Array, contents: Uint8Array) =>
    change(native.ma_buffer_info(handle, length, contents), length);
  return { ...native, ma_buffer_info: changed as Native["ma_buffer_info"] };
}

test.each([
  { what: "accepts every handle", change: () => 0, seen: "MA_OK for a call that has to be refused" },
  { what: "gives a code of its own", change: (status) => status && -99, seen: "-99, which the header does not list" },
  { what: "refuses what is valid", change: () => -2, seen: "left the message|for a valid call" },
  {
    what: "writes before it refuses",
    change: (status, length) => {
      length[0] = 0;
      return status;
    },
    seen: "failed and yet wrote a result",
  },
] satisfies readonly { what: string; change: Parameters<typeof withBufferInfo>[0]; seen: string }[])(
  "a function that $what is found",
  ({ change, seen }) => {
    const folder = mkdtempSync(join(tmpdir(), "metal-attention-fuzz-"));
    const session = new Session(withBufferInfo(change), 1, Trace.create(join(folder, "trace")), {});
    expect(() => session.run(20_000)).toThrow(new RegExp(seen));
    session.close();
    rmSync(folder, { recursive: true });
  },
);

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
