import { describe, expect, test } from "bun:test";
import {
  type AttentionDType,
  classifyMaskTiles,
  type Device,
  type DType,
  type FlashAttnPrefillSupport,
  flashAttnPrefill,
  flashAttnPrefillSupport,
  type Tensor,
} from "../../src/index.ts";
import { oneAndTwoThreads } from "../helpers/devices.ts";
import { bitDifferences, bitsOf } from "../helpers/elements.ts";
import {
  encodePrefill,
  headMajorRows,
  type MaskPattern,
  maskPatterns,
  type PrefillCase,
  type PrefillScene,
  prefillScene,
} from "../helpers/prefill.ts";
import { testTable } from "../helpers/table.ts";

// Ways to the same result that must not differ in a single bit.

const devices = oneAndTwoThreads();
const [device, twoThreads] = devices;

const rows = flashAttnPrefillSupport().map((row, index) => ({ row, index, name: `${row.kernel}, mask ${row.mask}` }));
type Row = (typeof rows)[number];

function caseOf({ row, index }: Row, changes: Partial<PrefillCase> = {}): PrefillCase {
  return {
    row,
    batch: 2,
    heads: 4,
    kvHeads: 2,
    qL: 45,
    kL: 53,
    capacity: 53,
    causal: index % 2 === 0,
    qOffsetInK: 8,
    layout: "head-major",
    values: "normal",
    pattern: maskPatterns[index % 6] as MaskPattern,
    maskShape: "shared",
    tileClasses: false,
    seed: index,
    ...changes,
  };
}

/** The output's values, head-major: equal values have equal bits, as no output here is a NaN. */
function run(on: Device, entry: PrefillCase): Float32Array {
  const scene = prefillScene(on, entry);
  using out = on.tensor(entry.row.dtype, scene.q.shape);
  using pass = on.pass();
  const classes = encodePrefill(pass, entry, scene, out);
  pass.commitAndWait();
  classes?.dispose();
  scene.dispose();
  return headMajorRows(entry, out);
}

/** Equality of each bit; Float32Array equality would take -0 for 0. */
function expectSameBits(actual: Float32Array, expected: Float32Array): void {
  const bits = (values: Float32Array) => new Uint32Array(values.buffer, values.byteOffset, values.length);
  expect(bitDifferences("f32", bits(actual), bits(expected))).toEqual([]);
}

testTable("repeated, and on two threads", rows, (row) => {
  const expected = run(device, caseOf(row));
  expect(expected.some((value) => value !== 0)).toBe(true);
  for (const on of [device, twoThreads, twoThreads]) expectSameBits(run(on, caseOf(row)), expected);
});

testTable("sequence-major and head-major", rows, (row) => {
  expectSameBits(run(device, caseOf(row, { layout: "sequence-major" })), run(device, caseOf(row)));
});

testTable("keys from a larger cache with NaN in it, and the same keys alone", rows, (row) => {
  expectSameBits(run(device, caseOf(row, { capacity: 80 })), run(device, caseOf(row)));
});

const masked = rows.filter(({ row }) => row.mask !== "none");
const maskCases = masked.flatMap((row) =>
  maskPatterns.map((pattern) => ({ ...row, pattern, name: `${row.name}, ${pattern}` })),
);

testTable("with tile classes and without", maskCases, ({ pattern, ...row }) => {
  const maskShape = pattern === "random" ? "by-batch-and-head" : pattern === "tiles" ? "by-head" : "shared";
  const entry = caseOf(row, { pattern, maskShape });
  expectSameBits(run(device, { ...entry, tileClasses: true }), run(device, entry));
});

