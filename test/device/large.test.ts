/** Memory beyond 4 GiB, which no ArrayBuffer holds: kernels and copies use it, TypeScript does not see it. */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Device, flashAttnDecode, KvCache, kvCacheCopySeq, type Pass, type Tensor } from "../../src/index.ts";
import { expectRefusal } from "../helpers/errors.ts";

const device = Device.open();
const folder = mkdtempSync(join(tmpdir(), "metal-attention-large-"));
afterAll(() => {
  device.dispose();
  rmSync(folder, { recursive: true, force: true });
});

const limit = 2 ** 32;
/** A cache of one sequence is 2 MiB in f16. */
const [heads, capacity, headDim] = [2, 4096, 128];
const sequences = limit / 2 ** 21 + 3;

function run(encode: (pass: Pass) => void): void {
  using pass = device.pass();
  encode(pass);
  pass.commitAndWait();
}

function values(count: number, seed: number): Float32Array<ArrayBuffer> {
  return Float32Array.from({ length: count }, (_, i) => Math.sin(i * 0.7 + seed));
}

describe.each(["shared", "private"] as const)("a tensor beyond 4 GiB in %s storage", (storage) => {
  test("is used by kernels up to its end, and copied by parts", () => {
    using cache = device.tensor("f16", [sequences, heads, capacity, headDim], { storage });
    expect(cache.byteLength).toBeGreaterThan(limit);
    using src = device.tensor("f16", [5, heads, headDim]).set(values(5 * heads * headDim, 1));
    using last = cache.slice(sequences - 1);
    using row = last.reshape([heads, capacity, headDim]);
    run((pass) => kvCacheCopySeq(pass, { src, cache: row, seqPosStart: 0 }));

    using small = device.tensor("f16", [1, heads, capacity, headDim]);
    run((pass) => pass.copy(last, small));
    using q = device.tensor("f16", [sequences, heads, 1, headDim]).set(values(sequences * heads * headDim, 2));
    using out = device.tensor("f16", q.shape);
    using lastQ = q.slice(sequences - 1);
    using expected = device.tensor("f16", lastQ.shape);
    run((pass) => {
      flashAttnDecode(pass, { q, k: cache, v: cache, out, seqLen: 5 });
      flashAttnDecode(pass, { q: lastQ, k: small, v: small, out: expected, seqLen: 5 });
    });
    using lastOut = out.slice(sequences - 1);
    expect(lastOut.bytes).toEqual(expected.bytes);
    expect(expected.toFloat32Array().every((value) => value !== 0)).toBeTrue();
  });

  const looks: Readonly<Record<string, (tensor: Tensor) => unknown>> = {
    bytes: (tensor) => tensor.bytes,
    "view()": (tensor) => tensor.view(),
    "set()": (tensor) => tensor.set([1], 0),
    "toFloat32Array()": (tensor) => tensor.toFloat32Array(),
  };
  test("is refused where values are read or written, as its parts are", () => {
    using tensor = device.tensor("u8", [2, limit / 2 + 1], { storage });
    using part = tensor.slice(0, 1);
    const parts = storage === "private" ? ["private storage"] : [limit + 2, limit, "pass.copy"];
    for (const look of Object.values(looks))
      for (const each of [tensor, part]) expectRefusal(() => look(each), "unsupported", undefined, ...parts);
    expect(Bun.inspect(tensor)).toContain(storage === "private" ? "private" : `${limit + 2} bytes`);
  });
});

test("more floats than an ArrayBuffer holds are refused", () => {
  using tensor = device.tensor("u8", [limit / 4 + 1]);
  expectRefusal(() => tensor.toFloat32Array(), "unsupported", undefined, limit / 4 + 1, limit / 4);
  expect(tensor.bytes).toHaveLength(limit / 4 + 1);
});

test.each(["shared", "private"] as const)(
  "a KvCache beyond 4 GiB forks and is saved in %s storage",
  async (storage) => {
    const options = { layers: 1, nKvHeads: heads, headDim, capacity, k: "f16", v: "f16" } as const;
    using large = new KvCache(device, { ...options, sequences, storage });
    using small = new KvCache(device, { ...options, sequences: 2 });
    using tokens = device.tensor("f16", [3, heads, headDim]).set(values(3 * heads * headDim, 3));
    using out = device.tensor("f16", [3, heads, headDim]);
    const attended = (cache: KvCache) => {
      const sequence = cache.sequences.at(-1);
      if (sequence === undefined) throw new Error("the cache has no sequence");
      run((pass) => {
        cache.append(pass, 0, { k: tokens, v: tokens, sequences: [sequence] });
        cache.attend(pass, 0, { q: tokens, out });
      });
      cache.advance(3);
      return out.bytes.slice();
    };
    // Of the last slots, which lie beyond 4 GiB.
    for (let n = 0; n < sequences - 1; n++) large.sequence();
    small.sequence();
    expect(attended(large)).toEqual(attended(small));
    large.sequences.at(-1)?.fork();
    small.sequences.at(-1)?.fork();
    const expected = attended(small);
    expect(attended(large)).toEqual(expected);
    for (const sequence of large.sequences.slice(0, -2)) sequence.drop();
    const path = join(folder, `${storage}.safetensors`);
    await large.save(path);
    using loaded = await KvCache.load(device, path);
    expect(attended(loaded)).toEqual(attended(small));
  },
);
