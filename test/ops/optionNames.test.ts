import { afterAll, describe, expect, test } from "bun:test";
import * as library from "../../src/index.ts";
import { Device } from "../../src/index.ts";
import { didYouMean, nearestName, OptionNames } from "../../src/optionNames.ts";
import { expectRefusal } from "../helpers/errors.ts";
import { operationSamples } from "../helpers/operations.ts";
import { testTable } from "../helpers/table.ts";
import type { Fields, UntypedOp } from "../helpers/watched.ts";

const device = Device.open();
afterAll(() => device.dispose());

const operations = operationSamples(device);

interface NameCase {
  readonly name: string;
  readonly op: UntypedOp;
  readonly valid: Fields;
  readonly args: Fields;
  readonly argument: string;
  readonly says: readonly string[];
}

/** A letter too many, or the first two exchanged. Of one letter, as `q` is, no misspelling is near. */
const misspellings = (name: string): readonly string[] =>
  name.length === 1 ? [] : [`${name}s`, `${name.charAt(1)}${name.charAt(0)}${name.slice(2)}`];

/** Every name that a call gives, misspelt, and one that is near none; inside `k` and `v` too. */
const cases = operations.flatMap(({ name: operation, op, args }): NameCase[] =>
  args.flatMap((valid): NameCase[] => {
    const make = (path: string, args: Fields, ...says: string[]): NameCase => ({
      ...{ name: `${operation}: ${path}, of ${Object.keys(valid).join(", ")}`, op, valid, args, argument: path, says },
    });
    const inside = (prefix: string, fields: Fields, wrap: (fields: Fields) => Fields): NameCase[] => [
      ...Object.keys(fields).flatMap((name) =>
        misspellings(name).map((wrong) =>
          make(`${prefix}${wrong}`, wrap({ ...fields, [wrong]: fields[name] }), `did you mean ${name}?`),
        ),
      ),
      make(`${prefix}zzzzzz`, wrap({ ...fields, zzzzzz: undefined }), "it takes "),
    ];
    const streams = (["k", "v"] as const).filter(
      (name) => "k" in valid && "v" in valid && !("q" in valid) && name in valid,
    );
    return [
      ...inside("", valid, (fields) => fields),
      ...streams.flatMap((name) =>
        inside(`${name}.`, valid[name] as Fields, (fields) => ({ ...valid, [name]: fields })),
      ),
    ];
  }),
);

testTable("a name that an operation does not take", cases, ({ op, valid, args, argument, says }) => {
  using pass = device.pass();
  const call = () => op(pass, args);
  expectRefusal(call, "invalid-argument", argument, ...says);
  expect(pass.describe()).toEqual([]);
  // The same names as before a valid call, and after it.
  op(pass, valid);
  expectRefusal(call, "invalid-argument", argument, ...says);
  expect(pass.describe().length).toBe(1);
});

test("every operation that the package exports is among them", () => {
  const takesPass = Object.entries(library).flatMap(([name, value]) =>
    typeof value === "function" && /^(kv|hadamard|dequantize|flash|merge|build|classify)/.test(name) ? [name] : [],
  );
  const others = ["kvCacheBytes", "flashAttnPrefillSupport", "flashAttnDecodeSupport"];
  expect(takesPass.filter((name) => !others.includes(name)).toSorted()).toEqual(
    operations.map(({ name }) => name).toSorted(),
  );
});

describe("flashAttnPrefill's strides", () => {
  const valid = operations.find(({ name }) => name === "flashAttnPrefill");
  const dense = (heads: number, tokens: number) => ({ batch: heads * tokens * 64, head: tokens * 64, token: 64 });
  const layout = {
    ...{ batch: 1, heads: 2, kvHeads: 2, seqLenQ: 6, headDim: 64 },
    ...{ q: dense(2, 6), k: dense(2, 10), v: dense(2, 10), out: dense(2, 6) },
  };
  const call = (spoiled: Fields) => {
    using pass = device.pass();
    valid?.op(pass, { ...valid.args[0], seqLenK: 10, layout: spoiled });
    expect(pass.describe().length).toBe(1);
  };

  test("take the right names", () => call(layout));

  test.each([
    ["head", { ...layout, head: 2 }, "layout.head", "heads"],
    ["headdim", { ...layout, headdim: 64 }, "layout.headdim", "headDim"],
    ["seqLenK", { ...layout, seqLenK: 10 }, "layout.seqLenK", "seqLenQ"],
    ["q.tokens", { ...layout, q: { ...layout.q, tokens: 64 } }, "layout.q.tokens", "token"],
    ["k.heads", { ...layout, k: { ...layout.k, heads: 64 } }, "layout.k.heads", "head"],
    ["v.bacth", { ...layout, v: { ...layout.v, bacth: 0 } }, "layout.v.bacth", "batch"],
    ["out.Token", { ...layout, out: { ...layout.out, Token: 0 } }, "layout.out.Token", "token"],
    ["mask.row", { ...layout, mask: { batch: 0, head: 0, token: 10, row: 1 } }, "layout.mask.row", "token"],
  ] as const)("%s", (_, spoiled, argument, near) => {
    const says = argument === "layout.mask.row" ? `it takes batch, head, ${near}` : `did you mean ${near}?`;
    expectRefusal(() => call(spoiled as unknown as Fields), "invalid-argument", argument, says);
  });

  test("isCausal, which was ignored once", () => {
    using pass = device.pass();
    const args = { ...valid?.args[0], causal: undefined, isCausal: true };
    expectRefusal(() => valid?.op(pass, args), "invalid-argument", "isCausal", "did you mean causal?");
  });
});

describe("the nearest name", () => {
  const known = ["src", "cache", "seqPosStart", "nTokens", "srcTokOffset", "isSliding"];
  test.each([
    ["sliding", "isSliding"],
    ["issliding", "isSliding"],
    ["IsSliding", "isSliding"],
    ["nTokesn", "nTokens"],
    ["ntoken", "nTokens"],
    ["seqPos", "seqPosStart"],
    ["seqPosSatrt", "seqPosStart"],
    ["tokOffset", "srcTokOffset"],
    ["scr", "src"],
    ["chace", "cache"],
    ["window", undefined],
    ["x", undefined],
    ["", undefined],
  ])("of %p is %p", (name, nearest) => {
    expect(nearestName(name, known)).toBe(nearest);
    expect(didYouMean(name, known)).toBe(nearest === undefined ? "" : ` (did you mean ${nearest}?)`);
  });

  test("names that every object has are known to none", () => {
    const names = new OptionNames<{ readonly src: number }>("a call", { src: true });
    for (const name of ["constructor", "toString", "__proto__x", "hasOwnProperty"]) {
      expectRefusal(() => names.check({ [name]: 1 }), "invalid-argument", name, "it takes src");
    }
    expectRefusal(() => names.check(JSON.parse('{"__proto__": 1}')), "invalid-argument", "__proto__");
    names.check({ src: 1 });
    names.check({});
  });
});
