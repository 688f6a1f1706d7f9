import { afterAll, expect } from "bun:test";
import { Device, type Tensor } from "../../src/index.ts";
import { at } from "../../src/reference/at.ts";
import { referenceDequantizeKv } from "../../src/reference/index.ts";
import { EditedHadamard } from "../helpers/editedHadamard.ts";
import type { CallName } from "../helpers/hadamardCalls.ts";
import { isOtherGpu } from "../helpers/otherGpu.ts";
import { expectRight, sourceValues, TestCache } from "../helpers/quantized.ts";
import type { ShaderPatch } from "../helpers/shaders.ts";
import { testTable } from "../helpers/table.ts";

// Mistakes planted in the shaders: the comparison with the oracle must see each of them.

let device = Device.open();
afterAll(() => device.dispose());
let edited = new EditedHadamard(device);

interface Mistake extends ShaderPatch {
  readonly name: string;
  /** Calls whose shader has the mistake. */
  readonly calls: readonly CallName[];
  readonly headDim?: number;
  readonly values?: (headDim: number) => Float32Array;
}

const encoding: readonly CallName[] = ["token", "tokens"];
const [nKvHeads, nTokens, start] = [3, 5, 4];

/** Vectors with a coordinate on a boundary: two values whose boundary is 0. */
function onBoundary(headDim: number): Float32Array {
  const values = new Float32Array(nTokens * nKvHeads * headDim);
  for (let first = 0; first < values.length; first += headDim) values[first] = 1;
  for (let first = 0; first < values.length; first += headDim) values[first + 3] = 1;
  return values;
}

