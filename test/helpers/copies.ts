import { expect } from "bun:test";
import type { Device, Pass, Tensor } from "../../src/index.ts";
import type { ElementBits, FloatName, CopyStream as ReferenceStream } from "../../src/reference/index.ts";
import {
  bitDifferences,
  bitsOf,
  fillEdgesAndNoise,
  fillPattern,
  newBits,
  type PlacedTensor,
  placeTensor,
} from "./elements.ts";

/** Dtypes of a source and its cache. */
export interface DtypePair<From extends FloatName = FloatName, To extends FloatName = FloatName> {
  readonly from: From;
  readonly to: To;
}

/** The pairs of a token-major source and a head-major cache, with the kernel of `family` for each. */
export function headCopyPairs(family: string): readonly (DtypePair & { readonly kernel: string })[] {
  return [
    { from: "f32", to: "f32", kernel: `${family}_f32` },
    { from: "f32", to: "f16", kernel: `${family}_f32_to_f16` },
    { from: "f32", to: "bf16", kernel: `${family}_f32_to_bf16` },
    { from: "bf16", to: "f32", kernel: `${family}_bf16` },
    { from: "bf16", to: "bf16", kernel: `${family}_bf16_to_bf16` },
    { from: "f16", to: "f16", kernel: `${family}_f16_to_f16` },
  ];
}

/** Shapes and places of a source and its cache; offsets in elements. */
export interface StreamPlan<From extends FloatName = FloatName, To extends FloatName = FloatName>
  extends DtypePair<From, To> {
  readonly srcShape: readonly number[];
  readonly cacheShape: readonly number[];
  readonly srcOffset?: number | undefined;
  readonly cacheOffset?: number | undefined;
  readonly seed: number;
  /** Fills the source and what surrounds it; edges of the dtype and noise unless given. */
  readonly fill?: ((bits: ElementBits) => void) | undefined;
}

/** A source with difficult values, a cache full of a pattern, and what the cache must hold afterwards. */
export class TestStream<From extends FloatName = FloatName, To extends FloatName = FloatName> implements Disposable {
  readonly src: Tensor<From>;
  readonly cache: Tensor<To>;
  readonly #plan: StreamPlan<From, To>;
  readonly #placedSrc: PlacedTensor<From>;
  readonly #placedCache: PlacedTensor<To>;

  constructor(device: Device, plan: StreamPlan<From, To>) {
    this.#plan = plan;
    this.#placedSrc = placeTensor(device, plan.from, plan.srcShape, plan.srcOffset ?? 0);
    this.#placedCache = placeTensor(device, plan.to, plan.cacheShape, plan.cacheOffset ?? 0);
    this.src = this.#placedSrc.part;
    this.cache = this.#placedCache.part;
    this.reset();
  }

  reset(): void {
    this.#fillSource(bitsOf(this.#placedSrc.whole));
    fillPattern(bitsOf(this.#placedCache.whole), this.#plan.seed);
  }

  #fillSource(bits: ElementBits): void {
    const { fill, from, seed } = this.#plan;
    if (fill === undefined) fillEdgesAndNoise(bits, from, seed);
    else fill(bits);
  }

  /** The bits of the cache and of what surrounds it, now. */
  snapshot(): ElementBits {
    return bitsOf(this.#placedCache.whole).slice();
  }

  /** Compares every byte of the cache, of what surrounds it and of the source with the oracle's work. */
  expectCopied(reference: (stream: ReferenceStream) => void): void {
    const { from, to, seed } = this.#plan;
    const src = newBits(from, this.#placedSrc.whole.length);
    this.#fillSource(src);
    const cache = newBits(to, this.#placedCache.whole.length);
    fillPattern(cache, seed);
    const partOf = ({ part, offset }: PlacedTensor, bits: typeof src) => bits.subarray(offset, offset + part.length);
    reference({
      src: partOf(this.#placedSrc, src),
      srcDtype: from,
      cache: partOf(this.#placedCache, cache),
      cacheDtype: to,
    });
    expect(bitDifferences(to, bitsOf(this.#placedCache.whole), cache, (from as FloatName) !== to)).toEqual([]);
    expect(bitDifferences(from, bitsOf(this.#placedSrc.whole), src)).toEqual([]);
  }

  expectUntouched(): void {
    this.expectCopied(() => {});
  }

  [Symbol.dispose](): void {
    for (const { part, whole } of [this.#placedSrc, this.#placedCache]) {
      part.dispose();
      whole.dispose();
    }
  }
}

/** Commits one pass with what `encode` appends, and checks that it is the one dispatch of `kernel`. */
export function runOneDispatch(device: Device, kernel: string, encode: (pass: Pass) => void): void {
  using pass = device.pass();
  encode(pass);
  expect(pass.describe().map((dispatch) => dispatch.kernel)).toEqual([kernel]);
  pass.commitAndWait();
}
