/** K turned on its way into codes: the bytes of a rotation into f32 and the encoding of that, whatever the source's dtype. */
import { afterAll, describe, expect, test } from "bun:test";
import {
  type AppendRope,
  applyRope,
  Device,
  type HadamardQuantizeKvSeqArgs,
  hadamardQuantizeKvSeq,
  kvCacheBytes,
  type QuantizedPacking,
  type Tensor,
} from "../../src/index.ts";
import { quantizeVector, referenceApplyRope } from "../../src/reference/index.ts";
import { expectRefusal } from "../helpers/errors.ts";
import { normalDraws } from "../helpers/random.ts";

const device = Device.open();
afterAll(() => device.dispose());

interface Format {
  readonly bits: 2 | 3 | 4 | 5 | 6 | 8;
  readonly packing?: QuantizedPacking;
}

interface Case {
  readonly headDim: number;
  readonly format?: Format;
  readonly heads?: number;
  readonly tokens?: number;
  readonly batch?: number;
  readonly rope: AppendRope;
  /** Of the first token, or those of all in device memory. */
  readonly at?: number | readonly number[];
  readonly isSliding?: boolean;
  readonly pageTokens?: number;
  readonly srcTokOffset?: number;
  readonly hasV?: boolean;
  /** Of V where it is another. */
  readonly formatV?: Format;
  /** f32 unless given. */
  readonly dtype?: "f32" | "f16" | "bf16";
  /** Elements that the source lies off from a whole word. */
  readonly shift?: number;
}

const capacity = 24;

/** Codes and norms of K, and of V where there is one, after the write; `isFused` or by way of `applyRope`. */
function written(entry: Case, isFused: boolean): { bytes: Uint8Array[]; norms: Float32Array[]; source: Float32Array } {
  const { headDim, format = { bits: 4 }, heads = 3, tokens = 5, batch = 1, rope, at = 3, hasV = false } = entry;
  const { isSliding = false, pageTokens, srcTokOffset = 0, shift = 0, dtype = "f32", formatV = format } = entry;
  const nSrc = tokens + srcTokOffset;
  const draw = normalDraws(headDim + heads);
  const source = (): Tensor<"f32" | "f16" | "bf16"> => {
    const length = batch * nSrc * heads * headDim;
    const all: Tensor<"f32" | "f16" | "bf16"> = device.tensor(dtype, [length + shift]);
    all.set(Float32Array.from({ length: all.length }, draw));
    const part = all.slice(shift, shift + length).reshape([batch, nSrc, heads, headDim]);
    return isFused ? part : device.tensor("f32", part.shape).set(part.toFloat32Array());
  };
  const pages = pageTokens === undefined ? undefined : (batch * capacity) / pageTokens;
  const planes = pages ?? batch;
  const slots = pageTokens ?? capacity;
  const cache = (own: Format) => {
    const { bytesPerRow, normsPerPos } = kvCacheBytes({ headDim, nKvHeads: heads, capacity, ...own });
    return {
      packed: device
        .tensor("u8", [planes, heads, slots, bytesPerRow])
        .set(Uint8Array.from({ length: planes * heads * slots * bytesPerRow }, (_, i) => (i * 7) % 4)),
      norms: device.tensor("f32", [planes, heads, slots, normsPerPos]),
    };
  };
  const [k, v] = [
    { src: source(), ...cache(format) },
    { src: source(), ...cache(formatV), ...(hasV && entry.formatV) },
  ];
  const values = k.src.toFloat32Array();
  const positions = typeof at === "number" ? undefined : device.tensor("i32", [batch, tokens]).set(Int32Array.from(at));
  using pass = device.pass();
  if (!isFused) {
    const { offset = 0, ...angles } = rope;
    // The source is turned where it is, with positions of the tokens that are not read too.
    const start = (typeof at === "number" ? at : 0) - srcTokOffset + offset;
    const turned =
      positions === undefined
        ? { start }
        : { positions: device.tensor("i32", [batch, tokens]).set(Int32Array.from(at as number[], (p) => p + offset)) };
    applyRope(pass, { x: k.src, layout: "sequence-major", ...angles, ...turned } as never);
  }
  hadamardQuantizeKvSeq(pass, {
    ...(hasV ? { k, v } : k),
    ...format,
    isSliding,
    srcTokOffset,
    ...(positions === undefined ? { writePosStart: at } : { positions }),
    ...(pages !== undefined && {
      // The last page first, so that a page is not its own number.
      blockTable: device
        .tensor("i32", [batch, pages / batch])
        .set(Int32Array.from({ length: pages }, (_, i) => pages - 1 - i)),
    }),
    ...(isFused && { rope }),
  } as HadamardQuantizeKvSeqArgs);
  pass.commitAndWait();
  const both = hasV ? [k, v] : [k];
  return {
    bytes: both.map(({ packed }) => Uint8Array.from(packed.view())),
    norms: both.map(({ norms }) => norms.toFloat32Array()),
    source: values,
  };
}

