import { checkObject, display, refused } from "../../checks.ts";
import type { PassLifetime } from "../../device/lifetime.ts";
import { Pass } from "../../device/pass.ts";
import { Tensor } from "../../device/tensor.ts";
import { Block } from "../../ffi/block.ts";
import { packMAMergeAttentionArgs, structSizes } from "../../ffi/generated/structs.ts";
import { checkStatus } from "../../ffi/status.ts";
import { OptionNames } from "../../optionNames.ts";
import { checkShapeIs } from "../shapes.ts";
import type { DecodeDType } from "./decodeCache.ts";

/** Arguments of {@link mergeAttention}. */
export interface MergeAttentionArgs {
  /** 1 to 8 parts, whose keys differ; a sink counts in one of them. */
  readonly parts: readonly AttentionPart[];
  /** Written: [..., rows, D], as each part's `out`. Must overlap no input. */
  readonly out: Tensor<DecodeDType>;
  /** Written: the logarithm of the sum of exponentials over all parts. */
  readonly lse?: Tensor<"f32"> | undefined;
}

/** A result of attention over a part of the keys. */
export interface AttentionPart {
  /** [..., rows, D]; all parts in one dtype. */
  readonly out: Tensor<DecodeDType>;
  /** The axes of `out` without the last. */
  readonly lse: Tensor<"f32">;
}

const argNames = new OptionNames<MergeAttentionArgs>("mergeAttention", { parts: true, out: true, lse: true });
const partNames = new OptionNames<AttentionPart>("a part", { out: true, lse: true });
const block = new Block(structSizes.MAMergeAttentionArgs);
const mostParts = 8;

/**
 * Joins results of attention over parts of the keys by their logarithms of sums of exponentials: a shared prefix and what
 * follows it, a quantized cache and a tail in full precision. Computed in f32, in the order of the parts.
 *
 * A part whose lse is -infinity has seen no key and is left out; where all are, the row is 0.
 *
 * Errors: `invalid-argument` for no or more than 8 parts, shapes that disagree, an output that overlaps an input;
 * `unsupported` for other dtypes, or parts in several.
 *
 * @example
 * mergeAttention(pass, { parts: [{ out: prefixOut, lse: prefixLse }, { out: tailOut, lse: tailLse }], out });
 */
export function mergeAttention(pass: Pass, args: MergeAttentionArgs): void {
  Pass.encode(pass, args, encode);
}

function encode({ native, handle, device }: PassLifetime, args: MergeAttentionArgs): void {
  argNames.check(checkObject(args, "args"));
  const { parts } = args;
  if (!Array.isArray(parts) || parts.length < 1 || parts.length > mostParts) {
    const got = Array.isArray(parts) ? `${parts.length}` : display(parts);
    throw refused("parts", `expected 1 to ${mostParts} parts, got ${got}`);
  }
  const out = Tensor.use(args.out, device, "out");
  if (out.shape.length < 2) throw refused("out", `expected shape [..., rows, D], got [${out.shape}]`);
  const row_size = out.shape.at(-1) as number;
  const rows = out.shape.slice(0, -1).reduce((product, extent) => product * extent, 1);
  const lse = args.lse === undefined ? undefined : Tensor.use(args.lse, device, "lse");
  if (lse !== undefined) checkShapeIs("lse", lse, out.shape.slice(0, -1));
  const ranges = parts.map((part: AttentionPart, i) => {
    partNames.check(checkObject(part, `parts.${i}`), `parts.${i}.`);
    const ofPart = {
      out: Tensor.use(part.out, device, `parts.${i}.out`),
      lse: Tensor.use(part.lse, device, `parts.${i}.lse`),
    };
    checkShapeIs(`parts.${i}.out`, ofPart.out, out.shape);
    checkShapeIs(`parts.${i}.lse`, ofPart.lse, out.shape.slice(0, -1));
    return ofPart;
  });
  packMAMergeAttentionArgs(block, 0, {
    out0: ranges[0]?.out,
    lse0: ranges[0]?.lse,
    out1: ranges[1]?.out,
    lse1: ranges[1]?.lse,
    out2: ranges[2]?.out,
    lse2: ranges[2]?.lse,
    out3: ranges[3]?.out,
    lse3: ranges[3]?.lse,
    out4: ranges[4]?.out,
    lse4: ranges[4]?.lse,
    out5: ranges[5]?.out,
    lse5: ranges[5]?.lse,
    out6: ranges[6]?.out,
    lse6: ranges[6]?.lse,
    out7: ranges[7]?.out,
    lse7: ranges[7]?.lse,
    out,
    lse,
    params: { rows, row_size },
  });
  checkStatus(native, native.ma_merge_attention(handle, block.address));
}
