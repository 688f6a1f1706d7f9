import { expect } from "bun:test";
import { type AttentionLayout, applyRope, type Device, type Tensor } from "../../src/index.ts";
import { type FloatName, FORMATS, referenceApplyRope, roundTo } from "../../src/reference/index.ts";
import { seededRandom } from "./random.ts";

/** A call of `applyRope` on one stream, or on q and k. */
export interface RopeCase {
  readonly name: string;
  readonly from: FloatName;
  readonly to: FloatName;
  readonly batch?: number;
  readonly nHeads: number;
  /** With k. */
  readonly nKvHeads?: number;
  readonly nTokens: number;
  readonly headDim: number;
  readonly invFreq: Float32Array;
  readonly layout?: AttentionLayout;
  readonly pairing?: "half" | "interleaved";
  readonly attentionScale?: number;
  readonly start?: number;
  /** Of each token, of all batches or of each. */
  readonly positions?: readonly number[];
  readonly inPlace?: boolean;
}

/** The arguments that q and k share. */
function sharedArgs(device: Device, entry: RopeCase) {
  const { batch = 1, nTokens, invFreq, layout, pairing = "half", attentionScale, start, positions } = entry;
  const shape = positions?.length === nTokens ? [nTokens] : [batch, nTokens];
  return {
    invFreq,
    pairing,
    ...(layout === undefined ? {} : { layout }),
    ...(attentionScale === undefined ? {} : { attentionScale }),
    ...(start === undefined ? {} : { start }),
    ...(positions === undefined ? {} : { positions: device.tensor("i32", shape).set(positions) }),
  };
}

/** The tensors of a stream, values near 1 in `x` and a pattern in `out`. */
function streamOf(device: Device, entry: RopeCase, heads: number, seed: number) {
  const { batch, nTokens, headDim, layout, from, to, inPlace } = entry;
  const axes = layout === "sequence-major" ? [nTokens, heads, headDim] : [heads, nTokens, headDim];
  const shape = batch === undefined ? axes : [batch, ...axes];
  const random = seededRandom(seed);
  const x = device.tensor(from, shape);
  x.set(Float32Array.from({ length: x.length }, () => 4 * random() - 2));
  const values = Float64Array.from(x.toFloat32Array());
  const out = inPlace === true ? x : device.tensor(to, shape);
  if (out !== x) out.bytes.fill(0xa5);
  return { x, out, values };
}

/** Runs a case on `device` and holds its outputs against the oracle. */
export function expectTurned(device: Device, entry: RopeCase): void {
  const q = streamOf(device, entry, entry.nHeads, 1);
  const k = entry.nKvHeads === undefined ? undefined : streamOf(device, entry, entry.nKvHeads, 2);
  using pass = device.pass();
  const shared = sharedArgs(device, entry);
  const stream = ({ x, out }: typeof q) => (out === x ? { x } : { x, out });
  if (k === undefined) applyRope(pass, { ...stream(q), ...shared });
  else applyRope(pass, { q: stream(q), k: stream(k), ...shared });
  pass.commitAndWait();
  expectNear(entry, entry.nHeads, q.values, q.out);
  if (k !== undefined) expectNear(entry, entry.nKvHeads ?? 0, k.values, k.out);
}

/** In f32, relative to the longer of a pair: sine, cosine, two products and a sum, each rounded. */
const f32Error = 6 * 2 ** -24;

function expectNear(entry: RopeCase, nHeads: number, values: Float64Array, out: Tensor): void {
  const { batch = 1, nTokens, headDim, invFreq, layout, pairing, attentionScale = 1, start = 0, positions, to } = entry;
  const wanted = referenceApplyRope(values, {
    batch,
    nHeads,
    nTokens,
    headDim,
    isSequenceMajor: layout === "sequence-major",
    isInterleaved: pairing === "interleaved",
    invFreq,
    attentionScale,
    position: (b, t) => positions?.[positions.length === nTokens ? t : b * nTokens + t] ?? start + t,
  });
  const got = out.toFloat32Array();
  expect(got.length).toBe(wanted.length);
  const allowed = 2 * Math.SQRT2 * attentionScale * f32Error;
  wanted.forEach((want, i) => {
    const isKept = i % headDim >= 2 * invFreq.length;
    // Half of the last place that the rounded value may have, besides.
    const rounding = to === "f32" ? 0 : 2 ** -FORMATS[to].precision * (Math.abs(want) + allowed);
    const error = Math.abs((got[i] as number) - want);
    if (isKept ? got[i] !== roundTo(to, want) : !(error <= allowed + rounding)) {
      expect({ i, got: got[i], error }).toEqual({ i, got: want, error: allowed + rounding });
    }
  });
}
