import { describe, expect, test } from "bun:test";
import {
  type AppendRope,
  applyRope,
  type Device,
  type KvCacheAppendArgs,
  kvCacheAppend,
  kvCacheCopySeq,
  type RopeDType,
  type Tensor,
} from "../../src/index.ts";
import {
  type AppendParams,
  type ElementBits,
  referenceApplyRope,
  referenceKvCacheAppend,
} from "../../src/reference/index.ts";
import { oneAndTwoThreads } from "../helpers/devices.ts";
import { bitDifferences, bitsOf } from "../helpers/elements.ts";
import { expectRefusal } from "../helpers/errors.ts";
import { seededRandom } from "../helpers/random.ts";
import { testTable } from "../helpers/table.ts";

// Appends beside applyRope and a copy, bit for bit, every byte of the caches.

const devices = oneAndTwoThreads();
const [device] = devices;
const dtypes: readonly RopeDType[] = ["f32", "f16", "bf16"];

const [nTokens, nHeads, headDim, capacity, pageTokens, nPages] = [3, 5, 12, 8, 4, 7];
const invFreq = Float32Array.of(1, 0.3, 0.05, 0.01, 0.002, 0.0001);

const ropes: Readonly<Record<string, AppendRope | undefined>> = {
  still: undefined,
  half: { invFreq, pairing: "half" },
  interleaved: { invFreq, pairing: "interleaved", offset: 1000 },
  "half of a part": { invFreq: invFreq.subarray(0, 4), pairing: "half", attentionScale: 1.25, offset: -3 },
  "interleaved, of a part": { invFreq: invFreq.subarray(0, 2), pairing: "interleaved" },
};

interface AppendCase {
  readonly name: string;
  readonly from: RopeDType;
  readonly to: RopeDType;
  readonly rope: AppendRope | undefined;
  readonly dual: boolean;
  readonly batch: number | undefined;
  readonly isSliding: boolean;
  readonly hasPages: boolean;
  /** Of the first token, or of each: of all batches, or of each batch. */
  readonly start?: number;
  readonly positions?: readonly number[];
}

/** Every pair of dtypes with every rope, kind of cache and way to give positions; K alone or with V, batches in turn. */
const forms: AppendCase[] = dtypes.flatMap((from) =>
  dtypes.flatMap((to) =>
    Object.entries(ropes).flatMap(([ropeName, rope], r) =>
      [false, true].flatMap((isSliding, s) =>
        [false, true].flatMap((hasPages, p) =>
          (["start", "shared", "own"] as const).flatMap((places, w) =>
            [false, true].map((dual): AppendCase => {
              const batch = [undefined, 1, 3][(r + s + p + w + Number(dual)) % 3];
              const count = places === "own" ? (batch ?? 1) * nTokens : nTokens;
              // Tokens that wrap, in an order of their own, some of which no cache has.
              const at = (i: number): number => [6, -1, 3, 8, 1, 2, 5, 9, 0][i % 9] as number;
              return {
                name: `${from} to ${to}, ${ropeName}, ${isSliding ? "ring" : "linear"}${hasPages ? " of pages" : ""}, ${places}, batch ${batch ?? "none"}, ${dual ? "K and V" : "K"}`,
                ...{ from, to, rope, dual, batch, isSliding, hasPages },
                ...(places === "start"
                  ? { start: isSliding ? 6 + capacity : 4 }
                  : { positions: Array.from({ length: count }, (_, i) => at(i)) }),
              };
            }),
          ),
        ),
      ),
    ),
  ),
);

/** The pages of three sequences, the last with one that the pool does not have, one below 0 and pages of others. */
const pageTable = [5, 2, 0, 6, 7, -1];

function fill(tensor: Tensor, seed: number): void {
  const random = seededRandom(seed);
  tensor.set(Float32Array.from({ length: tensor.length }, () => 4 * random() - 2));
}

