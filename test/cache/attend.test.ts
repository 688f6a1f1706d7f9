/** Options of attend over caches of several parts, and which kernel attends to what. */
import { afterAll, describe, expect, test } from "bun:test";
import { type Device as AnyDevice, Device, type KvAttendArgs, KvCache, type KvCacheOptions } from "../../src/index.ts";
import { referenceDecode } from "../../src/reference/index.ts";
import { normalDraws } from "../helpers/random.ts";

const device: AnyDevice = Device.open();
afterAll(() => device.dispose());

const headDim = 64;
const heads = 4;
const kvHeads = 2;
const base: KvCacheOptions = { layers: 1, nKvHeads: kvHeads, headDim, capacity: 64 };

function fill(count: number, of: number, seed: number): Float32Array {
  return Float32Array.from({ length: count * of * headDim }, normalDraws(seed));
}

describe("options over parts", () => {
  // Values that a tail in f16 and codes of 8 bits of them keep differ, so only the dense parts can be known in float64:
  // keys and values of these caches are the same vector throughout, whose code is the same too.
  const sinks = Float32Array.from([0.5, -3, 2, 9]);
  // One that prefers what is far away: of kept tokens and old ones their distance matters most.
  const slopes = Float32Array.from([0.25, 0.02, -0.1, 0]);
  const kinds: [name: string, options: Partial<KvCacheOptions>][] = [
    ["a line", { k: "f32", v: "f32" }],
    ["pages", { k: "f32", v: "f32", pages: { tokens: 8, count: 8 } }],
    ["kept tokens and a ring", { k: "f32", v: "f32", capacity: 90, window: 40, keep: 4 }],
    ["a tail", { k: "f32", v: { bits: 8 }, tail: 8, maxAppend: 64, tailDtype: "f16" }],
  ];
  for (const [name, options] of kinds) {
    test(`${name}: sinks count once, scores are capped, slopes know the position, lse is of all parts`, () => {
      using cache = new KvCache(device, { ...base, ...options });
      const count = 40;
      // Of f16 exactly, so that the tail keeps the keys as they are; values alike, so that only weights matter.
      const halves = (values: Float32Array) => values.map((value) => Math.fround(Math.round(value * 64) / 64));
      const keys = halves(fill(count, kvHeads, 1));
      const one = halves(fill(1, kvHeads, 2));
      const values = Float32Array.from({ length: count * kvHeads * headDim }, (_, i) => one[i % one.length] as number);
      const queries = fill(count, heads, 3);
      const tensor = (data: Float32Array, of: number) => device.tensor("f32", [count, of, headDim]).set(data);
      const [k, v, q, out] = [
        tensor(keys, kvHeads),
        tensor(values, kvHeads),
        tensor(queries, heads),
        tensor(queries, heads),
      ];
      const lse = device.tensor("f32", [count, heads]);
      const sink = device.tensor("f32", [heads]).set(sinks);
      using pass = device.pass();
      const alibiSlopes = device.tensor("f32", [heads]).set(slopes);
      const call: KvAttendArgs = { q, out, lse, softcap: 3, sinks: sink, alibiSlopes, scale: 0.25 };
      cache.append(pass, 0, { k, v });
      cache.attend(pass, 0, call);
      pass.commitAndWait();
      cache.advance();
      const found = lse.toFloat32Array();
      const row = (data: Float32Array, at: number, of: number, head: number) =>
        data.subarray((at * of + head) * headDim, (at * of + head + 1) * headDim);
      for (const position of [0, 3, 4, 17, 39]) {
        const expected = referenceDecode({
          ...{
            heads,
            kvHeads,
            rows: 1,
            headDim,
            valueDim: headDim,
            length: position + 1,
            scale: 0.25,
            softcap: 3,
            sinks,
            alibiSlopes: slopes,
          },
          q: queries.subarray(position * heads * headDim, (position + 1) * heads * headDim),
          keyAt: (head: number, at: number) => row(keys, at, kvHeads, head),
          valueAt: (head: number, at: number) => row(values, at, kvHeads, head),
        });
        for (let head = 0; head < heads; head++) {
          expect(found[position * heads + head]).toBeCloseTo(expected.lse[head] as number, 4);
          const got = row(out.toFloat32Array(), position, heads, head);
          // Codes of 8 bits are a hundredth off; a sink counted twice, or a part left out, tenths.
          for (const [d, value] of got.entries()) {
            expect(Math.abs(value - (expected.out[head * headDim + d] as number))).toBeLessThan(
              name === "a tail" ? 0.04 : 2e-5,
            );
          }
        }
      }
    });
  }

  test("a window of one attend on a cache that is no ring", () => {
    const run = (options: Partial<KvCacheOptions>, window: number | undefined) => {
      using cache = new KvCache(device, { ...base, ...options });
      const tensor = (of: number, seed: number) => device.tensor("f32", [30, of, headDim]).set(fill(30, of, seed));
      using pass = device.pass();
      const [k, v, q, out] = [tensor(kvHeads, 1), tensor(kvHeads, 2), tensor(heads, 3), tensor(heads, 4)];
      cache.append(pass, 0, { k, v });
      cache.attend(pass, 0, { q, out, ...(window !== undefined && { window }) });
      pass.commitAndWait();
      return out.toFloat32Array();
    };
    const ring = run({ window: 10, capacity: 64 }, undefined);
    expect(run({}, 10)).toEqual(ring);
    expect(run({ pages: { tokens: 4, count: 8 } }, 10)).toEqual(ring);
    expect(run({}, undefined)).not.toEqual(ring);
  });
});

