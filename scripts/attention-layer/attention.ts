import {
  type AttentionLayout,
  buildCausalMask,
  buildSlidingWindowMask,
  classifyMaskTiles,
  type Device,
  flashAttnPrefill,
  type Pass,
  type StridedLayout,
  type Tensor,
  type TileClasses,
} from "../../src/index.ts";
import type { KvFormat } from "./kept.ts";

/** Element types that the demo runs attention in. */
export const attentionDTypes = ["bf16", "f16"] as const;
export type AttentionDType = (typeof attentionDTypes)[number];

/** `none`: the kernel compares positions itself. */
export const maskKinds = ["none", "additive", "bool"] as const;
export type MaskKind = (typeof maskKinds)[number];

/** How attention is run. */
export interface AttentionChoice {
  readonly dtype: AttentionDType;
  readonly mask: MaskKind;
  /** Keys that a token attends, itself and those before it; all before it unless given. */
  readonly window: number | undefined;
  /** Tokens of a chunk; the prompt is also done in chunks when given. */
  readonly chunk: number | undefined;
  /** What K and V are kept in, to be read back and attended again, when given. */
  readonly kv: KvFormat | undefined;
}

/** The prompt, sequence-major: [1, tokens, heads, headDim] and [1, tokens, kvHeads, headDim]. */
export interface Prompt {
  readonly q: Tensor;
  readonly k: Tensor;
  readonly v: Tensor;
}

/** A mask on the device, and its tiles. */
export interface BuiltMask {
  readonly mask: Tensor;
  readonly tileClasses: TileClasses;
}

/** Encodes the mask of `rows` tokens that begin at `first`, over all keys up to the last of them. */
export function encodeMask(
  pass: Pass,
  device: Device,
  { dtype, mask: kind, window }: AttentionChoice,
  headDim: number,
  first: number,
  rows: number,
): BuiltMask {
  const mask: Tensor = device.tensor(kind === "bool" ? "bool" : dtype, [rows, first + rows]);
  if (window === undefined) buildCausalMask(pass, { mask, qOffsetInK: first });
  else buildSlidingWindowMask(pass, { mask, window, qOffsetInK: first });
  return { mask, tileClasses: classifyMaskTiles(pass, { mask, headDim }) };
}

/** Encodes the prompt at once. */
export function encodeWhole(
  pass: Pass,
  { q, k, v }: Prompt,
  out: Tensor,
  built: BuiltMask | undefined,
  layout: AttentionLayout | StridedLayout = "sequence-major",
): void {
  const masking = built === undefined ? { causal: true } : built;
  flashAttnPrefill(pass, { q, k, v, out, ...masking, seqLenK: q.shape[1] as number, layout });
}

/** Encodes the prompt in chunks; each attends the keys up to its own end. */
export function encodeChunks(
  pass: Pass,
  device: Device,
  choice: AttentionChoice,
  chunk: number,
  { q, k, v }: Prompt,
  out: Tensor,
): void {
  const [, tokens = 0, , headDim = 0] = q.shape;
  for (let first = 0; first < tokens; first += chunk) {
    const rows = Math.min(chunk, tokens - first);
    const built = choice.mask === "none" ? undefined : encodeMask(pass, device, choice, headDim, first, rows);
    const masking = built === undefined ? { causal: true } : built;
    flashAttnPrefill(pass, {
      q: tokensOf(q, first, rows),
      k,
      v,
      out: tokensOf(out, first, rows),
      ...masking,
      qOffsetInK: first,
      seqLenK: first + rows,
      kvCapacity: tokens,
      layout: "sequence-major",
    });
  }
}

/** Tokens from `first` on of [1, tokens, heads, headDim]. */
function tokensOf(tensor: Tensor, first: number, rows: number): Tensor {
  const [, ...shape] = tensor.shape;
  using all = tensor.reshape(shape);
  using part = all.slice(first, first + rows);
  return part.reshape([1, ...part.shape]);
}
