import { attentionTiles } from "../../src/ops/attention/attentionTiles.ts";
import { type DType, givenOrDerived, Places, params, strides } from "./places.ts";
import type { Random } from "./random.ts";
import type { Fields } from "./structs.ts";
import type { LivePass } from "./world.ts";

type Strides = [batch: number, head: number, token: number];

export function prefill(pass: LivePass, random: Random): Fields | undefined {
  const dtype = random.pick<DType>(["bf16", "f16"]);
  const D = 64;
  const [qL, gqa_factor, nKvHeads] = [random.between(1, 40), random.between(1, 2), random.between(1, 2)];
  const H = gqa_factor * nKvHeads;
  const mask = random.pick<DType | undefined>([undefined, dtype, "bool"]);
  const classes = mask !== undefined && random.chance(0.5);
  const causal = random.below(2);
  const options = prefillOptions(random, { H, qL, causal, mask: mask !== undefined });
  const { B, kL, capacity, isPacked, packedKeys } = options;
  // Tiles of packed rows depend on the number of sequences.
  const derived = (value: number) => (isPacked ? 0 : givenOrDerived(random, value));
  const { queryTile, keyTile } = attentionTiles(D);
  const [NQ, NK] = [Math.ceil(qL / queryTile), Math.ceil(kL / keyTile)];
  const rows = nKvHeads * options.planes * capacity;
  const isCoded = packedKeys === 0 && random.chance(0.4);
  // In pages both are codes, or neither.
  const isCodedK = isCoded && (options.isPaged || random.chance(0.7));
  const isCodedV = isCoded && (options.isPaged || !isCodedK || random.chance(0.5));
  const [k, v] = [
    isCodedK ? codes(random, "K", rows) : dense(random, "K", rows, [dtype]),
    isCodedV ? codes(random, "V", rows) : dense(random, "V", rows, [dtype]),
  ];
  const tensors = new Places(pass, random).tensors(
    ["q", dtype, H * qL * D],
    ...k.tensors,
    ...v.tensors,
    ["out", dtype, H * qL * D],
    ...options.tensors,
    ...(mask === undefined ? [] : [["mask", mask, qL * kL] as const]),
    ...(classes ? [["tileClasses", "u8", NQ * NK] as const] : []),
  );
  const ofRows: Strides = isPacked ? [0, D, H * D] : [H * qL * D, qL * D, D];
  const ofKeys: Strides = packedKeys === 1 ? [0, D, nKvHeads * D] : [nKvHeads * capacity * D, capacity * D, D];
  return (
    tensors && {
      ...tensors,
      ...k.fields,
      ...v.fields,
      ...params({
        B,
        H,
        D,
        qL,
        kL,
        gqa_factor: derived(gqa_factor),
        scale: 0.125,
        softcapping: 1,
        NQ: derived(NQ),
        NK: derived(NK),
        NQ_aligned: derived(Math.floor(qL / queryTile)),
        NK_aligned: derived(Math.floor(kL / keyTile)),
        qL_rem: derived(qL % queryTile),
        kL_rem: derived(kL % keyTile),
        qL_off: qL < kL && !options.hasLengths && !isPacked ? random.below(kL - qL + 1) : 0,
        ...strides("Q_strides", ...ofRows),
        ...strides("K_strides", ...ofKeys),
        ...strides("V_strides", ...ofKeys),
        ...strides("O_strides", ...ofRows),
      }),
      ...(mask === undefined ? {} : { "maskParams.M_strides[2]": kL }),
      ...options.fields,
      ...(isCoded && { "codes.capacity": capacity, "codes.scale_factor_d512": 1 }),
      nKvHeads,
      causal,
      packedKeys,
    }
  );
}

/**
 * What a prefill may have beside a mask, which one sequence has: offsets, lengths and tables of any bytes. A ring has
 * the slots of its keys, and a page all keys of a sequence.
 */
function prefillOptions(
  random: Random,
  { H, qL, causal, mask }: { readonly H: number; readonly qL: number; readonly causal: number; readonly mask: boolean },
) {
  const [hasLse, hasSinks, hasSlopes] = [random.chance(0.3), random.chance(0.3), random.chance(0.3)];
  const isPacked = !mask && random.chance(0.3);
  const B = isPacked ? random.between(1, 3) : 1;
  const packedKeys = isPacked && random.chance(0.5) ? 1 : 0;
  const ownsCache = !mask && packedKeys === 0;
  const hasLengths = ownsCache && random.chance(0.3);
  const isRing = ownsCache && random.chance(0.2);
  const isPaged = ownsCache && !isRing && random.chance(0.2);
  const kL = packedKeys === 1 ? qL : random.between(1, 40);
  const lseStrides: Strides = isPacked ? [0, 1, H] : [H * qL, qL, 1];
  const fields: Fields = {
    "options.window": causal === 1 && random.chance(0.5) ? random.between(1, 50) : 0,
    "options.softcap": random.chance(0.3) ? 5 : 0,
    "options.is_sliding": isRing ? 1 : 0,
    "options.capacity": isRing || isPaged ? kL : 0,
    "options.page_tokens": isPaged ? kL : 0,
    "options.n_pages": isPaged ? 1 : 0,
    ...(hasLse && strides("options.L_strides", ...lseStrides)),
  };
  return {
    ...{ B, kL, capacity: kL, isPacked, packedKeys, hasLengths, isPaged, fields },
    /** Of K and V: sequences, or pages. */
    planes: isPaged || packedKeys === 1 ? 1 : B,
    tensors: [
      ...(hasLse ? [["lse", "f32", H * qL] as const] : []),
      ...(hasSinks ? [["sinks", "f32", H] as const] : []),
      ...(hasSlopes ? [["alibiSlopes", "f32", H] as const] : []),
      ...(isPacked ? [["seqOffsets", "i32", B + 1] as const] : []),
      ...(hasLengths ? [["seqLens", "i32", B] as const] : []),
      ...(isPaged ? [["blockTable", "i32", B] as const] : []),
    ],
  };
}

