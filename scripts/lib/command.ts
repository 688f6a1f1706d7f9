/** Programs with commands: where arguments are read and `--help` is written. */
import { type ParseArgsOptionsConfig, parseArgs } from "node:util";
import { version } from "../../package.json";

/** An option as `parseArgs` takes it, and what `--help` says of it. */
type Options = Readonly<
  Record<string, ParseArgsOptionsConfig[string] & { readonly value?: string; readonly help: string }>
>;

type Values<O extends Options> = ReturnType<typeof parseArguments<O>>["values"];

/** A command of a program. */
export interface CommandOf<O extends Options> {
  readonly name: string;
  /** One line. */
  readonly summary: string;
  /** Arguments that are no options, by the names that `--help` gives them; all are needed. */
  readonly positionals?: readonly string[];
  readonly options: O;
  /** Returns the exit status. */
  run(values: Values<O>, positionals: readonly string[]): Promise<number>;
}

/** A command with its options hidden. */
export interface Command {
  readonly name: string;
  readonly summary: string;
  readonly help: string;
  run(args: readonly string[], program: string): Promise<number>;
}

/** The arguments are at fault; the message says how. */
export class UsageError extends Error {}

/** Makes a command of its definition. */
export function command<const O extends Options>(definition: CommandOf<O>): Command {
  const { name, summary, positionals: expected = [], options } = definition;
  return {
    name,
    summary,
    help: helpOf(definition),
    async run(args, program) {
      if (args.includes("--help") || args.includes("-h")) {
        console.log(`usage: ${program} ${helpOf(definition).trimStart()}`);
        return 0;
      }
      if (args.includes("--version")) return showVersion(program);
      const { values, positionals } = parseArguments(args, options);
      if (positionals.length !== expected.length) {
        const needed = expected.length === 0 ? "no argument" : expected.join(" ");
        throw new UsageError(`expected ${needed}, got ${positionals.length === 0 ? "none" : positionals.join(" ")}`);
      }
      return definition.run(values, positionals);
    },
  };
}

/** `parseArgs`, whose errors are of usage. */
export function parseArguments<const O extends ParseArgsOptionsConfig>(args: readonly string[], options: O) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error), { cause: error });
  }
}

function helpOf({ name, summary, positionals = [], options }: CommandOf<Options>): string {
  const flags = Object.entries(options).map(([option, { value, help, multiple }]) => {
    return [
      `--${option}${value === undefined ? "" : ` ${value}`}`,
      `${help}${multiple ? "; may be repeated" : ""}`,
    ] as const;
  });
  const width = Math.max(0, ...flags.map(([flag]) => flag.length));
  return [
    `  ${[name, ...positionals].join(" ")}`,
    `      ${summary}`,
    ...flags.map(([flag, help]) => `      ${flag.padEnd(width)}  ${help}`),
  ].join("\n");
}

/** A program and its commands. */
export interface Program {
  readonly name: string;
  readonly summary: string;
  readonly commands: readonly Command[];
}

/** A text that may hold names out of files, for a terminal: no control characters, and later lines indented. */
export function printable(text: string): string {
  return text.replaceAll("\n", "\n    ").replace(/[^\P{Cc}\n]/gu, "?");
}

/** Runs the command that `args` begin with, as {@link runMain} does. */
export async function runProgram(program: Program, args: readonly string[]): Promise<number> {
  const { name, commands } = program;
  const [first, ...rest] = args;
  // What follows the command is for it to answer.
  return runMain(name, args.slice(0, 1), async () => {
    if (first === "--help" || first === "-h") {
      const helps = commands.map((each) => each.help).join("\n\n");
      const about = `${program.summary} --version says which version this is.`;
      console.log(`usage: ${name} COMMAND [OPTIONS]\n\n${about}\n\n${helps}\n`);
      return 0;
    }
    const chosen = commands.find((each) => each.name === first);
    if (chosen === undefined) {
      const got = first === undefined ? "no command" : `no command ${JSON.stringify(first)}`;
      throw new UsageError(`${got}; there are ${commands.map((each) => each.name).join(", ")}`);
    }
    return await chosen.run(rest, name);
  });
}

function showVersion(name: string): number {
  console.log(`${name} ${version}`);
  return 0;
}

/**
 * Runs a program and returns the exit status: that of `main`, 1 where it
 * throws, 2 for arguments that cannot be understood. Answers `--version`.
 */
export async function runMain(
  name: string,
  args: readonly string[],
  main: (args: readonly string[]) => Promise<number>,
): Promise<number> {
  try {
    if (args.includes("--version")) return showVersion(name);
    return await main(args);
  } catch (error) {
    const message = printable(error instanceof Error ? error.message : String(error));
    if (!(error instanceof UsageError)) {
      console.error(`${name}: ${message}`);
      return 1;
    }
    console.error(`${name}: ${message}\nSee ${name} --help.`);
    return 2;
  }
}