/** The tensors of a case on a device, and the bits that its caches hold afterwards. */
function sceneOf(on: Device, entry: AppendCase) {
  const { from, to, batch, hasPages, positions, start, isSliding } = entry;
  const before = batch === undefined ? [] : [batch];
  const batches = batch ?? 1;
  const cacheShape = hasPages ? [nPages, nHeads, pageTokens, headDim] : [...before, nHeads, capacity, headDim];
  const stream = (seed: number) => {
    const src = on.tensor(from, [...before, nTokens, nHeads, headDim]);
    fill(src, seed);
    const cache = on.tensor(to, cacheShape);
    cache.bytes.fill(0xa5);
    return { src, cache };
  };
  const pages = Int32Array.from(pageTable.slice(0, 2 * batches));
  const table = on.tensor("i32", [...before, 2]);
  table.bytes.set(new Uint8Array(pages.buffer));
  const places =
    positions === undefined
      ? undefined
      : on.tensor("i32", positions.length === nTokens ? [nTokens] : [batches, nTokens]).set(positions);
  const params: AppendParams = {
    batch: batches,
    ...{ nTokens, nHeads, headDim, capacity, isSliding },
    ...(hasPages ? { pages: { pageTokens, nPages, table: pages } } : {}),
    position: (b, t) => positions?.[positions.length === nTokens ? t : b * nTokens + t] ?? (start ?? 0) + t,
  };
  return { k: stream(1), v: stream(2), table, places, params };
}

type Scene = ReturnType<typeof sceneOf>;

function argsOf(entry: AppendCase, { k, v, table, places }: Scene): KvCacheAppendArgs {
  const { rope, start, isSliding, hasPages } = entry;
  return {
    ...(entry.dual ? { k, v } : k),
    ...(start === undefined ? {} : { start }),
    ...(places === undefined ? {} : { positions: places }),
    ...(rope === undefined ? {} : { rope }),
    ...(hasPages ? { blockTable: table } : {}),
    isSliding,
  } as KvCacheAppendArgs;
}

/** The source of K as it is once turned, by applyRope into the cache's dtype. */
function turned(on: Device, { rope, to }: AppendCase, { k, params, places }: Scene): Tensor<RopeDType> {
  if (rope === undefined) return k.src;
  const { offset = 0, ...angles } = rope;
  const out = on.tensor(to, k.src.shape);
  const { batch } = params;
  const positions = on.tensor("i32", places === undefined ? [nTokens] : places.shape);
  positions.set(
    Array.from({ length: positions.length }, (_, i) => {
      const b = positions.shape.length === 2 ? Math.floor(i / nTokens) : 0;
      expect(b).toBeLessThan(batch);
      return params.position(b, i % nTokens) + offset;
    }),
  );
  using pass = on.pass();
  applyRope(pass, { x: k.src, out, positions, layout: "sequence-major", ...angles });
  pass.commitAndWait();
  return out;
}

function expectCache(stream: Scene["k"], src: Tensor<RopeDType>, to: RopeDType, params: AppendParams): void {
  const cache: ElementBits = bitsOf(stream.cache).slice();
  new Uint8Array(cache.buffer, cache.byteOffset, cache.byteLength).fill(0xa5);
  const source = { src: bitsOf(src), srcDtype: src.dtype, cache, cacheDtype: to };
  referenceKvCacheAppend(source, params);
  expect(bitDifferences(to, bitsOf(stream.cache), cache)).toEqual([]);
}

testTable("every form", forms, (entry) => {
  for (const on of devices) {
    const scene = sceneOf(on, entry);
    using pass = on.pass();
    kvCacheAppend(pass, argsOf(entry, scene));
    expect(pass.describe().length).toBe(1);
    pass.commitAndWait();
    expectCache(scene.k, turned(on, entry, scene), entry.to, scene.params);
    if (entry.dual) expectCache(scene.v, scene.v.src, entry.to, scene.params);
    if (on === devices[1]) continue;
    for (const each of [scene.k, scene.v]) {
      each.src.dispose();
      each.cache.dispose();
    }
  }
});

