import type { Pass } from "../device/pass.ts";
import type { Tensor } from "../device/tensor.ts";
import type { DecodeDType } from "../ops/decode/decodeCache.ts";
import { isTaken, type StreamFormat } from "./format.ts";
import type { KvMemory } from "./memory.ts";
import { type KvRope, stageRows, stageTokens } from "./stage.ts";
import { piecesOf, quantizedAt } from "./state.ts";
import type { StepEntry } from "./step.ts";
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

/** Encodes the writes of one sequence's tokens. */
export function appendEntry(memory: KvMemory, call: AppendCall, entry: StepEntry): void {
  const { config } = memory;
  const { state, row, count } = entry;
  const from = state.length;
  const hasTail = config.tail > 0;
  const isTurnedBefore = call.rope !== undefined && (hasTail || config.k.codes !== undefined);
  const isStagedK = isTurnedBefore || !(hasTail || isTaken(call.k.dtype, config.k));
  const isStagedV = !(hasTail || isTaken(call.v.dtype, config.v));
  const stageDtype = hasTail ? config.tailDtype : "f32";
  const chunk = isStagedK || isStagedV ? stageTokens : count;
  for (let at = 0; at < count; at += chunk) {
    const part = Math.min(chunk, count - at);
    const first = row + at;
    const turn = call.rope && { rope: call.rope, positions: from + at };
    const k = isStagedK
      ? stageRows(memory, call, "stageK", stageDtype, { x: call.k, first, count: part, turn })
      : { tensor: call.k, first };
    const v = isStagedV
      ? stageRows(memory, call, "stageV", stageDtype, { x: call.v, first, count: part })
      : { tensor: call.v, first };
    if (hasTail) writeTail(memory, call, entry, from + at, part, k, v);
    else writeMain(memory, call, entry, from + at, part, k, v, isTurnedBefore ? undefined : call.rope);
  }
  if (hasTail) quantizeTail(memory, call, entry);
}

/** Writes to the pages that the positions from `from` on have. */
function writeMain(
  { config, store, keepStore }: KvMemory,
  { pass, layer, views }: AppendCall,
  { state }: StepEntry,
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
        offset: piece.offset,
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
  { state }: StepEntry,
  from: number,
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
  const streams = tail.layer(layer);
  const view = ({ rings }: (typeof streams)["k"]) => {
    const rows = rings[state.slot] as Tensor<"f16" | "bf16">;
    const format = {
      dtype: tailDtype,
      rowLength: row,
      rowBytes: 2 * row,
      normsPerPos: 0,
      codes: undefined,
      text: tailDtype,
    };
    return { rows, norms: undefined, format, cache: rows };
  };
  const target = { view: { k: view(streams.k), v: view(streams.v) }, offset: from, count, isRing: true };
  writeRows(pass, views, flat(k), flat(v), target);
}

/** Quantizes the tokens that leave the tail with this append. */
function quantizeTail(memory: KvMemory, call: AppendCall, entry: StepEntry): void {
  const { config, tail } = memory;
  const { state, count } = entry;
  const to = quantizedAt(config, state, state.length + count);
  if (tail === undefined) return;
  const streams = tail.layer(call.layer);
  for (let from = state.quantized; from < to; ) {
    const { start, room } = tail.place(state.slot, from);
    const part = Math.min(to - from, room, stageTokens);
    const rowsOf = (name: "stageK" | "stageV", { tokens: x }: (typeof streams)["k"], format: StreamFormat): Rows =>
      isTaken(config.tailDtype, format)
        ? { tensor: x, first: start }
        : stageRows(memory, call, name, "f32", { x, first: start, count: part });
    const k = rowsOf("stageK", streams.k, config.k);
    const v = rowsOf("stageV", streams.v, config.v);
    writeMain(memory, call, entry, from, part, k, v, undefined);
    from += part;
  }
}
