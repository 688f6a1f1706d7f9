import { describe, expect, test } from "bun:test";
import { isOtherGpu } from "./otherGpu.ts";

/** Milliseconds for a case: the first one of a kernel may compile it, and a GPU's driver once more. */
const timeout = isOtherGpu ? 600_000 : 300_000;

/**
 * One test for each case, and one more that fails unless every case ran to its
 * end: a table that loses cases without a word is no test.
 */
export function testTable<T extends { readonly name: string }>(
  title: string,
  cases: readonly T[],
  run: (entry: T) => void,
): void {
  describe(title, () => {
    const finished = new Set<string>();
    test.each(cases.map((entry) => [entry.name, entry] as const))(
      "%s",
      (name, entry) => {
        run(entry);
        finished.add(name);
      },
      timeout,
    );
    test(`all ${cases.length} cases ran`, () => {
      expect(cases.length).toBeGreaterThan(0);
      expect(finished.size).toBe(cases.length);
    });
  });
}