describe("values", () => {
  const shape = [33, 8, 128];
  test("the bits of applyRope and kvCacheCopySeq, many heads and tokens", () => {
    for (const dtype of dtypes) {
      for (const isSliding of [false, true]) {
        const [k, v] = [device.tensor(dtype, shape), device.tensor(dtype, shape)];
        fill(k, 3);
        fill(v, 4);
        const cache = () => device.tensor(dtype, [8, 40, 128]);
        const [fused, unfused] = [
          [cache(), cache()],
          [cache(), cache()],
        ] as const;
        const start = isSliding ? 100_019 : 7;
        const rope = { theta: 500_000, pairing: "half" } as const;
        using pass = device.pass();
        const [fusedK, fusedV] = fused;
        kvCacheAppend(pass, { k: { src: k, cache: fusedK }, v: { src: v, cache: fusedV }, start, isSliding, rope });
        applyRope(pass, { x: k, start, layout: "sequence-major", ...rope });
        const [cacheK, cacheV] = unfused;
        const streams = { k: { src: k, cache: cacheK }, v: { src: v, cache: cacheV } };
        kvCacheCopySeq(pass, { ...streams, seqPosStart: start, isSliding } as never);
        pass.commitAndWait();
        expect(Buffer.compare(fusedK.bytes, cacheK.bytes)).toBe(0);
        expect(Buffer.compare(fusedV.bytes, cacheV.bytes)).toBe(0);
      }
    }
  });

  test("K is near the oracle in float64, far out too", () => {
    const [tokens, heads, dim, start] = [2, 3, 64, 2 ** 24 - 2];
    const frequencies = new Float32Array(32).map((_, i) => 0.7 ** i);
    const src = device.tensor("f32", [tokens, heads, dim]);
    fill(src, 5);
    const cache = device.tensor("f32", [heads, 4, dim]);
    using pass = device.pass();
    kvCacheAppend(pass, { src, cache, start, isSliding: true, rope: { invFreq: frequencies, pairing: "interleaved" } });
    pass.commitAndWait();
    const wanted = referenceApplyRope(src.toFloat32Array(), {
      ...{ batch: 1, nHeads: heads, nTokens: tokens, headDim: dim, isSequenceMajor: true, isInterleaved: true },
      ...{ invFreq: frequencies, attentionScale: 1, position: (_, t) => start + t },
    });
    const got = cache.toFloat32Array();
    for (let t = 0; t < tokens; t++) {
      for (let h = 0; h < heads; h++) {
        for (let i = 0; i < dim; i++) {
          const error = (got[(h * 4 + ((start + t) % 4)) * dim + i] ?? 0) - (wanted[(t * heads + h) * dim + i] ?? 0);
          expect(Math.abs(error)).toBeLessThan(2 * Math.SQRT2 * 6 * 2 ** -24);
        }
      }
    }
  });

  test("V keeps any bits where the dtypes are one, signalling NaN among them", () => {
    for (const dtype of ["f16", "bf16"] as const) {
      const [k, v] = [device.tensor(dtype, [1, 1, 8]), device.tensor(dtype, [1, 1, 8])];
      const cache = () => device.tensor(dtype, [1, 2, 8]);
      const bits = Uint16Array.of(0x7f81, 0x7c01, 0xff80, 0xfc00, 0x8000, 0x0001, 0x7fff, 0xffff);
      bitsOf(v).set(bits);
      const [cacheK, cacheV] = [cache(), cache()];
      using pass = device.pass();
      const rope = { theta: 10_000, pairing: "half" } as const;
      kvCacheAppend(pass, { k: { src: k, cache: cacheK }, v: { src: v, cache: cacheV }, start: 1, rope });
      pass.commitAndWait();
      expect([...bitsOf(cacheV)]).toEqual([0, 0, 0, 0, 0, 0, 0, 0, ...bits]);
    }
  });

  test("no token, head or coordinate: nothing is encoded", () => {
    using whole = device.tensor("f32", [64]);
    using pass = device.pass();
    for (const [src, cache] of [
      [
        [0, 2, 8],
        [2, 4, 8],
      ],
      [
        [3, 0, 8],
        [0, 4, 8],
      ],
      [
        [3, 2, 0],
        [2, 4, 0],
      ],
    ] as const) {
      kvCacheAppend(pass, {
        src: whole.slice(0, 0).reshape(src),
        cache: device
          .tensor("f32", [64])
          .slice(0, cache[0] * cache[1] * cache[2])
          .reshape(cache),
      });
    }
    expect(pass.describe()).toEqual([]);
  });
});

