/// Decode attention: one to 16 query rows of each sequence over its cache, f32,
/// f16, bf16 or Hadamard-quantized, K and V each their own, never decoded to memory:
///   s[j] = scale * <q, K[j]>, softcap * tanh(s / softcap), + slope * (j - p), for the keys j that row p sees
///          (alibi_distance further on in ALiBi's term, where the keys are a part of those of a sequence)
///   O    = sum_j exp(s[j] - m) V[j] / (sum_j exp(s[j] - m) + exp(sink - m))
/// Over codes q is rotated once, q^ = H S q / sqrt(B), since <q, K[j]> = norm * <q^, centroids>, and O
/// is rotated back once, in f32; hadamard_encode.h says what a cache holds.
///
/// Shapes: q, out [B, H, nQ, D] f32, f16 or bf16; K, V [B, Hkv, capacity, row] or pages [n_pages, Hkv,
/// page_tokens, row]; lse [B, H, nQ] f32.
///
/// Keys are cut at multiples of 256, whatever the cache, into blocks. Two SIMD groups own a block, half
/// of its keys each, and a tile of QUERIES of the H / Hkv * nQ queries that share its head of K and V,
/// so that they share each load and each decoded code. A SIMD group walks leaves of 32 keys:
///   scores   a key a load of all lanes, up to D = 128 two of codes; 32 products at a time (32 / QUERIES keys) summed
///            over lanes
///   softmax  a lane a score, exp2 once a score
///   O        += weight * V[j], in the order of keys; where a load brings two, even and odd ones apart until the end
/// The second half's state (m, l, O) goes to the first SIMD group through threadgroup memory.
/// The states of the blocks go to scratch, [queries, n_blocks] of two floats and then of D,
/// and `flash_attn_vec_reduce*` joins them in the order of blocks; a sequence that the host knows to
/// have one block is finished here. The order of all sums follows from positions alone: neither batch,
/// heads that share, rows of a call, capacity, pages, ring nor splits change a bit.
///
/// Grid: threadgroups (ceil(n_blocks * n_tiles / P), Hkv, B) of (32, 2 P, 1), P up to kMostPairs.
/// Threadgroup memory: 256 bytes for each float of O a lane has, and for two more; at most 8.5 KiB; over codes 1 KiB
/// more. Floats a lane at QUERIES = 4, D = 128: 16 (q) + 16 (O) + 32 (products) + 4 (a row); over codes 32 + 32 + 16
/// + 8. The limit of 512 threads, of which 128 are used, is for registers: it leaves a thread 128 of them on an NVIDIA
/// GPU, so that 16 SIMD groups share a core.
/// Work of a lane a key and query at D = 128: 8 multiply-adds, 4 operations to sum the product over lanes, over codes
/// 2; an exp2; a key of codes 8 look-ups. Dense K and V are bound by memory, codes by arithmetic.
#include <metal_stdlib>
#include <metal_simdgroup>

#include "ShaderTypes.h"
#include "common/arithmetic.h"
#include "common/element.h"
#include "common/instantiate.h"
#include "flash_attn_decode_finish.h"
#include "flash_attn_decode_halves.h"
#include "flash_attn_decode_keys.h"
#include "flash_attn_decode_lanes.h"
#include "flash_attn_decode_queries.h"
#include "flash_attn_decode_rows.h"
#include "flash_attn_decode_softmax.h"

using namespace metal;

/// Formats of K and V: of a dense one MA_DTYPE_*; of codes what CodeRows says.
constant uint k_format [[function_constant(420)]];
constant uint v_format [[function_constant(421)]];
/// Whether the first rows of both begin at multiples of 16 bytes.
constant bool are_rows_aligned [[function_constant(422)]];

