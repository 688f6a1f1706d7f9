import type { Tensor } from "../../src/index.ts";

/** Element types that the demo runs attention in. */
export const attentionDTypes = ["bf16", "f16"] as const;
export type AttentionDType = (typeof attentionDTypes)[number];

/** `none`: the kernel compares positions itself. */
export const maskKinds = ["none", "additive", "bool"] as const;
export type MaskKind = (typeof maskKinds)[number];

/** What K and V can be kept in: a quantized cache by its bits, or a dtype. */
export const kvFormats = ["2", "3", "4", "5", "6", "8", "f16", "f32"] as const;
export type KvFormat = (typeof kvFormats)[number];

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

/** A tensor for K and one for V. */
export interface KeyValue<T extends "f32" | "f16" | "bf16"> {
  readonly k: Tensor<T>;
  readonly v: Tensor<T>;
}
