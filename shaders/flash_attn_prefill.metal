/// Tiled attention with online softmax (FlashAttention, Dao 2022) for prefill:
///   O[b,h,i,:] = sum_j P[i,j] V[b,h/gqa_factor,j,:],  P = softmax(scale * Q K^T + mask).
///
/// Shapes: Q, O [B, H, qL, D]; K, V [B, H/gqa_factor, kL, D], any strides with
/// an innermost 1. T is bfloat or half; scores, probabilities, sums are float.
///
/// Grid: threadgroups (H, B, ceil(qL/BQ)) of (32, WM, WN) threads. A threadgroup
/// owns BQ query rows of one head, the last rows first: in a causal prompt these see
/// most keys, and a GPU that began with them at its end would be left with few
/// threadgroups at work. A SIMD group owns 16 rows, BQ = 16 * WM, and D / WN columns. It walks the keys in tiles of BK:
///   S [16, BK]  = Q [16, D] * K^T [D, BK]  8x8 matrices, two float accumulators per 8 keys
///   P [16, BK]  = exp2(S * scale * log2(e) - m), m the running row maximum
///   O [16, D]  += P [16, BK] * V [BK, D]   8x8 matrices, D/4 float accumulators
/// and divides O by the row sums of P at the end. Each matrix of K and V serves two
/// blocks of 8 rows. Where WN > 1 each SIMD group has its columns of Q, K, V and O:
/// its S is a part of the sum, and all parts are added up in order through
/// threadgroup memory, so that each SIMD group has P.
///
///   D     BQ  BK  WM  WN  threadgroup bytes           accumulator floats a lane    registers (nvptx64, sm_90)
///   64    64  32  4   1   18,432 = Q + K + V          32 (O) + 16 (S)              127
///   80    64  32  4   1   22,528                      40 + 16                      128, 12 bytes spilled
///   96    64  32  4   1   26,624                      48 + 16                      128, 12
///   112   64  32  4   1   30,720                      56 + 16                      128, 12
///   128   64  16  4   1   26,112                      64 + 8                       128
///   192   32  16  2   2   30,720 = Q + K + V + S      48 + 8                       126
///   256   32  16  2   2   32,768, but 3/8 of Q        64 + 8, and 3/8 of Q         128
///   512   16  16  1   4   31,744, but half of Q       64 + 8, and half of Q        128
/// Registers are those of a causal one over whole aligned tiles. At D = 512 up to 140 bytes are spilled where tiles are
/// not, up to 200 with options. Rows and keys of a tile are about as many as 32 KiB have room for: a SIMD group reads
/// its rows of Q anew for each tile, and all K and V of it, which is what bounds a GPU up to D = 128. K and V have a
/// tile each, beside as much of Q as fits; the rest of Q is in registers. At D = 512 no two SIMD groups share a column,
/// each waits for its own tile alone, and halves of K and of V take turns. Rows are padded by 16 bytes so that the 8
/// rows of a matrix fall into different banks. Whole tiles of rows at multiples of 16 bytes are copied as they are,
/// which a GPU may do by itself: V while K is multiplied, and the next K while V is. At D = 512 the second half of the
/// columns of K comes while the first is multiplied, and so on from half to half, of V and of the next K.
///
/// Beside a mask, or in place of one: a window, a soft cap, sinks, ALiBi, the logarithm of a row's
/// sum, and sequences of lengths of their own, packed or in a cache that is linear, a ring or in
/// pages, with their newest keys in a tail of another memory; flash_attn_prefill_options.h says how. Kernels without
/// any of these have no trace of them.
///
/// Work: (2 D + 5 WN) * qL * kL instructions a head (half of it when causal), the 5
/// being the softmax. Q is read and O written once, each K and V tile read once per BQ query
/// rows.
///
/// A row's arithmetic depends on its own scores and on the order of the keys
/// only, never on its place in a tile, and a key that is masked out changes
/// nothing (P = +0, m stays). So a prompt in chunks, another layout, tiles skipped
/// or not, a window or a mask that says the same, a ring and pages give the same bits. A
/// tail changes where a row's sums are cut, by the row's position alone.
#include <metal_stdlib>
#include <metal_simdgroup>
#include <metal_simdgroup_matrix>

