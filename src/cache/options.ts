import { checkLength, checkObject, display, refused } from "../checks.ts";
import { dtypeSize } from "../device/dtypes.ts";
import type { DecodeDType } from "../ops/decode/decodeCache.ts";
import { flashAttnDecodeSupport } from "../ops/decode/flashAttnDecodeSupport.ts";
import { OptionNames } from "../optionNames.ts";
import { type KvFormat, type StreamFormat, useKvFormat } from "./format.ts";

/** A pool of pages that the sequences of a cache share. */
export interface KvCachePages {
  /** Tokens of a page. */
  readonly tokens: number;
  /** Pages in all. */
  readonly count: number;
}

/** Options of {@link KvCache}. */
export interface KvCacheOptions {
  /** At most 4,096. */
  readonly layers: number;
  /** Heads of K, and as many of V. */
  readonly nKvHeads: number;
  /** Values of a head vector. */
  readonly headDim: number;
  /** Most tokens of a sequence; with a window, the tokens retained, `keep` included. */
  readonly capacity: number;
  /** How K is stored: `{ bits: 8 }` unless given. */
  readonly k?: KvFormat | undefined;
  /** How V is stored: `{ bits: 4 }` unless given. */
  readonly v?: KvFormat | undefined;
  /** Sequences at once, at most 2^20; 1 unless given. */
  readonly sequences?: number | undefined;
  /**
   * A token sees the last `window` ones, itself among them. Makes the cache a ring; with `pages`, those that no token to
   * come sees go back to the pool.
   */
  readonly window?: number | undefined;
  /** Beside `window`: the first tokens of a sequence, which stay and are seen by all; 0 unless given. */
  readonly keep?: number | undefined;
  /**
   * Tokens that can always be trimmed: adds as many slots to a ring and tokens to the tail; 0 unless given. A step
   * abandoned after the device had it uses up the ring's.
   */
  readonly rollback?: number | undefined;
  /** Of a quantized cache: the newest tokens, at least so many, stay in `tailDtype`; 0 unless given. */
  readonly tail?: number | undefined;
  /** f16 unless given. */
  readonly tailDtype?: "f16" | "bf16" | undefined;
  /** With a tail: tokens of an append that it has slots for, a longer one takes memory for its step; 256 unless given. */
  readonly maxAppend?: number | undefined;
  /** Tokens lie in pages out of a pool. */
  readonly pages?: KvCachePages | undefined;
  /**
   * Where tokens lie: `"shared"` unless given; `"private"` is the device's own memory, which a GPU with memory of its own
   * reads many times faster. Files are of either.
   */
  readonly storage?: "shared" | "private" | undefined;
}

/** @internal The options, checked and with defaults. */
export interface KvCacheConfig {
  readonly layers: number;
  readonly nKvHeads: number;
  readonly headDim: number;
  readonly capacity: number;
  readonly k: StreamFormat;
  readonly v: StreamFormat;
  readonly sequences: number;
  readonly kind: "linear" | "ring" | "paged";
  /** 0 for none. */
  readonly window: number;
  readonly keep: number;
  readonly rollback: number;
  /** Tokens that stay in full precision, `rollback` among them; 0 for no tail. */
  readonly tail: number;
  /** Tokens that are quantized together, counted from position 0. */
  readonly tailBlock: number;
  /** Slots of a sequence's tail. */
  readonly tailSlots: number;
  readonly tailDtype: "f16" | "bf16";
  readonly maxAppend: number;
  /** Of a page of the pool; the slots of a sequence where it has a page of its own. */
  readonly pageTokens: number;
  readonly pageCount: number;
  /** Pages of a sequence at most. */
  readonly maxPages: number;
  readonly storage: "shared" | "private";
}

const optionNames = new OptionNames<KvCacheOptions>("KvCache", {
  layers: true,
  nKvHeads: true,
  headDim: true,
  capacity: true,
  k: true,
  v: true,
  sequences: true,
  window: true,
  keep: true,
  rollback: true,
  tail: true,
  tailDtype: true,
  maxAppend: true,
  pages: true,
  storage: true,
});
const pageNames = new OptionNames<KvCachePages>("pages", { tokens: true, count: true });

