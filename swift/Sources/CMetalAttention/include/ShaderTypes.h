/// Parameter structs that cross from the host to a kernel.
///
/// One definition for C, Swift (as part of this C module) and the Metal
/// Shading Language (the kernel registry replaces `#include "ShaderTypes.h"`
/// by this text before it compiles a shader). TypeScript packs the same bytes;
/// the layout tests compare both.
///
/// Lengths and strides count elements, not bytes, unless a name ends in
/// `Bytes`. "Token" is a row of a cache; "slot" is the place of a token in it.
/// A field marked "derived" follows from others: give 0 and the library fills
/// it in before the kernel sees it; another value must be the right one.
#pragma once

#ifdef __METAL_VERSION__
typedef uint ma_u32;
typedef int ma_i32;
typedef long ma_i64;
typedef float ma_f32;
#else
#include <stdint.h>
typedef uint32_t ma_u32;
typedef int32_t ma_i32;
typedef int64_t ma_i64;
typedef float ma_f32;
#endif

/// `copy_*`: bytes in units of 8, 4, 2 or 1. 16 bytes.
typedef struct CopyParams {
  ma_i64 units;  ///< all of them
  ma_u32 row;    ///< units of a row of the grid
  ma_u32 _pad;   ///< 0
} CopyParams;

/// `kv_cache_copy*`: rows [nNew, rowSize] to cache [cacheCap, rowSize]. 20 bytes.
typedef struct KvCacheCopyParams {
  ma_u32 writePos;   ///< first token written, before wrapping
  ma_u32 rowSize;    ///< elements per token
  ma_u32 nNew;       ///< tokens to copy
  ma_u32 cacheCap;   ///< slots in the cache
  ma_u32 isSliding;  ///< 1: slot = position mod cacheCap; 0: slot = position
} KvCacheCopyParams;

/// `kv_cache_copy_batch*`: one token [nHeads * headDim] to
/// head-major [nHeads, capacity, headDim]. 16 bytes.
typedef struct KvCacheCopyBatchParams {
  ma_u32 nHeads;
  ma_u32 headDim;
  ma_u32 capacity;  ///< slots per head
  ma_u32 seqPos;    ///< position written; the kernel gets its slot
} KvCacheCopyBatchParams;

/// `kv_cache_copy_seq*`: token-major [B, nSrcTokens, nHeads, headDim] to
/// head-major [B, nHeads, capacity, headDim]; slot = position mod capacity. 28 bytes.
typedef struct KvCacheCopySeqParams {
  ma_u32 nHeads;
  ma_u32 headDim;
  ma_u32 capacity;
  ma_u32 seqPosStart;   ///< position of the first token written, before wrapping
  ma_u32 nTokens;       ///< tokens to copy
  ma_u32 srcTokOffset;  ///< first token read
  ma_u32 nSrcTokens;    ///< tokens of a batch in the source
} KvCacheCopySeqParams;

/// `kv_cache_copy_seq_bf16_to_bf16_head_major`: head-major
/// [nHeads, srcSeqLen, headDim] to head-major [nHeads, capacity, headDim];
/// slot = position mod capacity. 28 bytes.
typedef struct KvCacheCopyHeadMajorParams {
  ma_u32 nHeads;
  ma_u32 headDim;
  ma_u32 capacity;
  ma_u32 seqPosStart;
  ma_u32 nTokens;
  ma_u32 srcTokOffset;
  ma_u32 srcSeqLen;  ///< tokens per head in the source
} KvCacheCopyHeadMajorParams;

/// `hadamard_quantize_kv`, `hadamard_quantize_kv_fast_d*`: one token [num_kv_heads, head_dim], f32, f16 or bf16,
/// into a 4-bit cache. 28 bytes, as in mlx-native 0.6.
typedef struct HadamardQuantizeParams {
  ma_u32 head_dim;
  ma_u32 num_kv_heads;
  ma_u32 write_pos;          ///< position written, before wrapping
  ma_u32 cache_capacity;     ///< slots per head
  ma_u32 is_sliding;         ///< 1: slot = position mod cache_capacity; 0: slot = position
  ma_f32 scale_factor_d512;  ///< factor of the coordinates for head sizes above 256; usually 1
  ma_u32 rms_probe_enabled;  ///< derived: with rmsScratch 1 for all coordinates, 16 for 16 of each norm
} HadamardQuantizeParams;

