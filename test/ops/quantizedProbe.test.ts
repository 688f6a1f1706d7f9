/** The scratch tensor in the reference's form: the first 16 scaled coordinates of each norm. */
import { afterAll, describe, expect, test } from "bun:test";
import { Device, hadamardQuantizeKv, kvCacheBytes } from "../../src/index.ts";
import { quantizeVector } from "../../src/reference/index.ts";
import { headSizes } from "../helpers/quantized.ts";

const device = Device.open();
afterAll(() => device.dispose());

const perNorm = 16;
const nKvHeads = 3;

/** Scratch memory with what no coordinate is, and the coordinates that the call puts there. */
function probe(headDim: number, batch: number, form: "all" | "reference"): Float32Array {
  const { bytesPerRow, normsPerPos } = kvCacheBytes({ headDim, nKvHeads, capacity: 2, bits: 4 });
  const values = Float32Array.from({ length: batch * nKvHeads * headDim }, (_, i) => Math.sin(i * i + headDim));
  using src = device.tensor("f32", [batch, nKvHeads, headDim]).set(values);
  using packed = device.tensor("u8", [batch, nKvHeads, 2, bytesPerRow]);
  using norms = device.tensor("f32", [batch, nKvHeads, 2, normsPerPos]);
  const shape = form === "all" ? [batch, nKvHeads, headDim] : [batch, nKvHeads, normsPerPos, perNorm];
  using rmsScratch = device.tensor("f32", shape);
  rmsScratch.view().fill(777);
  using pass = device.pass();
  hadamardQuantizeKv(pass, { src, packed, norms, bits: 4, writePos: 1, rmsScratch });
  pass.commitAndWait();
  // Against the oracle, so that both forms are not wrong alike.
  const oracle = quantizeVector(values.subarray(0, headDim), { bits: 4, packing: "nibble" }).scaled;
  const written = rmsScratch.toFloat32Array();
  expect(Math.abs((written[5] as number) - (oracle[5] as number))).toBeLessThan(1e-4);
  return written;
}

describe("the first 16 coordinates of each norm are those of the whole probe", () => {
  const sizes = [...headSizes, 16, 1024];
  test.each(sizes.flatMap((headDim) => [1, 2].map((batch) => [headDim, batch] as const)))(
    "D=%d, %d batches",
    (headDim, batch) => {
      const all = probe(headDim, batch, "all");
      const first = probe(headDim, batch, "reference");
      const group = headDim / Math.max(1, headDim / 256);
      const expected = all.filter((_, i) => (i % headDim) % group < perNorm);
      expect(first.length).toBe(expected.length);
      expect(first).toEqual(expected);
      expect(first).not.toContain(777);
    },
  );
});