/// The products of 32 keys with the queries, from rows of K: for step n of a leaf in products[n].
/// Lane l has the row of key l of the leaf in `row`, and its norm in `norm`.
template <int D, int QUERIES, typename Rows>
inline void multiply_leaf(Rows keys, const thread float *q, uint lane, uint row, const device float *norms,
                          thread float *products) {
  typedef typename Rows::Layout L;
  constexpr int per_step = 32 / QUERIES;
  constexpr int loads = per_step / L::rows;
  const float norm = Rows::norms == 1 ? norms[row] : 0.0f;
  // A loop, and products move down: registers have no index. Two steps at once have the loads of both under way.
#pragma clang loop unroll_count(2)
  for (int step = 0; step < QUERIES; step++) {
    float parts[32 / L::rows];
#pragma clang loop unroll(full)
    for (int k = 0; k < loads; k++) {
      float values[L::values];
      const uint row_of_key = simd_shuffle(row, ushort(step * per_step + k * L::rows + L::row_of(lane)));
      keys.load(row_of_key, lane, values);
#pragma clang loop unroll(full)
      for (int n = 0; n < QUERIES; n++) {
        float part = 0.0f;
        if (Rows::norms == 2) {
          constexpr int half_row = L::values / 2;
          float low = 0.0f;
          float high = 0.0f;
#pragma clang loop unroll(full)
          for (int i = 0; i < half_row; i++) {
            low = fma(q[n * L::values + i], values[i], low);
            high = fma(q[n * L::values + half_row + i], values[half_row + i], high);
          }
          part = fma(high, norms[row_of_key * 2 + 1], low * norms[row_of_key * 2]);
        } else {
#pragma clang loop unroll(full)
          for (int i = 0; i < L::values; i++) {
            part = fma(q[n * L::values + i], values[i], part);
          }
        }
        parts[n * loads + k] = part;
      }
    }
#pragma clang loop unroll(full)
    for (int i = 0; i + 1 < QUERIES; i++) {
      products[i] = products[i + 1];
    }
    const float sum = sums_of_lanes<32 / L::rows>(parts, lane);
    // Of two rows the lanes have the keys of one after those of the other.
    const uint source = lane % 2 * 16 + lane / per_step * loads + lane % per_step / 2;
    products[QUERIES - 1] = L::rows == 1 ? sum : simd_shuffle(sum, ushort(source));
    if (Rows::norms == 1) {
      products[QUERIES - 1] *= simd_shuffle(norm, ushort(step * per_step + lane % per_step));
    }
  }
}

/// output += weights * rows of V. A weight below 0 is that of a key that the query
/// does not see, whose row may hold anything; where `IS_EDGE` is false there is none.
template <int V, int QUERIES, bool IS_EDGE, typename Rows>
inline void accumulate_leaf(Rows rows, thread float *weights, uint lane, uint row, const device float *norms,
                            thread float *output) {
  typedef typename Rows::Layout L;
  constexpr int per_step = 32 / QUERIES;
  constexpr int norm_count = Rows::norms == 0 ? 1 : Rows::norms;
  constexpr int values_a_norm = L::values / norm_count;
  float norm_of_lane[norm_count];
#pragma clang loop unroll(full)
  for (int n = 0; n < norm_count; n++) {
    norm_of_lane[n] = Rows::norms == 0 ? 1.0f : norms[row * norm_count + n];
  }
#pragma clang loop unroll_count(2)
  for (int step = 0; step < QUERIES; step++) {
    const ushort key_of_lane = ushort(step * per_step + lane % per_step);
    float scaled[norm_count];
#pragma clang loop unroll(full)
    for (int n = 0; n < norm_count; n++) {
      scaled[n] = Rows::norms == 0 ? weights[0] : weights[0] * simd_shuffle(norm_of_lane[n], key_of_lane);
    }
#pragma clang loop unroll(full)
    for (int k = 0; k < per_step; k += L::rows) {
      const uint key = uint(k) + L::row_of(lane);
      float values[L::values];
      rows.load(simd_shuffle(row, ushort(step * per_step + key)), lane, values);
      float shares[QUERIES * norm_count];
      bool is_seen[QUERIES];
#pragma clang loop unroll(full)
      for (int i = 0; i < QUERIES * norm_count; i++) {
        const ushort source = ushort(i / norm_count * per_step + key);
        shares[i] = simd_shuffle(scaled[i % norm_count], source);
        is_seen[i / norm_count] = !IS_EDGE || simd_shuffle(weights[0], source) >= 0.0f;
      }
#pragma clang loop unroll(full)
      for (int i = 0; i < QUERIES * L::values; i++) {
        if (is_seen[i / L::values]) {
          output[i] = fma(shares[i / values_a_norm], values[i % L::values], output[i]);
        }
      }
    }
#pragma clang loop unroll(full)
    for (int i = 0; i + 1 < QUERIES; i++) {
      weights[i] = weights[i + 1];
    }
  }
}

/// The centroids of 8 bits; nothing where neither K nor V has such codes.
typedef const threadgroup float *Table;

