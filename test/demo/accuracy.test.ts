import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { bitsOf, checkResults } from "../../scripts/attention-layer/accuracy.ts";
import type { AttentionChoice } from "../../scripts/attention-layer/choice.ts";
import type { LayerInputs } from "../../scripts/attention-layer/inputs.ts";
import { type LayerResults, runLayer } from "../../scripts/attention-layer/run.ts";
import { Progress } from "../../scripts/lib/progress.ts";
import { normalArray } from "../../scripts/lib/random.ts";
import { Device } from "../../src/index.ts";

describe("the demo's checks fail where a result is wrong", () => {
  const shape = { tokens: 40, heads: 4, kvHeads: 2, headDim: 256 };
  const rows = (heads: number, tokens: number, seed: number) => normalArray(heads * tokens * shape.headDim, 1, seed);
  const inputs: LayerInputs = {
    description: "random",
    ...shape,
    q: rows(shape.heads, 40, 1),
    k: rows(shape.kvHeads, 72, 2),
    v: rows(shape.kvHeads, 72, 3),
  };
  const choice: AttentionChoice = { dtype: "bf16", mask: "none", window: undefined, chunk: 7, kv: "4" };
  let device: Device;
  let results: LayerResults;
  beforeAll(() => {
    device = Device.open();
    using progress = new Progress();
    results = runLayer(device, inputs, choice, progress);
  }, 60_000);
  afterAll(() => device.dispose());

  test("nothing wrong", () => {
    const { right, lines } = checkResults(inputs, choice, results);
    expect(lines.filter((line) => line.endsWith(": ok"))).toHaveLength(5);
    expect(lines.filter((line) => line.endsWith(": WRONG"))).toEqual([]);
    expect(right).toBe(true);
  });

  /** Changes an element, checks, and changes it back. */
  function check(
    elements: Uint8Array | Uint16Array | Float16Array | Float32Array,
    index: number,
    value: number,
  ): string[] {
    const before = elements[index] as number;
    elements[index] = value;
    try {
      const { right, lines } = checkResults(inputs, choice, results);
      expect(right).toBe(false);
      return lines.filter((line) => line.endsWith(": WRONG")).map((line) => line.slice(0, line.indexOf(":")));
    } finally {
      elements[index] = before;
    }
  }

  test("one element of the attention output, too large or NaN", () => {
    const bits = bitsOf(results.out);
    expect(check(bits, 5, (bits[5] as number) ^ 0x0080)).toEqual(["attention", "chunks"]);
    expect(check(bits, bits.length - 1, 0x7fc0)).toEqual(["attention", "chunks"]);
  });

  test("one bit of the output in chunks", () => {
    if (results.chunked === undefined) throw new Error("no output in chunks");
    const bits = bitsOf(results.chunked);
    expect(check(bits, bits.length - 1, (bits[bits.length - 1] as number) ^ 1)).toEqual(["chunks"]);
  });

  test("one bit of a cache, one of the ring, one slot of it that nothing was written to", () => {
    for (const tensor of [results.cache.k, results.cache.v, results.ring.k, results.ring.v]) {
      const { buffer, byteOffset, length } = tensor.view();
      const bits = new Uint16Array(buffer, byteOffset, length);
      const name = tensor === results.cache.k || tensor === results.cache.v ? "cache" : "ring";
      expect(check(bits, 3, (bits[3] as number) ^ 1)).toEqual([name]);
    }
    expect(check(results.ring.v.view(), results.ring.v.length - 1, 1)).toEqual(["ring"]);
  });

  test("one code, one norm, one element read back from the quantized cache", () => {
    const { roundTrip } = results;
    if (roundTrip?.cache.codes === undefined) throw new Error("no quantized cache");
    for (const name of ["k", "v"] as const) {
      const packed = roundTrip.cache[name].packed.view();
      const norms = roundTrip.cache[name].norms.view();
      const readBack = bitsOf(roundTrip.readBack[name]);
      // The first head vector is one of those that are compared. In the low half and in the high one:
      expect(check(packed, 7, (packed[7] as number) ^ 0x01)).toEqual(["round trip"]);
      expect(check(packed, 7, (packed[7] as number) ^ 0x80)).toEqual(["round trip"]);
      expect(check(norms, 0, (norms[0] as number) * 1.00001)).toEqual(["round trip"]);
      expect(check(norms, 0, Number.NaN)).toEqual(["round trip"]);
      expect(check(readBack, 9, (readBack[9] as number) ^ 0x8000)).toEqual(["round trip"]);
      expect(check(readBack, 9, 0x7fc0)).toEqual(["round trip"]);
    }
  });
});
