import type { Pass } from "../device/pass.ts";
import type { Tensor } from "../device/tensor.ts";
import { kvCacheCopySeq } from "../ops/cacheCopy/kvCacheCopySeq.ts";
import type { DecodeDType } from "../ops/decode/decodeCache.ts";
import { type FlashAttnDecodeArgs, flashAttnDecode } from "../ops/decode/flashAttnDecode.ts";
import { type AttentionPart, mergeAttention } from "../ops/decode/mergeAttention.ts";
import type { AttendCall } from "./attend.ts";
import type { KvMemory } from "./memory.ts";
import { distanceTo, mostRows, type Run, runsOf, type Segment, segmentsOf } from "./segments.ts";
import type { SequenceState } from "./state.ts";
import type { StepEntry } from "./step.ts";

/** The rows of a run under the shapes of decode attention, [H, rows, D]. */
interface RunTensors {
  readonly q: Tensor<DecodeDType>;
  readonly out: Tensor<DecodeDType>;
  readonly lse: Tensor<"f32"> | undefined;
}

/** Encodes attention of the rows of one sequence by decode attention, up to 16 rows at once. */
export function attendRows(memory: KvMemory, call: AttendCall, entry: StepEntry, isRecorded: boolean): void {
  const { state, row, count } = entry;
  const from = state.length;
  const runs = isRecorded
    ? [{ from: 0, to: count, quantized: count }]
    : runsOf(memory.config, state, from, from + count, call.window);
  for (const run of runs) {
    const first = row + run.from - (isRecorded ? 0 : from);
    const rows = run.to - run.from;
    if (rows === 1) {
      attendRun(memory, call, state, run, oneRow(call, first), isRecorded);
    } else {
      const tensors = severalRows(memory, call, rows);
      transpose(call, call.q, first, tensors.q, rows);
      attendRun(memory, call, state, run, tensors, isRecorded);
      transposeBack(call, tensors.out, call.out, first);
      if (tensors.lse !== undefined && call.lse !== undefined) transposeBack(call, tensors.lse, call.lse, first);
    }
  }
}

/** One token's heads lie as decode attention wants them. */
function oneRow({ q, out, lse, views }: AttendCall, row: number): RunTensors {
  const [, heads, headDim] = q.shape as readonly [number, number, number];
  const shape = [heads, 1, headDim];
  return {
    q: views.reshape(views.slice(q, row, row + 1), shape),
    out: views.reshape(views.slice(out, row, row + 1), shape),
    lse: lse && views.reshape(views.slice(lse, row, row + 1), [heads, 1]),
  };
}

function severalRows({ scratch }: KvMemory, { q, out, lse }: AttendCall, rows: number): RunTensors {
  const [, heads, headDim] = q.shape as readonly [number, number, number];
  const most = mostRows * heads;
  return {
    q: scratch.tensor("q", q.dtype, [heads, rows, headDim], most * headDim),
    out: scratch.tensor("out", out.dtype, [heads, rows, headDim], most * headDim),
    lse: lse && scratch.tensor("lse", "f32", [heads, rows], most),
  };
}

/** Token-major rows of a tensor from `first` on, to head-major. */
function transpose(
  { pass }: AttendCall,
  x: Tensor<DecodeDType>,
  first: number,
  to: Tensor<DecodeDType>,
  rows: number,
): void {
  kvCacheCopySeq(pass, { src: x, cache: to, seqPosStart: 0, srcTokOffset: first, nTokens: rows });
}

/** Head-major [H, rows, D] or [H, rows] to token-major rows from `first` on: heads for tokens, and rows for heads. */
function transposeBack(
  { pass, views }: AttendCall,
  x: Tensor<DecodeDType>,
  to: Tensor<DecodeDType>,
  first: number,
): void {
  const [heads, rows, headDim = 1] = x.shape as readonly [number, number, number?];
  kvCacheCopySeq(pass, {
    src: views.reshape(x, [heads, rows, headDim]),
    cache: views.reshape(views.slice(to, first, first + rows), [rows, heads, headDim]),
    seqPosStart: 0,
  });
}

function attendRun(
  memory: KvMemory,
  call: AttendCall,
  state: SequenceState,
  run: Run,
  { q, out, lse }: RunTensors,
  isRecorded: boolean,
): void {
  const { config, scratch } = memory;
  const { pass, window, scores } = call;
  if (isRecorded) {
    const seqLens = call.views.slice(memory.lengths, state.slot, state.slot + 1);
    attendSegment(pass, { ...keysOf(memory, call, state, "main", 0), seqLens, q, out, ...scores }, lse, window);
    return;
  }
  const segments = segmentsOf(config, run, window);
  const rows = run.to - run.from;
  const mask = (segment: Segment) => (segment.isSeenByAll && rows > 1 ? { treeMask: seenByAll(memory, rows) } : {});
  if (segments.length === 1) {
    const [only] = segments as [Segment];
    const keys = keysOf(memory, call, state, only.store, only.start);
    attendSegment(pass, { ...keys, seqLen: only.length, q, out, ...mask(only), ...scores }, lse, only.window);
    return;
  }
  const { sinks, ...rest } = scores;
  const most = mostRows * (q.shape[0] as number);
  const parts = segments.map((segment, i): AttentionPart => {
    const part = {
      out: scratch.tensor(`part ${i}`, "f32", q.shape, most * config.headDim),
      lse: scratch.tensor(`part ${i} lse`, "f32", q.shape.slice(0, 2), most),
    };
    const keys = {
      ...keysOf(memory, call, state, segment.store, segment.start),
      seqLen: segment.length,
      ...mask(segment),
      ...(scores.alibiSlopes && { alibiDistance: distanceTo(run.to, segment) }),
    };
    // A sink counts once, in a part that is there at each position.
    const sink = i === segments.length - 1 && sinks !== undefined ? { sinks } : {};
    attendSegment(pass, { ...keys, q, out: part.out, ...rest, ...sink }, part.lse, segment.window);
    return part;
  });
  mergeAttention(pass, { parts, out, ...(lse && { lse }) });
}

function attendSegment(pass: Pass, args: FlashAttnDecodeArgs, lse: Tensor<"f32"> | undefined, window: number): void {
  flashAttnDecode(pass, { ...args, ...(lse && { lse }), ...(window > 0 && { window }) });
}

type Keys = Pick<FlashAttnDecodeArgs, "k" | "v" | "isSliding" | "blockTable">;

/** The memory of a segment as decode attention takes it. */
function keysOf(
  { config, store, keepStore, tail, table }: KvMemory,
  { layer, views }: AttendCall,
  { slot }: SequenceState,
  of: Segment["store"],
  start: number,
): Keys {
  if (of === "tail" && tail !== undefined) {
    const { k, v } = tail.layer(layer);
    return { k: k.pages, v: v.pages, blockTable: tail.table(slot, start) };
  }
  if (of === "keep" && keepStore !== undefined) {
    const { k, v } = keepStore.pages(layer, slot);
    return { k: k.cache, v: v.cache };
  }
  if (config.kind === "paged") {
    const { k, v } = store.layer(layer);
    return { k: k.cache, v: v.cache, blockTable: views.slice(table, slot, slot + 1) };
  }
  const { k, v } = store.pages(layer, slot);
  return { k: k.cache, v: v.cache, isSliding: config.kind === "ring" };
}

/** A tree mask in which each row sees all of the last keys. */
function seenByAll({ scratch }: KvMemory, rows: number): Tensor<"u32"> {
  return scratch.tensor("seen", "u32", [rows], mostRows).set(new Uint32Array(rows).fill(0xffff_ffff));
}
