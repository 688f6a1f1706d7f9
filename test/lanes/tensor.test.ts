/** Kernels of NVIDIA GPUs: which products of 8x8 matrices become one instruction of a tensor core. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { compilePtx } from "./nvptx.ts";
import { lanesPlugin } from "./plugin.ts";

const compile = (options: readonly string[]) => compilePtx(join(import.meta.dir, "ir/tensor.ll"), options);

/** What each entry of `ir/tensor.ll` has of the instructions of matrices, in order. */
async function instructions(options: readonly string[]): Promise<Record<string, string[]>> {
  const entries = (await compile(options)).split(".visible .entry ").slice(1);
  return Object.fromEntries(
    entries.map((entry) => {
      const found = entry.matchAll(
        /^\t(?:mma\S*\.(m\d+n\d+k\d+)|(half\.empty|ldmatrix\S*\.x\d|movmatrix|ld\.(?:shared|global)\.\w+))/gm,
      );
      return [
        entry.split("(")[0] as string,
        Array.from(found, ([, shape, other]) => shape ?? other?.replace(/^ldmatrix.*\./, "ldmatrix.") ?? ""),
      ];
    }),
  );
}

if (process.platform === "linux") {
  test("joins products by rows and by steps where neither needs the other, and loads by up to four", async () => {
    const found = await instructions([`-fpass-plugin=${lanesPlugin()}`]);
    const expected = {
      sm_entry_1: ["m16n8k16"],
      sm_entry_2: ["m16n8k16"],
      sm_entry_3: ["m16n8k8", "m16n8k8"],
      sm_entry_4: ["m16n8k8", "m16n8k8", "m16n8k8", "m16n8k8"],
      sm_entry_5: ["m16n8k8", "m16n8k8"],
      sm_entry_6: [
        "ldmatrix.x1",
        "ld.shared.u32",
        "ld.shared.u16",
        "ld.shared.u16",
        "movmatrix",
        "ld.global.u16",
        "ld.global.u16",
        "movmatrix",
      ],
      sm_entry_7: ["ldmatrix.x4", "ldmatrix.x1", "ldmatrix.x2"],
      sm_entry_8: ["ldmatrix.x4", "m16n8k16", "m16n8k16"],
      sm_entry_9: ["m16n8k16", "m16n8k8"],
      sm_entry_10: ["m16n8k8", "m16n8k8"],
      sm_entry_11: ["ldmatrix.x1", "ldmatrix.x1"],
      sm_entry_12: ["ldmatrix.x2", "ldmatrix.x1", "ldmatrix.x1"],
      sm_entry_13: [1, 2, 3].flatMap(() => ["ld.shared.u32", "movmatrix"]),
      sm_entry_14: ["ld.shared.u32", "movmatrix"],
      sm_entry_15: ["ld.global.u32", "movmatrix"],
    };
    for (const [name, list] of Object.entries(expected)) {
      expect({ name, list: found[name] }).toEqual({ name, list });
      expect({ name, list: found[`${name}_partial`] }).toEqual({ name, list });
    }
  });

  test("a product takes neighbouring registers of a load", async () => {
    const code = await compile([`-fpass-plugin=${lanesPlugin()}`]);
    const [, entry = ""] = code.split(".visible .entry sm_entry_8(");
    const [, ...loaded] = /ldmatrix\S+\s+\{(%r\d+), (%r\d+), (%r\d+), (%r\d+)\}/.exec(entry) ?? [];
    expect(loaded).toHaveLength(4);
    const factors = Array.from(
      entry.matchAll(/mma\S+\s+\{.*\},\s+\{.*\},\s+\{(%r\d+), (%r\d+)\}/g),
      ([, ...pair]) => pair,
    );
    expect(factors.slice(0, 2)).toEqual([loaded.slice(0, 2), loaded.slice(2)]);
  });
}
