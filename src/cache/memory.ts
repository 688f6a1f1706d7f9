import type { Device } from "../device/device.ts";
import type { Tensor } from "../device/tensor.ts";
import { MetalAttentionError } from "../errors.ts";
import type { KvCacheConfig } from "./options.ts";
import { Scratch } from "./scratch.ts";
import { Store } from "./store.ts";
import { Tail } from "./tail.ts";

/** Bytes of a cache by what they are for. */
export interface KvCacheMemory {
  /** Codes and values of K and V. */
  readonly rows: number;
  readonly norms: number;
  readonly tail: number;
  /** Lengths, positions and tables of pages. */
  readonly tables: number;
  /** What dispatches hand to each other; it grows to the largest need. */
  readonly scratch: number;
}

/** @internal What a step of more tokens than usual has in place of parts of a cache's memory. */
type LongParts = Pick<KvMemory, "config" | "store" | "tail" | "table">;

/** Calls `make`; where a tensor is larger than there can be, names the option in place of the tensor's axes. */
function sizedBy<T>(argument: string, make: () => T): T {
  try {
    return make();
  } catch (error) {
    const isSize = error instanceof MetalAttentionError && error.argument === "shape";
    if (!isSize) throw error;
    throw new MetalAttentionError(error.code, `${argument}: ${error.message.replace(/^shape is/, "its memory is")}`, {
      argument,
      cause: error,
    });
  }
}

/** @internal All device memory of a cache. */
export class KvMemory {
  readonly config: KvCacheConfig;
  readonly store: Store;
  /** The first tokens of each sequence of a ring. */
  readonly keepStore: Store | undefined;
  readonly tail: Tail | undefined;
  readonly scratch: Scratch;
  /** Pages of each sequence, i32 [sequences, maxPages]. */
  readonly table: Tensor<"i32">;
  /** Keys of each sequence for recorded passes, i32 [sequences]. */
  readonly lengths: Tensor<"i32">;

  constructor(device: Device, config: KvCacheConfig) {
    this.config = config;
    const { kind, sequences, keep, pageCount, pageTokens, maxPages, tail } = config;
    const made: Disposable[] = [];
    /** Makes a part whose size the option `argument` says. */
    const make = <T extends { dispose(): void }>(argument: string, part: () => T): T => {
      const one = sizedBy(argument, part);
      made.push({ [Symbol.dispose]: () => one.dispose() });
      return one;
    };
    try {
      const pages = kind === "paged" ? "pages.count" : "capacity";
      this.store = make(pages, () => new Store(device, config, pageCount, pageTokens));
      this.keepStore = keep > 0 ? make("keep", () => new Store(device, config, sequences, keep)) : undefined;
      this.tail = tail > 0 ? make("tail", () => new Tail(device, config)) : undefined;
      this.table = make("capacity", () => device.tensor("i32", [sequences, maxPages]));
      this.lengths = make("sequences", () => device.tensor("i32", [sequences]));
    } catch (error) {
      for (const part of made) part[Symbol.dispose]();
      throw error;
    }
    this.scratch = new Scratch(device);
  }

  /** The same memory with other parts, which belong to the caller. */
  with(parts: LongParts): KvMemory {
    return Object.assign(Object.create(KvMemory.prototype), this, parts);
  }

  get bytes(): KvCacheMemory {
    return {
      rows: this.store.rowBytes + (this.keepStore?.rowBytes ?? 0),
      norms: this.store.normBytes + (this.keepStore?.normBytes ?? 0),
      tail: this.tail?.bytes ?? 0,
      tables: this.table.byteLength + this.lengths.byteLength,
      scratch: this.scratch.bytes,
    };
  }

  dispose(): void {
    this.store.dispose();
    this.keepStore?.dispose();
    this.tail?.dispose();
    this.table.dispose();
    this.lengths.dispose();
    this.scratch.dispose();
  }
}
