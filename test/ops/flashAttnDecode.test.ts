import { afterAll, expect, test } from "bun:test";
import { Device } from "../../src/index.ts";
import { type CacheFormat, type DecodeCase, DecodeScene, judgeDecode, runDecode } from "../helpers/decode.ts";
import { codeFormats, headSizes } from "../helpers/quantized.ts";

// Decode attention against float64 attention over the values that the cache holds. Each byte of a cache that no key in
// use has is NaN.

const device = Device.open();
afterAll(() => device.dispose());

let cases = 0;

/** Runs and judges a case. */
function check(entry: DecodeCase): void {
  const scene = new DecodeScene(device, entry);
  try {
    runDecode(device, scene);
    const fault = judgeDecode(scene);
    if (fault !== undefined) throw new Error(`${JSON.stringify(entry)}: ${fault}`);
    cases += 1;
  } finally {
    scene.dispose();
  }
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

for (const headDim of headSizes) {
  test(`every pair of formats, D = ${headDim}`, () => {
    for (const [i, k] of all.entries()) {
      for (const [j, v] of all.entries()) {
        const seed = i * all.length + j;
        const length = 1 + ((seed * 7) % 40);
        const outDtype = dtypes[seed % 3] as "f32" | "f16" | "bf16";
        const qDtype = dtypes[(seed + i) % 3] as "f32" | "f16" | "bf16";
        const heads = 1 + (seed % 2);
        check({ ...base, headDim, heads, k, v, lengths: [length], outDtype, qDtype, seed });
      }
    }
  });
}

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

test("all cases ran", () => expect(cases).toBeGreaterThanOrEqual(1500));