/// multiply_leaf over K in its format.
template <int D, int QUERIES, bool K_CODES, bool ALIGNED>
inline void score_leaf(const device uchar *k, const device float *norms, Table table, const thread float *q, uint lane,
                       uint row, thread float *products) {
  if (K_CODES) {
    multiply_leaf<D, QUERIES>(CodeRows<D, RowLanes<D, true>, ALIGNED, Table>(k, k_format, lane, table), q, lane, row,
                              norms, products);
  } else if (k_format == 1) {
    multiply_leaf<D, QUERIES>(DenseRows<Float32, D, D, ALIGNED>{k}, q, lane, row, norms, products);
  } else if (k_format == 2) {
    multiply_leaf<D, QUERIES>(DenseRows<Float16, D, D, ALIGNED>{k}, q, lane, row, norms, products);
  } else {
    multiply_leaf<D, QUERIES>(DenseRows<Bfloat16, D, D, ALIGNED>{k}, q, lane, row, norms, products);
  }
}

/// accumulate_leaf over V in its format, in rows STRIDE apart.
template <int V, int STRIDE, int QUERIES, bool V_CODES, bool IS_EDGE, bool ALIGNED>
inline void weigh_leaf(const device uchar *v, const device float *norms, Table table, thread float *weights, uint lane,
                       uint row, thread float *output) {
  if (V_CODES) {
    accumulate_leaf<V, QUERIES, IS_EDGE>(CodeRows<V, RowLanes<V, true>, ALIGNED, Table>(v, v_format, lane, table),
                                         weights, lane, row, norms, output);
  } else if (v_format == 1) {
    accumulate_leaf<V, QUERIES, IS_EDGE>(DenseRows<Float32, V, STRIDE, ALIGNED>{v}, weights, lane, row, norms, output);
  } else if (v_format == 2) {
    accumulate_leaf<V, QUERIES, IS_EDGE>(DenseRows<Float16, V, STRIDE, ALIGNED>{v}, weights, lane, row, norms, output);
  } else {
    accumulate_leaf<V, QUERIES, IS_EDGE>(DenseRows<Bfloat16, V, STRIDE, ALIGNED>{v}, weights, lane, row, norms, output);
  }
}

/// The few leaves at an edge have no part of their own for aligned rows.
template <int V, int STRIDE, int QUERIES, bool V_CODES, bool IS_EDGE>
inline void weigh_leaf(const device uchar *v, const device float *norms, Table table, thread float *weights, uint lane,
                       uint row, thread float *output) {
  if (!IS_EDGE && are_rows_aligned) {
    weigh_leaf<V, STRIDE, QUERIES, V_CODES, IS_EDGE, true>(v, norms, table, weights, lane, row, output);
  } else {
    weigh_leaf<V, STRIDE, QUERIES, V_CODES, IS_EDGE, false>(v, norms, table, weights, lane, row, output);
  }
}

/// The lane's values of `count` queries from `first` on as rows of K lie, rotated where K is.
template <int D, int QUERIES, bool K_CODES>
inline void load_queries_of_rows(constant FlashAttnDecodeParams &params, const device uchar *queries, uint first,
                                 uint count, uint lane, thread float *values_of_rows) {
  typedef Lanes<D> L;
  typedef RowLanes<D, K_CODES> K;
  float values[QUERIES * L::values];
  load_queries<D, QUERIES>(params, queries, first, count, lane, values);
// Queries move down: registers have no index.
#pragma clang loop unroll(disable)
  for (int n = 0; n < QUERIES; n++) {
    if (K_CODES) {
      sign_lanes<D>(values, lane);
      hadamard_lanes<D>(values, lane);
    }
#pragma clang loop unroll(full)
    for (int i = 0; i < (QUERIES - 1) * K::values; i++) {
      values_of_rows[i] = values_of_rows[i + K::values];
    }
    K::spread(values, lane, values_of_rows + (QUERIES - 1) * K::values);
#pragma clang loop unroll(full)
    for (int i = 0; i < (QUERIES - 1) * L::values; i++) {
      values[i] = values[i + L::values];
    }
  }
}

