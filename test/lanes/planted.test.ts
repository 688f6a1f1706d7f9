/** Mistakes planted in the compiler pass: each makes some small kernel wrong. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runChecked } from "../helpers/run.ts";
import { compileProgram, expectedOf, laneCounts, programs } from "./programs.ts";

const sources = join(import.meta.dir, "../../swift/Sources/CSoftMetal/lanes");
const folder = mkdtempSync(join(tmpdir(), "planted-"));
afterAll(() => rmSync(folder, { recursive: true }));

interface Mistake {
  readonly what: string;
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

const mistakes: readonly Mistake[] = [
  {
    what: "a mask not applied to a store",
    file: "Memory.cpp",
    find: "CreateMaskedStore(all, base, access.align, wideMask(words))",
    replace: "CreateMaskedStore(all, base, access.align, splat(builder_.getTrue(), width * words.step))",
  },
  {
    what: "the lanes of the first register for those of each",
    file: "ByRegister.cpp",
    find: "const uint64_t offset = part *",
    replace: "const uint64_t offset = 0 *",
  },
  {
    what: "the first register's results for those of each",
    file: "ByRegister.cpp",
    find: "parts.push_back(partOf(result, part, builder));",
    replace: "parts.push_back(partOf(result, 0, builder));",
  },
  {
    what: "a loop left when the first lane leaves",
    file: "FullLoops.cpp",
    find: "branch->replaceSuccessorWith(exit, between);",
    replace: "",
  },
  {
    what: "lanes of another turn taken for those that come to a block",
    file: "Blocks.cpp",
    find: "postDominators.dominates(block, dominator) && isInTurn(loops, dominator, block)",
    replace: "postDominators.dominates(block, dominator)",
  },
  {
    what: "a phi taken from the wrong side",
    file: "Widen.cpp",
    find: "CreateSelect(lanes, value, builder_.CreateLoad(value->getType(), slots[i]))",
    replace: "CreateSelect(lanes, builder_.CreateLoad(value->getType(), slots[i]), value)",
  },
  {
    what: "a uniform value that is not",
    file: "Shapes.cpp",
    find: "if (value != first) return Shape::different();",
    replace: "(void)first;",
  },
  {
    what: "lanes of a run taken to be there together",
    file: "RunShapes.cpp",
    find: "condition.isUniformInRuns() ? condition.lanesOfRun() : 1);\n        }",
    replace: "width);\n        }",
  },
  {
    what: "lanes of a run taken to come by one edge",
    file: "RunShapes.cpp",
    find: "condition.isUniformInRuns() ? condition.lanesOfRun() : 1);\n  }",
    replace: "width);\n  }",
  },
  {
    what: "a run accessed where the first of them lies",
    file: "Runs.cpp",
    find: "inLane(pointer, lane / access.run * access.run)",
    replace: "inLane(pointer, 0)",
  },
  {
    what: "a loop that begins an iteration anew",
    file: "FullLoops.cpp",
    find: "if (any_of(*header, [](const Instruction &instruction) { return instruction.mayHaveSideEffects(); })) continue;",
    replace: "",
  },
];

const names = readdirSync(sources).sort();
const textOf = (name: string) => Bun.file(join(sources, name)).text();

/** Runs the compiler with LLVM's headers at hand. */
async function compile(...words: readonly string[]): Promise<void> {
  const headers = (await runChecked(["llvm-config-19", "--includedir"])).trim();
  const options = ["-std=c++17", "-O0", "-fPIC", "-fno-rtti", "-fexceptions", "-DNDEBUG", "-w"];
  await runChecked(["clang++-19", ...options, "-isystem", headers, ...words]);
}

/** The headers that are not the pass's own, compiled once for all mistakes: half of each compilation else. */
const compiledHeaders = join(folder, "headers.pch");
beforeAll(async () => {
  if (process.platform !== "linux") return;
  const texts = await Promise.all(names.map(textOf));
  const included = new Set(texts.join("\n").match(/^#include (?:<|"llvm\/).*$/gm));
  const header = join(folder, "headers.hpp");
  await Bun.write(header, [...included, ""].join("\n"));
  await compile("-x", "c++-header", "-fpch-instantiate-templates", header, "-o", compiledHeaders);
}, 120_000);

/** The pass with a mistake in it. */
async function plant({ file, find, replace }: Mistake): Promise<string> {
  const copy = mkdtempSync(join(folder, "lanes-"));
  for (const name of names) {
    const text = await textOf(name);
    if (name === file && text.split(find).length !== 2) throw new Error(`${file} has not once: ${find}`);
    await Bun.write(join(copy, name), name === file ? text.replace(find, replace) : text);
  }
  const unit = join(copy, "all.cpp");
  const units = names.filter((name) => name.endsWith(".cpp"));
  await Bun.write(unit, units.map((name) => `#include "${name}"\n`).join(""));
  const plugin = join(copy, "lanes.so");
  await compile("-shared", "-include-pch", compiledHeaders, unit, "-o", plugin);
  return plugin;
}

/** Whether any program comes out wrong. */
async function isFound(plugin: string): Promise<boolean> {
  for (const name of Object.keys(programs)) {
    const program = await compileProgram(name, plugin, folder);
    for (const lanes of laneCounts) if (isWrong(() => program(lanes), expectedOf(name, lanes))) return true;
  }
  return false;
}

/** Whether a program leaves other words, or others with where its memory lies, which it throws. */
function isWrong(run: () => number[], expected: number[]): boolean {
  try {
    return !Bun.deepEquals(run(), expected);
  } catch {
    return true;
  }
}

if (process.platform === "linux")
  test.each(mistakes.map((mistake) => [mistake.what, mistake] as const))(
    "%s",
    async (_, mistake) => {
      expect(await isFound(await plant(mistake))).toBe(true);
    },
    120_000,
  );