/** Tensors of a stream of the cache, and what says how it is stored. */
interface Stored {
  readonly tensors: readonly (readonly [name: string, dtype: DType, elements: number])[];
  readonly fields: Fields;
}

/** K or V of 64 values a row. */
function dense(random: Random, stream: "K" | "V", rows: number, dtypes: readonly DType[]): Stored {
  const dtype = random.maybe(dtypes) ?? "f32";
  return { tensors: [[stream === "K" ? "k" : "v", dtype, rows * 64]], fields: {} };
}

/** K or V as codes of 64 values a row. */
function codes(random: Random, stream: "K" | "V", rows: number): Stored {
  const [bits, packing, width] = random.pick<readonly [number, number, number]>([
    [4, 1, 4],
    [8, 2, 8],
    [5, 2, 8],
    [3, 3, 3],
  ]);
  return {
    tensors: [
      [stream === "K" ? "k" : "v", "u8", rows * 8 * width],
      [`norms${stream}`, "f32", rows],
    ],
    fields: { [`bits${stream}`]: bits, [`packing${stream}`]: packing },
  };
}

/** K or V of 64 values a row, dense or codes. */
function decodeCache(random: Random, stream: "K" | "V", rows: number): Stored {
  return random.chance(0.5) ? dense(random, stream, rows, ["f32", "f16", "bf16"]) : codes(random, stream, rows);
}

/** Whether codes begin at an odd byte: they are read in words of 2 bytes. */
export function hasOddCodes(fields: Fields): boolean {
  return ["k", "v"].some((name) => Number(fields[`${name}.offset`]) % 2 === 1);
}

export function decode(pass: LivePass, random: Random): Fields | undefined {
  const [n_kv_heads, n_q, batches] = [random.between(1, 2), random.between(1, 3), random.between(1, 2)];
  const n_heads = n_kv_heads * random.between(1, 3);
  const page_tokens = random.chance(0.3) ? random.between(1, 4) : 0;
  const n_pages = page_tokens === 0 ? 0 : random.between(1, 4);
  const capacity = page_tokens === 0 ? random.between(1, 40) : page_tokens * random.between(1, 4);
  const is_sliding = page_tokens === 0 ? random.below(2) : 0;
  const rows = n_kv_heads * (page_tokens === 0 ? batches * capacity : n_pages * page_tokens);
  const [k, v] = [decodeCache(random, "K", rows), decodeCache(random, "V", rows)];
  const queries = batches * n_heads * n_q;
  const hasLengths = random.chance(0.5);
  const tree_columns = random.chance(0.3) ? random.between(1, 32) : 0;
  const tensors = new Places(pass, random).tensors(
    ["q", random.pick<DType>(["f32", "f16", "bf16"]), queries * 64],
    ...k.tensors,
    ...v.tensors,
    ["out", random.pick<DType>(["f32", "f16", "bf16"]), queries * 64],
    ...(random.chance(0.5) ? [["lse", "f32", queries] as const] : []),
    // Whatever the bytes are: lengths and pages are the caller's.
    ...(hasLengths ? [["seqLens", "i32", batches] as const] : []),
    ...(page_tokens === 0 ? [] : [["blockTable", "i32", (batches * capacity) / page_tokens] as const]),
    ...(random.chance(0.3) ? [["sinks", "f32", n_heads] as const] : []),
    ...(random.chance(0.3) ? [["alibiSlopes", "f32", n_heads] as const] : []),
    ...(tree_columns === 0 ? [] : [["treeMask", "u32", batches * n_q] as const]),
  );
  const numbers = {
    n_heads,
    n_kv_heads,
    head_dim: 64,
    n_q,
    capacity,
    seq_len: random.below(is_sliding === 1 ? 1000 : capacity + 1),
    is_sliding,
    window: random.below(50),
    page_tokens,
    n_pages,
    tree_columns,
    alibi_distance: random.below(100),
    scale: 0.125,
    softcap: random.below(2),
    scale_factor_d512: 1,
  };
  return tensors && { ...tensors, ...k.fields, ...v.fields, ...params(numbers), batch: batches };
}

export function merge(pass: LivePass, random: Random): Fields | undefined {
  const [rows, row_size, parts] = [random.between(1, 9), random.between(1, 40), random.between(1, 8)];
  const dtype = random.pick<DType>(["f32", "f16", "bf16"]);
  const tensors = new Places(pass, random).tensors(
    ...Array.from({ length: parts }, (_, i) => [
      [`out${i}`, dtype, rows * row_size] as const,
      [`lse${i}`, "f32", rows] as const,
    ]).flat(),
    ["out", random.pick<DType>(["f32", "f16", "bf16"]), rows * row_size],
    ...(random.chance(0.5) ? [["lse", "f32", rows] as const] : []),
  );
  return tensors && { ...tensors, ...params({ rows, row_size, n_parts: givenOrDerived(random, parts) }) };
}
