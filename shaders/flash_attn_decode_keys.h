/// Which keys a query row sees, and where they lie.
#pragma once

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "common/positions.h"

using namespace metal;

/// Keys of a block, at a multiple of it, and of a leaf, whose scores a SIMD group holds at once.
constant constexpr int kBlockKeys = 256;
constant constexpr int kLeafKeys = 32;

/// A sequence's keys: positions `first` to length - 1, as far as its cache has them.
struct Sequence {
  int length;
  int first;

  /// Lengths in device memory are the caller's: whatever they are, no key
  /// outside of the cache results.
  Sequence(constant FlashAttnDecodeParams &params, const device int *seq_lens, uint batch) {
    const int capacity = int(params.capacity);
    const bool is_ring = params.is_sliding != 0;
    const int given = (params.present & MA_DECODE_SEQ_LENS) != 0 ? seq_lens[batch] : int(params.seq_len);
    length = clamp(given, 0, is_ring ? kMostPositions : capacity);
    first = is_ring ? max(0, length - capacity) : 0;
  }

  /// The position of the first query row; negative where there are more rows than keys.
  int position_of_first_row(constant FlashAttnDecodeParams &params) const { return length - int(params.n_q); }

  /// The first key that any of the rows sees.
  int first_seen(constant FlashAttnDecodeParams &params) const {
    return params.window == 0 ? first : max(first, position_of_first_row(params) - int(params.window) + 1);
  }

  /// The block of the first key that any of the rows sees.
  int first_block(constant FlashAttnDecodeParams &params) const { return first_seen(params) / kBlockKeys; }
};

/// The keys that a query row sees.
struct Visible {
  /// Positions from `low` to `high`; of those from `tree` on the ones with a bit in `tree_bits`.
  int low;
  int high;
  int tree;
  uint tree_bits;

  Visible(constant FlashAttnDecodeParams &params, Sequence sequence, const device uint *tree_mask, uint batch,
          uint row) {
    const int position = sequence.position_of_first_row(params) + int(row);
    const bool has_tree = (params.present & MA_DECODE_TREE_MASK) != 0;
    low = params.window == 0 ? sequence.first : max(sequence.first, position - int(params.window) + 1);
    high = has_tree ? sequence.length - 1 : position;
    tree = has_tree ? sequence.length - int(params.tree_columns) : sequence.length;
    tree_bits = has_tree ? tree_mask[batch * params.n_q + row] : 0;
  }

  bool sees(int key) const {
    return key >= low && key <= high && (key < tree || (tree_bits >> uint(key - tree) & 1) != 0);
  }

  bool sees_all(int from, int to) const { return from >= low && to <= high && to < tree; }
};

/// Where the keys of a head lie: rows of the cache, among those of all heads and batches, or of all pages.
struct CacheRows {
  const device int *pages;  ///< of the sequence
  uint page_tokens;         ///< 0: no pages
  uint n_pages;
  uint capacity;
  bool is_ring;
  uint kv_head;
  uint n_kv_heads;
  uint first;  ///< of the head, without pages

  CacheRows(constant FlashAttnDecodeParams &params, const device int *block_table, uint batch, uint head)
      : pages(block_table),
        page_tokens(params.page_tokens),
        n_pages(params.n_pages),
        capacity(params.capacity),
        is_ring(params.is_sliding != 0),
        kv_head(head),
        n_kv_heads(params.n_kv_heads),
        first((batch * params.n_kv_heads + head) * params.capacity) {
    if (page_tokens != 0) {
      pages += batch * (capacity / page_tokens);
    }
  }

  uint at(uint position) const {
    if (page_tokens == 0) {
      return first + (is_ring ? position % capacity : position);
    }
    const uint page_of_sequence = position / page_tokens;
    const uint page = uint(clamp(pages[page_of_sequence], 0, int(n_pages) - 1));
    return (page * n_kv_heads + kv_head) * page_tokens + (position - page_of_sequence * page_tokens);
  }
};