describe("recorded", () => {
  test("a step runs again wherever positions in device memory are by then", () => {
    const rope = { theta: 10_000, pairing: "half" } as const;
    const src = device.tensor("f32", [2, 1, 2, 8]);
    fill(src, 6);
    const [again, anew] = [0, 1].map(() => device.tensor("f32", [2, 2, 6, 8])) as [Tensor<"f32">, Tensor<"f32">];
    const positions = device.tensor("i32", [2, 1]);
    using step = device.record((pass) =>
      kvCacheAppend(pass, { src: pass.tensor("src", src), cache: again, positions, rope, isSliding: true }),
    );
    // What the recording was given is not needed any more.
    Bun.gc(true);
    for (let turn = 0; turn < 9; turn++) {
      const other = device.tensor("f32", [2, 1, 2, 8]);
      fill(other, turn);
      positions.set([turn, 2 * turn]);
      step.commitAndWait(turn % 2 === 0 ? {} : { src: other });
      using pass = device.pass();
      kvCacheAppend(pass, { src: turn % 2 === 0 ? src : other, cache: anew, positions, rope, isSliding: true });
      pass.commitAndWait();
      expect(again.toFloat32Array()).toEqual(anew.toFloat32Array());
    }
  });

  test("start is a parameter, of applyRope too", () => {
    const rope = { theta: 10_000, pairing: "half" } as const;
    const src = device.tensor("f32", [1, 2, 8]);
    fill(src, 7);
    const [cache, out] = [device.tensor("f32", [2, 6, 8]), device.tensor("f32", [1, 2, 8])];
    using step = device.record((pass) => {
      const start = pass.parameter("start", { min: 0, max: 5 });
      applyRope(pass, { x: src, out, start, layout: "sequence-major", ...rope });
      kvCacheAppend(pass, { src, cache, start, rope });
    });
    for (const start of [0, 4, 5]) {
      step.commitAndWait({ start });
      const slot = (head: number) =>
        cache.toFloat32Array().subarray((head * 6 + start) * 8, (head * 6 + start + 1) * 8);
      expect([...slot(0), ...slot(1)]).toEqual([...out.toFloat32Array()]);
      using wanted = device.tensor("f32", [1, 2, 8]);
      using pass = device.pass();
      applyRope(pass, { x: src, out: wanted, start, layout: "sequence-major", ...rope });
      pass.commitAndWait();
      expect(out.toFloat32Array()).toEqual(wanted.toFloat32Array());
    }
  });
});

