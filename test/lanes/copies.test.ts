/** Kernels of NVIDIA GPUs: what the hardware copies to threadgroup memory by itself, and where a thread waits for it. */
import { beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { compilePtx } from "./nvptx.ts";
import { lanesPlugin } from "./plugin.ts";

const words: Record<string, string> = {
  "cp.async.cg.shared.global": "copy",
  "cp.async.commit_group": "group",
  "barrier.sync": "barrier",
  "bar.warp.sync": "simdgroup barrier",
};

const compile = (options: readonly string[]) => compilePtx(join(import.meta.dir, "ir/copies.ll"), options);

/** What each entry of `ir/copies.ll`, and a function of it, does with memory, in order. */
function steps(code: string): Record<string, string[]> {
  const entries = code.split(/^\.visible \.(?:entry|func) +/m).slice(1);
  return Object.fromEntries(
    entries.map((entry) => {
      const found = entry.matchAll(
        /^\t(?:cp\.async\.wait_group +(\d)|(cp\.async\.[^; \t]+|bar[^; \t]+)|(ld|st)(?:\.volatile)?\.(shared|global))/gm,
      );
      const names = Array.from(found, ([, groups, word = "", access, memory]) => {
        if (groups !== undefined) return `wait ${groups}`;
        return access === undefined ? (words[word] ?? word) : `${access} ${memory}`;
      });
      return [entry.split("(")[0] as string, names];
    }),
  );
}

if (process.platform === "linux") {
  const expected: [entry: string, what: string, steps: string][] = [
    [
      "sm_entry_1",
      "before the barrier behind which another thread reads",
      "copy, group, wait 0, barrier, ld shared, st global",
    ],
    ["sm_entry_2", "before an access of its own", "copy, group, wait 0, ld shared, st global"],
    [
      "sm_entry_3",
      "for nothing where it is needed elsewhere, or is 8 bytes, or begins anywhere: that is loaded and stored",
      `ld global, st shared, st global, ld global, st shared${", ld global, st shared".repeat(4)}`,
    ],
    [
      "sm_entry_4",
      "for one tile of two while the other comes",
      "copy, group, wait 0, barrier, copy, group, ld shared, wait 0, barrier, copy, group, ld shared, wait 0, st global",
    ],
    [
      "sm_entry_5",
      "at a barrier of the threadgroup for what other SIMD groups read behind one of their own",
      "copy, group, wait 0, barrier, simdgroup barrier, ld shared, st global",
    ],
    [
      "sm_entry_6",
      "at the last barrier before a read, for the older of two",
      "copy, group, copy, group, simdgroup barrier, wait 1, simdgroup barrier, ld shared, " +
        "wait 0, simdgroup barrier, ld shared, st global",
    ],
    ["sm_entry_7", "before device memory changes", "copy, group, wait 0, st global, barrier, ld shared, st global"],
    [
      "sm_entry_8",
      "for as many groups on ways that join",
      "copy, group, simdgroup barrier, ld global, ld global, st shared, copy, group, " +
        "wait 1, simdgroup barrier, ld shared, wait 0, simdgroup barrier, ld shared, st global",
    ],
    ["sm_entry_11", "for nothing where device memory changes before the store", "ld global, st global, st shared"],
    ["sm_entry_12", "for nothing that another block stores", "ld global, ld shared, st shared"],
    ["sm_entry_13", "for nothing that is volatile", "ld global, st shared, ld global, st shared"],
    [
      "sm_entry_14",
      "for nothing that goes to no multiple of 16 bytes",
      Array<string>(4).fill("ld global, st shared").join(", "),
    ],
    [
      "sm_entry_15",
      "for the younger of two groups, which one way has behind it",
      "copy, group, copy, group, ld shared, ld global, copy, group, ld shared, wait 0, ld shared, st global",
    ],
    [
      "sm_entry_16",
      "for that, whichever of the ways comes first",
      "copy, group, copy, group, ld shared, copy, group, ld shared, ld global, wait 0, ld shared, st global",
    ],
    ["sm_entry_17", "before a read of one of two variables", "copy, group, wait 0, ld shared"],
    ["sm_entry_18", "before a function of which nothing is known", "copy, group, wait 0, ld global"],
    ["sm_entry_19", "before the thread ends", "copy, group, wait 0"],
    ["helper", "before a read of any memory", "copy, group, wait 0, ld global"],
  ];
  let code = "";
  let found: Record<string, string[]> = {};
  beforeAll(async () => {
    code = await compile([`-fpass-plugin=${lanesPlugin()}`]);
    found = steps(code);
  });
  for (const [entry, what, list] of expected) {
    test(`waits ${what}`, () => expect(found[entry]?.join(", ")).toBe(list));
  }

  test("the instructions have constant offsets themselves, so that an address serves several", () => {
    const [, entry = ""] = code.split(".visible .entry sm_entry_9(");
    const places =
      /shared\.global \[(%\w+)\+0\], \[(%\w+)\+0\], 16;[\s\S]*?shared\.global \[(%\w+)\+144\], \[(%\w+)\+-32\], 16;/;
    const [, to, from, later, behind] = places.exec(entry) ?? [];
    expect(to).toBeString();
    expect([later, behind]).toEqual([to, from]);
  });

  test("a generic address is no place in threadgroup memory", () => {
    const [, entry = ""] = code.split(".visible .entry sm_entry_10(");
    const [, generic] = /cvta\.to\.shared\.u64\s+%\w+, (%\w+);/.exec(entry) ?? [];
    const [, to] = /shared\.global \[(%\w+)\+/.exec(entry) ?? [];
    expect([generic, to]).toEqual([expect.any(String), expect.any(String)]);
    expect(to).not.toBe(generic);
  });

  test("without the pass everything is loaded and stored", async () => {
    for (const list of Object.values(steps(await compile([])))) expect(list).not.toContain("copy");
  });
}
