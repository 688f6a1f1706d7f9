/** Caches written to files and read again. */
import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Device, KvCache, type KvCacheOptions, type KvSequence, MetalAttentionError } from "../../src/index.ts";
import { readSafetensors, writeSafetensors } from "../../src/safetensors/index.ts";
import { rejectionOf, thrownBy } from "../helpers/errors.ts";
import { normalDraws } from "../helpers/random.ts";

const device = Device.open();
const folder = mkdtempSync(join(tmpdir(), "metal-attention-cache-"));
afterAll(() => {
  device.dispose();
  rmSync(folder, { recursive: true, force: true });
});

const base: KvCacheOptions = { layers: 2, nKvHeads: 2, headDim: 64, capacity: 48 };
const rope = { theta: 10_000, pairing: "half" } as const;

/** One step of `count` tokens of a sequence; gives what attention makes of them. */
function step(cache: KvCache, sequence: KvSequence, count: number, seed: number): Float32Array {
  const draw = normalDraws(seed);
  const fill = (heads: number) =>
    device.tensor("f32", [count, heads, 64]).set(Float32Array.from({ length: count * heads * 64 }, draw));
  using pass = device.pass();
  const [k, v, q, out] = [fill(2), fill(2), fill(4), device.tensor("f32", [count, 4, 64])];
  for (const layer of [0, 1]) {
    cache.append(pass, layer, { k, v, rope, sequences: [sequence] });
    cache.attend(pass, layer, { q, out });
  }
  pass.commitAndWait();
  cache.advance(
    count,
    Array.from({ length: count }, (_, i) => seed + i),
  );
  return out.toFloat32Array();
}

/** A cache of two sequences, one the fork of the other, in a file. */
async function saved(name: string, options: Partial<KvCacheOptions>): Promise<{ cache: KvCache; path: string }> {
  const cache = new KvCache(device, { ...base, sequences: 3, ...options });
  const first = cache.sequence();
  for (let i = 0; i < 6; i++) step(cache, first, 5, 10 * i);
  const second = first.fork();
  step(cache, second, 3, 100);
  cache.sequence().drop();
  const path = join(folder, `${name}.safetensors`);
  await cache.save(path);
  return { cache, path };
}

