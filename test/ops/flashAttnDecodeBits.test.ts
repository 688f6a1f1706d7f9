import { afterAll, expect, test } from "bun:test";
import { openWithThreads } from "../../scripts/lib/open-device.ts";
import { type DecodeDType, Device, type FlashAttnDecodeArgs, flashAttnDecode, type Tensor } from "../../src/index.ts";
import { type CacheFormat, cacheName, type DecodeCase, DecodeScene, runDecode } from "../helpers/decode.ts";
import { isOtherGpu } from "../helpers/otherGpu.ts";
import { headSizes } from "../helpers/quantized.ts";

// The bits of a row depend on its own keys, values and positions alone.

const device = Device.open();
afterAll(() => device.dispose());

const formats: readonly CacheFormat[] = ["f16", "f32", { bits: 4, packing: "nibble" }, { bits: 3, packing: "dense" }];
const named = formats.map((format) => [cacheName(format), format] as const);

const base = (k: CacheFormat, changes: Partial<DecodeCase> = {}): DecodeCase => ({
  headDim: 64,
  heads: 6,
  kvHeads: 2,
  rows: 1,
  lengths: [600],
  capacity: 640,
  k,
  v: k,
  sink: 1,
  ...changes,
});

/** The bits of the result of a case, of one sequence of it where it is told. */
function bitsOfCase(entry: DecodeCase, sequence?: number, on = device): string {
  const scene = new DecodeScene(on, entry);
  runDecode(on, scene);
  const [out, lse] = [scene.out, scene.lse].map(({ bytes }) => {
    const size = bytes.length / entry.lengths.length;
    const start = (sequence ?? 0) * size;
    return Buffer.from(sequence === undefined ? bytes : bytes.subarray(start, start + size)).toString("hex");
  });
  scene.dispose();
  return `${out} ${lse}`;
}

test.each(named)("capacity, and lengths that only the device knows, over %s", (_name, k) => {
  const expected = bitsOfCase(base(k));
  expect(bitsOfCase(base(k, { capacity: 600 }))).toBe(expected);
  expect(bitsOfCase(base(k, { capacity: 2000 }))).toBe(expected);
  expect(bitsOfCase(base(k, { hasLengths: true, capacity: 2000 }))).toBe(expected);
  // One block: finished in one dispatch, or joined by a second one.
  const short = bitsOfCase(base(k, { lengths: [200], capacity: 200 }));
  expect(bitsOfCase(base(k, { lengths: [200], capacity: 900, hasLengths: true }))).toBe(short);
});

test.each(named)("neighbours in a batch, over %s", (_name, k) => {
  // The first sequence has the same values in every batch.
  const expected = bitsOfCase(base(k, { lengths: [300] }));
  for (const others of [[300], [1, 600, 0], [256, 300, 511, 7]]) {
    expect(bitsOfCase(base(k, { lengths: [300, ...others] }), 0)).toBe(expected);
  }
});

test.each(named)("splits, and pairs of SIMD groups in a threadgroup, over %s", (_name, k) => {
  const entry = base(k, { lengths: [300], hasLengths: true });
  const expected = bitsOfCase({ ...entry, capacity: 300 });
  // Blocks of the capacity, those past the length without a key; how many a threadgroup has follows from the cores.
  for (const [cores, pairsOfBlocks] of [
    [40, [1, 2, 1, 2]],
    [20, [1, 2, 2, 2]],
    [1, [1, 2, 2, 2]],
  ] as const) {
    using on = openWithThreads(cores);
    for (const [i, blocks] of [3, 80, 100, 160].entries()) {
      const pairs = pairsOfBlocks[i] as number;
      const split = { ...entry, capacity: 256 * blocks };
      const scene = new DecodeScene(on, split);
      using pass = on.pass();
      flashAttnDecode(pass, scene.args);
      const [attending] = pass.describe();
      // A GPU has the cores that it has.
      if (!isOtherGpu) {
        expect(attending?.threadsPerThreadgroup).toEqual([32, 2 * pairs, 1]);
        expect(attending?.grid).toEqual([Math.ceil(blocks / pairs), 2, 1]);
      }
      scene.dispose();
      expect(bitsOfCase(split, undefined, on)).toBe(expected);
    }
  }
});

test.each(named)("pages of any size in any order, over %s", (_name, k) => {
  const expected = bitsOfCase(base(k));
  for (const pageTokens of [1, 16, 40, 64, 640]) {
    for (const pageOrder of [1, 2, 3]) {
      expect(bitsOfCase(base(k, { pageTokens, capacity: 640, pageOrder }))).toBe(expected);
    }
  }
});

