import type { Tensor } from "../device/tensor.ts";
import { type FlashAttnPrefillArgs, flashAttnPrefill } from "../ops/attention/flashAttnPrefill.ts";
import { type AttentionDType, flashAttnPrefillSupport } from "../ops/attention/flashAttnPrefillSupport.ts";
import type { AttendCall } from "./attend.ts";
import type { KvMemory } from "./memory.ts";
import { mostRows } from "./segments.ts";
import type { SequenceState } from "./state.ts";
import type { Step, StepEntry } from "./step.ts";

/**
 * @internal Whether `flashAttnPrefill` takes the rows of a sequence: more than decode attention takes at once, or what
 * the caller calls a prompt, over keys of one memory, or of one and a tail.
 */
export function isPrompt({ config }: KvMemory, call: AttendCall, step: Step, entry: StepEntry): boolean {
  const { q, out } = call;
  const { kind, k, v, headDim } = config;
  if ((entry.count <= mostRows && !call.isPrompt) || step.isRecorded || config.keep > 0) return false;
  if (config.tail > 0 && config.tailDtype !== q.dtype) return false;
  const isServed = (dtype: string | undefined) => dtype === undefined || dtype === q.dtype;
  const [denseK, denseV] = [k, v].map(({ codes, dtype }) => (codes === undefined ? dtype : undefined));
  // Pages are all dense or all codes.
  if (kind === "paged" && (denseK === undefined) !== (denseV === undefined)) return false;
  return (
    isServed(denseK) &&
    isServed(denseV) &&
    out.dtype === q.dtype &&
    flashAttnPrefillSupport().some((row) => row.dtype === q.dtype && row.headDim === headDim && row.mask === "none")
  );
}

/** @internal Encodes attention of the rows of one sequence, which {@link isPrompt} is true of, in one call. */
export function attendPrompt(memory: KvMemory, call: AttendCall, { state, row, count }: StepEntry): void {
  const { config, store, table } = memory;
  const { pass, layer, views, q, out, lse, window, scores } = call;
  const isPaged = config.kind === "paged";
  const { k, v } = isPaged ? store.layer(layer) : store.pages(layer, state.slot);
  const rowsOf = (x: Tensor) => views.slice(x, row, row + count) as Tensor<AttentionDType>;
  flashAttnPrefill(pass, {
    q: rowsOf(q),
    k: k.cache as FlashAttnPrefillArgs["k"],
    v: v.cache as FlashAttnPrefillArgs["v"],
    out: rowsOf(out),
    causal: true,
    qOffsetInK: state.length,
    seqLenK: state.length + count,
    qLayout: "sequence-major",
    kvLayout: "head-major",
    ...(lse && { lse: views.slice(lse, row, row + count) }),
    ...(window > 0 && { window }),
    ...(config.kind === "ring" && { isSliding: true }),
    ...(isPaged && { blockTable: views.slice(table, state.slot, state.slot + 1) }),
    ...tailOf(memory, call, state),
    ...scores,
  });
}

function tailOf(
  { config, tail }: KvMemory,
  { layer, views }: AttendCall,
  { slot, quantized }: SequenceState,
): Pick<FlashAttnPrefillArgs, "tail"> {
  if (tail === undefined) return {};
  const { tail: tokens, tailBlock: block } = config;
  const { k, v } = tail.layer(layer);
  const { start } = tail.place(slot, 0);
  const slots = (stream: Tensor<"f16" | "bf16">) => views.slice(stream, start, start + tail.slots);
  return { tail: { k: slots(k.tokens), v: slots(v.tokens), tokens, block, quantized } };
}
