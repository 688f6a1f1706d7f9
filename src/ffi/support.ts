import type { DType } from "../device/dtypes.ts";
import { anyLibrary, type Native } from "./library.ts";
import { checkStatus } from "./status.ts";
import { readText } from "./text.ts";

/** What the kernel families of the library serve; the tables that it chooses its kernels from. */
export interface Support {
  readonly flashAttnPrefill: readonly {
    readonly dtype: "bf16" | "f16";
    readonly headDim: number;
    readonly mask: "none" | "additive" | "bool";
    readonly kernel: string;
    readonly queryTile: number;
    readonly keyTile: number;
    readonly simdgroups: number;
    /** Bytes. */
    readonly threadgroupMemory: number;
  }[];
  readonly flashAttnDecode: readonly {
    readonly k: "dense" | "codes";
    readonly v: "dense" | "codes";
    readonly headDim: number;
    readonly valueDim: number;
    readonly kernel: string;
    readonly queryTile: number;
    readonly keyTile: number;
    /** Bytes. */
    readonly threadgroupMemory: number;
  }[];
  readonly cacheCopy: readonly {
    readonly kernel: string;
    readonly layout: "rows" | "batch" | "sequence" | "headMajor";
    readonly source: DType;
    readonly cache: DType;
    /** Whether it moves K and V together. */
    readonly dual: boolean;
  }[];
  readonly quantizedCache: {
    /** Head sizes with kernels of their own. */
    readonly headDims: readonly number[];
    /** The powers of two that any other head size is one of. */
    readonly otherHeadDims: { readonly least: number; readonly most: number };
    readonly packings: readonly {
      readonly packing: "nibble" | "byte" | "dense";
      readonly bits: readonly (2 | 3 | 4 | 5 | 6 | 8)[];
    }[];
  };
  readonly masks: { readonly dtypes: readonly DType[] };
}

const known = new Map<Native, Support>();

/** @internal What `make` makes of the support tables of the library in use, made once a library. */
export function perSupport<T>(make: (table: Support) => T): () => T {
  const made = new WeakMap<Support, T>();
  return () => {
    const table = support();
    let value = made.get(table);
    if (value === undefined) {
      value = make(table);
      made.set(table, value);
    }
    return value;
  };
}

/** @internal The support tables of a library; of the one in use unless given. Read once. */
export function support(native: Native = anyLibrary()): Support {
  let found = known.get(native);
  if (found === undefined) {
    const json = readText((buffer, capacity, needed) =>
      checkStatus(native, native.ma_support_json(buffer, capacity, needed)),
    );
    found = JSON.parse(json) as Support;
    known.set(native, found);
  }
  return found;
}