test.each(named)("a ring that holds the window, over %s", (_name, k) => {
  for (const rows of [1, 3]) {
    const window = 290;
    const expected = bitsOfCase(base(k, { window, rows }));
    for (const capacity of [window + rows - 1, 300, 511, 700]) {
      expect(bitsOfCase(base(k, { window, rows, isSliding: true, capacity }))).toBe(expected);
      expect(bitsOfCase(base(k, { window, rows, isSliding: true, capacity, hasLengths: true }))).toBe(expected);
    }
  }
});

/** The arguments of a part of a scene: some rows of some heads, over the keys up to theirs. */
function partOf(
  scene: DecodeScene,
  out: Tensor<DecodeDType>,
  lse: Tensor<"f32">,
  heads: readonly [number, number],
  row: number,
): FlashAttnDecodeArgs {
  const { entry, args } = scene;
  const [first, end] = heads;
  const { headDim, rows } = entry;
  const q = device.tensor("f32", [1, end - first, 1, headDim]);
  const all = (args.q as Tensor<"f32">).view();
  for (let head = first; head < end; head++) {
    const start = (head * rows + row) * headDim;
    q.view().set(all.subarray(start, start + headDim), (head - first) * headDim);
  }
  const kvHead = Math.floor(first / (entry.heads / entry.kvHeads));
  const only = (cache: FlashAttnDecodeArgs["k"]) => {
    const rowsOf = <T extends Tensor>(tensor: T): T => {
      const [, kvHeads, capacity, size] = tensor.shape as readonly [number, number, number, number];
      const part = tensor.reshape([kvHeads, capacity, size]).slice(kvHead, kvHead + 1);
      return part.reshape([1, 1, capacity, size]) as unknown as T;
    };
    return "packed" in cache ? { ...cache, packed: rowsOf(cache.packed), norms: rowsOf(cache.norms) } : rowsOf(cache);
  };
  const length = entry.lengths[0] as number;
  const sinks = args.sinks?.slice(first, end);
  return {
    q,
    k: only(args.k),
    v: only(args.v as FlashAttnDecodeArgs["k"]),
    out,
    lse,
    seqLen: length - rows + row + 1,
    ...(sinks && { sinks }),
    ...(entry.window !== undefined && { window: entry.window }),
  };
}

/** The same values in a tensor that begins `by` elements after where whole vectors do. */
function moved<T extends Tensor>(tensor: T, by: number): T {
  const part = device.tensor(tensor.dtype, [tensor.length + by]).slice(by, by + tensor.length);
  part.bytes.set(tensor.bytes);
  return part.reshape(tensor.shape) as unknown as T;
}

const everyKind: readonly CacheFormat[] = [
  ...formats,
  "bf16",
  { bits: 2, packing: "dense" },
  { bits: 5, packing: "dense" },
  { bits: 6, packing: "byte" },
  { bits: 8, packing: "byte" },
];

test.each(everyKind.map((format) => [cacheName(format), format] as const))(
  "rows of K and V that begin at any element, over %s",
  (_name, k) => {
    for (const headDim of [64, 112, 256]) {
      const scene = new DecodeScene(device, base(k, { headDim, lengths: [45], capacity: 50 }));
      runDecode(device, scene);
      const expected = Buffer.from(scene.out.bytes).toString("hex");
      // Codes begin at words of two bytes.
      const any = (cache: FlashAttnDecodeArgs["k"]) =>
        "packed" in cache ? { ...cache, packed: moved(cache.packed, 2) } : moved(cache, 1);
      const [own, values] = [scene.args.k, scene.args.v as FlashAttnDecodeArgs["k"]];
      for (const [keys, others] of [
        [any(own), values],
        [own, any(values)],
        [any(own), any(values)],
      ] as const) {
        scene.out.bytes.fill(0);
        using pass = device.pass();
        flashAttnDecode(pass, { ...scene.args, k: keys, v: others });
        pass.commitAndWait();
        expect(Buffer.from(scene.out.bytes).toString("hex")).toBe(expected);
      }
      scene.dispose();
    }
  },
);