#include "ShaderTypes.h"
#include "common/arithmetic.h"
#include "common/instantiate.h"
#include "common/mask_tiles.h"
#include "common/simdgroup_tile.h"
#include "flash_attn_prefill_options.h"
#include "flash_attn_prefill_products.h"
#include "flash_attn_prefill_scores.h"
#include "flash_attn_prefill_softmax.h"

using namespace metal;

/// qL is a multiple of BQ.
constant bool align_Q [[function_constant(200)]];
/// kL is a multiple of BK.
constant bool align_K [[function_constant(201)]];
/// Buffers 5 and 6 are bound.
constant bool has_mask [[function_constant(300)]];
/// Query row i attends keys j <= i + qL_off.
constant bool do_causal [[function_constant(301)]];
/// Buffer 7 is bound; needs has_mask.
constant bool has_blk [[function_constant(303)]];
/// Buffers 8 to 14 are bound. align_Q, align_K and do_causal are then false: the parameters say.
constant bool has_options [[function_constant(304)]];

/// Every 8 elements of a row of q, k and v begin at a multiple of 16 bytes.
constant bool is_aligned [[function_constant(305)]];
/// P is multiplied in two parts of type T, which have 16 bits together where T is bfloat, 22 where it is half: for
/// hardware that has products of such elements alone. Elsewhere it is multiplied as it is.
constant bool splits_probabilities [[function_constant(307)]];

