import { checkLength, checkObject, display, refused } from "../checks.ts";
import { type DeviceLifetime, disposedError } from "../device/lifetime.ts";
import { Tensor } from "../device/tensor.ts";
import { MetalAttentionError } from "../errors.ts";
import type { DecodeDType } from "../ops/decode/decodeCache.ts";
import { OptionNames } from "../optionNames.ts";
import { checkRowDType } from "./format.ts";
import type { KvCache } from "./kvCache.ts";
import { mostOfRing, mostOfTail } from "./longStep.ts";
import { type KvCacheConfig, mostPositions } from "./options.ts";
import { type KvRope, useRope } from "./ropeNote.ts";
import { KvSequence } from "./sequence.ts";
import type { Sequences } from "./sequences.ts";
import type { SequenceState } from "./state.ts";
import type { StepEntry } from "./step.ts";

/** Arguments of `KvCache.append`. */
export interface KvAppendArgs {
  /** Keys of the new tokens, [nTokens, nKvHeads, headDim], those of several sequences one after another. */
  readonly k: Tensor<DecodeDType>;
  /** Values, of the same shape. */
  readonly v: Tensor<DecodeDType>;
  /** Turns the keys by their positions before they are written; they come turned unless given. */
  readonly rope?: KvRope | undefined;
  /** Whose tokens they are: the only sequence unless given. */
  readonly sequences?: readonly KvSequence[] | undefined;
  /** Tokens of each sequence; as many of each unless given. */
  readonly counts?: readonly number[] | undefined;
}

const argNames = new OptionNames<KvAppendArgs>("append", {
  k: true,
  v: true,
  rope: true,
  sequences: true,
  counts: true,
});

/** @internal Keys and values of an append, checked, whosever they are. */
export function useAppendArgs(
  args: KvAppendArgs,
  { nKvHeads, headDim }: KvCacheConfig,
  device: DeviceLifetime,
): KvAppendArgs & { readonly rows: number } {
  const given = argNames.read(checkObject(args, "args"));
  const shapes = (["k", "v"] as const).map((name) => {
    const { shape } = Tensor.use(given[name], device, name);
    const [, heads, dim] = shape;
    if (shape.length !== 3 || heads !== nKvHeads || dim !== headDim) {
      throw refused(name, `expected shape [nTokens, ${nKvHeads}, ${headDim}], got [${shape}]`);
    }
    checkRowDType(name, given[name]);
    return shape;
  });
  const [rows = 0, rowsV] = shapes.map(([tokens]) => tokens as number);
  if (rows !== rowsV) throw refused("v", `nTokens is ${rowsV}, but ${rows} in k`);
  return { ...given, ...(given.rope !== undefined && { rope: useRope(given.rope) }), rows };
}

/** @internal The sequences that a caller names, or the only one, which is made where there is none yet. */
export function namedStates(cache: KvCache, all: Sequences, named: readonly KvSequence[] | undefined): SequenceState[] {
  if (named !== undefined) {
    if (!Array.isArray(named)) throw refused("sequences", `expected a list of sequences, got ${display(named)}`);
    if (named.length === 0) throw refused("sequences", "expected at least 1, got an empty list");
    // A hole of the list is no sequence either.
    return Array.from(named, (sequence, i) => KvSequence.use(sequence, cache, `sequences.${i}`));
  }
  const { live } = all;
  if (live.length > 1) throw refused("sequences", `the cache has ${live.length}; say whose tokens they are`);
  return [live[0] ?? all.open()];
}

/** @internal Cuts the rows of an append into those of each sequence. */
export function entriesOf(
  states: readonly SequenceState[],
  counts: readonly number[] | undefined,
  rows: number,
): StepEntry[] {
  if (new Set(states).size < states.length) throw refused("sequences", "one of them is there twice");
  if (counts === undefined && rows % states.length !== 0) {
    throw refused("counts", `${rows} tokens do not divide among ${states.length} sequences; say how many each has`);
  }
  if (counts !== undefined && (!Array.isArray(counts) || counts.length !== states.length)) {
    const got = Array.isArray(counts) ? `${counts.length}` : display(counts);
    throw refused("counts", `expected ${states.length} numbers, one for each sequence, got ${got}`);
  }
  let row = 0;
  const entries = states.map((state, i): StepEntry => {
    const count = counts === undefined ? rows / states.length : checkLength(counts[i], `counts.${i}`);
    if (count === 0) throw refused(`counts.${i}`, "0 tokens; leave the sequence out");
    const entry = { state, row, count };
    row += count;
    return entry;
  });
  if (row !== rows) throw refused("counts", `their sum is ${row}, but k has ${rows} tokens`);
  // The lists are the caller's, and reading them may have dropped one.
  for (const [i, { isLive }] of states.entries()) if (!isLive) throw disposedError("the sequence", `sequences.${i}`);
  return entries;
}

/** @internal Refuses an append that a sequence has no room for, with what to do. */
export function checkRoom({ kind, capacity }: KvCacheConfig, { state, count }: StepEntry): void {
  const full = (reason: string) => new MetalAttentionError("overflow", `k: ${reason}`, { argument: "k" });
  if (kind === "ring") {
    if (state.length + count > mostPositions) {
      throw full(`${count} tokens after ${state.length} exceed ${mostPositions} positions; crop the sequence to 0`);
    }
  } else if (state.length + count > capacity) {
    const more = kind === "paged" ? "more" : "more (in `pages`, which take memory as they are filled)";
    throw full(
      `${count} tokens after ${state.length} exceed the capacity ${capacity}; trim or crop the sequence, make the cache ` +
        `with ${more}, or a ring of it by \`window\``,
    );
  }
}

/** Positions whose angles are exact in f32, either way of 0. */
const mostTurned = 2 ** 24;

/** @internal Refuses keys that turn at positions beyond those of {@link applyRope}, before any of them is encoded. */
export function checkTurned(entries: readonly StepEntry[]): void {
  for (const { state, count } of entries) {
    if (state.length + count - 1 <= mostTurned) continue;
    throw refused(
      "k",
      `${count} tokens after ${state.length} turn at positions beyond ${mostTurned}; crop the sequence to 0, or append keys ` +
        "that are turned already",
      "overflow",
    );
  }
}

/** @internal Refuses more tokens in a recorded step than the memory of the cache takes at once. */
export function checkUsual(config: KvCacheConfig, { count }: StepEntry): void {
  const [ring, tail] = [mostOfRing(config), mostOfTail(config)];
  if (count <= ring && count <= tail) return;
  const what = count > ring ? `a ring of ${config.pageTokens} slots and a window of ${config.window}` : "the tail";
  throw refused(
    "k",
    `${count} tokens of a sequence, and ${what} take ${Math.min(ring, tail)} at once in a recorded step; record fewer, or ` +
      (count > ring ? `give a capacity of ${config.capacity + count - ring}` : `a maxAppend of ${count}`),
    "overflow",
  );
}