/** Tokens that are quantized together, where a tail is as long. */
const quantizedBlock = 32;
/** @internal Positions that the kernels count. */
export const mostPositions = 2 ** 30;
/** Each layer has tensors of its own, each sequence an object: bounds far above use, before the host's memory ends. */
const mostLayers = 4096;
const mostSequences = 2 ** 20;

/** @internal The options that a caller gave, as yet unchecked but for their names. */
export function readOptions<Options extends Partial<KvCacheOptions>>(options: Options): Options {
  return optionNames.read(options);
}

/** @internal Checks the options of a cache. */
export function useOptions(options: KvCacheOptions): KvCacheConfig {
  const given = readOptions(checkObject(options, "options"));
  const layers = checkCount(given.layers, "layers", mostLayers);
  const nKvHeads = checkCount(given.nKvHeads, "nKvHeads");
  const headDim = checkCount(given.headDim, "headDim");
  const capacity = checkCount(given.capacity, "capacity");
  if (capacity > mostPositions) throw refused("capacity", `${capacity} exceeds ${mostPositions} positions`, "overflow");
  const k = useKvFormat(or(given.k, { bits: 8 }), "k", headDim);
  const v = useKvFormat(or(given.v, { bits: 4 }), "v", headDim);
  checkHeadDim(headDim, k, v);
  const sequences = checkCount(or(given.sequences, 1), "sequences", mostSequences);
  const rollback = checkLength(or(given.rollback, 0), "rollback");
  const ring = useRing(given, capacity);
  const tail = useTail(given, k, v, rollback);
  const storage = useStorage(given.storage);
  const shape = { layers, nKvHeads, headDim, capacity, k, v, sequences, rollback, storage, ...ring, ...tail };
  if (given.pages !== undefined) return { ...shape, kind: "paged", ...usePages(given, capacity) };
  const isRing = ring.window > 0;
  const pageTokens = isRing ? capacity - ring.keep + rollback : capacity;
  return { ...shape, kind: isRing ? "ring" : "linear", pageTokens, pageCount: sequences, maxPages: 1 };
}

/** What is given, and null too, is checked; what is not has a default. */
function or(value: unknown, fallback: unknown): unknown {
  return value === undefined ? fallback : value;
}

function useStorage(value: unknown): "shared" | "private" {
  if (value === undefined || value === "shared" || value === "private") return value ?? "shared";
  throw refused("storage", `expected "shared" or "private", got ${display(value)}`);
}

function checkCount(value: unknown, argument: string, most = Number.POSITIVE_INFINITY): number {
  const number = checkLength(value, argument);
  if (number === 0) throw refused(argument, "expected at least 1, got 0");
  if (number > most) throw refused(argument, `${number} exceeds ${most}, the most that a cache has`, "overflow");
  return number;
}

function checkHeadDim(headDim: number, k: StreamFormat, v: StreamFormat): void {
  const storage = (format: StreamFormat) => (format.codes === undefined ? "dense" : "codes");
  const rows = flashAttnDecodeSupport().filter(
    (row) => row.k === storage(k) && row.v === storage(v) && row.headDim === row.valueDim,
  );
  if (rows.some((row) => row.headDim === headDim)) return;
  const sizes = [...new Set(rows.map((row) => row.headDim))].sort((a, b) => a - b);
  throw refused(
    "headDim",
    `attention over K of ${k.text} and V of ${v.text} has no kernel for ${headDim}; supported: ${sizes.join(", ")}`,
    "unsupported",
  );
}

function useRing(given: KvCacheOptions, capacity: number): Pick<KvCacheConfig, "window" | "keep"> {
  const keep = checkLength(or(given.keep, 0), "keep");
  if (given.window === undefined) {
    if (keep > 0) throw refused("keep", `${keep} without a window; all tokens stay in a cache that is no ring`);
    return { window: 0, keep };
  }
  const window = checkCount(given.window, "window");
  if (keep >= capacity) {
    throw refused("keep", `${keep} is not below the capacity ${capacity}, which counts the kept tokens too`);
  }
  if (window > capacity - keep) {
    throw refused(
      "window",
      `${window} is larger than the ring of ${capacity - keep} (capacity ${capacity} - keep ${keep}); ` +
        `give a capacity of at least ${window + keep}`,
    );
  }
  return { window, keep };
}

