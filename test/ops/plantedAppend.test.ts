import { afterAll, expect } from "bun:test";
import { Device } from "../../src/index.ts";
import { referenceApplyRope, referenceKvCacheAppend } from "../../src/reference/index.ts";
import { bitsOf } from "../helpers/elements.ts";
import { plant, type ShaderPatch } from "../helpers/shaders.ts";
import { testTable } from "../helpers/table.ts";

// Mistakes planted in the kernel of appends, which the oracle must see.

const device = Device.open();
afterAll(() => device.dispose());

const [batch, nTokens, nHeads, headDim, capacity, pageTokens, nPages] = [2, 3, 5, 8, 8, 4, 6];
const invFreq = Float32Array.of(1, 0.3, 0.01);
const [attentionScale, offset] = [1.25, 7];
/** Beyond a linear cache, below 0 and in no page among them. */
const positions = Int32Array.of(2, -1, 5, 9, 7, 0);
const pageTable = Int32Array.of(3, 1, 5, 6);

interface Form {
  readonly isSliding: boolean;
  readonly hasPages: boolean;
  readonly perBatch: boolean;
}
const forms: readonly Form[] = [
  { isSliding: true, hasPages: true, perBatch: true },
  { isSliding: false, hasPages: false, perBatch: true },
  { isSliding: false, hasPages: true, perBatch: false },
];

/** Largest error of K and V in a form; memory around the caches counts as well. */
function errorOf(kernel: string, { isSliding, hasPages, perBatch }: Form): number {
  // Room for a mistake before and behind what a cache has.
  const slots = 4 * batch * nHeads * capacity * headDim;
  const stream = (seed: number) => {
    const src = device.tensor("f32", [4 * batch * nTokens * nHeads * headDim]);
    src.set(Float32Array.from({ length: src.length }, (_, i) => Math.sin(i * seed)));
    const whole = device.tensor("f32", [slots]).set(new Float32Array(slots).fill(9));
    return { src, whole, cache: whole.slice(slots / 4, slots) };
  };
  const [k, v] = [stream(1.7), stream(2.3)];
  const flags = [true, true, hasPages, true, false, true, false];
  using pipeline = device.pipeline(kernel, {
    constants: flags.map((value, i) => ({ index: 500 + i, dtype: "bool", value }) as const),
  });
  const words = [batch, nTokens, nHeads, headDim, capacity, isSliding ? 1 : 0, hasPages ? pageTokens : 0];
  const params = new Uint32Array([...words, hasPages ? nPages : 0, 0, perBatch ? 1 : 0, 6, offset, 0, 0]);
  new Float32Array(params.buffer)[12] = attentionScale;
  const table = device.tensor("i32", [4]).set(pageTable);
  using pass = device.pass();
  pass.dispatch(pipeline, {
    buffers: {
      ...{ 0: k.src, 1: k.cache, 2: v.src, 3: v.cache, 4: device.tensor("i32", [6]).set(positions) },
      ...(hasPages ? { 5: table } : {}),
    },
    bytes: { 6: invFreq, 7: params },
    grid: [headDim / 2, batch * nTokens, 4],
    threads: [headDim / 2, 1, 1],
  });
  pass.commitAndWait();
  const position = (b: number, t: number): number => positions[perBatch ? b * nTokens + t : t] ?? 0;
  const shape = { batch, nTokens, nHeads, headDim };
  const values = k.src.toFloat32Array().subarray(0, batch * nTokens * nHeads * headDim);
  const turned = referenceApplyRope(values, {
    ...{ ...shape, isSequenceMajor: true, isInterleaved: false, invFreq, attentionScale },
    position: (b, t) => position(b, t) + offset,
  });
  let largest = 0;
  const sources = [
    [k, new Uint32Array(Float32Array.from(turned).buffer)],
    [v, bitsOf(v.src)],
  ] as const;
  for (const [{ whole }, src] of sources) {
    const wanted = new Float32Array(slots).fill(9);
    const cache = new Uint32Array(wanted.buffer, slots);
    const pages = hasPages ? { pages: { pageTokens, nPages, table: pageTable } } : {};
    const stream = { src, srcDtype: "f32", cache, cacheDtype: "f32" } as const;
    referenceKvCacheAppend(stream, { ...shape, capacity, isSliding, position, ...pages });
    const got = whole.view();
    for (let i = 0; i < slots; i++) largest = Math.max(largest, Math.abs((got[i] ?? 0) - (wanted[i] ?? 0)));
  }
  return largest;
}

const largestError = (kernel: string): number => Math.max(...forms.map((form) => errorOf(kernel, form)));

const file = "kv_cache_append.metal";
const kernel = "kv_cache_append_f32";
const largestAllowed = 2e-6;

testTable("the shader as it is", [{ name: "passes" }], () => {
  expect(largestError(plant(device, file, kernel, []))).toBeLessThan(largestAllowed);
});

const mistakes: readonly (ShaderPatch & { readonly name: string })[] = [
  { name: "V left out", find: /if \(has_v && is_v\)/, replace: "if (false)" },
  { name: "K written as V", find: /\(source_v, cache_v, walk/, replace: "(source_k, cache_v, walk" },
  { name: "half of V", find: /cache_v, walk, index, half_dim/, replace: "cache_v, walk, index, 1" },
  { name: "K does not turn", find: /if \(!turns\)/, replace: "if (true)" },
  { name: "the offset left out", find: / \+ params\.ropeOffset/, replace: "" },
  { name: "turned by the slot", find: /float\(int\(p\) \+/, replace: "float(int(p) % int(params.capacity) +" },
  { name: "a ring that does not wrap", find: /uint\(position\) % params\.capacity :/, replace: "uint(position) :" },
  { name: "positions of the first batch for all", find: /params\.positionsPerBatch \?/, replace: "false ?" },
  { name: "a linear cache without end", find: /position >= long\(params\.capacity\)/, replace: "false" },
  {
    name: "positions below 0 in a ring",
    find: /position < 0 \|\|/,
    replace: "(params.isSliding == 0 && position < 0) ||",
  },
  {
    name: "the pages of the first sequence for all",
    find: /ulong\(batch\) \* \(params\.capacity/,
    replace: "0 * (params.capacity",
  },
  { name: "pages beyond the pool", find: /page < params\.nPages \?/, replace: "page <= params.nPages ?" },
  { name: "the slot of the sequence in a page", find: /slot % params\.pageTokens :/, replace: "slot :" },
  {
    name: "heads a sequence apart in pages",
    find: /has_pages \? params\.pageTokens : params\.capacity/,
    replace: "params.capacity",
  },
  { name: "one batch for all", find: /long\(batch\) \* params\.nHeads \* params\.capacity/, replace: "0" },
  {
    name: "groups one head short",
    find: /\(params\.nHeads \+ groups - 1\) \/ groups/,
    replace: "params.nHeads / groups",
  },
  { name: "each group from the first head on", find: /ulong\(first\) \* slots/, replace: "0" },
];
testTable("a mistake is found", mistakes, (mistake) => {
  expect(largestError(plant(device, file, kernel, [mistake]))).toBeGreaterThan(4 * largestAllowed);
});
