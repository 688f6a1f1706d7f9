/** Facts in a text stand where they are said to stand, and a text stays what it was around them. */
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { asked, plant, Writer } from "../../../examples/recall/facts.ts";
import { writeTexts } from "../../../scripts/report/measure.ts";

const text = (bytes: Uint8Array) => Buffer.from(bytes).toString();

test("a seed writes the same facts, no question twice, and each value stands in its sentence", () => {
  const facts = (seed: number) => {
    const writer = new Writer(seed);
    return Array.from({ length: 500 }, () => writer.fact());
  };
  const first = facts(1);
  expect(facts(1)).toEqual(first);
  expect(facts(2)).not.toEqual(first);
  expect(new Set(first.map(({ question }) => question)).size).toBe(500);
  for (const { sentence, question, value } of first) {
    expect(sentence).toContain(value);
    expect(question).not.toContain(value);
    expect(sentence + question).not.toMatch(/[{}]|undefined/);
  }
});

test("planted facts stand where they are said to, and the rest is the text", () => {
  fc.assert(
    fc.property(
      fc.string({ unit: "binary", maxLength: 2000 }),
      fc.nat(99),
      fc.integer({ min: 1, max: 16 }),
      (given, seed, count) => {
        const writer = new Writer(seed);
        const facts = Array.from({ length: count }, () => writer.fact());
        const { text: bytes, facts: planted } = plant(Buffer.from(given), facts);
        let rest = text(bytes);
        for (const [i, { at, value, sentence }] of planted.entries()) {
          expect(sentence).toBe(facts[i]?.sentence as string);
          expect(text(bytes.subarray(at, at + Buffer.byteLength(value)))).toBe(value);
          expect(rest).toContain(` ${sentence} `);
          rest = rest.replace(` ${sentence} `, "");
        }
        // Characters are not split.
        expect(rest).toBe(text(Buffer.from(given)));
      },
    ),
  );
});

test("the report's texts ask for every fact once, with the answer behind the question", () => {
  for (const { bytes, answers } of writeTexts(2)) {
    expect(answers).toHaveLength(24);
    for (const { begin, end, back } of answers) {
      const value = text(bytes.subarray(begin, end));
      expect(text(bytes.subarray(begin - back, end - back))).toBe(value);
      const line = text(bytes.subarray(0, begin)).split("\n").at(-1) as string;
      expect(line).toStartWith("Answer: ");
    }
    expect(text(bytes).match(/^Question: .*\?$/gm)).toHaveLength(24);
  }
  expect(text(asked("Who?"))).toBe("\nQuestion: Who?\nAnswer: ");
});
