import { expect } from "bun:test";
import { normalArray } from "../../scripts/lib/random.ts";
import { support } from "../../src/ffi/support.ts";
import type { Device, DType, Tensor } from "../../src/index.ts";
import { quantizedFormats } from "../../src/ops/quantizedCache/quantizedFormat.ts";
import { at } from "../../src/reference/at.ts";
import {
  boundariesOf,
  bytesPerRow,
  type CodeFormat,
  normsPerPos,
  quantizeVector,
  unpackCodes,
} from "../../src/reference/index.ts";

const { headDims, otherHeadDims } = support().quantizedCache;

/** Head sizes with kernels of their own. */
export const headSizes: readonly number[] = headDims;

const powersOfTwo = Array.from({ length: 32 }, (_, power) => 2 ** power);

/** Powers of two that one kernel for any size serves. */
export const otherSizes: readonly number[] = powersOfTwo.filter(
  (size) => size >= otherHeadDims.least && size <= otherHeadDims.most && !headDims.includes(size),
);

/** Every format. */
export const codeFormats: readonly CodeFormat[] = quantizedFormats().map(({ bits, packing }) => ({ bits, packing }));

export const formatName = ({ bits, packing }: CodeFormat): string => `${bits} bits, ${packing}`;

/** Whether `headDim` codes fill whole bytes. */
export function isWhole(headDim: number, { bits, packing }: CodeFormat): boolean {
  return packing !== "dense" || (headDim * bits) % 8 === 0;
}

/** Normal values, some of them with an outlier channel, the head vectors at different scales. */
export function sourceValues(headDim: number, rows: number, seed: number): Float32Array {
  const values = normalArray(rows * headDim, 1, seed);
  for (let row = 0; row < rows; row++) {
    const scale = [1, 300, 1e-4][row % 3] as number;
    for (let i = 0; i < headDim; i++) {
      const outlier = row % 4 === 3 && i === Math.min(5, headDim - 1) ? 50 : 1;
      values[row * headDim + i] = at(values, row * headDim + i) * scale * outlier;
    }
  }
  return values;
}

/** Extents of a cache. */
export interface CachePlan {
  readonly format: CodeFormat;
  readonly headDim: number;
  readonly nKvHeads: number;
  readonly capacity: number;
  readonly isSliding: boolean;
  readonly scaleFactorD512?: number;
  /** Heads behind these that no dispatch may touch. */
  readonly spareHeads?: number;
}

/** What untouched codes and norms hold. */
const pattern = { packed: 0xa5, norm: -7.25 };
/** Elements of that before and after each tensor. */
const margin = 5;

/** A tensor full of `value` inside a larger one full of it. */
function placed<T extends DType>(device: Device, dtype: T, shape: readonly number[], value: number) {
  const length = shape.reduce((product, extent) => product * extent, 1);
  const whole = device.tensor(dtype, [length + 2 * margin]);
  (whole.view() as Uint8Array).fill(value);
  return { whole, part: whole.slice(margin, margin + length).reshape(shape) };
}

/** What a comparison counts. */
export interface Comparison {
  /** Codes compared, and those one off where the value is next to a boundary. */
  readonly codes: number;
  readonly neighbours: number;
  /** Codes, norms and bytes that are not what they must be. */
  readonly wrong: number;
  readonly wrongNorms: number;
  readonly touched: number;
}

/** Codes and norms of K or V, between guards. */
export class TestCache {
  readonly plan: CachePlan;
  readonly packed: Tensor<"u8">;
  readonly norms: Tensor<"f32">;
  readonly #packed: Tensor<"u8">;
  readonly #norms: Tensor<"f32">;