/** Rows `first` up to `end` of each head of [1, heads, total, headDim], beginning at row 0 again. */
function cut(
  device: Device,
  row: FlashAttnPrefillSupport,
  whole: Tensor<AttentionDType>,
  first: number,
  end: number,
): Tensor<AttentionDType> {
  const [, heads, total, headDim] = whole.shape as [number, number, number, number];
  const part = device.tensor(row.dtype, [1, heads, end - first, headDim]);
  const source = bitsOf(whole);
  for (let head = 0; head < heads; head++) {
    const start = (head * total + first) * headDim;
    bitsOf(part).set(source.subarray(start, start + (end - first) * headDim), head * (end - first) * headDim);
  }
  return part;
}

/** The mask [qL, kL] of a chunk, from that of the whole prompt. */
function cutMask<T extends DType>(device: Device, whole: Tensor<T>, first: number, end: number): Tensor<T> {
  const [, kL] = whole.shape as [number, number];
  const part = device.tensor(whole.dtype, [end - first, end]);
  const size = whole.byteLength / whole.length;
  for (let i = first; i < end; i++) {
    part.bytes.set(whole.bytes.subarray(i * kL * size, (i * kL + end) * size), (i - first) * end * size);
  }
  return part;
}

/** A causal prompt in chunks, each against slots of which only the keys so far are in use. */
function runChunks(
  entry: PrefillCase,
  scene: PrefillScene,
  chunks: readonly number[],
  out: Tensor<AttentionDType>,
): void {
  const { row, heads, kvHeads, capacity } = entry;
  using k = device.tensor(row.dtype, [1, kvHeads, capacity, row.headDim]);
  using v = device.tensor(row.dtype, [1, kvHeads, capacity, row.headDim]);
  for (const slots of [k, v]) slots.set(new Float32Array(slots.length).fill(Number.NaN));
  let first = 0;
  for (const chunk of chunks) {
    const end = first + chunk;
    for (const [slots, source] of [
      [k, scene.k],
      [v, scene.v],
    ] as const) {
      for (let head = 0; head < kvHeads; head++) {
        const at = (head * capacity + first) * row.headDim;
        bitsOf(slots).set(bitsOf(source).subarray(at, at + chunk * row.headDim), at);
      }
    }
    using q = cut(device, row, scene.q, first, end);
    using part = device.tensor(row.dtype, q.shape);
    const mask = scene.mask === undefined ? undefined : cutMask(device, scene.mask, first, end);
    using pass = device.pass();
    const tileClasses =
      mask === undefined || chunk < 5 ? undefined : classifyMaskTiles(pass, { mask, headDim: row.headDim });
    const masking = {
      ...(mask === undefined ? {} : { mask }),
      ...(tileClasses === undefined ? {} : { tileClasses }),
    };
    const place = { qOffsetInK: first, seqLenK: end, kvCapacity: capacity };
    flashAttnPrefill(pass, { q, k, v, out: part, causal: true, ...place, ...masking });
    pass.commitAndWait();
    for (let head = 0; head < heads; head++) {
      const target = (head * entry.qL + first) * row.headDim;
      bitsOf(out).set(bitsOf(part).subarray(head * chunk * row.headDim, (head + 1) * chunk * row.headDim), target);
    }
    tileClasses?.dispose();
    mask?.dispose();
    first = end;
  }
}

testTable("a causal prompt in chunks and at once", rows, (row) => {
  const total = 69;
  const shape = { batch: 1, qL: total, kL: total, capacity: 80, qOffsetInK: 0, causal: true };
  const entry = caseOf(row, shape);
  const scene = prefillScene(device, entry);
  using whole = device.tensor(row.row.dtype, scene.q.shape);
  using pass = device.pass();
  encodePrefill(pass, entry, scene, whole);
  pass.commitAndWait();
  const chunkings = [
    [32, 32, 5],
    [17, 1, 40, 11],
    [1, 2, 63, 3],
    [66, 1, 1, 1],
  ];
  for (const chunks of chunkings) {
    expect(chunks.reduce((sum, chunk) => sum + chunk, 0)).toBe(total);
    using out = device.tensor(row.row.dtype, scene.q.shape);
    runChunks(entry, scene, chunks, out);
    expect(bitDifferences(row.row.dtype, bitsOf(out), bitsOf(whole))).toEqual([]);
  }
  scene.dispose();
});