describe("which kernel", () => {
  const kernelsOf = (count: number, options: Partial<KvCacheOptions>, dtype: "f16" | "f32") => {
    using cache = new KvCache(device, { ...base, ...options });
    const tensor = (of: number, seed: number) => device.tensor(dtype, [count, of, headDim]).set(fill(count, of, seed));
    using pass = device.pass();
    const [k, v, q, out] = [tensor(kvHeads, 1), tensor(kvHeads, 2), tensor(heads, 3), tensor(heads, 4)];
    cache.append(pass, 0, { k, v });
    cache.attend(pass, 0, { q, out });
    const kernels = pass.describe().map(({ op }) => op);
    pass.commitAndWait();
    return { kernels, out: out.toFloat32Array() };
  };

  test("a prompt over a dense line goes to prefill, in one dispatch", () => {
    expect(kernelsOf(20, { k: "f16", v: "f16" }, "f16").kernels).toEqual(["kvCacheAppend", "flashAttnPrefill"]);
    expect(kernelsOf(16, { k: "f16", v: "f16" }, "f16").kernels).not.toContain("flashAttnPrefill");
    expect(kernelsOf(20, { k: "f16", v: "bf16" }, "f16").kernels).not.toContain("flashAttnPrefill");
    expect(kernelsOf(20, { tail: 4, maxAppend: 32, tailDtype: "bf16" }, "f16").kernels).not.toContain(
      "flashAttnPrefill",
    );
  });

  const dense = { k: "f16", v: "f16" } as const;
  test.each<[name: string, options: Partial<KvCacheOptions>, attend: Partial<KvAttendArgs>]>([
    ["a line", dense, {}],
    ["codes", {}, {}],
    ["codes beside a dense line", { k: "f16" }, {}],
    ["a ring that has wrapped", { ...dense, window: 20 }, {}],
    ["codes in a ring that has wrapped", { window: 20 }, {}],
    ["pages", { ...dense, pages: { tokens: 8, count: 12 } }, {}],
    ["codes in pages", { pages: { tokens: 8, count: 12 } }, {}],
    ["codes and a tail", { tail: 24 }, {}],
    ["codes beside a dense line, and a tail", { k: "f16", tail: 33 }, {}],
    ["codes in a ring that has wrapped, and a tail", { window: 20, tail: 7 }, {}],
    ["codes in pages, and a tail", { tail: 11, pages: { tokens: 8, count: 12 } }, { softcap: 3 }],
    ["a tail that takes 8 tokens at once", { tail: 8, maxAppend: 8 }, {}],
    ["a window over a tail", { tail: 9 }, { window: 13 }],
    ["a line with options", dense, { window: 7, softcap: 3, scale: 0.3 }],
  ])("rows behind others agree with decode: %s", (_, options, attend) => {
    const run = (outDtype: "f16" | "f32") => {
      using cache = new KvCache(device, { ...base, capacity: options.window === undefined ? 96 : 64, ...options });
      const step = (rows: number, seed: number) => {
        const tensor = (of: number, dtype: "f16" | "f32", salt: number) =>
          device.tensor(dtype, [rows, of, headDim]).set(fill(rows, of, seed + salt));
        using pass = device.pass();
        const [q, out] = [tensor(heads, "f16", 3), tensor(heads, outDtype, 4)];
        const lse = device.tensor("f32", [rows, heads]);
        cache.append(pass, 0, { k: tensor(kvHeads, "f32", 1), v: tensor(kvHeads, "f32", 2) });
        cache.attend(pass, 0, { q, out, lse, ...attend });
        const isPrefill = pass.describe().some(({ op }) => op === "flashAttnPrefill");
        pass.commitAndWait();
        cache.advance();
        return { isPrefill, out: out.toFloat32Array(), lse: lse.toFloat32Array() };
      };
      step(30, 10);
      step(20, 20);
      return step(40, 30);
    };
    // Prefill writes the dtype of q, decode attention any.
    const [prompt, rows] = [run("f16"), run("f32")];
    expect([prompt.isPrefill, rows.isPrefill]).toEqual([true, false]);
    const apart = (name: "out" | "lse") =>
      Math.max(...prompt[name].map((value, i) => Math.abs(value - (rows[name][i] as number))));
    expect(apart("out")).toBeLessThan(4e-3);
    expect(apart("lse")).toBeLessThan(4e-3);
  });

  test("a token of the default formats is one write and one dispatch of attention", () => {
    const { kernels } = kernelsOf(1, {}, "f32");
    expect(kernels).toEqual(["hadamardQuantizeKvSeq", "flashAttnDecode"]);
  });

  test("16-bit keys go to codes as they are", () => {
    const from = (dtype: "f16" | "f32") => kernelsOf(5, {}, dtype);
    expect(from("f16").kernels.slice(0, 2)).toEqual(from("f32").kernels.slice(0, 2));
    const worst = Math.max(...from("f16").out.map((value, i) => Math.abs(value - (from("f32").out[i] as number))));
    expect(worst).toBeLessThan(0.05);
  });
});
