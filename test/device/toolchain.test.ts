/**
 * The software device without its compiler, with an unusable or damaged cache,
 * and with two processes at once. Each case is a process of its own, because a
 * process keeps what it has compiled.
 */
import { afterAll, describe, expect, test } from "bun:test";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { Device } from "../../src/index.ts";
import { compilingEnvironment, run } from "../helpers/run.ts";

const folder = mkdtempSync(join(tmpdir(), "metal-attention-toolchain-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

using probe = Device.open();
const isSoftware = probe.info.backend === "SoftMetal";

const expected = { values: [0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8] };

interface Outcome {
  readonly values?: readonly number[];
  readonly code?: string;
  readonly message?: string;
}

async function copyInChild(environment: Record<string, string>): Promise<Outcome> {
  const { status, output, errors } = await run([process.execPath, join(import.meta.dir, "toolchain-child.ts")], {
    env: { ...compilingEnvironment, ...environment },
  });
  expect({ status, errors }).toEqual({ status: 0, errors: "" });
  return JSON.parse(output) as Outcome;
}

const entries = (cache: string): string[] =>
  readdirSync(join(cache, "objects")).map((name) => join(cache, "objects", name));

// An Apple device compiles with Apple's compiler and has none of these.
if (isSoftware)
  describe("the software device's toolchain", () => {
    test("without clang: a typed error that says what to install or set", async () => {
      const { code, message } = await copyInChild({
        SOFTMETAL_CLANG: join(folder, "no-such-clang"),
        SOFTMETAL_CACHE_DIR: join(folder, "without-clang"),
      });
      expect(code).toBe("device-unavailable");
      expect(message).toContain("no-such-clang");
      expect(message).toContain("SOFTMETAL_CLANG");
    });

    test("with a cache folder that cannot be made: compiles all the same", async () => {
      const file = join(folder, "a-file");
      writeFileSync(file, "");
      expect(await copyInChild({ SOFTMETAL_CACHE_DIR: join(file, "cache") })).toEqual(expected);
    });

    test("a damaged cache entry is noticed and made again", async () => {
      const cache = join(folder, "damaged");
      const environment = { SOFTMETAL_CACHE_DIR: cache };
      expect(await copyInChild(environment)).toEqual(expected);
      const [entry] = entries(cache);
      if (entry === undefined) throw new Error("the cache holds no object");
      const whole = readFileSync(entry);

      const flipped = Buffer.from(whole);
      const middle = whole.length >> 1;
      flipped[middle] = (whole[middle] as number) ^ 0xff;
      writeFileSync(entry, flipped);
      expect(await copyInChild(environment)).toEqual(expected);
      expect(readFileSync(entry)).toEqual(whole);

      truncateSync(entry, middle);
      expect(await copyInChild(environment)).toEqual(expected);
      expect(statSync(entry).size).toBe(whole.length);

      writeFileSync(entry, "");
      expect(await copyInChild(environment)).toEqual(expected);
      expect(statSync(entry).size).toBe(whole.length);
    });

    test("two processes that compile one shader at once: both succeed, the cache holds what one leaves", async () => {
      const [cache, alone] = [join(folder, "shared"), join(folder, "alone")];
      expect(await copyInChild({ SOFTMETAL_CACHE_DIR: alone })).toEqual(expected);
      mkdirSync(cache, { mode: 0o700 });
      const outcomes = await Promise.all([1, 2].map(() => copyInChild({ SOFTMETAL_CACHE_DIR: cache })));
      expect(outcomes).toEqual([expected, expected]);
      const names = (folder: string) =>
        entries(folder)
          .map((entry) => basename(entry))
          .sort();
      expect(names(cache)).toEqual(names(alone));
    });

    test("the cache is private", async () => {
      const cache = join(folder, "private");
      await copyInChild({ SOFTMETAL_CACHE_DIR: cache });
      expect(statSync(cache).mode & 0o077).toBe(0);
      for (const entry of entries(cache)) expect(statSync(entry).mode & 0o077).toBe(0);
    });
  });