describe("by strides", () => {
  const dims = { batch: 2, heads: 4, kvHeads: 2, qL: 37, kL: 45 };

  test.each(rows.map((row) => [row.name, row] as const))(
    "%s: rows with gaps, queries, keys and values in one tensor",
    (_, row) => {
      const { row: support } = row;
      const { headDim, dtype } = support;
      const entry = caseOf(row, { ...dims, capacity: dims.kL, qOffsetInK: 4 });
      const scene = prefillScene(device, entry);
      using expected = device.tensor(dtype, scene.q.shape);
      using pass = device.pass();
      encodePrefill(pass, entry, scene, expected);

      // A row of a token: 3 elements of gap, then all heads of q, k and v.
      const gap = 3;
      const tokenStride = gap + (dims.heads + 2 * dims.kvHeads) * headDim;
      const tokens = Math.max(dims.qL, dims.kL);
      using packed = device.tensor(dtype, [dims.batch * tokens * tokenStride]);
      packed.set(new Float32Array(packed.length).fill(Number.NaN));
      const starts = { q: gap, k: gap + dims.heads * headDim, v: gap + (dims.heads + dims.kvHeads) * headDim };
      for (const name of ["q", "k", "v"] as const) {
        const source = scene[name];
        const [, heads, length] = source.shape as [number, number, number];
        for (let b = 0; b < dims.batch; b++) {
          for (let head = 0; head < heads; head++) {
            for (let token = 0; token < length; token++) {
              const from = ((b * heads + head) * length + token) * headDim;
              const to = (b * tokens + token) * tokenStride + starts[name] + head * headDim;
              bitsOf(packed).set(bitsOf(source).subarray(from, from + headDim), to);
            }
          }
        }
      }
      const strides = { batch: tokens * tokenStride, head: headDim, token: tokenStride };
      // The output's tokens are the slowest axis, its rows an odd number of elements apart.
      const outStrides = {
        head: headDim + 1,
        batch: dims.heads * (headDim + 1),
        token: 2 * dims.heads * (headDim + 1),
      };
      using out = device.tensor(dtype, [dims.qL * outStrides.token]);
      const part = (start: number) => packed.slice(start);
      using q = part(starts.q);
      using k = part(starts.k);
      using v = part(starts.v);
      flashAttnPrefill(pass, {
        q,
        k,
        v,
        out,
        causal: entry.causal,
        qOffsetInK: 4,
        seqLenK: dims.kL,
        ...(scene.mask === undefined ? {} : { mask: scene.mask }),
        layout: {
          batch: dims.batch,
          heads: dims.heads,
          kvHeads: dims.kvHeads,
          seqLenQ: dims.qL,
          headDim,
          q: strides,
          k: strides,
          v: strides,
          out: outStrides,
          ...(scene.mask === undefined ? {} : { mask: { batch: 0, head: 0, token: dims.kL } }),
        },
      });
      pass.commitAndWait();
      const gathered = bitsOf(expected).slice();
      const written = new Set<number>();
      for (let b = 0; b < dims.batch; b++) {
        for (let head = 0; head < dims.heads; head++) {
          for (let token = 0; token < dims.qL; token++) {
            const from = b * outStrides.batch + head * outStrides.head + token * outStrides.token;
            const to = ((b * dims.heads + head) * dims.qL + token) * headDim;
            gathered.set(bitsOf(out).subarray(from, from + headDim), to);
            written.add(from + headDim);
          }
        }
      }
      expect(bitDifferences(dtype, gathered, bitsOf(expected))).toEqual([]);
      // The element after each row is nobody's.
      for (const index of written) expect(bitsOf(out)[index] ?? 0).toBe(0);
      scene.dispose();
    },
  );
});