function expectSame(entry: Case): void {
  const { bytes, norms } = written(entry, true);
  const expected = written(entry, false);
  expect(bytes).toEqual(expected.bytes);
  expect(norms).toEqual(expected.norms);
}

const headSizes = [64, 80, 96, 112, 128, 192, 256, 512];
const half = (more: Partial<AppendRope> = {}): AppendRope => ({ theta: 10_000, pairing: "half", ...more });
const neighbours = (more: Partial<AppendRope> = {}): AppendRope => ({ theta: 10_000, pairing: "interleaved", ...more });

describe("the bytes of applyRope into f32 and the encoding of that", () => {
  for (const headDim of headSizes) {
    test(`D = ${headDim}`, () => {
      for (const rotaryDim of [headDim, headDim / 2, headDim - 2, 6]) {
        for (const rope of [half({ rotaryDim }), neighbours({ rotaryDim, attentionScale: 1.25 })]) {
          expectSame({ headDim, rope });
        }
      }
      for (const format of [{ bits: 8 }, { bits: 3 }, { bits: 5, packing: "byte" }] as const) {
        expectSame({ headDim, format, rope: half() });
        expectSame({ headDim, format, rope: neighbours(), shift: 1 });
      }
    });

    test(`D = ${headDim}, from 16 bits, V in a format of its own`, () => {
      for (const dtype of ["f16", "bf16"] as const) {
        for (const rotaryDim of [headDim, headDim / 2, 6]) {
          for (const rope of [half({ rotaryDim }), neighbours({ rotaryDim })]) {
            expectSame({ headDim, rope, dtype });
            expectSame({ headDim, rope, dtype, format: { bits: 8 }, hasV: true, formatV: { bits: 4 } });
            expectSame({ headDim, rope, dtype, shift: 1, hasV: true, formatV: { bits: 3 } });
          }
        }
        const rope = half({ offset: 5, attentionScale: 1.25 });
        const at = [7, 8, 30, 9, -1, 23, 22, 0, 5, 6];
        const more = { format: { bits: 5 }, hasV: true, formatV: { bits: 6, packing: "dense" } } as const;
        expectSame({ headDim, rope, dtype, at, batch: 2, pageTokens: 8, ...more });
        expectSame({ headDim, rope, dtype, at: 1000, isSliding: true, srcTokOffset: 2, heads: 7, ...more });
      }
    });
  }

  test("heads in groups of several sizes, V beside K", () => {
    for (const heads of [1, 2, 4, 5, 7, 8, 13]) {
      for (const tokens of [1, 2, 9]) {
        expectSame({ headDim: 64, heads, tokens, rope: half(), hasV: true });
        expectSame({ headDim: 96, heads, tokens, rope: half(), batch: 2 });
      }
    }
    // So many tokens that all heads share a thread.
    expectSame({ headDim: 64, heads: 8, tokens: 20, batch: 256, at: 0, rope: half(), hasV: true });
  });

  test("rings, pages, positions in device memory, offsets, parts of a source", () => {
    const at = [7, 8, 30, 9, -1, 23, 24, 0, 5, 6];
    // One slot a position of a sequence: of two in one slot either may be written last.
    const inRing = [47, 48, 70, 49, 39, 63, 65, 40, 45, 46];
    for (const headDim of [64, 128]) {
      const base: Case = { headDim, rope: half({ offset: 5 }) };
      expectSame({ ...base, isSliding: true, at: 1000 });
      expectSame({ ...base, pageTokens: 8, batch: 2 });
      expectSame({ ...base, at, batch: 2 });
      expectSame({ ...base, at, batch: 2, pageTokens: 4, hasV: true });
      expectSame({ ...base, at: inRing, batch: 2, isSliding: true, rope: neighbours({ offset: -40 }) });
      expectSame({ ...base, srcTokOffset: 2, shift: 3 });
    }
    expectSame({ headDim: 128, isSliding: true, at: 2 ** 24 - 10, rope: half({ theta: 5e5 }) });
    expectSame({ headDim: 80, rope: { invFreq: Float32Array.of(1, 0.3, 2e-5), pairing: "half", attentionScale: 0.5 } });
  });
});

