import {
  type AttentionDType,
  type AttentionMaskKind,
  type DecodeCodes,
  type Device,
  type FlashAttnPrefillArgs,
  type FlashAttnPrefillSupport,
  flashAttnPrefill,
  flashAttnPrefillSupport,
  type Tensor,
} from "../../src/index.ts";
import {
  type AttentionMask,
  type AttentionProblem,
  type CodeFormat,
  decode,
  type ElementBits,
  encode,
  headMajorStrides,
  roundTo,
} from "../../src/reference/index.ts";
import { StoredCache, vectorOf } from "./decode.ts";
import { bitsOf } from "./elements.ts";
import { normalDraws, seededRandom } from "./random.ts";

/** Where the keys of a case lie: a slot a position, a ring, pages, or packed as the rows are. */
export type KeyStorage = "linear" | "ring" | "pages" | "packed";

/** The row of the support table for a head size, a dtype and a kind of mask. */
export function rowOf(
  headDim: number,
  dtype: AttentionDType,
  mask: AttentionMaskKind = "none",
): FlashAttnPrefillSupport {
  const row = flashAttnPrefillSupport().find(
    (each) => each.headDim === headDim && each.dtype === dtype && each.mask === mask,
  );
  if (row === undefined) throw new Error(`no kernel of ${dtype} with D = ${headDim}`);
  return row;
}

/** One case of attention with options. */
export interface OptionCase {
  readonly row: FlashAttnPrefillSupport;
  readonly heads: number;
  readonly kvHeads: number;
  /** Rows and keys of each sequence; the last row is at the last key. */
  readonly sequences: readonly { readonly rows: number; readonly keys: number }[];
  readonly storage: KeyStorage;
  /** Whether the rows are packed, by seqOffsets. */
  readonly isPacked: boolean;
  /** Whether the lengths are in a tensor; they are where they differ. */
  readonly hasLengths?: boolean;
  /** Slots of a ring; elsewhere there are some to spare. */
  readonly capacity?: number;
  readonly pageTokens?: number;
  readonly causal: boolean;
  readonly window?: number | undefined;
  readonly softcap?: number | undefined;
  /** The sinks are this, one more a head. */
  readonly sink?: number | undefined;
  readonly hasSlopes?: boolean;
  readonly hasLse?: boolean;
  readonly isTokenMajor?: boolean;
  /** What the scale is multiplied by; 1 unless given. */
  readonly spread?: number;
  /** Which order the pages have; that of the seed unless given. */
  readonly pageOrder?: number;
  /** Of codes; K or V is dense where there is none. */
  readonly formatK?: CodeFormat;
  readonly formatV?: CodeFormat;
  /** Of one sequence: the newest keys apart, as dense vectors that are not those of the codes. */
  readonly tail?: TailCase;
  readonly seed: number;
}

/** A tail of a case. */
export interface TailCase {
  readonly slots: number;
  readonly tokens: number;
  readonly block: number;
  readonly quantized?: number;
}

/** The first key that a row at `position` finds in a tail; 2^31 without one. */
function firstOfTail(tail: TailCase | undefined, position: number): number {
  if (tail === undefined) return 2 ** 31;
  const { tokens, block, quantized = 0 } = tail;
  let first = 0;
  while (position + 1 - (first + block) >= tokens) first += block;
  return Math.min(Math.max(first, quantized), position + 1);
}

/** What is added to the number of K or V for vectors of the tail. */
const tailSalt = 2;
const poolLength = (1 << 18) + 5;
const pools = new Map<AttentionDType, { readonly values: Float64Array; readonly bits: Uint16Array }>();

/** Normal draws as a dtype holds them. */
function poolOf(dtype: AttentionDType) {
  let pool = pools.get(dtype);
  if (pool === undefined) {
    const draw = normalDraws(2024);
    const bits = Uint16Array.from({ length: poolLength }, () => encode(dtype, draw()));
    pool = { bits, values: Float64Array.from(bits, (each) => decode(dtype, each)) };
    pools.set(dtype, pool);
  }
  return pool;
}

/** Where a head vector begins in the pool: by its place in the case, whatever the storage. */
function startOf(headDim: number, ...place: readonly number[]): number {
  const mixed = place.reduce((hash, each) => Math.imul(hash ^ (each + 1), 0x9e3779b1) >>> 0, 77);
  return ((mixed ^ (mixed >>> 15)) >>> 0) % (poolLength - headDim);
}

