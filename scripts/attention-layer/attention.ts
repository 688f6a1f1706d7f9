import {
  type AttentionDType,
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
import type { AttentionChoice } from "./choice.ts";

/** The prompt, sequence-major: [1, tokens, heads, headDim] and [1, tokens, kvHeads, headDim]. */
export interface Prompt {
  readonly q: Tensor<AttentionDType>;
  readonly k: Tensor<AttentionDType>;
  readonly v: Tensor<AttentionDType>;
}

/** A mask on the device, and its tiles. */
export interface BuiltMask {
  readonly mask: Tensor<AttentionDType | "bool">;
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
  const mask = device.tensor(kind === "bool" ? "bool" : dtype, [rows, first + rows]);
  if (window === undefined) buildCausalMask(pass, { mask, qOffsetInK: first });
  else buildSlidingWindowMask(pass, { mask, window, qOffsetInK: first });
  return { mask, tileClasses: classifyMaskTiles(pass, { mask, headDim }) };
}

/** Encodes the prompt at once. */
export function encodeWhole(
  pass: Pass,
  { q, k, v }: Prompt,
  out: Tensor<AttentionDType>,
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
  out: Tensor<AttentionDType>,
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
function tokensOf<T extends AttentionDType>(tensor: Tensor<T>, first: number, rows: number): Tensor<T> {
  const [, ...shape] = tensor.shape;
  using all = tensor.reshape(shape);
  using part = all.slice(first, first + rows);
  return part.reshape([1, ...part.shape]);
}