/// D is the head size of q and K, V_DIM that of V and out, in rows V_STRIDE apart.
template <int D, int V_DIM, int V_STRIDE, int QUERIES, bool K_CODES, bool V_CODES>
[[kernel, max_total_threads_per_threadgroup(512)]] void attend_block(
    const device uchar *q [[buffer(0)]], const device uchar *k [[buffer(1)]], const device float *norms_k [[buffer(2)]],
    const device uchar *v [[buffer(3)]], const device float *norms_v [[buffer(4)]],
    constant FlashAttnDecodeParams &params [[buffer(5)]], device uchar *out [[buffer(6)]],
    device float *lse [[buffer(7)]], const device int *seq_lens [[buffer(8)]],
    const device int *block_table [[buffer(9)]], const device float *sinks [[buffer(10)]],
    const device float *alibi_slopes [[buffer(11)]], const device uint *tree_mask [[buffer(12)]],
    device float *states [[buffer(13)]], device float *outputs [[buffer(14)]], uint lane [[thread_index_in_simdgroup]],
    uint simd_group [[simdgroup_index_in_threadgroup]], uint3 threads [[threads_per_threadgroup]],
    uint3 group [[threadgroup_position_in_grid]]) {
  typedef RowLanes<D, K_CODES> K;
  typedef RowLanes<V_DIM, V_CODES> V;
  constexpr int values_a_query = Lanes<V_DIM>::values;
  constexpr int per_step = 32 / QUERIES;

  threadgroup HalfState<QUERIES * values_a_query> second_halves[kMostPairs];
  const uint pair = simd_group / 2;
  const uint half_of_block = simd_group % 2;

  threadgroup float table[K_CODES || V_CODES ? 256 : 1];
  if ((K_CODES && k_format == 8) || (V_CODES && v_format == 8)) {
    for (uint i = simd_group * 32 + lane; i < 256; i += 32 * threads.y) {
      table[i] = centroids_of(8)[i];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }

  // Neighbouring pairs of SIMD groups take the tiles of one block; past the last block they have no keys.
  const uint unit = group.x * (threads.y / 2) + pair;
  const uint block = unit / params.n_tiles;
  const bool exists = block < params.n_blocks;
  const uint kv_head = group.y;
  const uint batch = group.z;
  const uint queries = params.n_heads / params.n_kv_heads * params.n_q;  // that share the head of K and V
  const uint first_in_head = unit % params.n_tiles * QUERIES;
  const uint first_query = (batch * params.n_kv_heads + kv_head) * queries + first_in_head;

  const Sequence sequence(params, seq_lens, batch);
  const CacheRows cache(params, block_table, batch, kv_head);
  const int start = (sequence.first_block(params) + int(block)) * kBlockKeys + int(half_of_block) * kHalfKeys;
  const int first_key = max(start, sequence.first_seen(params));
  const int end_key = exists ? min(start + kHalfKeys, sequence.length) : start;

  // Of the lane's query in scores; those past the last stand for it, and are dropped.
  const uint query_of_lane = min(first_in_head + lane / per_step, queries - 1);
  const uint head_of_lane = kv_head * (queries / params.n_q) + query_of_lane / params.n_q;
  const Visible visible(params, sequence, tree_mask, batch, query_of_lane % params.n_q);
  const ScoreRule rule = {
      params.scale * (K_CODES ? unit_of_codes<D>(params) : 1.0f), params.softcap,
      (params.present & MA_DECODE_ALIBI) != 0 ? alibi_slopes[head_of_lane] : 0.0f,
      sequence.position_of_first_row(params) + int(query_of_lane % params.n_q + params.alibi_distance)};

  float query[QUERIES * K::values] = {};
  float sums[QUERIES * V::values];
  Softmax softmax;
  load_queries_of_rows<D, QUERIES, K_CODES>(params, q, first_query, queries - first_in_head, lane, query);
#pragma clang loop unroll(full)
  for (int i = 0; i < QUERIES * V::values; i++) {
    sums[i] = 0.0f;
  }

  for (int leaf = start; leaf < end_key; leaf += kLeafKeys) {
    if (leaf + kLeafKeys <= first_key) {
      continue;
    }
    // A key that nobody sees is read as one that somebody does.
    const int key_of_row = clamp(leaf + int(lane), first_key, end_key - 1);
    const uint row = cache.at(uint(key_of_row));
    float scores[QUERIES];
    if (are_rows_aligned) {
      score_leaf<D, QUERIES, K_CODES, true>(k, norms_k, table, query, lane, row, scores);
    } else {
      score_leaf<D, QUERIES, K_CODES, false>(k, norms_k, table, query, lane, row, scores);
    }
    const bool is_inner = simd_all(visible.sees_all(leaf, leaf + kLeafKeys - 1));
#pragma clang loop unroll(full)
    for (int step = 0; step < QUERIES; step++) {
      const int key = leaf + step * per_step + int(lane % per_step);
      scores[step] = visible.sees(key) ? rule.of(scores[step], key) : -INFINITY;
    }
    const float factor = add_leaf<per_step, QUERIES>(softmax, scores);
    if (simd_any(factor != 1.0f)) {
      float factors[QUERIES];
#pragma clang loop unroll(full)
      for (int n = 0; n < QUERIES; n++) {
        factors[n] = simd_shuffle(factor, ushort(n * per_step));
      }
#pragma clang loop unroll(full)
      for (int i = 0; i < QUERIES * V::values; i++) {
        sums[i] *= factors[i / V::values];
      }
    }
    if (is_inner) {
      weigh_leaf<V_DIM, V_STRIDE, QUERIES, V_CODES, false>(v, norms_v, table, scores, lane, row, sums);
    } else {
#pragma clang loop unroll(full)
      for (int step = 0; step < QUERIES; step++) {
        const int key = leaf + step * per_step + int(lane % per_step);
        scores[step] = visible.sees(key) ? scores[step] : -1.0f;
      }
      weigh_leaf<V_DIM, V_STRIDE, QUERIES, V_CODES, true>(v, norms_v, table, scores, lane, row, sums);
    }
  }

  float output[QUERIES * values_a_query];
#pragma clang loop unroll(full)
  for (int n = 0; n < QUERIES; n++) {
    V::fold(sums + n * V::values, lane, output + n * values_a_query);
  }
  if (half_of_block == 1) {
    second_halves[pair].store(lane, softmax, output);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (half_of_block == 1 || !exists) {
    return;
  }
  second_halves[pair].template join<QUERIES>(lane, softmax, output);

  store_block<V_DIM, QUERIES>(params, sinks, out, lse, states, outputs, block, first_query, first_in_head, kv_head,
                              lane, softmax, output);
}

// Entry points.

/// A head size, of one query and of tiles: K and V dense or codes.
#define instantiate_tiles(name, D, QUERIES, K_CODES, V_CODES)                 \
  instantiate_kernel(name "_q1", attend_block, D, D, D, 1, K_CODES, V_CODES); \
  instantiate_kernel(name "_q" #QUERIES, attend_block, D, D, D, QUERIES, K_CODES, V_CODES)

instantiate_tiles("flash_attn_vec_d64", 64, 4, false, false);
instantiate_tiles("flash_attn_vec_d80", 80, 4, false, false);
instantiate_tiles("flash_attn_vec_d96", 96, 4, false, false);
instantiate_tiles("flash_attn_vec_d112", 112, 4, false, false);
instantiate_tiles("flash_attn_vec_d128", 128, 4, false, false);
instantiate_tiles("flash_attn_vec_d192", 192, 4, false, false);
instantiate_tiles("flash_attn_vec_d256", 256, 4, false, false);
instantiate_tiles("flash_attn_vec_d512", 512, 2, false, false);

instantiate_tiles("flash_attn_vec_tq_d64", 64, 4, true, true);
instantiate_tiles("flash_attn_vec_tq_d80", 80, 4, true, true);
instantiate_tiles("flash_attn_vec_tq_d96", 96, 4, true, true);
instantiate_tiles("flash_attn_vec_tq_d112", 112, 4, true, true);
instantiate_tiles("flash_attn_vec_tq_d128", 128, 4, true, true);
instantiate_tiles("flash_attn_vec_tq_d192", 192, 4, true, true);
instantiate_tiles("flash_attn_vec_tq_d256", 256, 4, true, true);
instantiate_tiles("flash_attn_vec_tq_d512", 512, 2, true, true);

instantiate_tiles("flash_attn_vec_hybrid_d64", 64, 4, false, true);
instantiate_tiles("flash_attn_vec_hybrid_d80", 80, 4, false, true);
instantiate_tiles("flash_attn_vec_hybrid_d96", 96, 4, false, true);
instantiate_tiles("flash_attn_vec_hybrid_d112", 112, 4, false, true);
instantiate_tiles("flash_attn_vec_hybrid_d128", 128, 4, false, true);
instantiate_tiles("flash_attn_vec_hybrid_d192", 192, 4, false, true);
instantiate_tiles("flash_attn_vec_hybrid_d256", 256, 4, false, true);
instantiate_tiles("flash_attn_vec_hybrid_d512", 512, 2, false, true);

instantiate_tiles("flash_attn_vec_hybrid_k_d64", 64, 4, true, false);
instantiate_tiles("flash_attn_vec_hybrid_k_d80", 80, 4, true, false);
instantiate_tiles("flash_attn_vec_hybrid_k_d96", 96, 4, true, false);
instantiate_tiles("flash_attn_vec_hybrid_k_d112", 112, 4, true, false);
instantiate_tiles("flash_attn_vec_hybrid_k_d128", 128, 4, true, false);
instantiate_tiles("flash_attn_vec_hybrid_k_d192", 192, 4, true, false);
instantiate_tiles("flash_attn_vec_hybrid_k_d256", 256, 4, true, false);
instantiate_tiles("flash_attn_vec_hybrid_k_d512", 512, 2, true, false);

instantiate_kernel("flash_attn_vec_mla_d576_q1", attend_block, 576, 512, 576, 1, false, false);
instantiate_kernel("flash_attn_vec_mla_d576_q2", attend_block, 576, 512, 576, 2, false, false);
