import { seededBits } from "../../scripts/lib/random.ts";
import {
  type DecodeCache,
  type DecodeDType,
  type Device,
  type FlashAttnDecodeArgs,
  flashAttnDecode,
  type Tensor,
} from "../../src/index.ts";
import {
  bytesPerRow,
  type CodeFormat,
  type DecodeResult,
  dequantizeVector,
  encode,
  normsPerPos,
  packCodes,
  referenceDecode,
  roundTo,
} from "../../src/reference/index.ts";
import { bitsOf } from "./elements.ts";
import { normalDraws } from "./random.ts";

/** How K or V is stored. */
export type CacheFormat = DecodeDType | CodeFormat;

export const cacheName = (format: CacheFormat): string =>
  typeof format === "string" ? format : `${format.bits} ${format.packing}`;

/** One case of decode attention. */
export interface DecodeCase {
  readonly headDim: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly rows: number;
  /** Keys of each sequence. */
  readonly lengths: readonly number[];
  readonly capacity: number;
  readonly k: CacheFormat;
  readonly v: CacheFormat;
  readonly isSliding?: boolean;
  /** Tokens of a page; no pages unless given. */
  readonly pageTokens?: number;
  /** Which order pages have in the pool; that of the seed unless given. */
  readonly pageOrder?: number;
  readonly qDtype?: DecodeDType;
  readonly outDtype?: DecodeDType;
  /** Whether the lengths are given in a tensor; they are where they differ. */
  readonly hasLengths?: boolean;
  readonly scale?: number;
  readonly window?: number;
  readonly softcap?: number;
  /** The sinks are this, one more a head. */
  readonly sink?: number;
  readonly hasSlopes?: boolean;
  readonly alibiDistance?: number;
  readonly treeColumns?: number;
  /** The bits of each row of the tree; random unless given. */
  readonly treeBits?: number;
  /** Makes each query the key of its own position. */
  readonly isQueryOfKey?: boolean;
  /** That of codes of D above 256. */
  readonly scaleFactor?: number;
  /** What the values of q are multiplied by; 1 unless given. */
  readonly spread?: number;
  readonly seed?: number;
}

/** D of V and of the result. */
export const valueDimOf = (headDim: number): number => (headDim === 576 ? 512 : headDim);

/** A head vector of a position: what is stored and what it stands for. */
interface Vector {
  readonly values: Float64Array;
  readonly codes?: Uint8Array;
  readonly norms?: Float32Array;
}

/** Values of a cache by batch, head and position, whatever the cache is like. */
export function vectorOf(
  format: CacheFormat,
  { headDim, scaleFactor: scaleFactorD512 = 1 }: Pick<DecodeCase, "headDim" | "scaleFactor">,
  seed: number,
  ...place: readonly number[]
): Vector {
  const mixed = place.reduce((hash, each) => Math.imul(hash ^ (each + 1), 0x9e3779b1) >>> 0, seed + 1);
  if (typeof format === "string") {
    const draw = normalDraws(mixed);
    return { values: Float64Array.from({ length: headDim }, () => roundTo(format, draw())) };
  }
  const bits = seededBits(mixed);
  const codes = Uint8Array.from({ length: headDim }, () => (bits() >>> 8) % 2 ** format.bits);
  const scale = headDim <= 256 ? Math.sqrt(headDim) : 1;
  const norms = Float32Array.from({ length: normsPerPos(headDim) }, () => (0.5 + bits() / 2 ** 32) * scale);
  return { values: dequantizeVector(codes, norms, { ...format, scaleFactorD512 }), codes, norms };
}

/** K or V on the device: each byte that no key in use has is NaN, or a code of no use under a norm that is NaN. */
export class StoredCache {
  readonly cache: DecodeCache;
  readonly #format: CacheFormat;
  readonly #rows: Tensor;
  readonly #norms: Tensor<"f32"> | undefined;