/** The tensors of a case, and what they hold. */
export class OptionScene {
  readonly entry: OptionCase;
  readonly args: FlashAttnPrefillArgs;
  readonly out: Tensor<AttentionDType>;
  readonly lse: Tensor<"f32">;
  readonly #owned: { dispose(): void }[] = [];
  readonly #sinks: Float32Array | undefined;
  readonly #slopes: Float32Array | undefined;
  /** The row of head 0 of each sequence's row, among those of q, and from head to head. */
  readonly #rowOf: (b: number, head: number, row: number) => number;

  constructor(device: Device, entry: OptionCase) {
    this.entry = entry;
    const { row, heads, kvHeads, sequences, storage, isPacked, pageTokens = 1, causal, seed, spread = 1 } = entry;
    const { dtype, headDim } = row;
    const own = <T extends { dispose(): void }>(value: T): T => {
      this.#owned.push(value);
      return value;
    };
    const batch = sequences.length;
    const rows = sequences[0]?.rows as number;
    const starts = [0];
    for (const { rows: count } of sequences) starts.push((starts.at(-1) as number) + count);
    // Two rows that no sequence has end the packed ones.
    const total = (starts.at(-1) as number) + 2;
    const isTokenMajor = entry.isTokenMajor === true;
    // Codes and pages have heads before tokens.
    const areKeysTokenMajor = isTokenMajor && storage !== "pages" && !entry.formatK && !entry.formatV;
    const shape = isPacked ? [total, heads] : isTokenMajor ? [batch, rows, heads] : [batch, heads, rows];
    this.#rowOf = (b, head, i) => {
      if (isPacked) return ((starts[b] as number) + i) * heads + head;
      return isTokenMajor ? (b * rows + i) * heads + head : (b * heads + head) * rows + i;
    };