describe("refusals", () => {
  const f32 = (...shape: number[]) => device.tensor("f32", shape);
  const i32 = (...shape: number[]) => device.tensor("i32", shape);
  const [src, cache] = [f32(3, 2, 8), f32(2, 6, 8)];
  const rope = { theta: 10_000, pairing: "half" } as const;
  const refuse = (
    change: object,
    code: "invalid-argument" | "overflow" | "unsupported",
    ...rest: (string | number)[]
  ) => {
    using pass = device.pass();
    const [argument, ...parts] = rest;
    const call = () => kvCacheAppend(pass, { src, cache, ...change } as never);
    expectRefusal(call, code, argument as string, ...parts);
    expect(pass.describe()).toEqual([]);
  };
  test("positions and capacity", () => {
    refuse({ start: 4 }, "overflow", "start", 4, 3, 6);
    refuse({ start: 2 ** 32 - 2, isSliding: true }, "overflow", "start", 2 ** 32 - 2);
    refuse({ start: -1 }, "invalid-argument", "start", -1);
    refuse({ src: f32(7, 2, 8), isSliding: true }, "overflow", "nTokens", 7, 6);
    refuse({ start: 1, positions: i32(3) }, "invalid-argument", "start", "positions");
    refuse({ positions: i32(2) }, "invalid-argument", "positions", "[3]", "[2]");
    refuse({ positions: f32(3) }, "unsupported", "positions", "f32", "i32");
    refuse({ start: 2 ** 24 - 1, isSliding: true, rope }, "overflow", "start", 2 ** 24 - 1, 2 ** 24);
    refuse({ start: 0, rope: { ...rope, offset: -(2 ** 24) - 1 } }, "overflow", "rope.offset", -(2 ** 24) - 1);
  });
  test("rope", () => {
    refuse({ rope: { ...rope, pairing: "both" } }, "invalid-argument", "rope.pairing", "both");
    refuse({ rope: { pairing: "half" } }, "invalid-argument", "rope.theta", "neither");
    refuse({ rope: { ...rope, theta: 0 } }, "invalid-argument", "rope.theta", 0);
    refuse({ rope: { ...rope, rotaryDim: 10 } }, "invalid-argument", "rope.rotaryDim", 10, 8);
    refuse({ rope: { ...rope, attentionScale: -1 } }, "invalid-argument", "rope.attentionScale", -1);
    refuse({ rope: { ...rope, offset: 0.5 } }, "invalid-argument", "rope.offset", 0.5);
    refuse({ rope: { ...rope, thata: 1 } }, "invalid-argument", "rope.thata", "theta");
    refuse({ rope: { invFreq: new Float32Array(5), pairing: "half" } }, "invalid-argument", "rope.rotaryDim", 10, 8);
    refuse({ rope: 3 }, "invalid-argument", "rope");
  });
  test("tensors", () => {
    refuse({ src: f32(3, 2, 7), cache: f32(2, 6, 7) }, "invalid-argument", "headDim", 7);
    refuse({ cache: f32(2, 6, 4) }, "invalid-argument", "cache", "headDim", 4, 8);
    refuse({ cache: f32(4, 6, 8) }, "invalid-argument", "cache", "nHeads", 4, 2);
    refuse({ cache: f32(2, 2, 6, 8) }, "invalid-argument", "cache", "B", 2, 1);
    refuse({ cache: device.tensor("u8", [2, 6, 8]) }, "unsupported", "cache", "u8", "f32, f16 or bf16");
    refuse({ src: f32(2, 3, 8) }, "invalid-argument", "src", "token-major");
    const both = (v: object) => ({ src: undefined, cache: undefined, k: { src, cache }, v });
    refuse(both({ src, cache }), "invalid-argument", "k.cache", "v.cache", "overlap");
    refuse(both({ src: device.tensor("f16", [3, 2, 8]), cache: f32(2, 6, 8) }), "unsupported", "v.src", "f16", "f32");
    refuse(both({ src: f32(4, 2, 8), cache: f32(2, 6, 8) }), "invalid-argument", "v.src", "nTokens", 4, 3);
    refuse(both({ src, cache: f32(2, 5, 8) }), "invalid-argument", "v.cache", "capacity", 5, 6);
    refuse({ k: { src, cache } }, "invalid-argument", "src", "either");
    refuse({ paging: 1 }, "invalid-argument", "paging");
    const memory = f32(96 + 48);
    const [front, shifted] = [memory.slice(0, 48).reshape([3, 2, 8]), memory.slice(40, 136).reshape([2, 6, 8])];
    refuse({ src: front, cache: shifted }, "invalid-argument", "src", "cache", "overlap");
  });
  test("pages", () => {
    const pool = f32(3, 2, 4, 8);
    const table = i32(2);
    refuse({ blockTable: table }, "invalid-argument", "cache", "[nPages, nHeads, pageTokens, headDim]");
    refuse({ cache: pool, blockTable: i32(2, 2) }, "invalid-argument", "blockTable", "B", 2, 1);
    refuse({ cache: pool, blockTable: f32(2) }, "unsupported", "blockTable", "f32", "i32");
    refuse({ cache: pool, blockTable: table, start: 6 }, "overflow", "start", 6, 8);
    refuse({ cache: f32(3, 4, 4, 8), blockTable: table }, "invalid-argument", "cache", "nHeads", 4, 2);
    const both = { src: undefined, cache: undefined, k: { src, cache: pool }, v: { src, cache: f32(2, 2, 4, 8) } };
    refuse({ ...both, blockTable: table }, "invalid-argument", "v.cache", "nPages", 2, 3);
    refuse({ cache: pool.slice(0, 0), blockTable: table }, "invalid-argument", "cache", "pool", 0, 1);
  });
});