test.each(named)("heads that share K and V, and rows of one call, over %s", (_name, k) => {
  for (const window of [undefined, 270]) {
    const rows = 5;
    const scene = new DecodeScene(device, base(k, { rows, ...(window && { window }) }));
    runDecode(device, scene);
    const [outs, lses] = [scene.out.toFloat32Array(), scene.lse.view()];
    const { heads, headDim } = scene.entry;
    for (const [first, end] of [0, 1, 2, 3, 4, 5].map((head) => [head, head + 1] as const).concat([[0, 3]])) {
      for (let row = 0; row < rows; row++) {
        const out = device.tensor("f32", [1, end - first, 1, headDim]);
        const lse = device.tensor("f32", [1, end - first, 1]);
        using pass = device.pass();
        flashAttnDecode(pass, partOf(scene, out, lse, [first, end], row));
        pass.commitAndWait();
        for (let head = first; head < end; head++) {
          const query = head * rows + row;
          const got = out.toFloat32Array().subarray((head - first) * headDim, (head - first + 1) * headDim);
          expect(got).toEqual(outs.subarray(query * headDim, (query + 1) * headDim));
          expect(lse.view()[head - first]).toBe(lses[query] as number);
        }
      }
    }
    expect(heads).toBe(6);
    scene.dispose();
  }
});

// Each head size has kernels of its own.
test.each(headSizes)("heads alone and in a group, rows alone and in a call, D = %d", (headDim) => {
  for (const k of ["f16", "bf16", { bits: 4, packing: "nibble" }] as const) {
    const scene = new DecodeScene(device, base(k, { headDim, heads: 3, kvHeads: 1, rows: 2, lengths: [270] }));
    runDecode(device, scene);
    const outs = scene.out.toFloat32Array();
    for (const head of [0, 1, 2]) {
      for (const row of [0, 1]) {
        const out = device.tensor("f32", [1, 1, 1, headDim]);
        const lse = device.tensor("f32", [1, 1, 1]);
        using pass = device.pass();
        flashAttnDecode(pass, partOf(scene, out, lse, [head, head + 1], row));
        pass.commitAndWait();
        const query = head * 2 + row;
        expect(out.toFloat32Array()).toEqual(outs.subarray(query * headDim, (query + 1) * headDim));
        expect(lse.view()[0]).toBe(scene.lse.view()[query] as number);
      }
    }
    scene.dispose();
  }
});

test("a sequence without keys beside others gives 0 and -infinity, and with a sink its logit", () => {
  for (const sink of [undefined, 2.5]) {
    const { sink: _none, ...rest } = base("f16", { lengths: [0, 5] });
    const scene = new DecodeScene(device, { ...rest, ...(sink !== undefined && { sink }) });
    runDecode(device, scene);
    const half = scene.out.length / 2;
    expect(scene.out.toFloat32Array().subarray(0, half)).toEqual(new Float32Array(half));
    const logits = Array.from({ length: 6 }, (_, head) =>
      sink === undefined ? Number.NEGATIVE_INFINITY : sink + head,
    );
    expect([...scene.lse.view().subarray(0, 6)]).toEqual(logits);
    scene.dispose();
  }
});

test("a ring's lengths in device memory are those that positions count to", () => {
  const capacity = 10;
  const ring = { isSliding: true, hasLengths: true, capacity, lengths: [2 ** 30] } as const;
  const scene = new DecodeScene(device, base("f32", ring));
  const { seqLens } = scene.args;
  const results = [2 ** 30, 2 ** 30 + 1, 2 ** 31 - 256, 2 ** 31 - 1].map((length) => {
    seqLens?.set([length]);
    runDecode(device, scene);
    return [scene.out.toFloat32Array(), scene.lse.toFloat32Array()];
  });
  const [first = []] = results;
  expect(first.every((values) => values.every((value) => Number.isFinite(value) && value !== 0))).toBeTrue();
  for (const result of results) expect(result).toEqual(first);
  scene.dispose();
});

test("lengths and pages that are out of range stay inside of the cache", () => {
  const scene = new DecodeScene(device, base("f32", { pageTokens: 16, hasLengths: true, lengths: [640], sink: 0 }));
  const { seqLens, blockTable } = scene.args;
  for (const length of [-1, -(2 ** 31), 641, 2 ** 31 - 1]) {
    seqLens?.set([length]);
    runDecode(device, scene);
    const isEmpty = length < 0;
    expect(scene.out.toFloat32Array().every((value) => (isEmpty ? value === 0 : Number.isFinite(value)))).toBe(true);
  }
  seqLens?.set([640]);
  blockTable?.view().fill(2 ** 31 - 1);
  runDecode(device, scene);
  blockTable?.view().fill(-5);
  runDecode(device, scene);
  scene.dispose();
});
