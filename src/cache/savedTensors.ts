import type { Tensor } from "../device/tensor.ts";
import type { KvMemory } from "./memory.ts";
import type { SequenceState } from "./state.ts";
import type { Store } from "./store.ts";

/** @internal A tensor of a cache as far as sequences have something in it. */
export interface SavedTensor {
  readonly name: string;
  readonly tensor: Tensor;
  /** Of what is saved. */
  readonly shape: readonly number[];
  /** The bytes of that, one run after another. */
  readonly parts: readonly Uint8Array<ArrayBuffer>[];
}

/** What a file has to hold of these sequences: pages that several have once. */
export function savedTensors(memory: KvMemory, states: readonly SequenceState[]): SavedTensor[] {
  const { config, store, keepStore, tail } = memory;
  if (states.length === 0) return [];
  const { kind, keep, pageTokens, tailSlots } = config;
  const pages = [...new Set(states.flatMap((state) => state.pages.slice(state.released)))].sort((a, b) => a - b);
  const slots = states.map(({ slot }) => slot);
  const most = (count: (state: SequenceState) => number) => Math.max(...states.map(count));
  const filled =
    kind === "paged"
      ? pageTokens
      : Math.min(
          pageTokens,
          most(({ high }) => Math.max(0, high - keep)),
        );
  const list = partsOf("main", store, pages, filled);
  if (keepStore !== undefined)
    list.push(
      ...partsOf(
        "keep",
        keepStore,
        slots,
        Math.min(
          keep,
          most(({ length }) => length),
        ),
      ),
    );
  tail?.forEachTensor((tensor, name) => {
    const parts = slots.map((slot) => tail.slotBytes(tensor, slot));
    list.push({ name: `tail.${name}`, tensor, shape: [slots.length, tailSlots, ...tensor.shape.slice(1)], parts });
  });
  return list;
}

/** The first `filled` slots of some pages. */
function partsOf(prefix: string, store: Store, pages: readonly number[], filled: number): SavedTensor[] {
  const list: SavedTensor[] = [];
  store.forEachTensor((tensor, name) => {
    const [, heads = 0, , row = 0] = tensor.shape;
    const parts = pages.flatMap((page) => {
      const { bytes, rowLength } = store.rowsOf(tensor, page);
      const headLength = store.pageTokens * rowLength;
      return Array.from({ length: heads }, (_, head) =>
        bytes.subarray(head * headLength, head * headLength + filled * rowLength),
      );
    });
    list.push({ name: `${prefix}.${name}`, tensor, shape: [pages.length, heads, filled, row], parts });
  });
  return list;
}
