import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { StopText } from "../../../examples/llama/serve/stopText.ts";

function given(pieces: readonly string[], stops: readonly string[]): { text: string; isFound: boolean } {
  const stop = new StopText(stops);
  const text = pieces.map((piece) => stop.push(piece)).join("") + stop.end();
  return { text, isFound: stop.isFound };
}

/** Character by character: the first place where a stop string ends, the longest of those that end there. */
function expected(text: string, stops: readonly string[]): { text: string; isFound: boolean } {
  for (let end = 1; end <= text.length; end++) {
    const ending = stops.filter((stop) => text.slice(0, end).endsWith(stop));
    if (ending.length > 0) {
      return { text: text.slice(0, end - Math.max(...ending.map(({ length }) => length))), isFound: true };
    }
  }
  return { text, isFound: false };
}

test("a text is cut off where a stop string first ends, in whatever pieces it comes", () => {
  const letters = fc.constantFrom("a", "b", "c");
  const word = (most: number) => fc.array(letters, { minLength: 1, maxLength: most }).map((all) => all.join(""));
  fc.assert(
    fc.property(fc.array(word(4), { maxLength: 12 }), fc.array(word(4), { maxLength: 4 }), (pieces, stops) => {
      expect(given(pieces, stops)).toEqual(expected(pieces.join(""), stops));
    }),
    { numRuns: 3000, seed: 1 },
  );
});

test("no more is held back than a stop string may begin with", () => {
  const stop = new StopText(["end", "nada"]);
  expect(["a bee", "n", "dive", "n", "x", "na", "da"].map((piece) => stop.push(piece))).toEqual([
    "a be", // en may go on
    "",
    "", // "end" is found
    "",
    "",
    "",
    "",
  ]);
  const other = new StopText(["end", "nada"]);
  expect(["a bee", "nt", "na", "n", "ad"].map((piece) => other.push(piece))).toEqual(["a be", "ent", "", "na", ""]);
  expect([other.end(), other.isFound]).toEqual(["nad", false]);
});
