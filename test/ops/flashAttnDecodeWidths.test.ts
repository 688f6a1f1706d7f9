import { afterAll, expect, test } from "bun:test";
import { normalArray } from "../../scripts/lib/random.ts";
import { Device, flashAttnDecode, hadamardQuantizeKvSeq, kvCacheBytes, mergeAttention } from "../../src/index.ts";
import { referenceDecode } from "../../src/reference/index.ts";

// Decode attention against the K and V that were written, before they were quantized; and parts of the keys joined.

const device = Device.open();
afterAll(() => device.dispose());

const [heads, kvHeads, headDim, length] = [4, 2, 128, 300];
const f32 = (...shape: number[]) => device.tensor("f32", shape);

/** Normal values [length, kvHeads, headDim], as they are written, and the dense head-major cache of them. */
function source(seed: number) {
  const values = normalArray(length * kvHeads * headDim, 1, seed);
  const rowOf = (head: number, position: number) => {
    const start = (position * kvHeads + head) * headDim;
    return values.subarray(start, start + headDim);
  };
  const dense = f32(kvHeads, length, headDim);
  for (let head = 0; head < kvHeads; head++) {
    for (let position = 0; position < length; position++) {
      dense.view().set(rowOf(head, position), (head * length + position) * headDim);
    }
  }
  return { src: f32(length, kvHeads, headDim).set(values), dense, rowOf };
}

const [k, v] = [source(1), source(2)];
const queries = normalArray(heads * headDim, 1.5, 3);
const q = f32(heads, 1, headDim).set(queries);
const slopes = Float32Array.of(0.5, 0.0625, 0.01, 0);
const exactOf = (alibiSlopes?: Float32Array) =>
  referenceDecode({
    heads,
    kvHeads,
    rows: 1,
    headDim,
    valueDim: headDim,
    length,
    scale: Math.fround(1 / Math.sqrt(headDim)),
    alibiSlopes,
    q: queries,
    keyAt: k.rowOf,
    valueAt: v.rowOf,
  });
const [exact, exactSloped] = [exactOf(), exactOf(slopes)];

function nrmse(values: Float32Array, out = exact.out): number {
  let [errors, squares] = [0, 0];
  for (const [i, expected] of out.entries()) {
    errors += ((values[i] as number) - expected) ** 2;
    squares += expected ** 2;
  }
  return Math.sqrt(errors / squares);
}

// Errors grow with fewer bits, those of K more than those of V.
test.each([
  [8, 0.02, 0.01],
  [6, 0.07, 0.035],
  [5, 0.1, 0.07],
  [4, 0.2, 0.13],
  [3, 0.4, 0.26],
  [2, 0.7, 0.45],
] as const)("%d bits of K give an NRMSE of at most %d, of V %d", (bits, ofK, ofV) => {
  const { bytesPerRow, normsPerPos } = kvCacheBytes({ headDim, nKvHeads: kvHeads, capacity: length, bits });
  const codes = () => ({
    packed: device.tensor("u8", [kvHeads, length, bytesPerRow]),
    norms: f32(kvHeads, length, normsPerPos),
  });
  const [codesOfK, codesOfV] = [codes(), codes()];
  const [outOfK, outOfV] = [f32(heads, 1, headDim), f32(heads, 1, headDim)];
  using pass = device.pass();
  hadamardQuantizeKvSeq(pass, {
    k: { src: k.src, ...codesOfK },
    v: { src: v.src, ...codesOfV },
    bits,
    writePosStart: 0,
  });
  flashAttnDecode(pass, { q, k: { ...codesOfK, bits }, v: v.dense, out: outOfK, seqLen: length });
  flashAttnDecode(pass, { q, k: k.dense, v: { ...codesOfV, bits }, out: outOfV, seqLen: length });
  pass.commitAndWait();
  expect(nrmse(outOfK.view())).toBeWithin(ofK / 4, ofK);
  expect(nrmse(outOfV.view())).toBeWithin(ofV / 4, ofV);
});

test.each([
  [[300], "one part"],
  [[100, 200], "two"],
  [[0, 256, 44], "three, the first of which is empty"],
  [[37, 37, 37, 37, 37, 37, 37, 41], "eight"],
] as const)("keys in parts of %p give what all of them give: %s", (lengths) => {
  for (const hasSlopes of [false, true]) checkParts(lengths, hasSlopes);
});

function checkParts(lengths: readonly number[], hasSlopes: boolean): void {
  const alibiSlopes = f32(heads).set(slopes);
  using pass = device.pass();
  let first = 0;
  const parts = lengths.map((keys) => {
    const part = { out: f32(heads, 1, headDim), lse: f32(heads, 1) };
    const slots = Math.max(keys, 1);
    const [kPart, vPart] = [k, v].map(({ rowOf }) => {
      const cache = f32(kvHeads, slots, headDim);
      for (let head = 0; head < kvHeads; head++) {
        for (let i = 0; i < keys; i++) cache.view().set(rowOf(head, first + i), (head * slots + i) * headDim);
      }
      return cache;
    }) as [ReturnType<typeof f32>, ReturnType<typeof f32>];
    first += keys;
    const alibi = hasSlopes ? { alibiSlopes, alibiDistance: length - first } : {};
    flashAttnDecode(pass, { q, k: kPart, v: vPart, ...part, seqLen: keys, ...alibi });
    return part;
  });
  const [out, lse] = [f32(heads, 1, headDim), f32(heads, 1)];
  mergeAttention(pass, { parts, out, lse });
  pass.commitAndWait();
  expect(first).toBe(length);
  const all = hasSlopes ? exactSloped : exact;
  expect(nrmse(out.view(), all.out)).toBeLessThan(2e-6);
  for (const [head, expected] of all.lse.entries()) {
    expect(Math.abs((lse.view()[head] as number) - expected)).toBeLessThan(1e-5);
  }
}
