/** Kernels of NVIDIA GPUs: floats that become the halves of a word are rounded at once. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { compilePtx } from "./nvptx.ts";
import { lanesPlugin } from "./plugin.ts";

/** Of each function of `ir/rounded.ll`: conversions of two floats, the upper half first, and of one. */
async function conversions(options: readonly string[]) {
  const code = await compilePtx(join(import.meta.dir, "ir/rounded.ll"), options);
  const functions = code.split(/\.visible \.func /).slice(1);
  return Object.fromEntries(
    functions.map((text) => [
      text.split("(")[0]?.trim(),
      [...text.matchAll(/cvt\.rn\.(b?f16(?:x2)?)\.f(?:32|64)/g)].map(([, type]) => type),
    ]),
  );
}

if (process.platform === "linux") {
  test("two floats become the halves of a word by one instruction", async () => {
    expect(await conversions([`-fpass-plugin=${lanesPlugin()}`])).toEqual({
      parts: ["bf16x2", "bf16x2"],
      halves: ["f16x2"],
      apart: ["bf16", "bf16"],
      doubles: ["f16", "f16"],
      vector: ["f16x2"],
    });
  });

  test("without the plugin each has its own", async () => {
    expect(await conversions([])).toEqual({
      parts: ["bf16", "bf16", "bf16", "bf16"],
      halves: ["f16", "f16"],
      apart: ["bf16", "bf16"],
      doubles: ["f16", "f16"],
      vector: ["f16", "f16"],
    });
  });
}
