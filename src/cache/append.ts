import type { Pass } from "../device/pass.ts";
import type { Tensor } from "../device/tensor.ts";
import type { DecodeDType } from "../ops/decode/decodeCache.ts";
import type { KvMemory } from "./memory.ts";
import { groupsOf, type Places, scratchPlaces, type WriteGroup } from "./places.ts";
import type { KvRope } from "./ropeNote.ts";
import { leavesFrom, piecesOf, quantizedAt, type SequenceState } from "./state.ts";
import type { Step, StepEntry } from "./step.ts";
import type { Views } from "./views.ts";
import { type Rows, writeRows } from "./write.ts";

/** @internal What an append encodes into, and the tokens of all its sequences. */
export interface AppendCall {
  readonly pass: Pass;
  readonly layer: number;
  readonly views: Views;
  readonly k: Tensor<DecodeDType>;
  readonly v: Tensor<DecodeDType>;
  readonly rope: KvRope | undefined;
}

/** Encodes the writes of a step's tokens. */
export function appendStep(memory: KvMemory, call: AppendCall, step: Step): void {
  for (const group of groupsOf(step.entries)) {
    appendGroup(memory, call, group, placesOf(memory, group, step));
    if (memory.config.tail > 0) for (const entry of group.entries) quantizeTail(memory, call, entry);
  }
}

/** Places in device memory, where a start does not say it all; made once a step. */
function placesOf(memory: KvMemory, group: WriteGroup, step: Step): Places | undefined {
  if (group.entries.length === 1) return undefined;
  let places = step.places.get(group.slot);
  if (places === undefined) {
    places = scratchPlaces(memory, group);
    step.places.set(group.slot, places);
  }
  return places;
}

/** Encodes the writes of a group's tokens: to the tail where there is one. */
export function appendGroup(memory: KvMemory, call: AppendCall, group: WriteGroup, places: Places | undefined): void {
  const { tail } = memory;
  const { entries, row, count } = group;
  const [{ state }] = entries as readonly [StepEntry];
  const tokens: Tokens = { k: { tensor: call.k, first: row }, v: { tensor: call.v, first: row }, rope: call.rope };
  if (tail !== undefined) {
    writeRows(call.pass, call.views, tokens.k, tokens.v, {
      view: tail.view(call.layer),
      at: places?.tokens ?? state.length,
      table: tail.tables(group.slot, entries.length),
      count,
      isRing: true,
      rope: call.rope,
    });
  } else if (places !== undefined) writePlaces(memory, call, group, places, tokens);
  else writeMain(memory, call, state, [state.length, state.length + count], tokens);
}

/** K and V on their way, and how K turns. */
interface Tokens {
  readonly k: Rows;
  readonly v: Rows;
  readonly rope: KvRope | undefined;
}

/** Writes to where places in device memory say. */
function writePlaces(
  { config, store, keepStore, table }: KvMemory,
  { pass, layer, views }: AppendCall,
  { entries, slot, count }: WriteGroup,
  places: Places,
  { k, v, rope }: Tokens,
): void {
  const { kind, keep } = config;
  const sequences = entries.length;
  writeRows(pass, views, k, v, {
    view: store.layer(layer),
    at: places.main,
    table: views.slice(table, slot, slot + sequences),
    count,
    isRing: kind === "ring",
    rope: rope && { ...rope, offset: keep },
  });
  if (places.keep === undefined || keepStore === undefined) return;
  writeRows(pass, views, k, v, {
    view: keepStore.pages(layer, slot, sequences),
    at: places.keep,
    count,
    isRing: false,
    rope,
  });
}

/** Writes to the pages that the positions of a range have. */
function writeMain(
  { config, store, keepStore, table }: KvMemory,
  { pass, layer, views }: AppendCall,
  state: SequenceState,
  [from, to]: readonly [number, number],
  { k, v, rope }: Tokens,
): void {
  const pieces = piecesOf(config, state, from, to);
  if (config.kind === "paged" && pieces.length > 1) {
    const pages = views.slice(table, state.slot, state.slot + 1);
    const target = { view: store.layer(layer), at: from, table: pages, count: to - from, isRing: false, rope };
    writeRows(pass, views, k, v, target);
    return;
  }
  for (const piece of pieces) {
    const isMain = piece.store === "main";
    const after = piece.from - from;
    writeRows(
      pass,
      views,
      { tensor: k.tensor, first: k.first + after },
      { tensor: v.tensor, first: v.first + after },
      {
        view: (isMain || keepStore === undefined ? store : keepStore).pages(layer, piece.page),
        at: piece.offset,
        count: piece.count,
        isRing: isMain && config.kind === "ring",
        rope: rope && { ...rope, offset: piece.from - piece.offset },
      },
    );
  }
}

/** Quantizes the tokens that leave the tail with this append. */
function quantizeTail(memory: KvMemory, call: AppendCall, { state, count }: StepEntry): void {
  const { config, tail } = memory;
  const to = quantizedAt(config, state, state.length + count);
  if (tail === undefined) return;
  const { k, v } = tail.layer(call.layer);
  for (let from = leavesFrom(config, state); from < to; ) {
    const { start, room } = tail.place(state.slot, from);
    const end = Math.min(to, from + room);
    const rows = (tensor: Rows["tensor"]): Rows => ({ tensor, first: start });
    writeMain(memory, call, state, [from, end], { k: rows(k.tokens), v: rows(v.tokens), rope: undefined });
    from = end;
  }
}
