/** The library file as it is shipped. */
import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { symbols } from "../../src/ffi/generated/symbols.ts";
import { Elf } from "./elf.ts";

const root = join(import.meta.dir, "../..");

// On macOS the file is no ELF, and its symbols are not limited.
if (process.platform === "linux")
  describe("the shared library on Linux", () => {
    const bytes = readFileSync(join(root, "build/lib/libMetalAttention.so"));
    const library = new Elf(bytes);

    test("exports the functions of metal_attention.h and nothing else", () => {
      const header = readFileSync(join(root, "swift/Sources/CMetalAttention/include/metal_attention.h"), "utf8");
      const declared = [...header.matchAll(/^\w[\w *]*\b(ma_\w+)\(/gm)].map((match) => match[1] ?? "");
      expect(declared).toContain("ma_device_open");
      expect(library.exported.toSorted()).toEqual(declared.toSorted());
      const called = Object.keys(symbols);
      expect(called.filter((name) => !library.exported.includes(name))).toEqual([]);
    });

    test("is stripped and smaller than 12 MB", () => {
      expect(library.isStripped).toBe(true);
      expect(bytes.length).toBeLessThan(12e6);
    });

    test("carries the Swift runtime: it needs only what every glibc system has", () => {
      const system = ["libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2"];
      expect(library.needed.filter((name) => !system.includes(name))).toEqual([]);
    });

    test("names no folder of the machine that built it", () => {
      expect(bytes.includes(root)).toBe(false);
    });

    test("carries every header of the shading language", () => {
      const folder = join(root, "swift/Sources/CSoftMetal/msl");
      const names = readdirSync(folder);
      expect(names).toContain("metal_stdlib");
      expect(names.filter((name) => !bytes.includes(readFileSync(join(folder, name))))).toEqual([]);
    });
  });
