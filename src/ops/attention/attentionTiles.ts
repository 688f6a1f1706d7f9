import { refused } from "../../checks.ts";
import { support } from "../../ffi/support.ts";

/** How `flash_attn_prefill` partitions its work: a threadgroup owns `queryTile` rows and walks the keys `keyTile` at a time. */
interface AttentionTiles {
  readonly queryTile: number;
  readonly keyTile: number;
  /** SIMD groups of a threadgroup, along its rows and the values of a head. */
  readonly simdgroups: number;
}

/** The tiles of a head size; refused where no kernel serves it. */
export function attentionTiles(headDim: number): AttentionTiles {
  const { flashAttnPrefill } = support();
  const row = flashAttnPrefill.find((each) => each.headDim === headDim);
  if (row !== undefined) return row;
  const sizes = [...new Set(flashAttnPrefill.map((each) => each.headDim))].join(", ");
  throw refused("headDim", `no kernel serves ${headDim}; supported: ${sizes}`, "unsupported");
}
