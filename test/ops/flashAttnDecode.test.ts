import { afterAll, expect, test } from "bun:test";
import { seededBits } from "../../scripts/lib/random.ts";
import { Device } from "../../src/index.ts";
import { type CacheFormat, checkDecode, type DecodeCase } from "../helpers/decode.ts";
import { codeFormats, formatName, headSizes } from "../helpers/quantized.ts";

// Decode attention against float64 attention over the values that the cache holds. Each byte of a cache that no key in
// use has is NaN.

const device = Device.open();
afterAll(() => device.dispose());

let cases = 0;

/** Runs and judges a case. */
function check(entry: DecodeCase): void {
  checkDecode(device, entry);
  cases += 1;
}

const dense: readonly CacheFormat[] = ["f32", "f16", "bf16"];
const all: readonly CacheFormat[] = [...dense, ...codeFormats];
const lengths = [0, 1, 31, 32, 33, 255, 256, 257] as const;
const groups = [1, 3, 6, 7, 8, 12, 16, 20] as const;
const dtypes = ["f32", "f16", "bf16"] as const;

const base: DecodeCase = {
  headDim: 64,
  heads: 2,
  kvHeads: 1,
  rows: 1,
  lengths: [40],
  capacity: 48,
  k: "f16",
  v: "f16",
};

/** A test for each format of K, since a GPU's compiler takes seconds for a pair of the largest heads. */
const pairTests = (sizes: readonly number[]) =>
  sizes.flatMap((headDim) => all.map((k, i) => [headDim, typeof k === "string" ? k : formatName(k), k, i] as const));

test.each(pairTests(headSizes))("every pair of formats, D = %d, K of %s", (headDim, _, k, i) => {
  for (const [j, v] of all.entries()) {
    const seed = i * all.length + j;
    const length = 1 + ((seed * 7) % 40);
    const outDtype = dtypes[seed % 3] as "f32" | "f16" | "bf16";
    const qDtype = dtypes[(seed + i) % 3] as "f32" | "f16" | "bf16";
    const heads = 1 + (seed % 2);
    check({ ...base, headDim, heads, k, v, lengths: [length], outDtype, qDtype, seed });
  }
});

test.each(headSizes)("lengths around the edges of leaves and blocks, D = %d", (headDim) => {
  for (const length of lengths) {
    for (const k of ["f32", "f16", "bf16", codeFormats[0] as CacheFormat] as const) {
      for (const heads of [1, 3]) {
        check({ ...base, headDim, heads, k, v: k, lengths: [length], capacity: Math.max(1, length), seed: length });
      }
    }
  }
});

test.each(groups)("groups of %d heads, from 1 to 4 rows", (heads) => {
  for (const rows of [1, 2, 3, 4]) {
    for (const kvHeads of [1, 2]) {
      check({ ...base, heads: heads * kvHeads, kvHeads, rows, lengths: [37], seed: rows });
    }
  }
});

test.each([1, 2, 5, 8, 15, 16])("%d query rows", (rows) => {
  for (const length of [0, 1, 7, 16, 40, 260]) {
    check({ ...base, rows, lengths: [length], capacity: 300 });
    check({ ...base, rows, lengths: [length], capacity: 300, window: 9 });
  }
});

test("batches of ragged lengths", () => {
  const ragged = [0, 33, 300, 1, 257];
  for (const headDim of [64, 80, 128, 512]) {
    for (let batch = 1; batch <= 5; batch++) {
      for (const rows of [1, 3]) {
        const entry = { ...base, headDim, rows, lengths: ragged.slice(0, batch), capacity: 304, hasLengths: true };
        check(entry);
        check({ ...entry, window: 40 });
      }
    }
  }
});

test("a ring, wrapped at every offset", () => {
  for (const capacity of [9, 32, 48]) {
    for (let length = 1; length < 2 * capacity + 3; length++) {
      check({ ...base, isSliding: true, capacity, lengths: [length], k: "f32", v: "f16", seed: length });
    }
  }
  for (const length of [255, 256, 257, 300, 511, 513, 900, 1000]) {
    check({ ...base, isSliding: true, capacity: 290, lengths: [length], hasLengths: length % 2 === 0 });
  }
});

test("pages in random order", () => {
  for (const pageTokens of [1, 7, 16, 32, 64]) {
    for (const length of [1, 31, 64, 65, 257]) {
      const capacity = Math.ceil(300 / pageTokens) * pageTokens;
      check({ ...base, pageTokens, capacity, lengths: [length, 40], seed: length });
      check({ ...base, pageTokens, capacity, lengths: [length], k: codeFormats[1] as CacheFormat, window: 50 });
    }
  }
});

test("the windows of rows", () => {
  for (const window of [1, 2, 31, 32, 33, 200, 256, 257, 1000]) {
    for (const length of [1, 40, 257, 600]) {
      for (const rows of [1, 4]) check({ ...base, window, rows, lengths: [length], capacity: 600 });
    }
  }
});

