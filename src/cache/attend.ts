import type { Pass } from "../device/pass.ts";
import type { Tensor } from "../device/tensor.ts";
import type { DecodeDType } from "../ops/decode/decodeCache.ts";
import { type FlashAttnDecodeArgs, flashAttnDecode } from "../ops/decode/flashAttnDecode.ts";
import { attendPrompt, isPrompt } from "./attendPrompt.ts";
import { attendRows } from "./attendRows.ts";
import type { KvMemory } from "./memory.ts";
import type { Step, StepEntry } from "./step.ts";
import type { Views } from "./views.ts";

/** @internal What the caller says about the scores. */
export type ScoreOptions = Pick<FlashAttnDecodeArgs, "scale" | "softcap" | "sinks" | "alibiSlopes">;

/** @internal An attend, checked: q and out are [rows, H, D] of all sequences of the step. */
export interface AttendCall {
  readonly pass: Pass;
  readonly layer: number;
  readonly views: Views;
  readonly q: Tensor<DecodeDType>;
  readonly out: Tensor<DecodeDType>;
  readonly lse: Tensor<"f32"> | undefined;
  /** 0 for none. */
  readonly window: number;
  readonly scores: ScoreOptions;
  /** Whether its rows are attended as a prompt's, however few they are. */
  readonly isPrompt: boolean;
}

/** Encodes attention of all rows of a step, by whichever kernels fit. */
export function attendStep(memory: KvMemory, call: AttendCall, step: Step): void {
  if (!call.isPrompt && isOneCall(memory, step)) {
    attendBatch(memory, call, step);
    return;
  }
  for (const entry of step.entries) {
    if (isPrompt(memory, call, step, entry)) attendPrompt(memory, call, entry);
    else attendRows(memory, call, entry, step.isRecorded);
  }
}

/** Whether the step is one token of each of several sequences that a call of decode attention takes together. */
function isOneCall({ config }: KvMemory, { entries, isRecorded }: Step): boolean {
  if (entries.length < 2 || config.tail > 0 || config.keep > 0 || entries.some(({ count }) => count > 1)) return false;
  const isInOrder = entries.every(({ state }, i) => state.slot === (entries[0] as StepEntry).state.slot + i);
  // A ring has no table, and one that is recorded has no say in its contents.
  return (config.kind !== "ring" && !isRecorded) || isInOrder;
}

function attendBatch(memory: KvMemory, call: AttendCall, { entries, isRecorded }: Step): void {
  const { config, store } = memory;
  const { views, q, out, lse } = call;
  const batch = entries.length;
  const [heads, headDim] = [q.shape[1] as number, config.headDim];
  const first = (entries[0] as StepEntry).state.slot;
  const hasTable = isRecorded ? config.kind === "paged" : config.kind !== "ring";
  let lengths = memory.lengths;
  if (isRecorded) lengths = views.slice(lengths, first, first + batch);
  else {
    lengths = memory.scratch.tensor(`lengths ${batch}`, "i32", [batch]);
    lengths.set(entries.map(({ state, count }) => state.length + count));
  }
  const { k, v } = hasTable ? store.layer(call.layer) : store.pages(call.layer, first, batch);
  const shape = [batch, heads, 1, headDim];
  flashAttnDecode(call.pass, {
    q: views.reshape(q, shape),
    k: k.cache,
    v: v.cache,
    out: views.reshape(out, shape),
    ...(lse && { lse: views.reshape(lse, [batch, heads, 1]) }),
    seqLens: lengths,
    isSliding: config.kind === "ring",
    ...(hasTable && { blockTable: tableOf(memory, call.views, entries, isRecorded) }),
    ...(call.window > 0 && { window: call.window }),
    ...call.scores,
  });
}

/** The pages of several sequences, as the step has them; of a recorded one, whose sequences are in order, as a run finds them. */
function tableOf(
  { config, scratch, table: all }: KvMemory,
  views: Views,
  entries: readonly StepEntry[],
  isRecorded: boolean,
): Tensor<"i32"> {
  const { maxPages } = config;
  const first = (entries[0] as StepEntry).state.slot;
  if (isRecorded) return views.slice(all, first, first + entries.length);
  const table = scratch.tensor(`table ${entries.length}`, "i32", [entries.length, maxPages]);
  const values = new Int32Array(entries.length * maxPages);
  for (const [i, { state }] of entries.entries()) values.set(state.pages, i * maxPages);
  return table.set(values);
}