/// `hadamard_quantize_kv_hb*` and `_dense*`: the same with 2 to 8 bits a value.
/// 28 bytes, as in mlx-native 0.6.
typedef struct HadamardQuantizeHbParams {
  ma_u32 head_dim;
  ma_u32 num_kv_heads;
  ma_u32 write_pos;
  ma_u32 cache_capacity;
  ma_u32 is_sliding;
  ma_f32 scale_factor_d512;
  ma_u32 codebook_bits;  ///< hb: 5, 6 or 8; dense: 2, 3, 5 or 6
} HadamardQuantizeHbParams;

/// `hadamard_quantize_kv_seq*`: n_tokens consecutive tokens of
/// [B, n_src_tokens, num_kv_heads, head_dim] f32, f16 or bf16 into a cache, without positions at most
/// cache_capacity. 76 bytes.
/// A token at a position below 0 or beyond the last slot, or on a page that there is not, is left out.
typedef struct HadamardQuantizeSeqParams {
  ma_u32 head_dim;
  ma_u32 num_kv_heads;
  ma_u32 write_pos_start;  ///< position of the first token written, before wrapping
  ma_u32 cache_capacity;
  ma_u32 is_sliding;
  ma_f32 scale_factor_d512;
  ma_u32 codebook_bits;
  ma_u32 n_tokens;        ///< tokens to write
  ma_u32 src_tok_offset;  ///< first token read
  ma_u32 n_src_tokens;    ///< tokens of a batch in the source
  ma_u32 positions_per_batch;  ///< 1: positions are [B, n_tokens]; 0: [n_tokens], or consecutive without them
  ma_u32 page_tokens;          ///< slots of a page; 0: the cache is no pages
  ma_u32 n_pages;              ///< of the pool; cache_capacity is page_tokens times the pages of a sequence
  ma_u32 has_positions;        ///< derived
  ma_u32 rotaryDim;            ///< coordinates of K that turn, the first ones: even, at most head_dim; 0: none
  ma_i32 ropeOffset;           ///< what a position is ahead by for its angle; usually 0
  ma_f32 attentionScale;       ///< factor of sine and cosine, usually 1; read where K turns
  ma_u32 heads_of_thread;      ///< derived: heads of a token that share a thread's angles; 1 where K does not turn
  ma_u32 codebook_bits_v;      ///< derived: bits of V's codes, codebook_bits being K's; without V the same
} HadamardQuantizeSeqParams;

/// `hadamard_dequantize_kv*`: n_tokens consecutive positions of a cache to
/// head-major [num_kv_heads, n_tokens, head_dim]. 36 bytes.
typedef struct HadamardDequantizeParams {
  ma_u32 head_dim;
  ma_u32 num_kv_heads;
  ma_u32 read_pos_start;  ///< position of the first token read, before wrapping
  ma_u32 cache_capacity;
  ma_u32 is_sliding;
  ma_f32 scale_factor_d512;  ///< that of the encoding; its reciprocal is applied
  ma_u32 codebook_bits;
  ma_u32 n_tokens;  ///< tokens to read
  ma_u32 out_dtype;  ///< derived: that of the output, 1: f32, 2: f16, 3: bf16, as MA_DTYPE_*
} HadamardDequantizeParams;

/// `apply_rope_*`: head vectors of nTokens tokens, head-major [batch, heads, nTokens, headDim] or
/// sequence-major [batch, nTokens, heads, headDim]. 40 bytes.
typedef struct RopeParams {
  ma_u32 batch;
  ma_u32 nHeads;             ///< of q
  ma_u32 nKvHeads;           ///< of k; 0 without
  ma_u32 nTokens;
  ma_u32 headDim;            ///< even
  ma_u32 rotaryDim;          ///< coordinates that turn, the first ones: even, at most headDim
  ma_u32 sequenceMajor;      ///< 1: [batch, nTokens, heads, headDim]; 0: [batch, heads, nTokens, headDim]
  ma_u32 positionsPerBatch;  ///< 1: positions [batch, nTokens]; 0: [nTokens], or none
  ma_i32 start;              ///< position of the first token; read without positions
  ma_f32 attentionScale;     ///< factor of sine and cosine; usually 1
} RopeParams;

/// `kv_cache_append_*`: token-major [batch, nTokens, nHeads, headDim] to head-major
/// [batch, nHeads, capacity, headDim] or pages [nPages, nHeads, pageTokens, headDim]. 56 bytes.
typedef struct KvCacheAppendParams {
  ma_u32 batch;
  ma_u32 nTokens;            ///< tokens of a batch
  ma_u32 nHeads;
  ma_u32 headDim;            ///< even
  ma_u32 capacity;           ///< slots per head; with pages those of all pages of a sequence
  ma_u32 isSliding;          ///< 1: slot = position mod capacity; 0: slot = position
  ma_u32 pageTokens;         ///< slots of a page; 0: no pages
  ma_u32 nPages;             ///< pages of the pool
  ma_u32 start;              ///< position of the first token; 0 with positions
  ma_u32 positionsPerBatch;  ///< 1: positions [batch, nTokens]; 0: [nTokens], or none
  ma_u32 rotaryDim;          ///< coordinates of K that turn, the first ones: even, at most headDim; 0: none
  ma_i32 ropeOffset;         ///< what a position is ahead by for its angle; usually 0
  ma_f32 attentionScale;     ///< factor of sine and cosine, usually 1; read where K turns
  ma_u32 _pad;               ///< 0
} KvCacheAppendParams;