test("softcap, sinks, slopes and scales", () => {
  for (const softcap of [undefined, 0.1, 50]) {
    for (const sink of [undefined, -1000, 0, 3, 1000]) {
      for (const hasSlopes of [false, true]) {
        for (const lengths of [[40], [300], [0, 12]]) {
          const options = { ...(softcap && { softcap }), ...(sink !== undefined && { sink }), hasSlopes };
          check({ ...base, heads: 6, kvHeads: 2, rows: 2, lengths, capacity: 300, ...options });
          if (hasSlopes) check({ ...base, rows: 3, lengths, capacity: 300, ...options, alibiDistance: 77 });
        }
      }
    }
  }
  for (const scale of [1, 0.01, 3]) check({ ...base, scale, lengths: [100], capacity: 100 });
});

test("scores of 300 and more, positive and negative", () => {
  for (const seed of [1, 2, 3, 4, 5, 6, 7, 8]) {
    check({ ...base, k: "f32", v: "f32", spread: 300, lengths: [120], capacity: 300, seed });
  }
});

test("trees of the last keys", () => {
  for (const treeColumns of [1, 2, 8, 31, 32]) {
    for (const rows of [1, 4, 16]) {
      for (const length of [treeColumns, 40, 257]) {
        check({ ...base, treeColumns, rows, lengths: [Math.max(length, treeColumns)], capacity: 300, seed: rows });
      }
    }
  }
});

test.each(["f16", "bf16"] as const)("V as a part of K, D = 576, in %s", (dtype) => {
  for (const length of [0, 1, 31, 33, 256, 300]) {
    for (const heads of [1, 20]) {
      check({ ...base, headDim: 576, heads, k: dtype, v: dtype, lengths: [length], capacity: 300, outDtype: dtype });
    }
  }
});

const [four, three, eight, fiveDense] = [
  { bits: 4, packing: "nibble" },
  { bits: 3, packing: "dense" },
  { bits: 8, packing: "byte" },
  { bits: 5, packing: "dense" },
] as const satisfies readonly CacheFormat[];
/** K and V, a pair of each kind of kernel and more than one of two. */
const pairs: readonly { readonly k: CacheFormat; readonly v: CacheFormat }[] = [
  { k: "f32", v: "bf16" },
  { k: "bf16", v: four },
  { k: four, v: "f16" },
  { k: eight, v: three },
  { k: fiveDense, v: eight },
];

test.each(pairTests([64, 512]))(
  "every pair of formats by the other size of tile, in ragged batches, D = %d, K of %s",
  (headDim, _, k, i) => {
    for (const [j, v] of all.entries()) {
      const seed = i * all.length + j;
      const heads = 2 - (seed % 2);
      check({ ...base, headDim, heads, k, v, lengths: [1 + (seed % 20), 20 - (seed % 20)], capacity: 24, seed });
    }
  },
);

test("lengths around each number of blocks, and of SIMD groups in a threadgroup", () => {
  for (const blocks of [1, 2, 3, 4]) {
    for (const length of [256 * blocks - 1, 256 * blocks, 256 * blocks + 1]) {
      for (const heads of [1, 3]) {
        for (const k of ["f16", four] as const) {
          check({ ...base, heads, k, v: k, lengths: [length], capacity: length, seed: length });
        }
      }
    }
  }
  // Two heads of K and V: from 80, 120 and 160 blocks on a threadgroup has one SIMD group more.
  for (const edge of [80, 120, 160]) {
    for (const blocks of [edge - 1, edge, edge + 1]) {
      for (const length of [40, 300]) {
        check({ ...base, heads: 6, kvHeads: 2, lengths: [length], capacity: 256 * blocks, hasLengths: true });
      }
    }
  }
});

test("lengths that the device knows around the edges, the cache as long", () => {
  for (const length of lengths) {
    for (const headDim of [64, 128]) {
      for (const pair of pairs.slice(1, 4)) {
        for (const rows of [1, 2]) {
          const capacity = Math.max(1, length);
          check({ ...base, ...pair, headDim, rows, lengths: [length], capacity, hasLengths: true, seed: length });
        }
      }
    }
  }
});

test.each(groups)("groups of %d heads over codes", (heads) => {
  for (const headDim of [64, 256]) {
    for (const pair of pairs.slice(1, 4)) {
      for (const rows of [1, 2]) check({ ...base, ...pair, headDim, heads, rows, lengths: [20], capacity: 20 });
    }
  }
});

test("ragged batches of each kind of kernel, in a line, in rings and in pages", () => {
  const ragged = [0, 33, 5, 1, 40];
  for (let batch = 1; batch <= 5; batch++) {
    for (const pair of pairs) {
      const entry = { ...base, ...pair, lengths: ragged.slice(0, batch), capacity: 40, hasLengths: true, seed: batch };
      check(entry);
      check({ ...entry, isSliding: true, capacity: 12 });
      check({ ...entry, pageTokens: 8 });
    }
  }
});