/// Waits for those that load a tile together: a SIMD group alone where each has a part of D.
template <bool IS_ALONE>
inline void wait_for_tile() {
  if (IS_ALONE) {
    simdgroup_barrier(mem_flags::mem_threadgroup);
  } else {
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
}

/// O += P V, of TT matrices of columns.
template <typename T, short R, short TK, short TT, short TO, short LD>
inline void weigh(thread Accumulator *probabilities, const threadgroup T *v_tile, thread Accumulator *output) {
  if (splits_probabilities) {
    accumulate_parts<T, R, TK, TT, TO, LD>(probabilities, v_tile, output);
  } else {
    accumulate<T, R, TK, TT, TO, LD>(probabilities, v_tile, output);
  }
}

/// Normalizes the lane's part of O; `output_row` is where its first element belongs.
template <typename T, short TD>
inline void store_row(thread Accumulator *output, float normalizer, device T *output_row, bool stores) {
#pragma clang loop unroll(full)
  for (short d = 0; d < TD; d++) {
    // Adding +0 makes the sign of a zero independent of the tiles that were skipped.
    thread auto &elements = output[d].thread_elements();
    if (stores) {
      output_row[d * 8] = T((elements[0] + 0.0f) * normalizer);
      output_row[d * 8 + 1] = T((elements[1] + 0.0f) * normalizer);
    }
  }
}

template <typename T, typename Mask, short BQ, short BK, short D, short WM, short WN>
[[kernel, max_total_threads_per_threadgroup(32 * WM * WN)]] void flash_attn_prefill(
    const device T *Q [[buffer(0)]], const device T *K [[buffer(1)]], const device T *V [[buffer(2)]],
    device T *O [[buffer(3)]], constant AttnParams &params [[buffer(4)]],
    constant AttnMaskParams &mask_params [[buffer(5), function_constant(has_mask)]],
    const device Mask *mask [[buffer(6), function_constant(has_mask)]],
    const device uchar *tile_classes [[buffer(7), function_constant(has_blk)]],
    constant AttnOptionParams &options [[buffer(8), function_constant(has_options)]],
    const device float *sinks [[buffer(9), function_constant(has_options)]],
    const device float *alibi_slopes [[buffer(10), function_constant(has_options)]],
    device float *lse [[buffer(11), function_constant(has_options)]],
    const device int *seq_lens [[buffer(12), function_constant(has_options)]],
    const device int *seq_offsets [[buffer(13), function_constant(has_options)]],
    const device int *block_table [[buffer(14), function_constant(has_options)]],
    constant AttnTailParams &tail [[buffer(15), function_constant(has_tail)]],
    const device T *tail_keys [[buffer(16), function_constant(has_tail)]],
    const device T *tail_values [[buffer(17), function_constant(has_tail)]],
    uint simd_lane [[thread_index_in_simdgroup]], uint simd_group [[simdgroup_index_in_threadgroup]],
    uint3 group [[threadgroup_position_in_grid]], uint3 groups [[threadgroups_per_grid]]) {
  static_assert(BQ % (8 * WM) == 0 && D % (16 * WN) == 0, "a SIMD group owns blocks of 8 rows, and takes two steps");
  static_assert(BK % 8 == 0, "tiles are made of 8x8 matrices");

  constexpr short R = BQ / (8 * WM);  // blocks of 8 rows of a SIMD group
  constexpr short DW = D / WN;  // columns of Q, K, V and O of a SIMD group
  constexpr short TK = BK / 8;  // score matrices of a block
  constexpr short TD = DW / 8;  // output matrices of a block
  constexpr short THREADS = 32 * WM;  // that share tiles
  constexpr bool kParts = WN > 1;
  constexpr bool kAlone = kParts && WM == 1;  // a SIMD group shares no tile
  constexpr int kScores = R * TK * 32;  // pairs of scores of a SIMD group
  constexpr int kSums = kParts ? WN * WM * kScores : 0;
  // K and V have a tile each, beside as much of Q as there is room for; the rest of it is in registers. Where there is
  // none, a SIMD group is alone, halves of the columns of K and of V take turns in two tiles, and half of Q has room.
  constexpr int kQueryBytes = 32768 - kSums * int(sizeof(float2)) - 2 * WN * BK * (DW + 8) * int(sizeof(T));
  constexpr bool kHalves = kQueryBytes < 0;
  static_assert(!kHalves || kAlone, "no other SIMD group waits for a half");
  constexpr short kRoom = short(kQueryBytes / (WN * BQ * int(sizeof(T))) - 8) / 16 * 16;
  constexpr short DQ = kHalves ? DW / 2 : kRoom < DW ? kRoom : DW;  // columns of Q in threadgroup memory
  constexpr short QT = (DW - DQ) / 8;  // matrices of a block of Q in registers
  constexpr short LQ = DQ + 8;  // elements from row to row of Q in threadgroup memory
  constexpr int kQueries = WN * BQ * LQ * int(sizeof(T)) / int(sizeof(float2));
  constexpr short DT = kHalves ? DW / 2 : DW;  // columns of a tile of a SIMD group
  constexpr short TT = DT / 8;  // matrices of them
  constexpr short LD = DT + 8;  // elements from row to row of it
  constexpr int kTileRuns = WN * BK * LD * int(sizeof(T)) / int(sizeof(uint4));

  threadgroup float2 queries_and_sums[kQueries + kSums];
  // Variables of their own, by which a compiler knows that one is copied while the other is multiplied.
  threadgroup uint4 first_tiles[kTileRuns];
  threadgroup uint4 second_tiles[kTileRuns];

  const int head = group.x;
  const int kv_head = head / params.gqa_factor;
  int batch = group.y;
  const int query_tile = int(groups.z - 1 - group.z);
  int first_row = query_tile * BQ;
  int rows = params.qL;
  int keys = params.kL;
  int row_offset = params.qL_off;  // position of query row 0
  Prompt prompt;
  if (has_options) {
    prompt = prompt_of<BQ>(params, options, seq_lens, seq_offsets, batch, query_tile, simd_lane);
    batch = prompt.batch;
    first_row = prompt.first_row;
    rows = prompt.rows;
    keys = prompt.keys;
    row_offset = prompt.row_offset;
    if (first_row >= rows) {
      return;
    }
  }
  if (has_tail) {
    prompt.tail = tail;
    prompt.tail_row = params.H / params.gqa_factor * D;
  }
  const int valid_rows = align_Q ? BQ : min(int(BQ), rows - first_row);
  const uint thread_index = simd_group % WM * 32 + simd_lane;
  const short part = short(simd_group / WM);
  threadgroup T *first = reinterpret_cast<threadgroup T *>(first_tiles) + part * BK * LD;
  threadgroup T *second = reinterpret_cast<threadgroup T *>(second_tiles) + part * BK * LD;
  threadgroup T *q_tile = reinterpret_cast<threadgroup T *>(queries_and_sums) + part * BQ * LQ;

  if (has_options) {
    Q += prompt.base_of(params.Q_strides) + head * params.Q_strides[1] + first_row * params.Q_strides[2];
    K += prompt.base_of_keys(options, params.K_strides) + kv_head * params.K_strides[1];
    V += prompt.base_of_keys(options, params.V_strides) + kv_head * params.V_strides[1];
  } else {
    Q += batch * params.Q_strides[0] + head * params.Q_strides[1] + first_row * params.Q_strides[2];
    K += batch * params.K_strides[0] + kv_head * params.K_strides[1];
    V += batch * params.V_strides[0] + kv_head * params.V_strides[1];
  }

  Q += part * DW;
  K += part * DW;
  V += part * DW;

  const LaneElements lane = elements_of_lane(simd_lane);
  const short group_row = short(simd_group % WM * 8 * R);  // first of the SIMD group's rows in the tile
  const short row = group_row + lane.row;  // this lane's in the first block; 8 more in each further one

  // Position among the keys of this lane's first row, and of the SIMD group's first and last.
  const int lane_position = first_row + row + row_offset;
  const int first_position = first_row + group_row + row_offset;
  const int last_position = first_position + 8 * R - 1;

  const device Mask *mask_rows[R];
  if (has_mask) {
    for (short r = 0; r < R; r++) {
      // Rows past the last one read the last one's mask; their results are dropped.
      mask_rows[r] = mask + batch * mask_params.M_strides[0] + head * mask_params.M_strides[1] +
                     min(first_row + row + 8 * r, params.qL - 1) * mask_params.M_strides[2];
    }
  }
  if (has_blk) {
    tile_classes += (plane_of(mask_params.M_strides, params.H, batch, head) * params.NQ + query_tile) * params.NK;
  }

  simdgroup_matrix<T, 8, 8> q[QT > 0 ? R * QT : 1];
  load_tile<T, BQ, DQ, LQ, THREADS>(q_tile, Q + QT * 8, params.Q_strides[2], valid_rows, thread_index);
  if (QT > 0) {
    constexpr short LP = QT * 8 + 8;  // elements from row to row on the way
    static_assert(BQ * LP <= BK * LD, "Q passes through a tile of keys");
    load_tile<T, BQ, QT * 8, LP, THREADS>(first, Q, params.Q_strides[2], valid_rows, thread_index);
    wait_for_tile<kAlone>();
#pragma clang loop unroll(full)
    for (short n = 0; n < R * QT; n++) {
      simdgroup_load(q[n], first + (group_row + n % R * 8) * LP + n / R * 8, LP);
    }
  }
  const threadgroup T *q_rows = q_tile + group_row * LQ;

  // Scores are capped before they are powers of two.
  const bool caps = has_options && options.softcap != 0.0f;
  const float score_scale = caps ? params.scale : params.scale * M_LOG2E_F;
  RowSoftmax softmax[R];
  for (short r = 0; r < R; r++) {
    softmax[r] = {kLowestMaximum, 0.0f};
  }
  Accumulator output[R * TD];
#pragma clang loop unroll(full)
  for (short n = 0; n < R * TD; n++) {
    output[n] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  }

  int first_tile = 0;
  int key_tiles = params.NK;
  KeyRange seen;  // by any row of the threadgroup
  if (has_options) {
    seen = prompt.seen(options, first_row + row_offset, first_row + row_offset + valid_rows - 1);
    first_tile = seen.first / BK;
    key_tiles = (seen.end + BK - 1) / BK;
  } else if (do_causal) {
    key_tiles = min(key_tiles, (first_row + valid_rows - 1 + params.qL_off) / BK + 1);
  }
  ScoreOptions score_options = {0.0f, 0.0f};
  if (has_options) {
    score_options = score_options_of(options, alibi_slopes, head);
  }

  long k_stride = params.K_strides[2];
  long v_stride = params.V_strides[2];
  // Whether K of the tile is on its way; behind the last tile, as before the tail's first, there is none.
  bool is_ahead = false;
  for (int tile = first_tile; tile < key_tiles || (has_tail && !prompt.is_in_tail); tile++) {
    if (has_tail && tile >= key_tiles) {  // on to the tail
      prompt.is_in_tail = true;
      K = tail_keys + kv_head * D + part * DW;
      V = tail_values + kv_head * D + part * DW;
      k_stride = prompt.tail_row;
      v_stride = prompt.tail_row;
      seen = prompt.seen(options, first_row + row_offset, first_row + row_offset + valid_rows - 1);
      tile = seen.first / BK;
      key_tiles = (seen.end + BK - 1) / BK;
      if (tile >= key_tiles) {
        break;
      }
    }
    const uchar tile_class = has_blk ? tile_classes[tile] : kTileMixed;
    if (tile_class == kTileBlocked) {
      is_ahead = false;
      continue;
    }
    const int first_key = tile * BK;
    const int valid_keys = align_K ? BK : min(int(BK), keys - first_key);
    // False when each of the SIMD group's rows lies past qL, before the tile's keys, or out of their windows.
    bool contributes = true;  // alone it has all rows of the threadgroup
    if (!kAlone) {
      contributes = group_row < valid_rows && (!do_causal || first_key <= last_position);
      if (has_options) {
        const KeyRange seen_by_rows = prompt.seen(options, first_position, last_position);
        contributes = contributes && first_key < seen_by_rows.end && first_key + BK > seen_by_rows.first;
      }
    }

    // Two ways: whole tiles of aligned rows are copied as they are.
    const bool is_run = !has_options || is_run_of_keys(options, prompt, first_key, BK, seen);
    const bool is_whole = is_aligned && is_run && valid_keys == BK;
    const bool is_next_whole = is_aligned && tile + 1 < key_tiles && keys - first_key >= 2 * BK &&
                               (!has_options || is_run_of_keys(options, prompt, first_key + BK, BK, seen));
    const device T *k_rows = K + first_key * k_stride;
    const device T *v_rows = V + first_key * v_stride;
    if (has_options && is_whole) {
      k_rows = K + offset_of_key(options, params.K_strides, block_table, prompt, first_key);
      v_rows = V + offset_of_key(options, params.V_strides, block_table, prompt, first_key);
    }
    const device T *next_k_rows = k_rows + BK * k_stride;
    if (has_options && is_next_whole) {
      next_k_rows = K + offset_of_key(options, params.K_strides, block_table, prompt, first_key + BK);
    }
    if (is_whole) {
      if (!is_ahead) {
        wait_for_tile<kAlone>();
        copy_tile<T, BK, DT, LD, THREADS>(first, k_rows, k_stride, thread_index);
      }
    } else {
      wait_for_tile<kAlone>();
#pragma clang loop unroll(full)
      for (short n = 0; n < (kHalves ? 2 : 1); n++) {
        threadgroup T *half_tile = n == 0 ? first : second;
        if (has_options) {
          load_keys<T, BK, DT, LD, THREADS>(half_tile, K + n * DT, params.K_strides, options, block_table, prompt,
                                            first_key, seen, thread_index);
        } else {
          load_tile<T, BK, DT, LD, THREADS>(half_tile, k_rows + n * DT, k_stride, valid_keys, thread_index);
        }
      }
    }
    wait_for_tile<kAlone>();
    // A tile is copied while the other one is multiplied.
    if (is_whole) {
      copy_tile<T, BK, DT, LD, THREADS>(second, kHalves ? k_rows + DT : v_rows, kHalves ? k_stride : v_stride,
                                        thread_index);
    }

    Accumulator scores[R * TK];  // then P, in the same registers
    if (contributes) {
      clear_scores<R * TK>(scores);
      multiply_scores<T, R, TK, QT, LD>(q, first, scores);
      if (kHalves) {
        wait_for_tile<kAlone>();
        if (is_whole) {
          copy_tile<T, BK, DT, LD, THREADS>(first, v_rows, v_stride, thread_index);
        }
      }
      multiply_scores<T, R, TK, TD - QT, LQ, LD>(q_rows, kHalves ? second : first + QT * 8, scores);
    }
    if (kParts) {
      threadgroup float2 *parts = queries_and_sums + kQueries + group_row / (8 * R) * WN * kScores;
      if (kAlone) {  // those that are late still read the last tile's scores
        threadgroup_barrier(mem_flags::mem_threadgroup);
      }
      if (contributes) {
        put_part<R * TK>(parts + part * kScores, simd_lane, scores);
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
      if (kHalves && is_whole) {
        copy_tile<T, BK, DT, LD, THREADS>(second, v_rows + DT, v_stride, thread_index);
      }
      if (contributes) {
        add_parts<R * TK, WN>(parts, simd_lane, scores);
      }
    } else if (is_whole) {
      wait_for_tile<kAlone>();
    }
    is_ahead = is_whole && is_next_whole;
    if (!kHalves && is_ahead) {
      copy_tile<T, BK, DT, LD, THREADS>(first, next_k_rows, k_stride, thread_index);
    }
    if (contributes) {
      float2 scaled[R * TK];
      const bool every_row_sees =
          !has_options || prompt.every_row_sees(options, first_key, first_key + BK, first_position, last_position);
#pragma clang loop unroll(full)
      for (short r = 0; r < R; r++) {
        thread float2 *s = scaled + r * TK;
        const int position = lane_position + 8 * r;
        scale_scores<TK>(scores + r * TK, score_scale, s);
        if (has_options && score_options.softcap != 0.0f) {
          cap_scores<TK>(s, score_options.softcap);
        }
        if (has_options && score_options.slope != 0.0f) {
          slope_scores<TK>(s, score_options.slope, first_key + lane.column - position);
        }
        if (has_mask && tile_class != kTileUnmasked) {
          mask_scores<TK>(s, mask_rows[r] + first_key, lane.column, valid_keys);
        }
        if (valid_keys < BK) {
          block_keys<TK>(s, lane.column, valid_keys);
        }
        if (do_causal && first_key + BK - 1 > first_position) {
          block_keys<TK>(s, lane.column, position - first_key + 1);
        }
        if (!every_row_sees) {
          const KeyRange of_row = prompt.seen(options, position, position);
          block_keys<TK>(s, lane.column, of_row.end - first_key);
          block_keys_before<TK>(s, lane.column, of_row.first - first_key);
        }
      }
      raise_maxima<R, TK, TD>(softmax, scaled, splits_probabilities ? SplitUnit<T>::value : 0.0f, output);
#pragma clang loop unroll(full)
      for (short r = 0; r < R; r++) {
        exponentiate<TK>(softmax[r], scaled + r * TK, scores + r * TK);
      }
    }

    if (!is_whole) {
#pragma clang loop unroll(full)
      for (short n = 0; n < (kHalves ? 2 : 1); n++) {
        threadgroup T *half_tile = kHalves && n == 0 ? first : second;
        if (has_options) {
          load_keys<T, BK, DT, LD, THREADS>(half_tile, V + n * DT, params.V_strides, options, block_table, prompt,
                                            first_key, seen, thread_index);
        } else {
          load_tile<T, BK, DT, LD, THREADS>(half_tile, v_rows + n * DT, v_stride, valid_keys, thread_index);
        }
      }
    }
    if (kHalves || !is_whole) {
      wait_for_tile<kAlone>();
    }
    if (kHalves) {
      weigh<T, R, TK, TT, TD, LD>(scores, first, output);
      wait_for_tile<kAlone>();
      if (is_ahead) {
        copy_tile<T, BK, DT, LD, THREADS>(first, next_k_rows, k_stride, thread_index);
      }
    }
    if (contributes) {
      weigh<T, R, TK, TT, TD, LD>(scores, second, output + (TD - TT));
    }
  }

  const long base_of_output = has_options ? prompt.base_of(params.O_strides) : batch * params.O_strides[0];
  O += base_of_output + head * params.O_strides[1] + first_row * params.O_strides[2] + part * DW;
#pragma clang loop unroll(full)
  for (short r = 0; r < R; r++) {
    const int row_of_block = row + 8 * r;
    const bool is_valid = row_of_block < valid_rows;
    float normalizer = 0.0f;
    if (has_options) {
      const RowEnd end = end_row(options, sinks, head, softmax[r].reference, sum_of_row(softmax[r].sum));
      normalizer = end.factor * normalizer_of(end.sum);
      if ((options.present & MA_ATTN_LSE) != 0 && lane.column == 0 && part == 0 && is_valid) {
        lse[prompt.base_of(options.L_strides) + head * options.L_strides[1] +
            (first_row + row_of_block) * options.L_strides[2]] = end.logarithm();
      }
    } else {
      normalizer = normalizer_of(sum_of_row(softmax[r].sum));
    }
    store_row<T, TD>(output + r * TD, normalizer, O + row_of_block * params.O_strides[2] + lane.column, is_valid);
  }
}

// Entry points.

/// A head size and dtype: without a mask or with one of its dtype, and with a bool mask.
#define instantiate_prefill(name, T, BQ, BK, D, WM, WN)                  \
  instantiate_kernel(name, flash_attn_prefill, T, T, BQ, BK, D, WM, WN); \
  instantiate_kernel(name "_boolmask", flash_attn_prefill, T, uchar, BQ, BK, D, WM, WN)

instantiate_prefill("flash_attn_prefill_bf16_d64", bfloat, 64, 32, 64, 4, 1);
instantiate_prefill("flash_attn_prefill_bf16_d80", bfloat, 64, 32, 80, 4, 1);
instantiate_prefill("flash_attn_prefill_bf16_d96", bfloat, 64, 32, 96, 4, 1);
instantiate_prefill("flash_attn_prefill_bf16_d112", bfloat, 64, 32, 112, 4, 1);
instantiate_prefill("flash_attn_prefill_bf16_d128", bfloat, 64, 16, 128, 4, 1);
instantiate_prefill("flash_attn_prefill_bf16_d192", bfloat, 32, 16, 192, 2, 2);
instantiate_prefill("flash_attn_prefill_bf16_d256", bfloat, 32, 16, 256, 2, 2);
instantiate_prefill("flash_attn_prefill_bf16_d512", bfloat, 16, 16, 512, 1, 4);

instantiate_prefill("flash_attn_prefill_f16_d64", half, 64, 32, 64, 4, 1);
instantiate_prefill("flash_attn_prefill_f16_d80", half, 64, 32, 80, 4, 1);
instantiate_prefill("flash_attn_prefill_f16_d96", half, 64, 32, 96, 4, 1);
instantiate_prefill("flash_attn_prefill_f16_d112", half, 64, 32, 112, 4, 1);
instantiate_prefill("flash_attn_prefill_f16_d128", half, 64, 16, 128, 4, 1);
instantiate_prefill("flash_attn_prefill_f16_d192", half, 32, 16, 192, 2, 2);
instantiate_prefill("flash_attn_prefill_f16_d256", half, 32, 16, 256, 2, 2);
instantiate_prefill("flash_attn_prefill_f16_d512", half, 16, 16, 512, 1, 4);
