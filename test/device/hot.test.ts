/** A program under `bun --hot`, which evaluates the package's modules again at each change. */
import { expect, test } from "bun:test";
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { version } from "../../package.json";
import { Device, KvCache, kvCacheCopy } from "../../src/index.ts";
import { expectRefusal } from "../helpers/errors.ts";
import { plainEnvironment } from "../helpers/run.ts";

const index = join(import.meta.dir, "../../src/index.ts");

/** Keeps what it makes the first time, and uses it each time by the functions of the modules of then. */
const program = `
import {
  buildSlidingWindowMask, classifyMaskTiles, Device, flashAttnDecode, flashAttnPrefill, KvCache, kvCacheCopy,
  MetalAttentionError,
} from ${JSON.stringify(index)};

globalThis.kept ??= (() => {
  const device = Device.open();
  device.registerSource("double.metal", \`#include <metal_stdlib>
kernel void twice(device float *x [[buffer(0)]], uint i [[thread_position_in_grid]]) { x[i] *= 2; }\`);
  const mask = device.tensor("bool", [16, 16]);
  const pass = device.pass();
  buildSlidingWindowMask(pass, { mask, window: 4 });
  const tileClasses = classifyMaskTiles(pass, { mask, headDim: 64 });
  pass.commitAndWait();
  return { device, mask, tileClasses, pipeline: device.pipeline("twice"), Device, evaluations: 0,
    past: device.tensor("bf16", [1, 1, 16, 64]), cache: device.tensor("f32", [2, 4]), source: device.tensor("f32", [1, 4]).set([1, 2, 3, 4]) };
})();
const { kept } = globalThis;
kept.evaluations++;
const { device, past, cache, source, pipeline, mask, tileClasses } = kept;

const [q, out] = [device.tensor("bf16", [1, 1, 16, 64]), device.tensor("bf16", [1, 1, 16, 64])];
using pass = device.pass();
kvCacheCopy(pass, { src: source, cache, writePos: 1 });
pass.dispatch(pipeline, { buffers: { 0: { tensor: cache } }, grid: 8, threads: 8 });
flashAttnPrefill(pass, { q, k: q, v: q, out, mask, tileClasses: classifyMaskTiles(pass, { mask, headDim: 64, reuse: tileClasses }) });
flashAttnDecode(pass, { q, k: past, v: past, out, seqLen: 16 });
await pass.commit();

// Parameters are of the class that the kept device knows; functions of now take them.
const recorded = device.tensor("f32", [2, 4]);
using step = device.record((pass) => {
  kvCacheCopy(pass, { src: source, cache: recorded, writePos: pass.parameter("writePos", { min: 0, max: 1 }) });
});
step.commitAndWait({ writePos: 1 });
using kvCache = new KvCache(device, { layers: 1, nKvHeads: 1, headDim: 64, capacity: 64 });

let refusal;
try {
  device.tensor("f32", [0]);
} catch (error) {
  refusal = error instanceof MetalAttentionError && !(new TypeError() instanceof MetalAttentionError) && error.code;
}
const other = Device.open();
let foreign;
try {
  using mine = other.pass();
  kvCacheCopy(mine, { src: source, cache, writePos: 1 });
} catch (error) {
  foreign = error.code;
}
other.dispose();
console.log(JSON.stringify({
  evaluations: kept.evaluations, same: kept.Device === Device, values: [...cache.view()], refusal, foreign,
  recorded: [...recorded.view()], bytes: kvCache.memory.rows,
}));
setInterval(() => {}, 1000);
`;

test("objects of a former evaluation serve the next one", async () => {
  const folder = mkdtempSync(join(tmpdir(), "metal-attention-hot-"));
  const path = join(folder, "main.ts");
  writeFileSync(path, program);
  const child = Bun.spawn([process.execPath, "--hot", "--no-clear-screen", path], {
    env: plainEnvironment,
    stdout: "pipe",
    stderr: "inherit",
    // A program that has failed waits for the next change.
    timeout: 30_000,
  });
  try {
    const lines: unknown[] = [];
    let text = "";
    const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
    while (lines.length < 3) {
      const { value, done } = await reader.read();
      if (done) break;
      text += value;
      const parts = text.split("\n");
      text = parts.pop() ?? "";
      for (const part of parts) {
        lines.push(JSON.parse(part));
        appendFileSync(path, "//\n");
      }
    }
    const values = [0, 0, 0, 0, 2, 4, 6, 8];
    const common = {
      values,
      recorded: [0, 0, 0, 0, 1, 2, 3, 4],
      refusal: "invalid-argument",
      foreign: "invalid-handle",
      bytes: 64 * (64 + 32),
    };
    expect(lines).toEqual([
      { evaluations: 1, same: true, ...common },
      { evaluations: 2, same: false, ...common },
      { evaluations: 3, same: false, ...common },
    ]);
  } finally {
    child.kill();
    await child.exited;
    rmSync(folder, { recursive: true });
  }
}, 60_000);

test("objects of another version are refused by both versions' names", () => {
  using device = Device.open();
  using cache = device.tensor("f32", [2, 4]);
  using pass = device.pass();
  const stranger = { [Symbol.for("metal-attention.version")]: "0.0.1" };
  const parts = ["metal-attention 0.0.1", `beside ${version}`, "make the device and its objects again"];
  expectRefusal(
    () => kvCacheCopy(stranger as never, { src: cache, cache, writePos: 0 }),
    "invalid-argument",
    "pass",
    ...parts,
  );
  expectRefusal(
    () => new KvCache(stranger as never, { layers: 1, nKvHeads: 1, headDim: 64, capacity: 64 }),
    "invalid-argument",
    "device",
    ...parts,
  );
  expectRefusal(
    () => kvCacheCopy(pass, { src: stranger as never, cache, writePos: 0 }),
    "invalid-argument",
    "src",
    ...parts,
  );
});
