import { release } from "node:os";
import manifest from "../../package.json";
import { checkLayouts } from "../../src/ffi/layout-check.ts";
import { libraryVariable, searchLibrary } from "../../src/ffi/library.ts";
import { abiVersion } from "../../src/ffi/symbols.ts";
import { Device, type DeviceInfo, MetalAttentionError, type MetalAttentionErrorCode } from "../../src/index.ts";
import type { Case } from "../fixtures/operation.ts";
import { runFixture } from "../fixtures/run.ts";

/** Something wrong, and how to mend it. */
export interface Problem {
  readonly what: string;
  readonly mend: string;
}

/** What became of a case on the device. */
export interface CaseResult {
  readonly name: string;
  /** That ran, in order; the last is the operation's own. */
  readonly kernels: readonly string[];
  /** Undefined where the result is right. */
  readonly fault: string | undefined;
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
export interface Examination {
  readonly versions: Readonly<Record<string, string>>;
  /** Variables of the environment that the library reads, where they are set. */
  readonly settings: Readonly<Record<string, string>>;
  readonly library: { readonly places: readonly string[]; readonly abiVersion: number | undefined };
  readonly device: DeviceInfo | undefined;
  /** Structs whose layouts were compared. */
  readonly structs: number;
  readonly kernels: readonly KernelResult[];
  readonly cases: readonly CaseResult[];
  readonly problems: readonly Problem[];
}

const report = "report it with the file that --report writes";
const mends: Readonly<Partial<Record<MetalAttentionErrorCode, string>>> = {
  "library-not-found": `run scripts/setup in the folder of the package, or name a library in ${libraryVariable}`,
  "abi-mismatch": `build the library again with scripts/setup, or install package and library of one version; unset ${libraryVariable} if it names an old one`,
  "device-unavailable":
    "on a Mac, run in a session that has the GPU (not in a sandbox); on Linux, see what the message says of the software device",
  "shader-compilation":
    "on Linux, install clang 18 or newer or name one in SOFTMETAL_CLANG; with a newer one, or on a Mac, report it",
  "out-of-memory": "free memory, or close what else uses the GPU",
};

/** What to do about an error. */
function problemOf(error: unknown): Problem {
  const what = error instanceof Error ? error.message : String(error);
  const mend = error instanceof MetalAttentionError ? mends[error.code] : undefined;
  return { what, mend: mend ?? report };
}

/** How an examination goes on, for whoever waits. */
export interface Watcher {
  /** A case is about to run; the action runs it. */
  run(name: string, action: () => CaseResult): CaseResult;
}

/**
 * Looks for the library, opens the device, compares layouts, and runs `cases`,
 * which should reach every built-in kernel. Throws nothing: what is wrong
 * becomes a problem.
 */
export function examine(cases: readonly Case[], watcher: Watcher): Examination {
  const problems: Problem[] = [];
  const attempt = <T>(action: () => T): T | undefined => {
    try {
      return action();
    } catch (error) {
      problems.push(problemOf(error));
      return undefined;
    }
  };
  const search = attempt(searchLibrary);
  if (search !== undefined && search.native === undefined) attempt(() => Device.open());
  const native = search?.native;
  const layouts = native === undefined ? undefined : attempt(() => checkLayouts(native));
  for (const fault of layouts?.faults ?? []) {
    problems.push({ what: `layout: ${fault}`, mend: mends["abi-mismatch"] ?? report });
  }
  // A library with other layouts must get no calls.
  using device = layouts !== undefined && layouts.faults.length === 0 ? attempt(() => Device.open()) : undefined;
  const results = device === undefined ? [] : cases.map((each) => watcher.run(each.name, () => runCase(device, each)));
  const kernels = device === undefined ? [] : kernelResults(device.kernelNames.sort(), results);
  problems.push(...kernelProblems(kernels, results));
  return {
    versions: versions(),
    settings: settings(),
    library: { places: search?.places ?? [], abiVersion: layouts?.abiVersion },
    device: device?.info,
    structs: layouts?.structs ?? 0,
    kernels,
    cases: results,
    problems,
  };
}

function runCase(device: Device, each: Case): CaseResult {
  const { fault, kernels, seconds } = runFixture(device, each.make(1));
  return { name: each.name, kernels, fault, seconds };
}

/** The state of each kernel, by the cases in which it was the operation's own. */
function kernelResults(names: readonly string[], results: readonly CaseResult[]): KernelResult[] {
  return names.map((kernel) => {
    const mine = results.filter(({ kernels }) => kernels.at(-1) === kernel);
    const [first] = mine;
    const wrong = mine.find(({ fault }) => fault !== undefined);
    if (first === undefined) return { kernel, state: "untried", case: undefined };
    return { kernel, state: wrong === undefined ? "right" : "wrong", case: (wrong ?? first).name };
  });
}

/** One problem for all cases with the same remedy: where the compiler is missing, every case says so. */
function kernelProblems(kernels: readonly KernelResult[], results: readonly CaseResult[]): Problem[] {
  const faults = new Map<string, string[]>();
  for (const { name, fault } of results) {
    if (fault === undefined) continue;
    const mend = mendOf(fault);
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

/** A result that is wrong can only be reported; a shader that did not compile may lack a compiler. */
function mendOf(fault: string): string {
  return /clang|compil/i.test(fault) ? (mends["shader-compilation"] ?? report) : report;
}

function versions(): Record<string, string> {
  return {
    "metal-attention": manifest.version,
    "ABI of this package": String(abiVersion),
    Bun: `${Bun.version} (${Bun.revision.slice(0, 9)})`,
    system: `${process.platform} ${release()} ${process.arch}`,
  };
}

function settings(): Record<string, string> {
  const names = Object.keys(process.env).filter((name) => /^(METAL_ATTENTION|SOFTMETAL|MTL)_/.test(name));
  return Object.fromEntries(names.sort().map((name) => [name, process.env[name] ?? ""]));
}
