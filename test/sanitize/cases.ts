/** What runs under the tools of compute-sanitizer: every operation at small sizes, on tensors in private storage. */
import fc from "fast-check";
import { allCases } from "../../scripts/fixtures/operations/all.ts";
import { runFixture } from "../../scripts/fixtures/run.ts";
import type { Device } from "../../src/index.ts";
import { kinds, programOf, Runner } from "../cache/programs.ts";
import { mistakes } from "./mistakes.ts";

/** A case that one process runs beside others. */
export interface SanitizedCase {
  /** Without spaces and colons. */
  readonly name: string;
  /** Whether it has a device of its own: scratch memory grows, and keeps what the case before left there. */
  readonly isAlone: boolean;
  /** What is wrong with its results; undefined where nothing is. Tells too by what it throws. */
  run(device: Device, folder: string): Promise<string | undefined> | string | undefined;
}

/** The cases of the fixtures, which reach every built-in kernel; each result is held against the oracle. */
const operationCases = (): SanitizedCase[] =>
  allCases().map((entry) => ({
    name: entry.name,
    isAlone: entry.operation.startsWith("flashAttn"),
    run: (device) => runFixture(device, entry.make(1), "private").fault,
  }));

/** Lines of a program of appends, attends, forks and cuts. */
const programLength = 12;

/** Random programs on each kind of cache, in private storage, beside a model. */
const cacheCases = (): SanitizedCase[] =>
  Object.entries(kinds)
    .filter(([, { storage }]) => storage !== "private")
    .map(([name, options]) => ({
      name: `KvCache.${name.replaceAll(" ", "-")}`,
      isAlone: true,
      async run(device, folder) {
        const runner = new Runner(device, { ...options, storage: "private" }, folder);
        for (const program of fc.sample(programOf(programLength), { seed: 14, numRuns: 2 })) await runner.run(program);
        return undefined;
      },
    }));

/** All that has to be clean under every tool. */
export const cleanCases = (): readonly SanitizedCase[] => [...operationCases(), ...cacheCases()];

/** Name of the case that has a planted mistake, and of the one that lacks it. */
export const plantedName = (mistake: { readonly name: string }, isPlanted: boolean): string =>
  `${isPlanted ? "planted" : "corrected"}.${mistake.name}`;

/** Cases for one tool each: mistakes, and the same kernels without. */
export const plantedCases = (): readonly SanitizedCase[] =>
  mistakes.flatMap((mistake) =>
    [true, false].map((isPlanted) => ({
      name: plantedName(mistake, isPlanted),
      isAlone: true,
      run(device: Device) {
        const fault = mistake.run(device, isPlanted);
        // With the mistake any result may come; the tool's report is what counts.
        return isPlanted ? undefined : fault;
      },
    })),
  );
