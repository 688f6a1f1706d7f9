import type { Tensor } from "../device/tensor.ts";
import type { KvMemory } from "./memory.ts";
import type { Run } from "./runs.ts";
import type { SequenceState } from "./state.ts";
import type { Store } from "./store.ts";

/** @internal A tensor of a cache as far as sequences have something in it. */
interface SavedTensor {
  readonly name: string;
  readonly tensor: Tensor;
  /** Of what is saved. */
  readonly shape: readonly number[];
  /** Where that lies, in the order of the file. */
  readonly runs: readonly Run[];
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
    const runs = slots.map((slot) => tail.runOf(tensor, slot));
    list.push({ name: `tail.${name}`, tensor, shape: [slots.length, tailSlots, ...tensor.shape.slice(1)], runs });
  });
  return list;
}

/** The first `filled` slots of some pages. */
function partsOf(prefix: string, store: Store, pages: readonly number[], filled: number): SavedTensor[] {
  const list: SavedTensor[] = [];
  store.forEachTensor((tensor, name) => {
    const [, heads = 0, , row = 0] = tensor.shape;
    const runs = pages.flatMap((page) => store.runsOf(tensor, page, filled));
    list.push({ name: `${prefix}.${name}`, tensor, shape: [pages.length, heads, filled, row], runs });
  });
  return list;
}
