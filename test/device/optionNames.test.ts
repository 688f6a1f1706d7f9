import { describe, expect, test } from "bun:test";
import { Device, type KvCacheCopyArgs, kvCacheCopy } from "../../src/index.ts";
import { nearestName, OptionNames } from "../../src/optionNames.ts";
import { expectRefusal } from "../helpers/errors.ts";

describe("the nearest name", () => {
  const known = ["src", "cache", "writePos", "isSliding", "nNew", "k", "v"];

  test.each([
    ["writePost", "writePos"],
    ["writpos", "writePos"],
    ["wirtePos", "writePos"],
    ["WRITEPOS", "writePos"],
    ["isslide", "isSliding"],
    ["sliding", "isSliding"],
    ["scr", "src"],
    ["cahce", "cache"],
    ["K", "k"],
    ["x", undefined],
    ["", undefined],
    ["offset", undefined],
  ])("to %p is %p", (name, near) => {
    expect(nearestName(name, known)).toBe(near as string);
  });

  test("is not looked for among names when the text is none", () => {
    const start = performance.now();
    expect(nearestName("src".repeat(1_000_000), known)).toBeUndefined();
    expect(performance.now() - start).toBeLessThan(1000);
  });

  test("of several is the one with the fewest edits", () => {
    expect(nearestName("seqLen", ["seqLenK", "seqLength", "seq"])).toBe("seqLenK");
  });
});

describe("a list of names", () => {
  interface Options {
    readonly first?: number;
    readonly second?: number;
  }
  const names = new OptionNames<Options>("an example", { first: true, second: true });

  test("passes any of them, in any order, again and again", () => {
    for (const options of [{}, { first: 1 }, { first: 1, second: 2 }, { second: 2, first: 1 }, { first: undefined }]) {
      for (let i = 0; i < 3; i++) expect(() => names.check(options)).not.toThrow();
    }
  });

  test("refuses another, also behind a call that passed, and one of Object's", () => {
    names.check({ first: 1 });
    for (const key of ["firsd", "toString", "__proto__x", "constructor", "hasOwnProperty"]) {
      const options = { [key]: 1 };
      expectRefusal(() => names.check(options), "invalid-argument", key, "an example", "first, second");
      expectRefusal(() => names.check(options, "outer."), "invalid-argument", `outer.${key}`);
    }
    names.check({ first: 1 });
  });

  test("refuses one that is inherited, and passes known ones that are", () => {
    names.check({ first: 1 });
    const inherited: unknown = Object.create({ secnod: 2 });
    const both = Object.assign(inherited as object, { first: 1 });
    for (let i = 0; i < 2; i++) expectRefusal(() => names.check(both), "invalid-argument", "secnod", "second");
    expect(() => names.check(Object.create({ first: 1, second: 2 }))).not.toThrow();
  });

  test("is complete, or does not compile", () => {
    // @ts-expect-error: second is missing.
    new OptionNames<Options>("an example", { first: true });
    // @ts-expect-error: third is none of them.
    new OptionNames<Options>("an example", { first: true, second: true, third: true });
    // Of a union, the names of all members.
    new OptionNames<{ a: 1 } | { b: 2 }>("an example", { a: true, b: true });
  });
});

test("options in an array or a Map are refused, those of an object of any class taken", () => {
  using device = Device.open();
  using src = device.tensor("f32", [1, 4]);
  using cache = device.tensor("f32", [4, 4]);
  const given = new Map<string, unknown>([["mode", "serial"]]);
  for (const options of [given, [given], new Set(), new Uint8Array(1)]) {
    expectRefusal(() => device.pass(options as never), "invalid-argument", "options");
    expectRefusal(() => device.record(() => {}, options as never), "invalid-argument", "options");
  }
  using pass = device.pass(
    new (class {
      mode = "serial" as const;
    })(),
  );
  expectRefusal(() => kvCacheCopy(pass, new Map() as never), "invalid-argument", "args", "a collection");
  class Args implements KvCacheCopyArgs {
    get src() {
      return src;
    }
    get cache() {
      return cache;
    }
    readonly writePos = 0;
  }
  kvCacheCopy(pass, new Args());
  kvCacheCopy(pass, Object.assign(Object.create(null), { src, cache, writePos: 0 }));
  using step = device.record(() => {});
  expectRefusal(() => step.commitAndWait([] as never), "invalid-argument", "values", "an array");
});

test("an operation refuses an argument that it does not know, and encodes nothing", () => {
  using device = Device.open();
  using src = device.tensor("f32", [1, 4]);
  using cache = device.tensor("f32", [4, 4]);
  using pass = device.pass();
  const args = { src, cache, writePos: 0, issliding: true } as KvCacheCopyArgs;
  expectRefusal(() => kvCacheCopy(pass, args), "invalid-argument", "issliding", "did you mean isSliding?");
  expect(pass.describe()).toEqual([]);
  kvCacheCopy(pass, { writePos: 1, cache, src });
  expect(pass.describe().length).toBe(1);
});
