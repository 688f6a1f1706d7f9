/** Kernels of NVIDIA GPUs: where the compiler pass knows that all lanes of a SIMD group come together. */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { compilePtx } from "./nvptx.ts";
import { lanesPlugin } from "./plugin.ts";

const folder = mkdtempSync(join(tmpdir(), "active-"));
afterAll(() => rmSync(folder, { recursive: true }));

const active = join(import.meta.dir, "ir/active.ll");

/** Of an entry of `ir/active.ll`: the stores that get what the hardware says, by their places; and what is stored, at
 * place 8, of whether all lanes are there. */
interface Entry {
  readonly asked: readonly number[];
  readonly all: number | undefined;
}

async function compiled(options: readonly string[], source = active): Promise<Record<string, Entry>> {
  const code = await compilePtx(source, options);
  const entries = code.split(".visible .entry ").slice(1);
  return Object.fromEntries(
    entries.map((entry) => {
      const asking = new Set([...entry.matchAll(/activemask\.b32\s+(%r\d+)/g)].map(([, register]) => register));
      const stores = [...entry.matchAll(/st\.volatile\.global\.u32\s+\[%rd1(?:\+(\d+))?\],\s+(%r\d+)/g)];
      expect(stores).toHaveLength(9);
      const places = stores
        .filter(([, , register]) => asking.has(register))
        .map(([, offset = 0]) => Number(offset) / 4);
      const [, , whole] = stores.find(([, offset]) => offset === "32") ?? [];
      const constant = new RegExp(`mov\\.b32\\s+${whole}, (\\d+);`).exec(entry)?.[1];
      const all = constant === undefined ? undefined : Number(constant);
      return [entry.split("(")[0] as string, { asked: places.toSorted((a, b) => a - b), all }];
    }),
  );
}

if (process.platform === "linux") {
  test("asks the hardware only behind branches that part lanes, and before they have met", async () => {
    expect(await compiled([`-fpass-plugin=${lanesPlugin()}`])).toEqual({
      // Among odd lanes, in the turns of a loop that differ, and when some have left.
      sm_entry_1: { asked: [2, 5, 7], all: 1 },
      // For SIMD groups that may lack lanes, of which none is taken to be whole.
      sm_entry_1_partial: { asked: [0, 1, 2, 3, 4, 5, 6, 7], all: 0 },
    });
  });

  test("asks behind a branch on what lanes may have apart", async () => {
    const code = await compilePtx(join(import.meta.dir, "ir/apart.ll"), [`-fpass-plugin=${lanesPlugin()}`]);
    const entries = code.split(".visible .entry sm_entry_").slice(1);
    const asking = entries.filter((entry) => entry.includes("activemask")).map((entry) => entry.split("(")[0]);
    const partial = Array.from({ length: 9 }, (_, i) => `${i + 1}_partial`);
    expect(asking.toSorted()).toEqual(["2", "3", "4", "5", "6", "7", "8", ...partial].toSorted());
  });

  test("a kernel that says that its SIMD groups are whole has no other entry", async () => {
    const source = join(folder, "whole.ll");
    const body = 'call void asm sideeffect "", ""() convergent nounwind\n  ret void';
    const definition = `define internal void @sm_whole_simdgroups() noinline convergent nounwind {\n  ${body}\n}\n`;
    const said = readFileSync(active, "utf8").replace("entry:\n", "entry:\n  call void @sm_whole_simdgroups()\n");
    writeFileSync(source, said + definition);
    expect(await compiled([`-fpass-plugin=${lanesPlugin()}`], source)).toEqual({
      sm_entry_1: { asked: [2, 5, 7], all: 1 },
    });
  });
}
