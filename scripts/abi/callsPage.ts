import { readdirSync } from "node:fs";
import { join } from "node:path";

/** An operation as its file in `src/ops` declares it. */
interface Call {
  readonly name: string;
  /** Names of its arguments; `?` behind those that may be left out. */
  readonly args: readonly string[];
  /** The first sentence of its comment. */
  readonly does: string;
  readonly functions: readonly string[];
}

const begin = "<!-- operations, written by scripts/abi.ts -->\n";
const end = "<!-- end of operations -->";

/** The page with its table of operations as the sources in `folder` have them. */
export async function withOperations(page: string, folder: string): Promise<string> {
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"));
  const texts = await Promise.all(files.sort().map((file) => Bun.file(join(folder, file)).text()));
  const all = texts.join("\n");
  const rows = texts.flatMap((text) => calls(text, all)).map(row);
  const table = ["| call | does | in C |", "| --- | --- | --- |", ...rows].join("\n");
  const [before, rest = ""] = page.split(begin);
  return `${before}${begin}${table}\n${rest.slice(rest.indexOf(end))}`;
}

function row({ name, args, does, functions }: Call): string {
  const native = functions.map((each) => `\`${each}\``).join(", ");
  return `| \`${name}(pass, { ${args.join(", ")} })\` | ${does.replaceAll("|", "\\|")} | ${native} |`;
}

/** The operations that a file exports: functions of a pass and arguments, whose names `OptionNames` lists. */
function calls(text: string, all: string): Call[] {
  const pattern = /\/\*\*\n((?: \*.*\n)+?) \*\/\nexport function (\w+)\(pass: Pass, args: (\w+)\)/g;
  return [...text.matchAll(pattern)].map(([, comment = "", name = "", type = ""]) => {
    const list = new RegExp(`new OptionNames<${type}>\\("${name}", \\{([^}]*)\\}`).exec(text)?.[1];
    if (list === undefined) throw new Error(`${name} lists no names of its arguments`);
    const whole = list.replace(/\.\.\.(\w+)/, (_, shared: string) => sharedNames(shared, all));
    const names = [...whole.matchAll(/(\w+): true/g)].map(([, argument]) => argument as string);
    return {
      name,
      args: names.map((argument) => (isOptional(argument, names, text, all) ? `${argument}?` : argument)),
      does: firstSentence(comment),
      functions: [...new Set([...text.matchAll(/native\.(ma_\w+)\(/g)].map(([, each]) => each as string))],
    };
  });
}

/** The names that several calls have, by the name of their list. */
function sharedNames(name: string, all: string): string {
  return new RegExp(`const ${name} = \\{([^}]*)\\}`).exec(all)?.[1] ?? "";
}

/** Whether an argument may be left out: as its declaration says, or since a call has one stream or two. */
function isOptional(argument: string, names: readonly string[], text: string, all: string): boolean {
  const isOfStream = ["src", "cache", "packed", "norms", "out"].includes(argument);
  if (names.includes("k") && names.includes("v") && !names.includes("q") && (isOfStream || /^[kv]$/.test(argument))) {
    return true;
  }
  const declaration = new RegExp(`readonly ${argument}(\\??):`, "g");
  const own = [...text.matchAll(declaration)];
  // A call of one stream or two declares the streams' names in each form, in one of them as absent.
  return (own.length > 0 ? own : [...all.matchAll(declaration)].slice(0, 1)).some(([, mark]) => mark === "?");
}

function firstSentence(comment: string): string {
  const text = comment
    .replace(/^ \* ?/gm, "")
    .replace(/\n/g, " ")
    .replace(/\{@link (\w+)\}/g, "`$1`");
  return (/^(.*?[.:])(?: |$)/.exec(text)?.[1] ?? text).replace(/[.:]$/, "");
}
