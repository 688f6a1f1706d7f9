/// What attention of prompts has beside a mask: which rows a threadgroup has, of which sequence, which
/// keys a row sees and where these lie, and what a score and the end of a row have more.
///
/// Row i of a sequence is at position p = row_offset + i and sees the keys j from `first_key` up to `keys`,
/// causally only j <= p, with a window of these only p - window < j. With a tail it sees the oldest of these in K and
/// V, and the others in the tail, whose rows lie token-major in a ring.
#pragma once

#include <metal_stdlib>
#include <metal_simdgroup>

#include "ShaderTypes.h"
#include "common/positions.h"

using namespace metal;

/// Buffers 15 to 17 are bound; needs has_options.
constant bool has_tail [[function_constant(306)]];

/// Keys `first` to end - 1; none where that is fewer.
struct KeyRange {
  int first;
  int end;
};

/// The first key that a row at `position` finds in the tail.
inline int first_of_tail(AttnTailParams tail, int position) {
  const int left = max(0, position + 1 - tail.tokens) / tail.block * tail.block;
  return min(max(tail.quantized, left), position + 1);
}

/// The sequence of a threadgroup, and its rows.
struct Prompt {
  int batch;
  int first_row;   ///< of the threadgroup; at or past `rows` where it has none
  int rows;        ///< queries of the sequence
  int keys;        ///< positions 0 to keys - 1
  int first_key;   ///< the oldest that the cache has
  int row_offset;  ///< position of row 0; negative where there are more rows than keys
  int packed_row;  ///< where its rows begin among those of all sequences; -1: it has a batch of its own
  AttnTailParams tail;  ///< with has_tail, as the next two
  int tail_row;         ///< elements from a token of the tail to the next
  bool is_in_tail;      ///< whether what is seen is what lies in the tail, or before it

  /// Where its first row lies in q, out or lse.
  long base_of(const constant ma_i64 *strides) const {
    return packed_row >= 0 ? packed_row * strides[2] : batch * strides[0];
  }

  /// Where its keys lie, or those of all pages.
  long base_of_keys(constant AttnOptionParams &options, const constant ma_i64 *strides) const {
    if (options.page_tokens != 0) {
      return 0;
    }
    return (options.present & MA_ATTN_PACKED_KEYS) != 0 ? packed_row * strides[2] : batch * strides[0];
  }

  /// The keys that any of the rows at positions `from` to `to` sees.
  KeyRange seen(constant AttnOptionParams &options, int from, int to) const {
    const int first = options.window == 0 ? first_key : max(first_key, from - options.window + 1);
    const int end = (options.present & MA_ATTN_CAUSAL) != 0 ? min(keys, to + 1) : keys;
    if (!has_tail) {
      return {first, end};
    }
    return is_in_tail ? KeyRange{max(first, first_of_tail(tail, from)), end}
                      : KeyRange{first, min(end, first_of_tail(tail, to))};
  }

  /// Whether all rows at positions `from` to `to` see all keys from `first` to end - 1.
  bool every_row_sees(constant AttnOptionParams &options, int first, int end, int from, int to) const {
    return first >= seen(options, to, to).first && end <= seen(options, from, from).end;
  }
};

/// The largest of the values of this lane and those before it.
inline int running_maximum(int value, uint lane) {
  for (ushort distance = 1; distance < 32; distance *= 2) {
    const int other = simd_shuffle_up(value, distance);
    value = lane >= distance ? max(value, other) : value;
  }
  return value;
}

/// Finds the sequence of tile `slot` of packed rows. Sequence b, from row r on, has the tiles from r / BQ + b on:
/// as many as it needs, or one more. Offsets in device memory are the caller's: whatever they are, they are taken
/// for ascending ones from 0 to `total`.
template <short BQ>
inline Prompt packed_prompt(const device int *seq_offsets, int sequences, int total, int slot, uint lane) {
  int found = -1;
  int first = 0;
  int carried = 0;
  for (int base = 0; base < sequences; base += 32) {
    const int sequence = base + int(lane);
    const int given = clamp(seq_offsets[min(sequence, sequences)], 0, total);
    const int start = max(carried, running_maximum(given, lane));
    const bool begins = sequence < sequences && start / BQ + sequence <= slot;
    const int count = simd_sum(begins ? 1 : 0);
    if (count == 0) {
      break;
    }
    found = base + count - 1;
    first = simd_shuffle(start, ushort(count - 1));
    carried = simd_shuffle(start, 31);
  }
  Prompt prompt;
  prompt.batch = max(found, 0);
  prompt.packed_row = first;
  prompt.rows = found < 0 ? 0 : max(first, clamp(seq_offsets[found + 1], 0, total)) - first;
  prompt.first_row = (slot - (first / BQ + prompt.batch)) * BQ;
  return prompt;
}