/// `flash_attn_prefill_*`, buffer 4. 160 bytes, as in mlx-native 0.6.
/// Strides are (batch, head, token) in elements; the innermost stride is 1.
typedef struct AttnParams {
  ma_i32 B;             ///< batch size
  ma_i32 H;             ///< query heads
  ma_i32 D;             ///< head size
  ma_i32 qL;            ///< query length
  ma_i32 kL;            ///< key and value length
  ma_i32 gqa_factor;    ///< derived: query heads per key/value head, H / nKvHeads
  ma_f32 scale;         ///< usually 1/sqrt(D); the kernel folds log2(e) in
  ma_f32 softcapping;   ///< 1: no soft cap (the kernels here do not read it; AttnOptionParams has one)
  ma_i32 NQ;            ///< derived: ceil(qL / BQ)
  ma_i32 NK;            ///< derived: ceil(kL / BK)
  ma_i32 NQ_aligned;    ///< derived: floor(qL / BQ)
  ma_i32 NK_aligned;    ///< derived: floor(kL / BK)
  ma_i32 qL_rem;        ///< derived: qL mod BQ
  ma_i32 kL_rem;        ///< derived: kL mod BK
  ma_i32 qL_off;        ///< position of query row 0 among the keys
  ma_i32 _pad;          ///< 0
  ma_i64 Q_strides[3];
  ma_i64 K_strides[3];
  ma_i64 V_strides[3];
  ma_i64 O_strides[3];
} AttnParams;

/// `flash_attn_prefill_*`, buffer 5: mask strides (batch, head, query row). 24 bytes.
typedef struct AttnMaskParams {
  ma_i64 M_strides[3];
} AttnMaskParams;

/// What `AttnOptionParams.present` has a bit for.
enum {
  MA_ATTN_CAUSAL = 1,
  MA_ATTN_SINKS = 2,
  MA_ATTN_ALIBI = 4,
  MA_ATTN_LSE = 8,
  MA_ATTN_SEQ_LENS = 16,
  MA_ATTN_SEQ_OFFSETS = 32,
  MA_ATTN_PACKED_KEYS = 64,  ///< K and V lie as q does, by seqOffsets
};

/// `flash_attn_prefill_*`, buffer 8: what attention has beside a mask. 56 bytes.
typedef struct AttnOptionParams {
  ma_i32 window;       ///< keys that a row sees, its own position the last; 0: all before it
  ma_f32 softcap;      ///< scores become softcap * tanh(score / softcap); 0: they do not
  ma_u32 present;      ///< derived: MA_ATTN_*
  ma_i32 capacity;     ///< slots per head; with pages those of all pages of a sequence; 0: kL
  ma_i32 is_sliding;   ///< 1: a ring, which holds the last `capacity` of kL positions
  ma_i32 page_tokens;  ///< slots of a page; 0: no pages
  ma_i32 n_pages;      ///< pages of the pool
  ma_i32 _pad;         ///< 0
  ma_i64 L_strides[3];  ///< of lse (batch, head, token)
} AttnOptionParams;

/// `flash_attn_prefill_*`, buffer 15: the newest keys apart from the others. 16 bytes.
/// A row at position p sees the keys from f(p) on in the tail and those before in K and V, with
///   f(p) = max(quantized, floor(max(0, p + 1 - tokens) / block) * block), p + 1 at most.
typedef struct AttnTailParams {
  ma_i32 slots;      ///< of the tail: position p lies in slot p mod slots
  ma_i32 tokens;     ///< keys that a row finds in the tail, and less than `block` more
  ma_i32 block;      ///< keys that leave the tail together
  ma_i32 quantized;  ///< keys that no row finds in the tail
} AttnTailParams;