test("a small ring of each kind of kernel, wrapped at every offset", () => {
  for (let length = 1; length <= 20; length++) {
    const ring = { ...base, isSliding: true, capacity: 9, lengths: [length], seed: length };
    for (const pair of pairs) check({ ...ring, ...pair });
    for (const pair of pairs.slice(0, 2)) check({ ...ring, ...pair, window: 4, rows: 2 });
  }
});

test("every dtype of q and out, over each kind of kernel", () => {
  for (const qDtype of dtypes) {
    for (const outDtype of dtypes) {
      for (const pair of pairs.slice(0, 4)) check({ ...base, ...pair, qDtype, outDtype });
    }
  }
});

test("rows of which every key is masked give 0, or what a sink leaves", () => {
  for (const treeColumns of [1, 7, 32]) {
    for (const pair of pairs) {
      for (const sink of [undefined, 2]) {
        for (const rows of [1, 4]) {
          const entry = { ...base, ...pair, treeColumns, treeBits: 0, rows, lengths: [treeColumns] };
          check({ ...entry, ...(sink !== undefined && { sink }) });
        }
      }
    }
  }
});

test("sinks far above and far below the scores, and a softcap far below them, over each kind of kernel", () => {
  for (const pair of pairs) {
    for (const hasLengths of [false, true]) {
      for (const sink of [-1e4, 1e4]) check({ ...base, ...pair, heads: 3, sink, hasLengths, capacity: 300 });
      check({ ...base, ...pair, softcap: 0.01, spread: 300, hasLengths, capacity: 300 });
    }
  }
});

test.each(headSizes)("queries that are keys, at scale 1, D = %d", (headDim) => {
  for (const k of ["f32", "f16", "bf16", four, eight] as const) {
    for (const rows of [1, 3]) {
      check({ ...base, headDim, k, v: k, rows, scale: 1, isQueryOfKey: true, lengths: [40], seed: headDim + rows });
    }
  }
});

test("one score of 300 and more, or of -300 and less, beside others", () => {
  for (const headDim of [64, 128, 256]) {
    for (const k of ["f32", "f16", "bf16", four] as const) {
      // <k, k> is about D: the last key of 33 wins by far, or is the only one.
      const entry = { ...base, headDim, k, v: k, scale: 320 / headDim, isQueryOfKey: true } as const;
      check({ ...entry, lengths: [33], seed: headDim });
      check({ ...entry, lengths: [1], seed: headDim });
      check({ ...entry, lengths: [1], spread: -1, seed: headDim });
    }
  }
});

test("codes of D = 512 with another scale factor", () => {
  for (const scaleFactor of [0.25, 3]) {
    for (const pair of pairs.slice(1)) check({ ...base, ...pair, headDim: 512, scaleFactor, lengths: [12] });
  }
});

test.each(["f16", "bf16"] as const)("D = 576 in rings, pages and batches, with every option, in %s", (dtype) => {
  const latent = { ...base, headDim: 576, heads: 4, k: dtype, v: dtype, lengths: [40] };
  for (const rows of [1, 3, 16]) {
    check({ ...latent, rows });
    check({ ...latent, rows, isSliding: true, capacity: 22, window: 7 });
    check({ ...latent, rows, pageTokens: 8, lengths: [33, 0, 17] });
    check({ ...latent, rows, sink: 1, softcap: 3, hasSlopes: true, scale: 0.1 });
    check({ ...latent, rows, treeColumns: 16 });
  }
});

test("options drawn at random", () => {
  for (let seed = 1; seed <= 120; seed++) {
    const bits = seededBits(seed);
    const below = (end: number) => (bits() >>> 8) % end;
    const pick = <T>(values: readonly T[]): T => values[below(values.length)] as T;
    const [rows, kvHeads, layout] = [1 + below(4), 1 + below(2), below(3)];
    const capacity = 8 * (2 + below(5));
    const treeColumns = layout !== 1 && below(3) === 0 ? 1 + below(16) : undefined;
    const most = layout === 1 ? 3 * capacity : capacity;
    const length = () => Math.max(treeColumns ?? 0, below(most + 1));
    check({
      ...base,
      headDim: pick(headSizes),
      heads: kvHeads * (1 + below(5)),
      kvHeads,
      rows,
      lengths: Array.from({ length: 1 + below(3) }, length),
      capacity,
      k: pick(all),
      v: pick(all),
      qDtype: pick(dtypes),
      outDtype: pick(dtypes),
      hasLengths: below(2) === 0,
      ...(layout === 1 && { isSliding: true }),
      ...(layout === 2 && { pageTokens: pick([1, 2, 4, 8]) }),
      ...(below(2) === 0 && { window: 1 + below(20) }),
      ...(below(3) === 0 && { softcap: 2 }),
      ...(below(3) === 0 && { sink: below(9) - 4 }),
      ...(below(3) === 0 && { hasSlopes: true }),
      ...(treeColumns !== undefined && { treeColumns }),
      seed,
    });
  }
});

test("all cases ran", () => expect(cases).toBeGreaterThanOrEqual(3000));
