import type { Device } from "../device/device.ts";
import type { Tensor } from "../device/tensor.ts";
import type { DecodeCache, DecodeDType } from "../ops/decode/decodeCache.ts";
import type { QuantizedCache } from "../ops/quantizedCache/quantizedStreams.ts";
import type { StreamFormat } from "./format.ts";
import type { KvCacheConfig } from "./options.ts";
import { copyRuns, type Run } from "./runs.ts";

/** @internal K or V of some pages, of one layer: what attention reads and what a write takes. */
export interface StreamView {
  /** Values, or codes. */
  readonly rows: Tensor;
  readonly norms: Tensor<"f32"> | undefined;
  readonly format: StreamFormat;
  /** As attention takes it. */
  readonly cache: DecodeCache;
}

/** @internal K and V of some pages, of one layer. */
export interface PageView {
  readonly k: StreamView;
  readonly v: StreamView;
}

/** @internal Rows of a ring: position p lies in row first + p mod slots. */
export interface RingRows {
  readonly tensor: Tensor;
  /** The element that row 0 begins with, and elements of a row. */
  readonly start: number;
  readonly rowLength: number;
  readonly slots: number;
  readonly first: number;
}

/** All pages of a layer, and runs of them by number and count, the oldest view first. */
interface LayerPages {
  readonly whole: PageView;
  readonly views: Map<number, PageView>;
}

/**
 * Memory of tokens in pages [pages, nKvHeads, pageTokens, row], K and V of every layer. A cache that is not paged has a
 * page of all slots for each sequence.
 */
export class Store {
  readonly pageTokens: number;
  readonly pageCount: number;
  /** Number of the first page. */
  readonly #first: number;
  /** Bytes of codes and values, and of norms. */
  readonly rowBytes: number;
  readonly normBytes: number;
  readonly #layers: LayerPages[];
  /** How many views of a layer are kept. */
  readonly #mostViews: number;
  readonly #tensors = new Set<Tensor>();

  constructor(device: Device, config: KvCacheConfig, pageCount: number, pageTokens: number, first = 0) {
    this.#first = first;
    this.pageCount = pageCount;
    this.pageTokens = pageTokens;
    const { layers, nKvHeads, k, v, storage, kind, sequences } = config;
    // Of a pool, encoded writes alone take views: of the newest page of each sequence. Of other memory recorded passes
    // hold them, and there are no more than runs of sequences.
    this.#mostViews = kind === "paged" ? 2 * sequences : Number.POSITIVE_INFINITY;
    const vectors = layers * pageCount * nKvHeads * pageTokens;
    this.rowBytes = vectors * (k.rowBytes + v.rowBytes);
    this.normBytes = vectors * 4 * (k.normsPerPos + v.normsPerPos);
    const allocate = (format: StreamFormat): StreamView => {
      const axes = [pageCount, nKvHeads, pageTokens];
      const rows = this.#keep(device.tensor(format.dtype, [...axes, format.rowLength], { storage }));
      const norms = format.codes && this.#keep(device.tensor("f32", [...axes, format.normsPerPos], { storage }));
      return viewOf(format, rows, norms);
    };
    this.#layers = [];
    try {
      for (let i = 0; i < layers; i++)
        this.#layers.push({ whole: { k: allocate(k), v: allocate(v) }, views: new Map() });
    } catch (error) {
      this.dispose();
      throw error;
    }
  }

  /** All pages of a layer. */
  layer(layer: number): PageView {
    return this.#pagesOf(layer).whole;
  }

