/** Sources that the compiler has to refuse, with the place and the words of each error. */
import { expect, test } from "bun:test";
import { Device } from "../../src/index.ts";
import { thrownBy } from "../helpers/errors.ts";
import { countCase } from "./harness.ts";

export interface Refusal {
  readonly name: string;
  /** With a `§` at the place of the error, which is taken out. */
  readonly source: string;
  /** What the message says, beside the place. */
  readonly says: RegExp;
}

/** A kernel `k` of these statements, with `out`, `in` and `i`. */
export function kernel(body: string): string {
  return `kernel void k(device float *out [[buffer(0)]], const device float *in [[buffer(1)]],
              uint i [[thread_position_in_grid]]) {
  ${body}
}
`;
}

/** Declarations, and a kernel behind them. */
export function both(before: string, body = "out[i] = f(in[i]);"): string {
  return `${before}\n${kernel(body)}`;
}

/** A device of its own for a source: those that are wrong stay registered. */
export function compile(label: string, source: string): void {
  using device = Device.open();
  device.registerSource(label, `#include <metal_stdlib>\nusing namespace metal;\n${source}`);
  device.pipeline("k").dispose();
}

/** What no message may say: names of SoftMetal's own, words of OpenCL, and how clang counts address spaces. */
const foreign =
  /\/tmp\/|softmetal|\bsm_|SM_|__remove_reference|[Oo]pen(CL|cl)|__(global|local|private|constant|generic|kernel)\b|address space '\d|\b(global|local|private|generic) address space/;

/** Declares a test for each: the error is at the `§`, with the line's text, and speaks of nothing of SoftMetal's. */
export function refusalSuite(suite: string, refusals: readonly Refusal[]): void {
  refusals.forEach(({ name, source, says }, index) => {
    const done = countCase();
    test(`refused: ${name}`, () => {
      const label = `${suite}_${index}.metal`;
      const before = source.slice(0, source.indexOf("§")).split("\n");
      // Two lines come before the source.
      const [line, column] = [before.length + 2, (before.at(-1)?.length ?? 0) + 1];
      const text = source.replace("§", "");
      const error = thrownBy(() => compile(label, text));
      expect(error.code).toBe("shader-compilation");
      expect(error.message).toMatch(says);
      const shown = text.split("\n")[before.length - 1] ?? "";
      expect(error.message).toContain(shown.trim());
      expect(error.message).not.toMatch(foreign);
      const places = [...error.message.matchAll(new RegExp(`${label}:(\\d+):(\\d+): error`, "g"))];
      expect(places.map(([, ...place]) => place.map(Number))).toContainEqual([line, column]);
      done();
    });
  });
}