describe("save and load", () => {
  const kinds: [name: string, options: Partial<KvCacheOptions>][] = [
    ["a line", { k: "f16", v: "bf16" }],
    ["quantized", {}],
    ["a ring", { capacity: 18, window: 9, keep: 3, rollback: 2 }],
    ["a tail", { tail: 6, maxAppend: 8 }],
    ["pages", { pages: { tokens: 4, count: 20 } }],
    ["private", { tail: 6, maxAppend: 8, storage: "private" }],
    ["private pages", { pages: { tokens: 4, count: 20 }, storage: "private" }],
  ];
  for (const [name, options] of kinds) {
    test(`${name}: sequences that have no token yet`, async () => {
      using cache = new KvCache(device, { ...base, sequences: 3, ...options });
      cache.sequence();
      cache.sequence();
      const path = join(folder, `${name} of no token.safetensors`);
      await cache.save(path);
      using loaded = await KvCache.load(device, path, options);
      const sequences = [cache, loaded].map((each) => each.sequences[1] as KvSequence);
      expect(loaded.sequences.map(({ length }) => length)).toEqual([0, 0]);
      expect(step(loaded, sequences[1] as KvSequence, 5, 3)).toEqual(step(cache, sequences[0] as KvSequence, 5, 3));
      expect(loaded.freePages).toBe(cache.freePages);
    });

    test(`${name}: the same state, and the same bits from then on`, async () => {
      const { cache, path } = await saved(name, options);
      using loaded = await KvCache.load(device, path, options);
      expect(loaded.sequences.map(({ length }) => length)).toEqual([30, 33]);
      expect(loaded.freePages).toBe(cache.freePages);
      expect(loaded.match([0, 1, 2])?.length).toBe(3);
      for (const [i, sequence] of cache.sequences.entries()) {
        const other = loaded.sequences[i] as KvSequence;
        expect(step(loaded, other, 4, 200 + i)).toEqual(step(cache, sequence, 4, 200 + i));
      }
      const trim = (of: KvCache) => of.sequences.map((sequence) => sequence.trim(2));
      expect(trim(loaded)).toEqual(trim(cache));
      const next = (of: KvCache) => step(of, of.sequences[1] as KvSequence, 1, 300);
      expect(next(loaded)).toEqual(next(cache));
      cache.dispose();
    });
  }

  test("a file is of either storage", async () => {
    const files: Record<string, string> = {};
    const storages = ["shared", "private"] as const;
    for (const storage of storages) {
      const { cache, path } = await saved(`of ${storage}`, { storage, tail: 6, maxAppend: 8 });
      cache.dispose();
      files[storage] = path;
    }
    const bytes = await Promise.all(Object.values(files).map((path) => Bun.file(path).bytes()));
    expect(bytes[0]).toEqual(bytes[1] as Uint8Array<ArrayBuffer>);
    const steps = await Promise.all(
      storages.map(async (storage) => {
        using loaded = await KvCache.load(device, files["shared"] as string, { storage });
        return step(loaded, loaded.sequences[1] as KvSequence, 4, 200);
      }),
    );
    expect(steps[0]).toEqual(steps[1] as (typeof steps)[0]);
  });

  test("storage says where tokens lie", () => {
    const made = { shared: 0, private: 0 };
    using counting = Device.open();
    Object.defineProperty(counting, "tensor", {
      value: (...args: Parameters<Device["tensor"]>) => {
        const tensor = Device.prototype.tensor.apply(counting, args);
        // Tables stay with the CPU.
        made[tensor.storage] += tensor.dtype === "i32" ? 0 : 1;
        return tensor;
      },
    });
    using _ = new KvCache(counting, { ...base, capacity: 1000, tail: 20, storage: "private" });
    // Codes and norms of K and V, and tails, of two layers.
    expect(made).toEqual({ shared: 0, private: 12 });
  });

  test("nothing but what is in use is written", async () => {
    using cache = new KvCache(device, { ...base, capacity: 100_000 });
    step(cache, cache.sequence(), 2, 1);
    const path = join(folder, "small.safetensors");
    await cache.save(path);
    expect(Bun.file(path).size).toBeLessThan(20_000);
    using empty = new KvCache(device, base);
    await empty.save(path);
    using loaded = await KvCache.load(device, path);
    expect(loaded.length).toBe(0);
  });

  test("more than a file holds is refused with both numbers, and nothing of it is copied", async () => {
    // The page of one token is written whole, values of zeros that take no memory.
    const tokens = 2 ** 18 + 1;
    const large = { layers: 1, nKvHeads: 8, headDim: 512, capacity: tokens, k: "f16", v: "f16" } as const;
    using cache = new KvCache(device, { ...large, pages: { tokens, count: 1 } });
    using k = device.tensor("f16", [1, 8, 512]);
    using pass = device.pass();
    cache.append(pass, 0, { k, v: k });
    pass.commitAndWait();
    cache.advance();
    const before = process.memoryUsage.rss();
    const { code, argument, message } = await rejectionOf(cache.save(join(folder, "large.safetensors")));
    expect({ code, argument }).toEqual({ code: "unsupported", argument: "cache" });
    expect(message).toContain(`${tokens * 2 * 8 * 512 * 2} bytes`);
    expect(message).toContain(`${2 ** 32}`);
    expect(process.memoryUsage.rss() - before).toBeLessThan(2 ** 30);
    expect(existsSync(join(folder, "large.safetensors"))).toBe(false);
  });

  test("a path that is none", async () => {
    using cache = new KvCache(device, base);
    for (const path of [undefined, null, "", 3]) {
      const calls = [() => cache.save(path as string), () => KvCache.load(device, path as string)];
      for (const call of calls) {
        expect(await rejectionOf(call())).toMatchObject({ code: "invalid-argument", argument: "path" });
      }
    }
  });

  test("what differs is refused with both values", async () => {
    const { cache, path } = await saved("differs", {});
    cache.dispose();
    const refusal = async (options: Partial<KvCacheOptions>) =>
      (await rejectionOf(KvCache.load(device, path, options))).message;
    expect(await refusal({ k: { bits: 4 } })).toMatch(
      /k is \{"bits":8,"packing":"byte"\}.*\{"bits":4,"packing":"nibble"\}/,
    );
    expect(await refusal({ k: "f16" })).toContain('"f16"');
    expect(await refusal({ layers: 3 })).toMatch(/layers is 2, and here 3/);
    expect(await refusal({ window: 4 })).toMatch(/window is nothing, and here 4/);
    // What would not go with the rest of the file either.
    expect(await refusal({ headDim: 72 })).toMatch(/headDim is 64, and here 72/);
    expect(await refusal({ v: { bits: 7 } as never })).toMatch(/v is \{.*\}, and here \{"bits":7\}/);
    expect(await refusal({ keep: 2 })).toMatch(/keep is nothing, and here 2/);
    expect(await refusal({ capacity: 1n as never })).toMatch(/capacity is \d+, and here 1/);
    expect(await refusal({ layer: 3 } as Partial<KvCacheOptions>)).toContain("did you mean layers?");
  });

  test("an option of undefined is not given, and a storage that is none is refused by name", async () => {
    const { cache, path } = await saved("undefined", {});
    cache.dispose();
    const nothing = { headDim: undefined, storage: undefined } as unknown as Partial<KvCacheOptions>;
    using loaded = await KvCache.load(device, path, nothing);
    expect(loaded.sequences.length).toBe(2);
    const error = await rejectionOf(KvCache.load(device, path, { storage: "bogus" as "shared" }));
    expect([error.code, error.argument]).toEqual(["invalid-argument", "storage"]);
    expect(error.message).toContain('"shared" or "private", got "bogus"');
  });

  test("a file that was changed, of another version, of other signs or codebooks is refused", async () => {
    const { cache, path } = await saved("changed", {});
    cache.dispose();
    const content = await readSafetensors(path);
    const other = join(folder, "other.safetensors");
    const refusal = async (key: string, value: string) => {
      await writeSafetensors(other, { ...content, metadata: new Map([...content.metadata, [key, value]]) });
      return (await rejectionOf(KvCache.load(device, other))).message;
    };
    expect(await refusal("version", "2")).toMatch(/version is 2, and here 1/);
    expect(await refusal("signs", "0")).toMatch(/signs is 0, and here [0-9a-f]{64}/);
    expect(await refusal("codebooks", "0")).toMatch(/codebooks is 0, and here [0-9a-f]{64}/);
    expect(await refusal("rope", "[null,null]")).toContain("SHA-256");
    expect(await refusal("format", "x")).toContain("format is x");
    const tensors = new Map(content.tensors);
    const [name, tensor] = [...tensors][0] as [string, { bytes: Uint8Array; dtype: "U8"; shape: number[] }];
    const bytes = tensor.bytes.slice();
    bytes[0] = (bytes[0] as number) ^ 1;
    tensors.set(name, { ...tensor, bytes });
    await writeSafetensors(other, { ...content, tensors });
    expect((await rejectionOf(KvCache.load(device, other))).message).toContain("SHA-256");
    await Bun.write(other, "no safetensors");
    expect((await rejectionOf(KvCache.load(device, other))).code).toBe("invalid-argument");
  });

  /** A file with other metadata, and the hash that goes with it. */
  async function forged(path: string, change: (texts: Record<string, string>) => void): Promise<string> {
    const { tensors, metadata } = await readSafetensors(path);
    const texts: Record<string, string> = Object.fromEntries(metadata);
    change(texts);
    const hash = new Bun.CryptoHasher("sha256");
    for (const key of ["format", "version", "options", "codebooks", "signs", "rope", "sequences"]) {
      hash.update(`${texts[key]}\0`);
    }
    for (const [name, { dtype, shape, bytes }] of [...tensors].sort(([a], [b]) => (a < b ? -1 : 1))) {
      hash.update(`${name} ${dtype} ${shape}\0`).update(bytes);
    }
    const other = join(folder, "forged.safetensors");
    const changed = new Map(Object.entries({ ...texts, sha256: hash.digest("hex") }));
    await writeSafetensors(other, { tensors, metadata: changed });
    return other;
  }

  type Fields = Record<string, unknown> & { pages: number[]; released: number };
  const pages = { tokens: 4, count: 20 };
  // 30 tokens and 33, with a rollback of 3 and a window of 9: of the first, 4 pages are given back.
  const windowed = { pages, window: 9, rollback: 3 };
  const ring = { capacity: 18, window: 9, keep: 3, rollback: 2 };
  const impossible: [what: string, options: Partial<KvCacheOptions>, change: (fields: Fields) => void][] = [
    ["high beyond the capacity", {}, (fields) => Object.assign(fields, { high: 49 })],
    ["high beyond 2^30", ring, (fields) => Object.assign(fields, { high: 2 ** 30 + 1 })],
    ["high that a ring has not", ring, (fields) => Object.assign(fields, { high: 40 })],
    ["fewer tokens quantized than there are", {}, (fields) => Object.assign(fields, { quantized: 29 })],
    ["more tokens quantized than there are", { tail: 6 }, (fields) => Object.assign(fields, { quantized: 31 })],
    ["a tail longer than it may be", { tail: 6 }, (fields) => Object.assign(fields, { quantized: 18 })],
    ["part of a block quantized", { tail: 6 }, (fields) => Object.assign(fields, { quantized: 25 })],
    ["a tail that begins behind the end", { tail: 6 }, (fields) => Object.assign(fields, { denseFrom: 31 })],
    ["an id that is no integer", {}, (fields) => Object.assign(fields, { ids: [0.5] })],
    ["pages given back without a window", { pages }, giveBack],
    ["a page given back that is there", windowed, ({ pages: own }) => own.splice(0, 1, pages.count - 1)],
    ["a page given back that is seen", windowed, giveBack],
    ["a page beyond the pool", { pages }, ({ pages: own }) => own.splice(-1, 1, pages.count)],
    ["a page twice", { pages }, ({ pages: own }) => own.splice(-1, 1, own[0] as number)],
    ["a page too few", { pages }, ({ pages: own }) => own.pop()],
    ["a page too many", { pages }, ({ pages: own }) => own.push(pages.count - 1)],
    ["the page of a line given back", {}, giveBack],
    ["the page of a ring given back", ring, giveBack],
  ];
  function giveBack(fields: Fields): void {
    fields.pages[fields.released++] = -1;
    if (fields.pages.length > 1) fields.pages[fields.released++] = -1;
  }
  test.each(impossible)("%s is refused in a file whose hash is right", async (_, options, change) => {
    const { cache, path } = await saved("impossible", options);
    cache.dispose();
    using same = await KvCache.load(device, await forged(path, () => undefined));
    expect(same.sequences.length).toBe(2);
    const other = await forged(path, (texts) => {
      const sequences = JSON.parse(texts["sequences"] as string) as Fields[];
      change(sequences[0] as Fields);
      texts["sequences"] = JSON.stringify(sequences);
    });
    const { code, argument, message } = await rejectionOf(KvCache.load(device, other));
    expect({ code, argument }).toEqual({ code: "invalid-argument", argument: other });
    expect(message).toContain("sequence");
  });

  test("ropes of more layers than there are are refused in a file whose hash is right", async () => {
    const { cache, path } = await saved("ropes", {});
    cache.dispose();
    const other = await forged(path, (texts) => {
      texts["rope"] = JSON.stringify([...(JSON.parse(texts["rope"] as string) as unknown[]), null]);
    });
    expect((await rejectionOf(KvCache.load(device, other))).message).toMatch(/rope is 3, and here 2/);
  });

  test("keys of another rope are refused after loading too", async () => {
    const { cache, path } = await saved("rope", {});
    cache.dispose();
    using loaded = await KvCache.load(device, path);
    const k = device.tensor("f32", [1, 2, 64]);
    using pass = device.pass();
    const append = () => loaded.append(pass, 0, { k, v: k, sequences: loaded.sequences.slice(0, 1) });
    const error = thrownBy(append);
    expect(error).toBeInstanceOf(MetalAttentionError);
    expect(error.message).toContain("theta 10000");
  });
});
