import { join } from "node:path";

/** Runs `bun` on a script of this folder with arguments, waits, and gives what it printed. Throws when it fails. */
export function runChild(
  script: string,
  environment: Readonly<Record<string, string>> = {},
  args: readonly string[] = [],
): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync([process.execPath, join(import.meta.dir, script), ...args], {
    env: { ...process.env, ...environment },
  });
  if (exitCode !== 0) throw new Error(`${script} ended with status ${exitCode}: ${stderr.toString().trim()}`);
  return stdout.toString();
}
