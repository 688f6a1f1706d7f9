/** Random kernels on both executors, bit for bit. */
import { join } from "node:path";
import { kernelText, type RandomKernel, randomKernel, shrink } from "./kernels.ts";
import { lanesPlugin } from "./plugin.ts";

const executors = ["threads", "vectors"] as const;

export const optimizationLevels = ["default", "size"] as const;
export type OptimizationLevel = (typeof optimizationLevels)[number];

/** What a process is asked. */
export interface RandomKernels {
  readonly kernels: readonly RandomKernel[];
  readonly optimizationLevel: OptimizationLevel;
}

/** Processes that run at once. */
const limit = navigator.hardwareConcurrency;
let running = 0;
const waiting: (() => void)[] = [];

/** What each kernel leaves on an executor, as text to compare. */
async function results(
  executor: (typeof executors)[number],
  kernels: readonly RandomKernel[],
  level: OptimizationLevel,
): Promise<string[]> {
  // A place is handed on, so that none comes in between.
  if (running >= limit) await new Promise<void>((resolve) => waiting.push(resolve));
  else running += 1;
  try {
    return await resultsOfProcess(executor, kernels, level);
  } finally {
    const next = waiting.shift();
    if (next !== undefined) next();
    else running -= 1;
  }
}

async function resultsOfProcess(
  executor: (typeof executors)[number],
  kernels: readonly RandomKernel[],
  optimizationLevel: OptimizationLevel,
): Promise<string[]> {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "child.ts")], {
    env: { ...process.env, SOFTMETAL_EXECUTOR: executor, SOFTMETAL_LANES: lanesPlugin() },
    stdin: new Blob([JSON.stringify({ kernels, optimizationLevel })]),
    stdout: "pipe",
    stderr: "pipe",
  });
  const [output, errors, status] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (status !== 0) throw new Error(`${executor}: status ${status}\n${errors}`);
  return (JSON.parse(output) as unknown[]).map((each) => JSON.stringify(each));
}

async function differing(kernels: readonly RandomKernel[], level: OptimizationLevel): Promise<RandomKernel[]> {
  const [threads, vectors] = await Promise.all(executors.map((executor) => results(executor, kernels, level)));
  return kernels.filter((_, index) => threads?.[index] !== vectors?.[index]);
}

/**
 * The seeds, of `count` from `first` on, whose kernels differ. The pass sees the same at each level; what LLVM does behind
 * it takes half the time for `size`.
 */
export async function differingSeeds(first: number, count: number, level: OptimizationLevel): Promise<number[]> {
  const kernels = Array.from({ length: count }, (_, k) => randomKernel(`random_${first + k}`, first + k));
  return (await differing(kernels, level)).map(({ name }) => Number(name.slice("random_".length)));
}

/** The smallest kernel found in the one of `seed` that differs still, as source. */
export async function shrunk(seed: number, level: OptimizationLevel): Promise<string> {
  const kernel = randomKernel(`random_${seed}`, seed);
  const differs = async (statements: RandomKernel["statements"]) =>
    (await differing([{ ...kernel, statements }], level).catch(() => [])).length > 0;
  return kernelText({ ...kernel, statements: await shrink(kernel.statements, differs) });
}