type TailConfig = Pick<KvCacheConfig, "tail" | "tailBlock" | "tailSlots" | "tailDtype" | "maxAppend">;

function useTail(given: KvCacheOptions, k: StreamFormat, v: StreamFormat, rollback: number): TailConfig {
  const { tailDtype = "f16" } = given;
  if (tailDtype !== "f16" && tailDtype !== "bf16") {
    throw refused("tailDtype", `expected "f16" or "bf16", got ${display(tailDtype)}`);
  }
  const length = checkLength(or(given.tail, 0), "tail");
  if (length === 0) {
    if (given.maxAppend !== undefined) {
      throw refused("maxAppend", "given without a tail, where an append may have any number of tokens; leave it out");
    }
    return { tail: 0, tailBlock: 0, tailSlots: 0, tailDtype, maxAppend: 0 };
  }
  if (k.codes === undefined && v.codes === undefined) {
    throw refused("tail", `${length} tokens of a cache that is not quantized; leave it out, or give k or v bits`);
  }
  const tail = length + rollback;
  const tailBlock = Math.min(quantizedBlock, length);
  const maxAppend = checkCount(or(given.maxAppend, 256), "maxAppend");
  return { tail, tailBlock, tailSlots: tailSlotsOf(tail, tailBlock, maxAppend, rollback), tailDtype, maxAppend };
}

/**
 * @internal Slots for what stays in a tail, part of a block behind it, and a step that may come to nothing: all of that
 * also where `rollback` tokens are trimmed, since which are quantized is then that of a cache which never had them. Whole
 * blocks, so that none wraps.
 */
export function tailSlotsOf(tail: number, tailBlock: number, maxAppend: number, rollback: number): number {
  return Math.ceil((tail + tailBlock - 1 + maxAppend + rollback) / tailBlock) * tailBlock;
}

function usePages(
  { pages, keep }: KvCacheOptions,
  capacity: number,
): Pick<KvCacheConfig, "pageTokens" | "pageCount" | "maxPages"> {
  if (keep !== undefined && keep > 0) {
    throw refused(
      "keep",
      `${keep} with pages, which have no memory of kept tokens; leave out one of them`,
      "unsupported",
    );
  }
  const given = checkObject(pages as KvCachePages, "pages");
  pageNames.check(given, "pages.");
  const pageTokens = checkCount(given.tokens, "pages.tokens");
  const pageCount = checkCount(given.count, "pages.count");
  return { pageTokens, pageCount, maxPages: Math.ceil(capacity / pageTokens) };
}

/** @internal Bytes of a token's tail, K and V of one layer. */
export function tailBytesPerToken({ nKvHeads, headDim, tailDtype }: KvCacheConfig): number {
  return 2 * nKvHeads * headDim * dtypeSize(tailDtype);
}

/** @internal The options that make a cache of this configuration, with all that has a default. */
export function optionsOf(config: KvCacheConfig): KvCacheOptions {
  const { layers, nKvHeads, headDim, capacity, sequences, kind, window, keep, rollback } = config;
  const { tail, tailDtype, maxAppend, pageTokens, pageCount } = config;
  const format = ({ codes, dtype }: StreamFormat): KvFormat =>
    codes === undefined ? (dtype as DecodeDType) : { bits: codes.bits, packing: codes.packing };
  return {
    ...{ layers, nKvHeads, headDim, capacity, k: format(config.k), v: format(config.v), sequences, rollback },
    ...(window > 0 && { window, keep }),
    ...(kind === "paged" && { pages: { tokens: pageTokens, count: pageCount } }),
    ...(tail > 0 && { tail: tail - rollback, tailDtype, maxAppend }),
  };
}
