/** Cases whose sources are compiled each on its own, so that one that is refused fails alone. */
import { test } from "bun:test";
import { Device } from "../../src/index.ts";
import { type Case, compare, countCase, type KernelCase, kernelOf, run, suiteSource } from "./harness.ts";

/** A case with the declarations that stand before its kernel. */
export type StatementCase = Case & { readonly before?: string };

/** A case with a source of its own; the two lines that every source begins with are put before it. */
export type SourceCase = KernelCase & { readonly source: string };

const head = "#include <metal_stdlib>\nusing namespace metal;\n";

/** Declares a test for each case: statements in a kernel, with what they need before it. */
export function statementSuite(suite: string, cases: readonly StatementCase[]): void {
  for (const { before = "", ...each } of cases) {
    declare(suite, suiteSource(before, [each], suite), kernelOf(each, `${suite}_0`));
  }
}

/** Declares a test for each case that is a whole source. */
export function sourceSuite(suite: string, cases: readonly SourceCase[]): void {
  for (const { source, ...each } of cases) declare(suite, head + source, each);
}

/** The same for sources that begin with nothing of ours. */
export function bareSuite(suite: string, cases: readonly SourceCase[]): void {
  for (const { source, ...each } of cases) declare(suite, source, each);
}

function declare(suite: string, source: string, each: KernelCase): void {
  const done = countCase();
  test(`${suite}: ${each.name}`, () => {
    // A device of its own: a source that is refused stays registered.
    using device = Device.open();
    device.registerSource(`${suite}.metal`, source);
    compare(run(device, each), each);
    done();
  }, 60_000);
}
