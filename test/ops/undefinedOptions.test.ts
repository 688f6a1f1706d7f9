/** An option that is undefined counts as not given, for the types (`exactOptionalPropertyTypes`) and at run time. */
import { expect, test } from "bun:test";
import { applyRope, Device, flashAttnDecode, flashAttnPrefill, KvCache, kvCacheBytes } from "../../src/index.ts";

const device = Device.open();
const random = (shape: number[], seed: number) =>
  device
    .tensor("f16", shape)
    .set(Float32Array.from({ length: shape.reduce((a, b) => a * b) }, (_, i) => Math.sin(seed + 12.9898 * i)));
const [q, k, v] = [random([1, 2, 8, 64], 1), random([1, 1, 8, 64], 2), random([1, 1, 8, 64], 3)];

/** As a user's helper passes its own options on. */
interface Given {
  readonly scale?: number | undefined;
  readonly window?: number | undefined;
  readonly softcap?: number | undefined;
  readonly lse?: undefined;
  readonly sinks?: undefined;
}
const absent: Given = { scale: undefined, window: undefined, softcap: undefined, lse: undefined, sinks: undefined };

function bits(run: (out: ReturnType<typeof random>) => void): number[] {
  const out = device.tensor("f16", [1, 2, 8, 64]);
  run(out);
  return Array.from(new Uint16Array(out.bytes.buffer, out.bytes.byteOffset, out.length));
}

test.each<[name: string, run: (given: Given, out: ReturnType<typeof random>) => void]>([
  [
    "flashAttnPrefill",
    (given, out) => {
      using pass = device.pass({ mode: undefined, profile: undefined });
      flashAttnPrefill(pass, { q, k, v, out, causal: true, mask: undefined, ...given });
      pass.commitAndWait();
    },
  ],
  [
    "flashAttnDecode",
    (given, out) => {
      using pass = device.pass();
      flashAttnDecode(pass, { q, k, v, out, seqLen: 8, seqLens: undefined, blockTable: undefined, ...given });
      pass.commitAndWait();
    },
  ],
  [
    "applyRope",
    (given, out) => {
      using pass = device.pass();
      const rotaryDim = given.window;
      applyRope(pass, { x: q, out, theta: 10_000, pairing: "half", start: given.scale, rotaryDim });
      pass.commitAndWait();
    },
  ],
])("%s", (_, run) => {
  expect(bits((out) => run(absent, out))).toEqual(bits((out) => run({}, out)));
});

test("KvCache and kvCacheBytes", () => {
  const shape = { nKvHeads: 1, headDim: 64, capacity: 8 };
  using cache = new KvCache(device, { layers: 1, ...shape, k: undefined, window: undefined, pages: undefined });
  using plain = new KvCache(device, { layers: 1, ...shape });
  expect(cache.bytes).toBe(plain.bytes);
  expect(kvCacheBytes({ ...shape, bits: 4, packing: undefined, nLayers: undefined })).toEqual(
    kvCacheBytes({ ...shape, bits: 4 }),
  );
});
