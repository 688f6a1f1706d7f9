/** What a program printed, and its exit status. */
export interface Outcome {
  readonly status: number;
  readonly output: string;
  readonly errors: string;
}

/** This process's environment for programs whose words are compared: they colour none, whatever the caller's says. */
export const plainEnvironment: Readonly<Record<string, string | undefined>> = {
  ...process.env,
  FORCE_COLOR: undefined,
  NO_COLOR: "1",
};

/** The same for programs that compile built-in kernels: with this checkout's library, beside which none lie compiled. */
export const compilingEnvironment: Readonly<Record<string, string | undefined>> = {
  ...plainEnvironment,
  METAL_ATTENTION_LIBRARY: undefined,
};

/** Where a program runs, and its whole environment; {@link plainEnvironment} unless given. */
export interface Place {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
}

/** Runs a program to its end. */
export async function run(command: readonly string[], place: Place = {}): Promise<Outcome> {
  const child = Bun.spawn([...command], { env: plainEnvironment, ...place, stdout: "pipe", stderr: "pipe" });
  const [output, errors, status] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { status, output, errors };
}

/** Runs a program that must succeed; gives what it printed. */
export async function runChecked(command: readonly string[], place?: Place): Promise<string> {
  const { status, output, errors } = await run(command, place);
  if (status !== 0) throw new Error(`${command.join(" ")} ended with ${status}:\n${errors}`);
  return output;
}
