/** The declarations of the archive, as a consumer's compiler reads them. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import manifest from "../../package.json";
import { runChecked } from "../helpers/run.ts";
import { makePackages, packageTimeout } from "./packages.ts";

const root = resolve(import.meta.dir, "../..");
const project = mkdtempSync(join(tmpdir(), "metal-attention-types-"));
afterAll(() => rmSync(project, { recursive: true, force: true }));

const consumer = `
import { Device, flashAttnPrefill, MetalAttentionError, struct, type Struct, type Tensor } from "metal-attention";
import { referenceAttention } from "metal-attention/reference";
import { readSafetensors } from "metal-attention/safetensors";

const params = struct({ n: "u32", scale: "f32", origin: "float3", inner: [struct({ x: "f16" }), 2] });
export const bytes: Uint8Array = params.pack({ n: 1, scale: 2, origin: [0, 0, 0], inner: [{ x: 1 }, { x: 2 }] });
export const offset: number = params.offsets.scale;
export type Params = typeof params extends Struct<infer Fields> ? keyof Fields : never;
const name: Params = "scale";

export function attend(device: Device, q: Tensor<"bf16">): Float32Array {
  const out = device.tensor("bf16", q.shape);
  const pass = device.pass({ mode: "serial" });
  flashAttnPrefill(pass, { q, k: q, v: q, out, causal: true });
  pass.commitAndWait();
  pass[Symbol.dispose]();
  const halves = device.tensor("f16", [4]).view();
  const bits: number = halves[0] ?? 0;
  return out.set([bits], 3).toFloat32Array();
}
try {
  attend(Device.open({ library: "library" }), Device.open().tensor("bf16", [1, 1, 1, 64]));
} catch (error) {
  if (error instanceof MetalAttentionError) switch (error.code) { case "overflow": break; }
}
// @ts-expect-error dtypes are checked
Device.open().tensor("f23", [1]);
// @ts-expect-error fields are checked
params.pack({ n: 1 });
// @ts-expect-error what is internal is not declared
Device.open().tensor("f32", [1]).use;
export { name, readSafetensors, referenceAttention };
`;

beforeAll(async () => {
  await makePackages();
  const modules = join(project, "node_modules");
  mkdirSync(join(modules, "metal-attention"), { recursive: true });
  const archive = join(root, "build/packages", `metal-attention-${manifest.version}.tgz`);
  await runChecked(["tar", "-xzf", archive, "-C", join(modules, "metal-attention"), "--strip-components=1"]);
  for (const name of ["zod", "bun-types", "@types", "undici-types"]) {
    const installed = join(root, "node_modules", name);
    if (existsSync(installed)) symlinkSync(installed, join(modules, name));
  }
  writeFileSync(join(project, "package.json"), JSON.stringify({ type: "module" }));
  writeFileSync(join(project, "consumer.ts"), consumer);
}, packageTimeout);

async function check(compilerOptions: object): Promise<string> {
  writeFileSync(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["consumer.ts"] }));
  const child = Bun.spawnSync([join(root, "node_modules/.bin/tsc"), "--project", project], { cwd: project });
  return child.stdout.toString();
}

const resolutions = [
  { module: "node16", moduleResolution: "node16" },
  { module: "nodenext", moduleResolution: "nodenext" },
  { module: "esnext", moduleResolution: "bundler" },
];
const cases = resolutions.flatMap((resolution) =>
  [true, false].flatMap((allowImportingTsExtensions) =>
    [["bun-types"], []].map((types) => ({ ...resolution, allowImportingTsExtensions, types })),
  ),
);

describe("a strict consumer with lib ES2022, no library check skipped", () => {
  test.each(cases)("%p", async (options) => {
    const common = { target: "es2022", lib: ["ES2022"], strict: true, noEmit: true, skipLibCheck: false };
    expect(await check({ ...common, ...options })).toBe("");
  });

  test("and exact optional properties, unchecked indices, isolated modules, no types at all", async () => {
    const strict = { exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, isolatedModules: true };
    const common = { target: "es2022", lib: ["ES2022"], strict: true, noEmit: true, skipLibCheck: false, types: [] };
    expect(
      await check({
        ...common,
        ...strict,
        verbatimModuleSyntax: true,
        module: "nodenext",
        moduleResolution: "nodenext",
      }),
    ).toBe("");
  });
});
