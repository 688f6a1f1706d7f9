/** Kernels of NVIDIA GPUs: which of their loops the host can end. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { compilePtx } from "./nvptx.ts";
import { lanesPlugin } from "./plugin.ts";

/** The functions of `ir/stopped.ll` as PTX, by name. */
async function functions(options: readonly string[]): Promise<Record<string, string>> {
  const source = join(import.meta.dir, "ir/stopped.ll");
  const code = await compilePtx(source, options);
  const bodies = [...code.matchAll(/\.(?:visible \.entry|func) +(\w+)\([^{]*\{(.*?)^\}/gms)];
  return Object.fromEntries(bodies.map(([, name = "", body = ""]) => [name, body]));
}

/** A look at the word, and the end of the thread. */
const looks = (body = "") => [body.match(/ld\.volatile\.global\.u32/g)?.length ?? 0, /^\s*exit;$/m.test(body)];

if (process.platform === "linux") {
  test("a loop whose turns nothing bounds looks each time whether to end, one that counts does not", async () => {
    const { sm_entry_1, sm_entry_2, sm_entry_4, wait } = await functions([`-fpass-plugin=${lanesPlugin()}`]);
    expect(looks(sm_entry_4)).toEqual([1, true]);
    expect(looks(sm_entry_1)).toEqual([1, true]);
    expect(looks(sm_entry_2)).toEqual([0, false]);
    expect(looks(wait)).toEqual([1, true]);
  });

  test("a loop that counts looks too, where it goes on when it has counted", async () => {
    const bodies = await functions([`-fpass-plugin=${lanesPlugin()}`]);
    const looking = [5, 6, 7, 8].filter((n) => looks(bodies[`sm_entry_${n}`])[1]);
    expect(looking).toEqual([5, 7]);
  });

  test("the word's address is an entry's parameter, and in shared memory for other functions", async () => {
    const { sm_entry_1, sm_entry_3, wait } = await functions([`-fpass-plugin=${lanesPlugin()}`]);
    expect(sm_entry_1).toMatch(/ld\.param\.u64\s+%rd\d+, \[sm_entry_1_param_0\];/);
    expect(sm_entry_3).toMatch(
      /ld\.param\.u64\s+(%rd\d+), \[sm_entry_3_param_0\];[\s\S]+st\.volatile\.shared\.u64\s+\[sm_stop\], \1;/,
    );
    expect(wait).toMatch(/ld\.shared\.u64\s+%rd\d+, \[sm_stop\];/);
  });

  test("without the pass no loop looks", async () => {
    for (const body of Object.values(await functions([]))) expect(looks(body)).toEqual([0, false]);
  });
}