/// `flash_attn_prefill_decode_*`: codes of a cache to rows of scratch [B, n_kv_heads, n_slots, D]. 48 bytes.
typedef struct AttnCodeParams {
  ma_u32 capacity;           ///< slots per head of the codes; of a page where there are pages
  ma_f32 scale_factor_d512;  ///< that of the encoding, for head sizes above 256
  ma_u32 n_kv_heads;    ///< derived: nKvHeads
  ma_u32 n_slots;       ///< derived: positions that scratch has room for; of a ring its slots
  ma_u32 is_sliding;    ///< derived: that of the options
  ma_u32 has_pages;     ///< derived: 1 with pages
  ma_u32 max_pages;     ///< derived: pages of a sequence
  ma_u32 n_pages;       ///< derived: pages of the pool
  ma_u32 seq_len;       ///< derived: keys of each sequence; before a tail those that any row sees as codes
  ma_u32 has_lengths;   ///< derived: seqLens in place of seq_len
  ma_u32 keys_seen;     ///< derived: of these the last that any row sees; 0: all
  ma_u32 out_dtype;     ///< derived: MA_DTYPE_* of q
} AttnCodeParams;

/// `build_causal_mask_*` and `build_sliding_window_mask_*`: a mask [qL, kL]. 16 bytes.
typedef struct BuildMaskParams {
  ma_i32 qL;      ///< query rows
  ma_i32 kL;      ///< keys
  ma_i32 qL_off;  ///< position of query row 0 among the keys
  ma_i32 window;  ///< keys that a row attends, the newest first; 0: all up to its own position
} BuildMaskParams;

/// `classify_mask_tiles_*`: a mask as attention takes it, and its tiles. 48 bytes.
typedef struct ClassifyMaskParams {
  ma_i32 B;              ///< batch size
  ma_i32 H;              ///< query heads
  ma_i32 qL;             ///< query rows
  ma_i32 kL;             ///< keys
  ma_i32 NQ;             ///< derived: ceil(qL / BQ)
  ma_i32 NK;             ///< derived: ceil(kL / BK)
  ma_i64 M_strides[3];   ///< (batch, head, query row)
} ClassifyMaskParams;

/// What `FlashAttnDecodeParams.present` has a bit for.
enum {
  MA_DECODE_SEQ_LENS = 1,
  MA_DECODE_SINKS = 2,
  MA_DECODE_ALIBI = 4,
  MA_DECODE_TREE_MASK = 8,
  MA_DECODE_LSE = 16,
  MA_DECODE_CODED_V = 32,  ///< V is quantized
};

/// `flash_attn_vec*`: one to 16 query rows of each sequence over its cache. 80 bytes.
typedef struct FlashAttnDecodeParams {
  ma_u32 n_heads;
  ma_u32 n_kv_heads;
  ma_u32 head_dim;  ///< of q and K
  ma_u32 n_q;       ///< query rows of a sequence, 1 to 16
  ma_u32 capacity;  ///< slots per head; with pages those of all pages of a sequence
  ma_u32 seq_len;   ///< keys of each sequence, without seqLens: positions 0 to seq_len - 1
  ma_u32 is_sliding;   ///< 1: a ring, which holds the last `capacity` positions
  ma_u32 window;       ///< keys that a row sees, its own position the last; 0: all before it
  ma_u32 page_tokens;  ///< slots of a page; 0: no pages
  ma_u32 n_pages;      ///< pages of the pool
  ma_u32 tree_columns;  ///< keys at the end that treeMask tells, up to 32
  ma_u32 alibi_distance;  ///< positions from the last key to the last query row, for ALiBi; 0: the row's own key
  ma_f32 scale;         ///< of the scores, usually 1/sqrt(head_dim)
  ma_f32 softcap;       ///< scores become softcap * tanh(score / softcap); 0: they do not
  ma_f32 scale_factor_d512;  ///< that of the encoding, for codes and head sizes above 256
  ma_u32 q_dtype;       ///< derived: MA_DTYPE_* of q
  ma_u32 out_dtype;     ///< derived: MA_DTYPE_* of out
  ma_u32 present;       ///< derived: MA_DECODE_*
  ma_u32 n_blocks;      ///< derived: states that the grid has for a sequence, of 256 or 1,024 keys each
  ma_u32 n_tiles;       ///< derived: tiles of the queries of a key/value head
} FlashAttnDecodeParams;

/// `merge_attention`: up to 8 results of attention over parts of the keys. 24 bytes.
typedef struct MergeAttentionParams {
  ma_u32 rows;        ///< queries of all heads and batches
  ma_u32 row_size;    ///< values of a row
  ma_u32 n_parts;     ///< derived: the parts that are given
  ma_u32 part_dtype;  ///< derived: MA_DTYPE_* of the parts
  ma_u32 out_dtype;   ///< derived: MA_DTYPE_* of out
  ma_u32 has_lse;     ///< derived: whether lse is given
} MergeAttentionParams;
