import type { Pass } from "../device/pass.ts";
import type { Tensor } from "../device/tensor.ts";
import type { DecodeDType } from "../ops/decode/decodeCache.ts";
import { isTaken, type StreamFormat } from "./format.ts";
import type { KvMemory } from "./memory.ts";
import { groupsOf, type Places, scratchPlaces, type WriteGroup } from "./places.ts";
import { type KvRope, stageRows, stageTokens } from "./stage.ts";
import { piecesOf, quantizedAt, type SequenceState } from "./state.ts";
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
  const { kind, tail, pageTokens } = memory.config;
  const [{ state }] = group.entries as readonly [StepEntry];
  const isInOnePage = kind !== "paged" || tail > 0 || (state.length % pageTokens) + group.count <= pageTokens;
  if (group.entries.length === 1 && isInOnePage) return undefined;
  let places = step.places.get(group.slot);
  if (places === undefined) {
    places = scratchPlaces(memory, group);
    step.places.set(group.slot, places);
  }
  return places;
}

/** Encodes the writes of a group's tokens: to the tail where there is one. */
export function appendGroup(memory: KvMemory, call: AppendCall, group: WriteGroup, places: Places | undefined): void {
  const { config } = memory;
  const { entries, row, count } = group;
  const [{ state }] = entries as readonly [StepEntry];
  const hasTail = config.tail > 0;
  const isConvertedK = !(hasTail || isTaken(call.k.dtype, config.k));
  // What writes K turns it, but for the tail, whose rows are of all heads; a conversion before does both at once.
  const isTurnedBefore = call.rope !== undefined && (hasTail || isConvertedK);
  const isStagedK = isTurnedBefore || isConvertedK;
  const isStagedV = !(hasTail || isTaken(call.v.dtype, config.v));
  const stageDtype = hasTail ? config.tailDtype : "f32";
  // The tokens of several sequences are few.
  const chunk = entries.length === 1 && (isStagedK || isStagedV) ? stageTokens : count;
  for (let at = 0; at < count; at += chunk) {
    const part = Math.min(chunk, count - at);
    const rows = entries.length * part;
    const first = row + at;
    const now = places && sliceOf(call.views, places, at, part);
    const positions = now === undefined ? state.length + at : call.views.reshape(now.tokens, [rows]);
    const turn = call.rope && { rope: call.rope, positions };
    const k = isStagedK
      ? stageRows(memory, call, "stageK", stageDtype, { x: call.k, first, count: rows, turn })
      : { tensor: call.k, first };
    const v = isStagedV
      ? stageRows(memory, call, "stageV", stageDtype, { x: call.v, first, count: rows })
      : { tensor: call.v, first };
    const rope = isTurnedBefore ? undefined : call.rope;
    if (hasTail) writeTail(memory, call, group, now?.tokens ?? state.length + at, part, k, v);
    else if (now !== undefined) writePlaces(memory, call, group, now, k, v, rope);
    else writeMain(memory, call, state, state.length + at, part, k, v, rope);
  }
}

/** The places of tokens `at` up to `at + count` of each sequence; of several sequences all. */
function sliceOf(views: Views, places: Places, at: number, count: number): Places {
  const [sequences, all] = places.tokens.shape;
  if (sequences !== 1 || count === all) return places;
  const part = (tensor: Tensor<"i32">) =>
    views.reshape(views.slice(views.reshape(tensor, [all as number]), at, at + count), [1, count]);
  const tokens = part(places.tokens);
  return places.keep === undefined
    ? { tokens, main: tokens, keep: undefined }
    : { tokens, main: part(places.main), keep: part(places.keep) };
}

/** Writes to where places in device memory say. */
function writePlaces(
  { config, store, keepStore, table }: KvMemory,
  { pass, layer, views }: AppendCall,
  { entries, slot, count: all }: WriteGroup,
  places: Places,
  k: Rows,
  v: Rows,
  rope: KvRope | undefined,
): void {
  const { kind, keep } = config;
  const sequences = entries.length;
  const count = places.tokens.shape[1] ?? all;
  writeRows(pass, views, k, v, {
    view: store.layer(layer),
    at: { positions: places.main, table: views.slice(table, slot, slot + sequences) },
    count,
    isRing: kind === "ring",
    rope: rope && { ...rope, offset: keep },
  });
  if (places.keep === undefined || keepStore === undefined) return;
  writeRows(pass, views, k, v, {
    view: keepStore.pages(layer, slot, sequences),
    at: { positions: places.keep },
    count,
    isRing: false,
    rope,
  });
}

/** Writes to the pages that the positions from `from` on have. */
function writeMain(
  { config, store, keepStore }: KvMemory,
  { pass, layer, views }: AppendCall,
  state: SequenceState,
  from: number,
  count: number,
  k: Rows,
  v: Rows,
  rope: KvRope | undefined,
): void {
  for (const piece of piecesOf(config, state, from, from + count)) {
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

/** Writes to the slots of the tail, as to a ring of one head. */
function writeTail(
  { config, tail }: KvMemory,
  { pass, layer, views }: AppendCall,
  { entries, slot }: WriteGroup,
  at: number | Tensor<"i32">,
  count: number,
  k: Rows,
  v: Rows,
): void {
  if (tail === undefined) return;
  const { nKvHeads, headDim, tailDtype } = config;
  const row = nKvHeads * headDim;
  const flat = ({ tensor, first }: Rows): Rows => ({
    tensor: views.reshape(tensor, [tensor.shape[0] as number, 1, row]),
    first,
  });
  const format: StreamFormat = {
    dtype: tailDtype,
    rowLength: row,
    rowBytes: 2 * row,
    normsPerPos: 0,
    codes: undefined,
    text: tailDtype,
  };
  const [ringK, ringV] = tail.rings(layer, slot, entries.length);
  const view = (rows: typeof ringK) => ({ rows, norms: undefined, format, cache: rows });
  writeRows(pass, views, flat(k), flat(v), {
    view: { k: view(ringK), v: view(ringV) },
    at: typeof at === "number" ? at : { positions: at },
    count,
    isRing: true,
  });
}

/** Quantizes the tokens that leave the tail with this append. */
function quantizeTail(memory: KvMemory, call: AppendCall, { state, count }: StepEntry): void {
  const { config, tail } = memory;
  const to = quantizedAt(config, state, state.length + count);
  if (tail === undefined) return;
  const streams = tail.layer(call.layer);
  // Tokens that came back to the tail may be of pages that were given back, since nobody sees them any more.
  for (let from = Math.max(state.quantized, state.released * config.pageTokens); from < to; ) {
    const { start, room } = tail.place(state.slot, from);
    const part = Math.min(to - from, room, stageTokens);
    const rowsOf = (name: "stageK" | "stageV", { tokens: x }: (typeof streams)["k"], format: StreamFormat): Rows =>
      isTaken(config.tailDtype, format)
        ? { tensor: x, first: start }
        : stageRows(memory, call, name, "f32", { x, first: start, count: part });
    const k = rowsOf("stageK", streams.k, config.k);
    const v = rowsOf("stageV", streams.v, config.v);
    writeMain(memory, call, state, from, part, k, v, undefined);
    from += part;
  }
}