/// The sequence and the rows of threadgroup `tile` of `batch`; lengths in device memory are the caller's, so that
/// none leads out of the cache.
template <short BQ>
inline Prompt prompt_of(constant AttnParams &params, constant AttnOptionParams &options, const device int *seq_lens,
                        const device int *seq_offsets, int batch, int tile, uint lane) {
  Prompt prompt;
  const bool is_packed = (options.present & MA_ATTN_SEQ_OFFSETS) != 0;
  const bool has_lengths = (options.present & MA_ATTN_SEQ_LENS) != 0;
  if (is_packed) {
    prompt = packed_prompt<BQ>(seq_offsets, params.B, params.qL, tile, lane);
  } else {
    prompt.batch = batch;
    prompt.packed_row = -1;
    prompt.rows = params.qL;
    prompt.first_row = tile * BQ;
  }
  const bool is_ring = options.is_sliding != 0;
  if (has_lengths) {
    prompt.keys = clamp(seq_lens[prompt.batch], 0, is_ring ? kMostPositions : options.capacity);
  } else {
    prompt.keys = (options.present & MA_ATTN_PACKED_KEYS) != 0 ? prompt.rows : params.kL;
  }
  prompt.first_key = is_ring ? max(0, prompt.keys - options.capacity) : 0;
  prompt.is_in_tail = false;
  prompt.row_offset = has_lengths || is_packed ? prompt.keys - prompt.rows : params.qL_off;
  return prompt;
}

/// Elements from the first row of a head to the row of a position.
inline long offset_of_key(constant AttnOptionParams &options, const constant ma_i64 *strides,
                          const device int *block_table, Prompt prompt, int key) {
  if (has_tail && prompt.is_in_tail) {
    return key % prompt.tail.slots * long(prompt.tail_row);
  }
  if (options.page_tokens != 0) {
    const int page_of_sequence = key / options.page_tokens;
    const int given = block_table[prompt.batch * (options.capacity / options.page_tokens) + page_of_sequence];
    const int page = clamp(given, 0, options.n_pages - 1);
    return page * strides[0] + (key - page_of_sequence * options.page_tokens) * strides[2];
  }
  return (options.is_sliding != 0 ? key % options.capacity : key) * strides[2];
}

/// Whether `count` keys from `first_key` on lie one after another, and all are seen by some row.
inline bool is_run_of_keys(constant AttnOptionParams &options, Prompt prompt, int first_key, int count, KeyRange seen) {
  int place = first_key;
  int slots = first_key + count;  // of a line, which goes on
  if (has_tail && prompt.is_in_tail) {
    slots = prompt.tail.slots;
    place = first_key % slots;
  } else if (options.page_tokens != 0) {
    slots = options.page_tokens;
    place = first_key % slots;
  } else if (options.is_sliding != 0) {
    slots = options.capacity;
    place = first_key % slots;
  }
  return first_key >= seen.first && first_key + count <= seen.end && place + count <= slots;
}

/// load_tile of the keys from `first_key` on, wherever they lie. Those outside of `seen` become 0 and are not read:
/// a page that no row sees may hold anything.
template <typename T, short BK, short D, short LD, short THREADS>
inline void load_keys(threadgroup T *tile, const device T *source, const constant ma_i64 *strides,
                      constant AttnOptionParams &options, const device int *block_table, Prompt prompt, int first_key,
                      KeyRange seen, uint thread_index) {
  constexpr uint kRowsAtOnce = THREADS / 8;
  for (uint r = 0; r < BK; r += kRowsAtOnce) {
    const uint row = thread_index / 8 + r;
    if (BK % kRowsAtOnce != 0 && row >= BK) {
      break;
    }
    const int key = first_key + int(row);
    const bool is_seen = key >= seen.first && key < seen.end;
    const device T *from_row = source + (is_seen ? offset_of_key(options, strides, block_table, prompt, key) : 0);
    for (uint c = 0; c < D; c += 64) {
      const uint column = thread_index % 8 * 8 + c;
      if (D % 64 != 0 && column >= D) {
        break;
      }
      threadgroup packed_ushort4 *to = reinterpret_cast<threadgroup packed_ushort4 *>(tile + row * LD + column);
      if (is_seen) {
        const device packed_ushort4 *from = reinterpret_cast<const device packed_ushort4 *>(from_row + column);
        to[0] = from[0];
        to[1] = from[1];
      } else {
        to[0] = ushort4(0);
        to[1] = ushort4(0);
      }
    }
  }
}

/// What the scores of a head have more.
struct ScoreOptions {
  float softcap;  ///< 0: none
  float slope;    ///< of ALiBi, in powers of two a key
};

inline ScoreOptions score_options_of(constant AttnOptionParams &options, const device float *alibi_slopes, int head) {
  const bool has_slopes = (options.present & MA_ATTN_ALIBI) != 0;
  return {options.softcap, has_slopes ? alibi_slopes[head] * M_LOG2E_F : 0.0f};
}

/// The sum of a row with its sink, all in powers of two.
struct RowEnd {
  float maximum;
  float sum;
  float factor;  ///< of what was computed without the sink

  float logarithm() const { return sum == 0.0f ? -INFINITY : M_LN2_F * (maximum + precise::log2(sum)); }
};

/// The sink counts once, as one more key without a value.
inline RowEnd end_row(constant AttnOptionParams &options, const device float *sinks, int head, float maximum,
                      float sum) {
  if ((options.present & MA_ATTN_SINKS) == 0) {
    return {maximum, sum, 1.0f};
  }
  const float sink = sinks[head] * M_LOG2E_F;
  const float largest = max(maximum, sink);
  const float factor = precise::exp2(maximum - largest);
  return {largest, sum * factor + precise::exp2(sink - largest), factor};
}