const mistakes: readonly Mistake[] = [
  {
    name: "the signs are shifted by a coordinate",
    calls: encoding,
    find: /bits << 31, bits << 30, bits << 29, bits << 28/,
    replace: "bits << 30, bits << 29, bits << 28, bits << 31",
  },
  {
    name: "the transform is not normalised",
    calls: encoding,
    find: /scale\.factor \* sqrt\(float\(D \/ Head<D>::block\)\)/,
    replace: "scale.factor * sqrt(float(D))",
  },
  {
    name: "the nibbles are swapped",
    calls: encoding,
    find: /uint4\(code_of_4\(z\.x\), code_of_4\(z\.y\)/,
    replace: "uint4(code_of_4(z.y), code_of_4(z.x)",
  },
  {
    name: "the norms of the blocks are swapped",
    calls: encoding,
    headDim: 512,
    find: /norms\[n\] = scale\.norm;/,
    replace: "norms[Head<D>::norms - 1 - n] = scale.norm;",
  },
  {
    name: "a boundary belongs to the upper code",
    calls: encoding,
    values: onBoundary,
    find: /below \^ \(z > 0\.0f/,
    replace: "below ^ (z >= 0.0f",
  },
  {
    name: "the ring wraps one slot late",
    calls: ["tokens", "decode"],
    find: /token < before_wrap \?/,
    replace: "token <= before_wrap ?",
  },
  {
    name: "the ring wraps one slot early",
    calls: ["tokens", "decode"],
    find: /capacity - start;/,
    replace: "capacity - start - 1;",
  },
  {
    name: "the ring is one slot short",
    calls: ["token"],
    find: /first % capacity;/,
    replace: "first % (capacity - 1);",
  },
  {
    name: "threads without a row write one",
    calls: ["tokens"],
    find: /if \(token >= params\.n_tokens\)/,
    replace: "if (false)",
  },
  {
    name: "threads without a row write one",
    calls: ["token"],
    find: /if \(head >= params\.num_kv_heads\)/,
    replace: "if (false)",
  },
  {
    name: "a butterfly between lanes adds in both",
    calls: [...encoding, "decode"],
    find: /\(lane & step\) != 0 \? -1\.0f : 1\.0f/,
    replace: "1.0f",
  },
  ...[80, 512].map(
    (headDim): Mistake => ({
      name: "lanes exchange at another distance",
      calls: [...encoding, "decode"],
      headDim,
      find: /fma\(sign, quads\[i\], simd_shuffle_xor\(quads\[i\], ushort\(step\)\)\)/,
      replace: "fma(sign, quads[i], simd_shuffle_xor(quads[i], ushort(step == 2 ? 1 : step)))",
    }),
  ),
  {
    name: "the sum of squares leaves out lanes",
    calls: encoding,
    find: /sum \+= simd_shuffle_xor\(sum, ushort\(step\)\)/,
    replace: "sum += simd_shuffle_xor(sum, ushort(step == 4 ? 2 : step))",
  },
  {
    name: "only the first vector of a SIMD group stores its norm",
    calls: encoding,
    find: /if \(lane == 0\)/,
    replace: "if (simd_lane == 0)",
  },
  {
    name: "the transform is not normalised",
    calls: ["decode"],
    find: /norm \/ sqrt\(float\(D\) \* float\(Head<D>::block\)\)/,
    replace: "norm / sqrt(float(D))",
  },
  {
    name: "the nibbles are swapped",
    calls: ["decode"],
    find: /table\[codes & 15\], table\[codes >> 4 & 15\]/,
    replace: "table[codes >> 4 & 15], table[codes & 15]",
  },
  {
    name: "the signs are left out",
    calls: ["decode"],
    find: /with_signs<D>\((Head<D>::norms == 2 \? quads\[i\] : quads\[i\] \* factor), i, lane\)/,
    replace: "($1)",
  },
  {
    name: "the norms of the blocks are swapped",
    calls: ["decode"],
    headDim: 512,
    find: /factor_of<D>\(row\.norms\[0\]/,
    replace: "factor_of<D>(row.norms[1]",
  },
];

/** Whether the kernels, changed by `patch`, do what the oracle does. A fault is a mistake found, and loses a GPU. */
function isRight(patch: ShaderPatch | undefined, call: CallName, headDim: number, values: Float32Array): boolean {
  try {
    return agrees(patch, call, headDim, values);
  } catch (error) {
    if (!isOtherGpu || patch === undefined) throw error;
    device.dispose();
    device = Device.open();
    edited = new EditedHadamard(device);
    return false;
  }
}

function agrees(patch: ShaderPatch | undefined, call: CallName, headDim: number, values: Float32Array): boolean {
  const format = { bits: 4, packing: "nibble" } as const;
  // As many heads to spare as a threadgroup has rows, so that what it writes too many stays in the cache.
  const plan = { format, headDim, nKvHeads, spareHeads: 8, capacity: 7, isSliding: true };
  const cache = new TestCache(device, plan);
  const src = device.tensor("f32", [nTokens, nKvHeads, headDim]).set(values);
  if (call !== "decode") {
    edited.run(patch, call, cache, src, start, nTokens);
    return passes(() => expectRight(cache.compare(values, start, nTokens, 0)));
  }
  edited.run(undefined, "tokens", cache, src, start, nTokens);
  const out: Tensor<"f32"> = device.tensor("f32", [nKvHeads, nTokens, headDim]);
  edited.run(patch, call, cache, out, start, nTokens);
  const stored = { packed: cache.packed.view(), norms: cache.norms.view() };
  const expected = referenceDequantizeKv(stored, { ...plan, posStart: start, nTokens }, format);
  return expected.every((value, i) => {
    const row = expected.subarray(i - (i % headDim), i - (i % headDim) + headDim);
    const largest = row.reduce((most, other) => Math.max(most, Math.abs(other)), 0);
    return Math.abs(at(out.view(), i) - value) <= 2e-6 * largest;
  });
}

function passes(check: () => void): boolean {
  try {
    check();
    return true;
  } catch {
    return false;
  }
}

testTable(
  "a mistake is found where",
  mistakes.flatMap(({ calls, name, ...mistake }) =>
    calls.map((call) => ({ name: `${name}, ${call}, D=${mistake.headDim ?? 128}`, call, ...mistake })),
  ),
  ({ call, headDim = 128, values, find, replace }) => {
    const source = values?.(headDim) ?? sourceValues(headDim, nTokens * nKvHeads, 4);
    expect(isRight(undefined, call, headDim, source)).toBe(true);
    expect(isRight({ find, replace }, call, headDim, source)).toBe(false);
  },
);