    const longest = Math.max(...sequences.map(({ keys }) => keys));
    const capacity = entry.capacity ?? longest + 3;
    const pages = storage === "pages" ? placePages(entry, Math.ceil(capacity / pageTokens)) : undefined;
    const keyShape =
      storage === "packed"
        ? [total, kvHeads]
        : pages !== undefined
          ? [pages.count, kvHeads, pageTokens]
          : areKeysTokenMajor
            ? [batch, capacity, kvHeads]
            : [batch, kvHeads, capacity];
    const keyRow = (b: number, head: number, position: number): number => {
      if (storage === "packed") return ((starts[b] as number) + position) * kvHeads + head;
      if (pages !== undefined) {
        const page = pages.table[b * pages.perSequence + Math.floor(position / pageTokens)] as number;
        return (page * kvHeads + head) * pageTokens + (position % pageTokens);
      }
      const slot = position % capacity;
      return areKeysTokenMajor ? (b * capacity + slot) * kvHeads + head : (b * kvHeads + head) * capacity + slot;
    };
    const q = own(device.tensor(dtype, [...shape, headDim]));
    const [k, v] = [
      own(device.tensor(dtype, [...keyShape, headDim])),
      own(device.tensor(dtype, [...keyShape, headDim])),
    ];
    this.out = own(device.tensor(dtype, [...shape, headDim]));
    this.lse = own(device.tensor("f32", shape));
    this.lse.view().fill(Number.NaN);
    for (const tensor of [q, k, v, this.out]) bitsOf(tensor).fill(encode(dtype, Number.NaN));
    const pool = poolOf(dtype);
    const put = (tensor: Tensor, to: number, which: number, b: number, head: number, token: number) => {
      const start = startOf(headDim, seed, which, b, head, token);
      bitsOf(tensor).set(pool.bits.subarray(start, start + headDim), to * headDim);
    };
    for (const [b, { rows: count }] of sequences.entries()) {
      for (let head = 0; head < heads; head++) {
        for (let i = 0; i < count; i++) put(q, this.#rowOf(b, head, i), 0, b, head, i);
      }
      for (let position = this.#firstKey(b, capacity); position < this.#lastBefore(b); position++) {
        for (let head = 0; head < kvHeads; head++) {
          put(k, keyRow(b, head, position), 1, b, head, position);
          put(v, keyRow(b, head, position), 2, b, head, position);
        }
      }
    }
    const tail = this.#tailOf(own, put);
    const [codesK, codesV] = [entry.formatK, entry.formatV].map((format) =>
      format === undefined ? undefined : own(new StoredCache(device, format, keyShape, headDim)),
    );
    for (const b of sequences.keys()) {
      for (let position = this.#firstKey(b, capacity); position < this.#lastBefore(b); position++) {
        for (let head = 0; head < kvHeads; head++) {
          codesK?.write(keyRow(b, head, position), this.#codeOf(1, b, head, position));
          codesV?.write(keyRow(b, head, position), this.#codeOf(2, b, head, position));
        }
      }
    }
    const byHead = (value: (head: number) => number) => Float32Array.from({ length: heads }, (_, head) => value(head));
    this.#sinks = entry.sink === undefined ? undefined : byHead((head) => (entry.sink as number) + head);
    this.#slopes = entry.hasSlopes ? byHead((head) => 2 ** (-(8 * (head + 1)) / heads)) : undefined;
    const vector = (values: Float32Array | undefined) =>
      values && own(device.tensor("f32", [values.length]).set(values));
    const integers = (values: readonly number[], ...shape: readonly number[]) =>
      own(device.tensor("i32", shape).set(values));
    const [sinks, slopes] = [vector(this.#sinks), vector(this.#slopes)];
    const { keys } = sequences[0] as { keys: number };
    const differ = sequences.some((each) => each.keys !== keys);
    const hasLengths = storage !== "packed" && (entry.hasLengths === true || differ);
    this.args = {
      ...{
        q,
        k: (codesK?.cache as DecodeCodes) ?? k,
        v: (codesV?.cache as DecodeCodes) ?? v,
        out: this.out,
        causal,
        scale: spread / Math.sqrt(headDim),
      },
      ...(storage === "packed" || hasLengths ? {} : { seqLenK: keys }),
      ...(hasLengths && {
        seqLens: integers(
          sequences.map((each) => each.keys),
          batch,
        ),
      }),
      ...(isPacked && { seqOffsets: integers(starts, batch + 1) }),
      ...(!isPacked && !hasLengths && { qOffsetInK: keys - rows }),
      ...(pages && { blockTable: integers(pages.table, batch, pages.perSequence) }),
      ...(storage === "ring" && { isSliding: true }),
      ...(isTokenMajor && !isPacked && { [areKeysTokenMajor ? "layout" : "qLayout"]: "sequence-major" }),
      ...(areKeysTokenMajor && isPacked && storage !== "packed" && { kvLayout: "sequence-major" as const }),
      ...(entry.window !== undefined && { window: entry.window }),
      ...(entry.softcap !== undefined && { softcap: entry.softcap }),
      ...(sinks && { sinks }),
      ...(slopes && { alibiSlopes: slopes }),
      ...(entry.hasLse && { lse: this.lse }),
      ...(tail && { tail }),
    };
  }

  /** The positions that lie before a tail; those of all keys without one. */
  #lastBefore(b: number): number {
    const { sequences, tail } = this.entry;
    const keys = sequences[b]?.keys as number;
    return Math.min(keys, firstOfTail(tail, keys - 1));
  }

  /** The tail with the keys that any row finds there, and nothing else. */
  #tailOf(
    own: <T extends { dispose(): void }>(value: T) => T,
    put: (tensor: Tensor, to: number, which: number, b: number, head: number, token: number) => void,
  ): FlashAttnPrefillArgs["tail"] {
    const { tail, row, kvHeads, sequences } = this.entry;
    if (tail === undefined) return undefined;
    const { slots, ...rest } = tail;
    const { device } = this.out;
    const [k, v] = [1, 2].map((which) => {
      const tensor = own(device.tensor(row.dtype, [slots, kvHeads, row.headDim]));
      bitsOf(tensor).fill(encode(row.dtype, Number.NaN));
      const { rows, keys } = sequences[0] as { rows: number; keys: number };
      for (let position = firstOfTail(tail, keys - rows); position < keys; position++) {
        for (let head = 0; head < kvHeads; head++) {
          put(tensor, (position % slots) * kvHeads + head, which + tailSalt, 0, head, position);
        }
      }
      return tensor;
    }) as [Tensor<AttentionDType>, Tensor<AttentionDType>];
    return { k, v, ...rest };
  }

  /** A head vector of K (1) or V (2) as codes. */
  #codeOf(which: number, b: number, head: number, position: number) {
    const { formatK, formatV, row, seed } = this.entry;
    const format = which === 1 ? formatK : formatV;
    if (format === undefined) throw new Error("the stream is dense");
    return vectorOf(format, row, seed * 10 + which, b, head, position);
  }

  #firstKey(b: number, capacity: number): number {
    const { storage, sequences } = this.entry;
    return storage === "ring" ? Math.max(0, (sequences[b]?.keys as number) - capacity) : 0;
  }