  constructor(device: Device, plan: CachePlan) {
    this.plan = plan;
    const { headDim, nKvHeads, capacity, format, spareHeads = 0 } = plan;
    const heads = nKvHeads + spareHeads;
    const packed = placed(device, "u8", [heads, capacity, bytesPerRow(headDim, format)], pattern.packed);
    const norms = placed(device, "f32", [heads, capacity, normsPerPos(headDim)], pattern.norm);
    [this.#packed, this.packed] = [packed.whole, packed.part];
    [this.#norms, this.norms] = [norms.whole, norms.part];
  }

  /** The arguments of a call that name this cache. */
  get tensors(): { readonly packed: Tensor<"u8">; readonly norms: Tensor<"f32"> } {
    return { packed: this.packed, norms: this.norms };
  }

  /** Everything in both tensors and around them. */
  snapshot(): { readonly packed: Uint8Array; readonly norms: Uint8Array } {
    return { packed: this.#packed.bytes.slice(), norms: this.#norms.bytes.slice() };
  }

  dispose(): void {
    for (const tensor of [this.packed, this.norms, this.#packed, this.#norms]) tensor.dispose();
  }

  /** The row of the slot that a position has. */
  #row(head: number, position: number): number {
    const { capacity, isSliding } = this.plan;
    return head * capacity + (isSliding ? position % capacity : position);
  }

  /** Compares this cache with the oracle's encoding of tokens srcTokOffset and on of src [tokens, heads, headDim]. */
  compare(src: Float32Array, positionStart: number, nTokens: number, srcTokOffset: number): Comparison {
    const { format, headDim, nKvHeads, scaleFactorD512 = 1 } = this.plan;
    const [rowBytes, perPos] = [bytesPerRow(headDim, format), normsPerPos(headDim)];
    const boundaries = boundariesOf(format.bits);
    const [packed, norms] = [this.packed.view(), this.norms.view()];
    const counts = { codes: 0, neighbours: 0, wrong: 0, wrongNorms: 0, touched: 0 };
    const written = new Set<number>();
    for (let token = 0; token < nTokens; token++) {
      for (let head = 0; head < nKvHeads; head++) {
        const row = this.#row(head, positionStart + token);
        written.add(row);
        const first = ((srcTokOffset + token) * nKvHeads + head) * headDim;
        const expected = quantizeVector(src.subarray(first, first + headDim), { ...format, scaleFactorD512 });
        const bytes = packed.subarray(row * rowBytes, (row + 1) * rowBytes);
        if (format.packing === "byte" && bytes.some((byte) => byte >= 2 ** format.bits)) counts.wrong += 1;
        for (const [i, code] of unpackCodes(bytes, headDim, format).entries()) {
          const wanted = at(expected.codes, i);
          counts.codes += 1;
          if (code === wanted) continue;
          const boundary = boundaries[Math.min(code, wanted)] as number;
          const isNear = Math.abs(code - wanted) === 1 && Math.abs(at(expected.scaled, i) - boundary) < 1e-5;
          if (isNear) counts.neighbours += 1;
          else counts.wrong += 1;
        }
        for (const [n, norm] of expected.norms.entries()) {
          const stored = at(norms, row * perPos + n);
          const isRight = Number.isNaN(norm) ? Number.isNaN(stored) : Math.abs(stored - norm) <= 1e-6 * norm;
          if (!isRight) counts.wrongNorms += 1;
        }
      }
    }
    for (let row = 0; row * rowBytes < packed.length; row++) {
      if (written.has(row)) continue;
      const codes = packed.subarray(row * rowBytes, (row + 1) * rowBytes);
      if (codes.some((byte) => byte !== pattern.packed)) counts.touched += 1;
      if (norms.subarray(row * perPos, (row + 1) * perPos).some((norm) => norm !== pattern.norm)) counts.touched += 1;
    }
    const outside = (values: Uint8Array | Float32Array, value: number) =>
      [...values.subarray(0, margin), ...values.subarray(-margin)].filter((found) => found !== value).length;
    counts.touched += outside(this.#packed.view(), pattern.packed) + outside(this.#norms.view(), pattern.norm);
    return counts;
  }
}

/** Fails unless a comparison found codes, and of those wrong only as many neighbours as rounding explains. */
export function expectRight({ codes, neighbours, ...faults }: Comparison): void {
  expect(faults).toEqual({ wrong: 0, wrongNorms: 0, touched: 0 });
  expect(codes).toBeGreaterThan(0);
  expect(neighbours).toBeLessThanOrEqual(Math.max(2, codes * 1e-5));
}
