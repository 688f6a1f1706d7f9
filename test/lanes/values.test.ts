/** Kernels of NVIDIA GPUs: which arguments in `constant` memory are a part of their parameter. */
import { beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { compilePtx } from "./nvptx.ts";
import { lanesPlugin } from "./plugin.ts";

/** The parameter of `ir/values.ll`, of 32 bytes, has room for these behind it, at multiples of 16: index, offset, bytes. */
const taken = ["1 32 20", "2 64 20", "3 96 20", "6 128 20", "9 160 20"];
const bytes = 180;

if (process.platform === "linux") {
  let entries: Record<string, string> = {};
  beforeAll(async () => {
    const code = await compilePtx(join(import.meta.dir, "ir/values.ll"), [`-fpass-plugin=${lanesPlugin()}`]);
    const found = code.matchAll(/\.visible \.entry sm_entry_(\d+)\(([\s\S]*?)^\}/gm);
    entries = Object.fromEntries(Array.from(found, ([, number = "", body]) => [number, body ?? ""]));
  });

  test("every entry names them, and has so long a parameter", () => {
    expect(Object.keys(entries)).toHaveLength(14);
    for (const body of Object.values(entries)) {
      expect(Array.from(body.matchAll(/\/\/ sm_value (.*)/g), ([, numbers]) => numbers)).toEqual(taken);
      expect(body).toMatch(new RegExp(`\\.param \\.align 16 \\.b8 sm_entry_\\d+_param_0\\[${bytes}\\]`));
      // LLVM makes a copy of a parameter that it does not see through.
      expect(body).not.toContain(".local ");
    }
  });

  test.each<[entry: string, what: string, loads: readonly RegExp[]]>([
    ["1", "a place", [/ld\.param\.u32\s+%r\d+, \[sm_entry_1_param_0\+44\];/]],
    ["2", "a place on each way", [/ld\.param\.u32\s+%r\d+, \[\S+\+72\];/, /ld\.param\.u32\s+%r\d+, \[\S+\+44\];/]],
    ["3", "a place that is computed", [/ld\.param\.u32\s+%r\d+, \[%rd\d+\+96\];/]],
  ])("entry %s reads from its parameter %s", (entry, _, loads) => {
    for (const load of loads) expect(entries[entry]).toMatch(load);
    // Nor does it read the argument's address.
    expect(entries[entry]).not.toMatch(/ld\.param\.u64\s+%rd\d+, \[\S+\+24\];/);
  });

  test("entry 6 reads what may be another's from memory, and the rest from its parameter", () => {
    const [, value] = /ld\.param\.u32\s+(%r\d+), \[\S+\+128\];/.exec(entries["6"] ?? "") ?? [];
    expect(value).toBeString();
    expect(entries["6"]).toMatch(/ld\.param\.u64\s+%rd\d+, \[\S+\+24\];/);
    expect(entries["6"]).toMatch(/ld\.global\.u32/);
  });

  test("lanes stay together behind a branch on what is read", () => {
    expect(entries["9"]).not.toContain("activemask");
  });

  test.each([
    ["4", "where a function has the address"],
    ["5", "at a place that moves on in a loop"],
    ["7", "at a place that may be another's"],
    ["8", "for which there is no room"],
    ["10", "behind its end"],
    ["11", "whose address is chosen"],
    ["12", "at a place that is computed on one of two ways"],
    ["14", "in front of its beginning"],
    ["13", "that is one value, at a place that is computed"],
  ])("entry %s has the address of an argument %s", (entry) => {
    expect(entries[entry]).toMatch(/ld\.param\.u64\s+%rd\d+, \[\S+\+24\];/);
  });
}