  constructor(device: Device, format: CacheFormat, shape: readonly number[], headDim: number) {
    this.#format = format;
    if (typeof format === "string") {
      const rows = device.tensor(format, [...shape, headDim]);
      bitsOf(rows).fill(encode(format, Number.NaN));
      this.cache = rows;
      this.#rows = rows;
    } else {
      const packed = device.tensor("u8", [...shape, bytesPerRow(headDim, format)]);
      packed.view().fill(0xff);
      this.#norms = device.tensor("f32", [...shape, normsPerPos(headDim)]);
      this.#norms.view().fill(Number.NaN);
      this.cache = { packed, norms: this.#norms, ...format };
      this.#rows = packed;
    }
  }

  /** Stores a head vector in a row. */
  write(row: number, { values, codes, norms }: Vector): void {
    const rowSize = this.#rows.shape.at(-1) as number;
    const format = this.#format;
    if (typeof format === "string") {
      const bits = bitsOf(this.#rows);
      for (let d = 0; d < rowSize; d++) bits[row * rowSize + d] = encode(format, values[d] as number);
    } else {
      (this.#rows.view() as Uint8Array).set(packCodes(codes as Uint8Array, format), row * rowSize);
      this.#norms?.view().set(norms as Float32Array, row * (norms as Float32Array).length);
    }
  }

  dispose(): void {
    this.#rows.dispose();
    this.#norms?.dispose();
  }
}

/** The tensors of a case, and what they hold. */
export class DecodeScene {
  readonly entry: DecodeCase;
  readonly args: FlashAttnDecodeArgs;
  readonly out: Tensor<DecodeDType>;
  readonly lse: Tensor<"f32">;
  readonly #owned: { dispose(): void }[] = [];
  readonly #q: Float64Array;
  readonly #sinks: Float32Array | undefined;
  readonly #slopes: Float32Array | undefined;
  readonly #tree: Uint32Array | undefined;

  constructor(device: Device, entry: DecodeCase) {
    this.entry = entry;
    const { headDim, heads, kvHeads, rows, lengths, capacity, pageTokens, qDtype = "f32", outDtype = "f32" } = entry;
    const { seed = 1, spread = 1 } = entry;
    const batch = lengths.length;
    const own = <T extends { dispose(): void }>(value: T): T => {
      this.#owned.push(value);
      return value;
    };
    const draw = normalDraws(seed * 7919 + 3);
    const qLength = batch * heads * rows * headDim;
    this.#q = Float64Array.from({ length: qLength }, (_, i) => {
      const value = entry.isQueryOfKey ? this.#keyOfQuery(Math.floor(i / headDim))[i % headDim] : draw();
      return roundTo(qDtype, (value as number) * spread);
    });
    const q = own(device.tensor(qDtype, [batch, heads, rows, headDim]));
    q.set(Array.from(this.#q));
    this.out = own(device.tensor(outDtype, [batch, heads, rows, valueDimOf(headDim)]));
    bitsOf(this.out).fill(encode(outDtype, Number.NaN));
    this.lse = own(device.tensor("f32", [batch, heads, rows]));
    this.lse.view().fill(Number.NaN);

    const pages = pageTokens === undefined ? undefined : placePages(entry, pageTokens);
    const shape = pages === undefined ? [batch, kvHeads, capacity] : [pages.count, kvHeads, pageTokens as number];
    const k = own(new StoredCache(device, entry.k, shape, headDim));
    const v = headDim === 576 ? undefined : own(new StoredCache(device, entry.v, shape, headDim));
    for (let b = 0; b < batch; b++) {
      for (let position = this.#oldest(b); position < (lengths[b] as number); position++) {
        for (let head = 0; head < kvHeads; head++) {
          const page = pages?.table[b * pages.perSequence + Math.floor(position / (pageTokens ?? 1))];
          const row =
            page === undefined
              ? (b * kvHeads + head) * capacity + (entry.isSliding ? position % capacity : position)
              : (page * kvHeads + head) * (pageTokens as number) + (position % (pageTokens as number));
          k.write(row, this.#keyAt(b, head, position));
          v?.write(row, this.#valueAt(b, head, position));
        }
      }
    }
    const table = pages && own(device.tensor("i32", [batch, pages.perSequence]).set(pages.table));
    const hasLengths = entry.hasLengths === true || lengths.some((length) => length !== lengths[0]);
    const seqLens = hasLengths ? own(device.tensor("i32", [batch]).set([...lengths])) : undefined;
    const byHead = (value: (head: number) => number) => Float32Array.from({ length: heads }, (_, head) => value(head));
    this.#sinks = entry.sink === undefined ? undefined : byHead((head) => (entry.sink as number) + head);
    this.#slopes = entry.hasSlopes ? byHead((head) => 2 ** (-(8 * (head + 1)) / heads)) : undefined;
    const treeBits = seededBits(seed + 99);
    this.#tree =
      entry.treeColumns === undefined
        ? undefined
        : Uint32Array.from({ length: batch * rows }, () => entry.treeBits ?? treeBits());
    const vector = (values: Float32Array | undefined) =>
      values && own(device.tensor("f32", [values.length]).set(values));
    const [sinks, slopes] = [vector(this.#sinks), vector(this.#slopes)];
    const tree = this.#tree && own(device.tensor("u32", [batch, rows]).set(this.#tree));
    this.args = {
      q,
      k: k.cache,
      ...(v && { v: v.cache }),
      out: this.out,
      lse: this.lse,
      ...(seqLens ? { seqLens } : { seqLen: lengths[0] as number }),
      ...(entry.isSliding && { isSliding: true }),
      ...(table && { blockTable: table }),
      ...(entry.scale !== undefined && { scale: entry.scale }),
      ...(entry.window !== undefined && { window: entry.window }),
      ...(entry.softcap !== undefined && { softcap: entry.softcap }),
      ...(sinks && { sinks }),
      ...(slopes && { alibiSlopes: slopes }),
      ...(entry.alibiDistance !== undefined && { alibiDistance: entry.alibiDistance }),
      ...(tree && { treeMask: tree, treeColumns: entry.treeColumns as number }),
      ...(entry.scaleFactor !== undefined && { scaleFactorD512: entry.scaleFactor }),
    };
  }

  #oldest(b: number): number {
    const { isSliding, lengths, capacity } = this.entry;
    return isSliding ? Math.max(0, (lengths[b] as number) - capacity) : 0;
  }

  #keyAt(b: number, head: number, position: number): Vector {
    const { k, seed = 1 } = this.entry;
    return vectorOf(k, this.entry, seed * 1000 + 1, b, head, position);
  }

  #valueAt(b: number, head: number, position: number): Vector {
    const { v, seed = 1 } = this.entry;
    return vectorOf(v, this.entry, seed * 1000 + 2, b, head, position);
  }

  #lastKey: { readonly query: number; readonly values: Float64Array } | undefined;

  /** The key at the position of a query. */
  #keyOfQuery(query: number): Float64Array {
    if (this.#lastKey?.query !== query) {
      const { heads, kvHeads, rows, lengths } = this.entry;
      const [b, head, row] = [Math.floor(query / rows / heads), Math.floor(query / rows) % heads, query % rows];
      const position = (lengths[b] as number) - rows + row;
      this.#lastKey = { query, values: this.#keyAt(b, Math.floor(head / (heads / kvHeads)), position).values };
    }
    return this.#lastKey.values;
  }

  /** What the oracle gives, sequence by sequence, and the largest |v| that it read. */
  expected(): DecodeResult & { readonly largestValue: number } {
    const { heads, kvHeads, rows, headDim, lengths, window, softcap, scale, treeColumns } = this.entry;
    const valueDim = valueDimOf(headDim);
    const out = new Float64Array(lengths.length * heads * rows * valueDim);
    const lse = new Float64Array(lengths.length * heads * rows);
    let largestValue = 0;
    for (const [b, length] of lengths.entries()) {
      const known = new Map<string, Float64Array>();
      const cached = (kind: string, head: number, position: number, make: () => Vector) => {
        const name = `${kind} ${head} ${position}`;
        let values = known.get(name);
        if (values === undefined) {
          values = make().values;
          known.set(name, values);
          if (kind === "v" || headDim === 576) {
            largestValue = values.reduce((most, value) => Math.max(most, Math.abs(value)), largestValue);
          }
        }
        return values;
      };
      const keyAt = (head: number, position: number) =>
        cached("k", head, position, () => this.#keyAt(b, head, position));
      const result = referenceDecode({
        heads,
        kvHeads,
        rows,
        headDim,
        valueDim,
        length,
        oldest: this.#oldest(b),
        scale: Math.fround(scale ?? 1 / Math.sqrt(headDim)),
        window,
        softcap,
        sinks: this.#sinks,
        alibiSlopes: this.#slopes,
        alibiDistance: this.entry.alibiDistance,
        tree: this.#tree && {
          columns: treeColumns as number,
          bits: this.#tree.subarray(b * rows, (b + 1) * rows),
        },
        q: this.#q.subarray(b * heads * rows * headDim, (b + 1) * heads * rows * headDim),
        keyAt,
        valueAt:
          headDim === 576
            ? keyAt
            : (head, position) => cached("v", head, position, () => this.#valueAt(b, head, position)),
      });
      out.set(result.out, b * heads * rows * valueDim);
      lse.set(result.lse, b * heads * rows);
    }
    return { out, lse, largestValue };
  }

  dispose(): void {
    for (const each of this.#owned.reverse()) each.dispose();
  }
}

/** Pages in random order, with as many to spare. */
function placePages({ lengths, capacity, seed = 1, pageOrder = seed }: DecodeCase, pageTokens: number) {
  const perSequence = capacity / pageTokens;
  const count = 2 * lengths.length * perSequence;
  const bits = seededBits(pageOrder + 17);
  const order = Array.from({ length: count }, (_, page) => ({ page, rank: bits() })).sort((a, b) => a.rank - b.rank);
  return { count, perSequence, table: order.slice(0, lengths.length * perSequence).map(({ page }) => page) };
}

/** Runs a scene. */
export function runDecode(device: Device, { args }: DecodeScene): void {
  using pass = device.pass();
  flashAttnDecode(pass, args);
  pass.commitAndWait();
}

/** A half unit in the last place, relative. */
const rounding: Readonly<Record<DecodeDType, number>> = { f32: 0, f16: 2 ** -11, bf16: 2 ** -8 };

/** Runs and judges a case; what is wrong with its result is thrown. */
export function checkDecode(device: Device, entry: DecodeCase): void {
  const scene = new DecodeScene(device, entry);
  try {
    runDecode(device, scene);
    const fault = judgeDecode(scene);
    if (fault !== undefined) throw new Error(`${JSON.stringify(entry)}: ${fault}`);
  } finally {
    scene.dispose();
  }
}

/** What is wrong with a result, in words; undefined where nothing is. */
export function judgeDecode(scene: DecodeScene): string | undefined {
  const { out: exact, lse: exactLse, largestValue } = scene.expected();
  const actual = scene.out.toFloat32Array();
  const lse = scene.lse.view();
  const unit = rounding[scene.entry.outDtype ?? "f32"];
  let squares = 0;
  let errors = 0;
  for (const [i, expected] of exact.entries()) {
    const error = Math.abs((actual[i] as number) - expected);
    if (!(error <= 1e-5 * largestValue + unit * Math.abs(expected) + (unit > 0 ? 2 ** -24 : 0))) {
      return `out[${i}] is ${actual[i]}, not ${expected}`;
    }
    squares += expected ** 2;
    errors += error ** 2;
  }
  const nrmse = squares === 0 ? errors : Math.sqrt(errors / squares);
  if (!(nrmse <= 2e-6 + unit)) return `NRMSE ${nrmse}`;
  for (const [i, expected] of exactLse.entries()) {
    const got = lse[i] as number;
    if (got === expected) continue;
    if (!Number.isFinite(expected) || !(Math.abs(got - expected) <= 1e-5 * Math.max(1, Math.abs(expected)))) {
      return `lse[${i}] is ${got}, not ${expected}`;
    }
  }
  return undefined;
}

/** Head vectors of a tensor, for comparisons of bits. */
export function resultBits({ out, lse }: DecodeScene): { readonly out: Uint8Array; readonly lse: Uint8Array } {
  return { out: out.bytes.slice(), lse: lse.bytes.slice() };
}
