import type { symbols } from "./generated/symbols.ts";

/** The caller's name of a C argument; a pair where it differs when two streams are given. */
type Name = string | readonly [alone: string, withV: string];

const copies = {
  srcK: ["src", "k.src"],
  cacheK: ["cache", "k.cache"],
  srcV: "v.src",
  cacheV: "v.cache",
} as const;

const quantized = {
  srcK: ["src", "k.src"],
  packedK: ["packed", "k.packed"],
  normsK: ["norms", "k.norms"],
  outK: ["out", "k.out"],
  srcV: "v.src",
  packedV: "v.packed",
  normsV: "v.norms",
  outV: "v.out",
  head_dim: "headDim",
  num_kv_heads: "nKvHeads",
  cache_capacity: "capacity",
  codebook_bits: "bits",
  packingV: "v.packing",
  bitsV: "v.bits",
  is_sliding: "isSliding",
  scale_factor_d512: "scaleFactorD512",
  write_pos: "writePos",
  write_pos_start: "writePosStart",
  read_pos_start: "readPosStart",
  n_tokens: "nTokens",
  src_tok_offset: "srcTokOffset",
  n_src_tokens: "nSrcTokens",
  positions_per_batch: "positions",
  page_tokens: "blockTable",
  n_pages: ["packed", "k.packed"],
} as const;

const turned = {
  pairing: "rope.pairing",
  invFreq: "rope.invFreq",
  rotaryDim: "rope.rotaryDim",
  attentionScale: "rope.attentionScale",
  ropeOffset: "rope.offset",
} as const;

const codes = {
  normsK: "k.norms",
  normsV: "v.norms",
  packingK: "k.packing",
  packingV: "v.packing",
  bitsK: "k.bits",
  bitsV: "v.bits",
  scale_factor_d512: "scaleFactorD512",
} as const;

/** `out0` and `lse0` to `out7` and `lse7`. */
const parts = Object.fromEntries(
  Array.from({ length: 8 }, (_, i) =>
    ["out", "lse"].map((name) => [`${name}${i}`, `parts.${i}.${name}`] as const),
  ).flat(),
);

/** What the operations call the arguments of the C functions, where it is not the C name. */
const names: { readonly [Function in keyof typeof symbols]?: Readonly<Record<string, Name>> } = {
  ma_device_open_named: { which: "options.device" },
  ma_kernels_provide: { archive: "options.kernels" },
  ma_buffer_create: { length: "shape" },
  ma_buffer_adopt: { shared: "description" },
  ma_record_scalar: { least: "min", most: "max" },
  ma_encode_kernel: {
    threadsPerThreadgroup: "threads",
    // The lists of a dispatch's arguments, by the kind of a binding.
    buffer: "buffers",
    bytes: "bytes",
    threadgroup: "threadgroupMemory",
    use: "uses",
  },
  ma_kv_cache_copy_batch: copies,
  ma_kv_cache_copy_seq: copies,
  ma_kv_cache_append: {
    ...copies,
    positionsPerBatch: "positions",
    pageTokens: "blockTable",
    nPages: ["cache", "k.cache"],
    ...turned,
  },
  ma_hadamard_quantize_kv: quantized,
  ma_hadamard_quantize_kv_seq: { ...quantized, ...turned },
  ma_hadamard_dequantize_kv: quantized,
  ma_flash_attn_prefill: {
    Q_strides: "layout.q",
    K_strides: "layout.k",
    V_strides: "layout.v",
    O_strides: "layout.out",
    M_strides: "layout.mask",
    qL_off: "qOffsetInK",
    kL: "seqLenK",
    L_strides: "lse",
    is_sliding: "isSliding",
    capacity: "k",
    page_tokens: "blockTable",
    n_pages: "k",
    packedKeys: "k",
    tailK: "tail.k",
    tailV: "tail.v",
    "tail.slots": "tail.k",
    ...codes,
  },
  ma_flash_attn_decode: {
    n_heads: "q",
    n_kv_heads: "k",
    n_q: "q",
    head_dim: "q",
    batch: "q",
    capacity: "k",
    seq_len: "seqLen",
    is_sliding: "isSliding",
    page_tokens: "blockTable",
    n_pages: "k",
    tree_columns: "treeColumns",
    alibi_distance: "alibiDistance",
    ...codes,
  },
  ma_merge_attention: {
    rows: "out",
    row_size: "out",
    ...parts,
  },
  ma_apply_rope: {
    q: ["x", "q.x"],
    outQ: ["out", "q.out"],
    k: "k.x",
    outK: "k.out",
    sequenceMajor: "layout",
  },
  ma_build_mask: { qL_off: "qOffsetInK" },
};

/** The lines that `ma_name_arguments` takes. */
export const argumentNames = Object.entries(names)
  .flatMap(([name, list]) =>
    Object.entries(list).map(([argument, given]) => `${name} ${argument} ${[given].flat().join(" ")}`),
  )
  .join("\n");
