/** What a command printed, and its exit status. */
export interface Outcome {
  readonly status: number;
  readonly output: string;
  readonly messages: string;
}

/** Runs a command to its end. */
export async function run(command: readonly string[], env: Record<string, string> = {}): Promise<Outcome> {
  const child = Bun.spawn([...command], { env: { ...process.env, ...env }, stdout: "pipe", stderr: "pipe" });
  const [output, messages, status] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { status, output, messages };
}

/** Runs a command that must succeed; gives what it printed. */
export async function runChecked(command: readonly string[], env: Record<string, string> = {}): Promise<string> {
  const { status, output, messages } = await run(command, env);
  if (status !== 0) throw new Error(`${command.join(" ")} ended with ${status}:\n${messages}`);
  return output;
}
