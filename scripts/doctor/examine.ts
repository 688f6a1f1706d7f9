import type { Device, MetalAttentionErrorCode } from "../../src/index.ts";
import type { Case } from "../fixtures/operation.ts";
import { casesOfTwoForms } from "../fixtures/operations/all.ts";
import { runFixture } from "../fixtures/run.ts";
import { openWith } from "../lib/open-device.ts";
import { type Installation, inspectInstallation } from "./installation.ts";
import { mendOf, type Problem } from "./problems.ts";

/** What became of a case on the device. */
export interface CaseResult {
  readonly name: string;
  /** The operation's own that ran, in order. */
  readonly kernels: readonly string[];
  /** Undefined where the result is right. */
  readonly fault: string | undefined;
  /** Of the error that the fault is; undefined where the result is wrong. */
  readonly code: MetalAttentionErrorCode | undefined;
  /** Compiling included. */
  readonly seconds: number;
}

/** A built-in kernel, by name. `untried`: no case ran it. */
export interface KernelResult {
  readonly kernel: string;
  readonly state: "right" | "wrong" | "untried";
  /** The first case that was wrong, else the first that ran it. */
  readonly case: string | undefined;
}

/** All that the doctor found out. */
export interface Examination extends Installation {
  readonly kernels: readonly KernelResult[];
  /** Those that ran by the kernels which the device leaves out too: behind the others, named `NAME (other form)`. */
  readonly cases: readonly CaseResult[];
}

/** Whoever waits for an examination. */
export interface Watcher {
  /** The installation is known, and the kernels are about to run. */
  found(installation: Installation): void;
  /** A case is about to run; the action runs it. */
  run(name: string, action: () => CaseResult): CaseResult;
}

/**
 * Inspects the installation and runs `cases`, which should reach every built-in
 * kernel. Throws nothing: what is wrong becomes a problem.
 */
export function examine(cases: () => readonly Case[], watcher: Watcher): Examination {
  const { installation, device: opened } = inspectInstallation();
  using device = opened;
  watcher.found(installation);
  if (device === undefined) return { ...installation, kernels: [], cases: [] };
  const all = cases();
  const first = runCases(device, all, watcher);
  const others = device.info.backend === "SoftMetal" ? runOtherForms(all, first, watcher) : [];
  const results = [...first, ...others];
  const kernels = kernelResults(device.kernelNames.sort(), results);
  const problems = [...installation.problems, ...kernelProblems(kernels, results)];
  return { ...installation, kernels, cases: results, problems };
}

/** Those of two forms by the kernels that the device leaves out. */
function runOtherForms(
  cases: readonly Case[],
  results: readonly CaseResult[],
  watcher: Watcher,
): readonly CaseResult[] {
  // Where nothing runs there is nothing to add.
  if (results.every(({ fault }) => fault !== undefined)) return [];
  const byMatrices = results.some(({ kernels }) => kernels.some((kernel) => kernel.includes("_tq_matrices_")));
  using other = openWith({ SOFTMETAL_MATRIX_UNITS: byMatrices ? "0" : "1" });
  const others = casesOfTwoForms(cases).map((each) => ({ ...each, name: `${each.name} (other form)` }));
  return runCases(other, others, watcher);
}

const runCases = (device: Device, cases: readonly Case[], watcher: Watcher): readonly CaseResult[] =>
  cases.map((each) => watcher.run(each.name, () => runCase(device, each)));

function runCase(device: Device, each: Case): CaseResult {
  return { name: each.name, ...runFixture(device, each.make(1)) };
}

/** The state of each kernel, by the cases in which it is one of the operation's own. */
function kernelResults(names: readonly string[], results: readonly CaseResult[]): KernelResult[] {
  return names.map((kernel) => {
    const mine = results.filter(({ kernels }) => kernels.includes(kernel));
    const [first] = mine;
    const wrong = mine.find(({ fault }) => fault !== undefined);
    if (first === undefined) return { kernel, state: "untried", case: undefined };
    return { kernel, state: wrong === undefined ? "right" : "wrong", case: (wrong ?? first).name };
  });
}

/** One problem for all cases with the same remedy: where the compiler is missing, every case says so. */
function kernelProblems(kernels: readonly KernelResult[], results: readonly CaseResult[]): Problem[] {
  const faults = new Map<string, string[]>();
  for (const { name, fault, code } of results) {
    if (fault === undefined) continue;
    const mend = mendOf(code);
    faults.set(mend, [...(faults.get(mend) ?? []), `${name}: ${fault}`]);
  }
  const problems = [...faults].map(([mend, lines]): Problem => {
    return { what: `${lines.length} of ${results.length} cases went wrong\n${some(lines, "\n")}`, mend };
  });
  const untried = kernels.filter(({ state }) => state === "untried").map(({ kernel }) => kernel);
  if (untried.length > 0) {
    const mend = "where cases went wrong, mend that first; else the library is of another version than the package";
    problems.push({ what: `${untried.length} built-in kernels were not run: ${some(untried, ", ")}`, mend });
  }
  return problems;
}

/** The first few of a list. */
function some(items: readonly string[], separator: string): string {
  const shown = 5;
  const rest = items.length > shown ? [`and ${items.length - shown} more`] : [];
  return [...items.slice(0, shown), ...rest].join(separator);
}