test("beside rotation and encoding in float64", () => {
  for (const headDim of headSizes) {
    for (const pairing of ["half", "interleaved"] as const) {
      const [heads, tokens, at] = [3, 5, 3];
      const invFreq = Float32Array.from({ length: headDim / 2 }, (_, i) => Math.fround(10_000 ** ((-2 * i) / headDim)));
      const entry: Case = { headDim, heads, tokens, at, format: { bits: 8 }, rope: { invFreq, pairing } };
      const { bytes, norms, source } = written(entry, true);
      let apart = 0;
      for (let token = 0; token < tokens; token++) {
        for (let head = 0; head < heads; head++) {
          const first = (token * heads + head) * headDim;
          const turned = referenceApplyRope(source.subarray(first, first + headDim), {
            ...{ batch: 1, nHeads: 1, nTokens: 1, headDim, invFreq, attentionScale: 1 },
            ...{ isSequenceMajor: true, isInterleaved: pairing === "interleaved", position: () => at + token },
          });
          const options = { bits: 8, packing: "byte", scaleFactorD512: 1 } as const;
          const expected = quantizeVector(turned, options);
          const row = head * capacity + at + token;
          for (const [n, norm] of Array.from(expected.norms).entries()) {
            const got = norms[0]?.[row * Math.max(1, headDim / 256) + n] as number;
            expect(Math.abs(got / norm - 1)).toBeLessThan(1e-6);
          }
          for (let d = 0; d < headDim; d++) {
            const difference = Math.abs((bytes[0]?.[row * headDim + d] as number) - (expected.codes[d] as number));
            // A value beside a boundary may take the code next to it.
            expect(difference).toBeLessThanOrEqual(1);
            apart += difference;
          }
        }
      }
      expect(apart).toBeLessThanOrEqual(3);
    }
  }
});

test("refusals", () => {
  const call = (headDim: number, rope: unknown, at = 0) => {
    const { bytesPerRow, normsPerPos } = kvCacheBytes({ headDim, nKvHeads: 1, capacity: 4, bits: 4 });
    const packed = device.tensor("u8", [1, 4, bytesPerRow]);
    const norms = device.tensor("f32", [1, 4, normsPerPos]);
    using pass = device.pass();
    const src = device.tensor("f32", [1, 1, headDim]);
    hadamardQuantizeKvSeq(pass, { src, packed, norms, bits: 4, writePosStart: at, isSliding: true, rope } as never);
  };
  expectRefusal(() => call(32, half()), "unsupported", "rope.rotaryDim", 32, "64, 80", "turn it before");
  expectRefusal(() => call(64, half({ rotaryDim: 66 })), "invalid-argument", "rope.rotaryDim", 66, 64);
  expectRefusal(() => call(64, { theta: 1e4 }), "invalid-argument", "rope.pairing", "half", "interleaved");
  expectRefusal(() => call(64, half({ attentionScale: 0 })), "invalid-argument", "rope.attentionScale", 0);
  expectRefusal(() => call(64, half(), 2 ** 24 + 1), "overflow", "writePosStart", 2 ** 24);
  expectRefusal(() => call(64, half({ offset: 2 ** 25 })), "overflow", "rope.offset", 2 ** 24);
  expectRefusal(() => call(64, half({ offset: 0.5 })), "invalid-argument", "rope.offset", 0.5);
  expectRefusal(() => call(64, { ...half(), base: 3 }), "invalid-argument", "rope.base");
});
