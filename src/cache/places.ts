import type { Tensor } from "../device/tensor.ts";
import type { KvMemory } from "./memory.ts";
import type { KvCacheConfig } from "./options.ts";
import type { StepEntry } from "./step.ts";

/** @internal Sequences of a step, one slot after another with as many tokens each, that are written in one dispatch a format. */
export interface WriteGroup {
  readonly entries: readonly StepEntry[];
  /** Slot of the first. */
  readonly slot: number;
  /** First row of the first. */
  readonly row: number;
  /** Tokens of each. */
  readonly count: number;
}

/** Cuts the sequences of a step into groups: one where their slots and numbers of tokens allow it. */
export function groupsOf(entries: readonly StepEntry[]): WriteGroup[] {
  const [first] = entries as readonly [StepEntry];
  const { count, state } = first;
  const isOne = entries.every((entry, i) => entry.count === count && entry.state.slot === state.slot + i);
  if (isOne) return [{ entries, slot: state.slot, row: first.row, count }];
  return entries.map((entry) => ({ entries: [entry], slot: entry.state.slot, row: entry.row, count: entry.count }));
}

/** @internal Where the tokens of a group go, as the device reads it: each i32 [sequences, tokens of each]. */
export interface Places {
  /** Positions in the sequence. */
  readonly tokens: Tensor<"i32">;
  /** Positions in what is no kept token; below 0 for those that are. */
  readonly main: Tensor<"i32">;
  /** Positions among the kept tokens; -1 for those that are none. */
  readonly keep: Tensor<"i32"> | undefined;
}

/** Memory for the places of a group, made by `make`. */
export function placesOf(
  { keep }: KvCacheConfig,
  { entries, count }: WriteGroup,
  make: (name: string, shape: readonly number[]) => Tensor<"i32">,
): Places {
  const shape = [entries.length, count];
  const tokens = make("tokens", shape);
  return keep === 0
    ? { tokens, main: tokens, keep: undefined }
    : { tokens, main: make("main", shape), keep: make("keep", shape) };
}

/** The places of an encoded step, which all of its layers share. */
export function scratchPlaces({ config, scratch }: KvMemory, group: WriteGroup): Places {
  const places = placesOf(config, group, (name, shape) => scratch.tensor(`${name} of ${group.slot}`, "i32", shape));
  fillPlaces(config, group, places);
  return places;
}

/** Writes where the next tokens of a group go. */
export function fillPlaces({ keep }: KvCacheConfig, { entries, count }: WriteGroup, places: Places): void {
  const positions = new Int32Array(entries.length * count);
  for (const [i, { state }] of entries.entries()) {
    for (let j = 0; j < count; j++) positions[i * count + j] = state.length + j;
  }
  places.tokens.set(positions);
  if (places.keep === undefined) return;
  places.main.set(positions.map((position) => mainPlace(position, keep)));
  places.keep.set(positions.map((position) => keepPlace(position, keep)));
}

/** @internal The place of a position behind the kept tokens; below 0 where it is one of them. */
export function mainPlace(position: number, keep: number): number {
  return position - keep;
}

/** @internal The place of a position among the kept tokens, or -1. */
export function keepPlace(position: number, keep: number): number {
  return position < keep ? position : -1;
}
