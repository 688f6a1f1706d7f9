import { expect, test } from "bun:test";
import { resolve } from "node:path";

/** Runs a script that has `progress` and `Bun` in reach, and gives what it printed on standard error. */
function run(body: string): { exitCode: number; stderr: string } {
  const module = resolve(import.meta.dir, "../../scripts/lib/progress.ts");
  const script = `import { Progress } from ${JSON.stringify(module)}; using progress = new Progress(); ${body}`;
  const { exitCode, stderr } = Bun.spawnSync([process.execPath, "-e", script]);
  return { exitCode, stderr: stderr.toString() };
}

test("a step that blocks the thread for seconds has a line for each, and none after its end", () => {
  const { exitCode, stderr } = run(
    'const end = () => { Bun.sleepSync(500); require("node:fs").writeSync(2, "end\\n"); Bun.sleepSync(1200); };' +
      'progress.run("slow step", () => Bun.sleepSync(2500)); end();',
  );
  expect(exitCode).toBe(0);
  // A busy machine makes the step last longer, or its lines come late.
  expect(stderr).toMatch(/^ {4}slow step: 1 s\n( {4}slow step: 2 s\n( {4}slow step: 3 s\n)?)?end\n$/);
}, 20_000);

test("a step that waits has lines too; its result and its error come through", () => {
  const { exitCode, stderr } = run(
    'if ((await progress.wait("waiting", () => Bun.sleep(2500).then(() => 7))) !== 7) process.exit(3);' +
      'try { progress.run("failing", () => { throw new Error("no"); }); } catch { process.exit(4); }',
  );
  expect(stderr).toMatch(/^ {4}waiting: 1 s\n/);
  expect(exitCode).toBe(4);
}, 20_000);

test("a short step has none", () => {
  expect(run('progress.run("short", () => Bun.sleepSync(100));')).toEqual({ exitCode: 0, stderr: "" });
}, 20_000);