  /** What has one layer is that of whichever is asked for. */
  #pagesOf(layer: number): LayerPages {
    return this.#layers[this.#layers.length === 1 ? 0 : layer] as LayerPages;
  }

  /** `count` pages of a layer, from `page` on. */
  pages(layer: number, page: number, count = 1): PageView {
    const { whole, views } = this.#pagesOf(layer);
    const start = page - this.#first;
    const key = start * (this.pageCount + 1) + count;
    let view = views.get(key);
    if (view === undefined) {
      const part = ({ rows, norms, format }: StreamView) =>
        viewOf(
          format,
          this.#keep(rows.slice(start, start + count)),
          norms && this.#keep(norms.slice(start, start + count)),
        );
      view = { k: part(whole.k), v: part(whole.v) };
      const [oldest] = views.keys();
      if (oldest !== undefined && views.size >= this.#mostViews) this.#forget(views, oldest);
      views.set(key, view);
    }
    return view;
  }

  #forget(views: Map<number, PageView>, key: number): void {
    const view = views.get(key);
    views.delete(key);
    for (const tensor of view === undefined ? [] : tensorsOfView(view)) {
      tensor.dispose();
      this.#tensors.delete(tensor);
    }
  }

  /** Copies the first slots of a page to another, in every layer. No pass may be using either. */
  copyPage(from: number, to: number, slots: number): void {
    const pairs: (readonly [Run, Run])[] = [];
    this.forEachTensor((tensor) => {
      const targets = this.runsOf(tensor, to, slots);
      for (const [i, run] of this.runsOf(tensor, from, slots).entries()) pairs.push([run, targets[i] as Run]);
    });
    copyRuns(pairs);
  }

  /** The first slots of each head of a page in one of the tensors, [nKvHeads, pageTokens, row]; one run of a whole page. */
  runsOf(tensor: Tensor, page: number, slots: number): Run[] {
    const { start, rowLength } = this.#rowsOf(tensor, page);
    const heads = tensor.shape[1] as number;
    const headLength = this.pageTokens * rowLength;
    if (slots === 0) return [];
    if (slots === this.pageTokens) return [{ tensor, start, length: heads * headLength }];
    return Array.from({ length: heads }, (_, head) => ({
      tensor,
      start: start + head * headLength,
      length: slots * rowLength,
    }));
  }

  #rowsOf(tensor: Tensor, page: number): Pick<RingRows, "tensor" | "start" | "rowLength"> {
    const pageLength = tensor.length / this.pageCount;
    const rowLength = pageLength / this.pageTokens / (tensor.shape[1] as number);
    return { tensor, start: (page - this.#first) * pageLength, rowLength };
  }

  /** A page of one of the tensors as rings of its slots, one a head. */
  ringsOf(tensor: Tensor, page: number): RingRows[] {
    const slots = this.pageTokens;
    const rows = this.#rowsOf(tensor, page);
    return Array.from({ length: tensor.shape[1] as number }, (_, head) => ({ ...rows, slots, first: head * slots }));
  }

  /** The tensors that hold tokens of a layer, or of all. */
  tensorsOf(layer?: number): Tensor[] {
    const layers = layer === undefined ? this.#layers : [this.#pagesOf(layer)];
    return layers.flatMap(({ whole }) => tensorsOfView(whole));
  }

  /** Calls `visit` with each tensor that holds tokens; `name` is one for files. */
  forEachTensor(visit: (tensor: Tensor, name: string) => void): void {
    for (const [layer, { whole }] of this.#layers.entries()) {
      for (const stream of ["k", "v"] as const) {
        visit(whole[stream].rows, `${layer}.${stream}.rows`);
        if (whole[stream].norms !== undefined) visit(whole[stream].norms, `${layer}.${stream}.norms`);
      }
    }
  }

  dispose(): void {
    for (const tensor of this.#tensors) tensor.dispose();
  }

  #keep<T extends Tensor>(tensor: T): T {
    this.#tensors.add(tensor);
    return tensor;
  }
}

function tensorsOfView({ k, v }: PageView): Tensor[] {
  return [k.rows, k.norms, v.rows, v.norms].filter((tensor) => tensor !== undefined);
}

function viewOf(format: StreamFormat, rows: Tensor, norms: Tensor<"f32"> | undefined): StreamView {
  const { codes } = format;
  const cache: DecodeCache =
    codes === undefined
      ? (rows as Tensor<DecodeDType>)
      : { ...({ packed: rows, norms } as QuantizedCache), bits: codes.bits, packing: codes.packing };
  return { rows, norms, format, cache };
}