  /** A sequence for the oracles; with a tail a row of it, since each has keys of its own. */
  problemOf(b: number, mask?: AttentionMask, ofRow?: number): AttentionProblem {
    const { row, heads, kvHeads, sequences, causal, window, softcap, seed, capacity = 0, spread = 1 } = this.entry;
    const { rows, keys } = sequences[b] as { rows: number; keys: number };
    const { headDim, dtype } = row;
    const pool = poolOf(dtype).values;
    const { formatK, formatV } = this.entry;
    const isCoded = (which: number) => (which === 1 && formatK !== undefined) || (which === 2 && formatV !== undefined);
    const firstRow = ofRow ?? 0;
    const rowCount = ofRow === undefined ? rows : 1;
    const left = firstOfTail(this.entry.tail, keys - rows + firstRow);
    const gather = (which: number, count: number, tokens: number, first = 0) => {
      const values = new Float64Array(count * tokens * headDim);
      for (let head = 0; head < count; head++) {
        for (let at = 0; at < tokens; at++) {
          const token = first + at;
          const isInTail = which > 0 && token >= left;
          const start = startOf(headDim, seed, which + (isInTail ? tailSalt : 0), b, head, token);
          // Codes stand for what a dense cache of the dtype would hold.
          const vector =
            !isInTail && isCoded(which)
              ? this.#codeOf(which, b, head, token).values.map((value) => roundTo(dtype, value))
              : pool.subarray(start, start + headDim);
          values.set(vector, (head * tokens + at) * headDim);
        }
      }
      return { values, strides: headMajorStrides(count, tokens, headDim) };
    };
    return {
      ...{ batch: 1, heads, kvHeads, seqLenQ: rowCount, seqLenK: keys, headDim, causal, window, softcap, mask },
      scale: Math.fround(spread / Math.sqrt(headDim)),
      qOffsetInK: keys - rows + firstRow,
      firstKey: this.#firstKey(b, capacity),
      sinks: this.#sinks,
      alibiSlopes: this.#slopes,
      q: gather(0, heads, rowCount, firstRow),
      k: gather(1, kvHeads, keys),
      v: gather(2, kvHeads, keys),
    };
  }

  /** The bits of the rows of a sequence, head-major. */
  bitsOfSequence(b: number): Uint16Array {
    const { heads, sequences, row } = this.entry;
    const { rows } = sequences[b] as { rows: number };
    const bits = bitsOf(this.out) as Uint16Array;
    const result = new Uint16Array(heads * rows * row.headDim);
    for (let head = 0; head < heads; head++) {
      for (let i = 0; i < rows; i++) {
        const from = this.#rowOf(b, head, i) * row.headDim;
        result.set(bits.subarray(from, from + row.headDim), (head * rows + i) * row.headDim);
      }
    }
    return result;
  }

  /** The logarithms of a sequence, head-major. */
  logarithmsOfSequence(b: number): Float32Array {
    const { heads, sequences } = this.entry;
    const { rows } = sequences[b] as { rows: number };
    const all = this.lse.view();
    return Float32Array.from({ length: heads * rows }, (_, i) =>
      Number(all[this.#rowOf(b, Math.floor(i / rows), i % rows)]),
    );
  }

  /** The rows of packed sequences that no sequence has. */
  unowned(): ElementBits {
    const { heads, row, isPacked } = this.entry;
    return isPacked ? bitsOf(this.out).slice(-2 * heads * row.headDim) : bitsOf(this.out).slice(0, 0);
  }

  dispose(): void {
    for (const each of this.#owned.reverse()) each.dispose();
  }
}

/** Pages in random order, with as many to spare. */
function placePages({ sequences, seed, pageOrder = seed }: OptionCase, perSequence: number) {
  const count = 2 * sequences.length * perSequence;
  const random = seededRandom(pageOrder + 17);
  const order = Array.from({ length: count }, (_, page) => ({ page, rank: random() })).sort((a, b) => a.rank - b.rank);
  return { count, perSequence, table: order.slice(0, sequences.length * perSequence).map(({ page }) => page) };
}

/** A mask of random biases, some of which block, as bf16 or as bool, with the same for the oracle. */
export function randomMask(device: Device, kind: "additive" | "bool", rows: number, keys: number, seed: number) {
  const random = seededRandom(seed);
  const values = Float32Array.from({ length: rows * keys }, () => {
    const draw = random();
    return kind === "bool" ? (draw < 0.6 ? 1 : 0) : draw < 0.3 ? Number.NEGATIVE_INFINITY : Math.round(draw * 8) / 4;
  });
  const tensor = device.tensor(kind === "bool" ? "bool" : "bf16", [rows, keys]).set(values);
  const mask: AttentionMask = { kind, values, strides: { batch: 0, head: 0, token: keys } };
  return { tensor, mask };
}

/** Runs a scene; `more` are arguments that it does not have. */
export function runOptions(device: Device, { args }: OptionScene, more: Partial<FlashAttnPrefillArgs> = {}): void {
  using pass = device.pass();
  flashAttnPrefill(pass, { ...args, ...more });
  pass.commitAndWait();
}
