/// Decode attention over codes of up to 6 bits in both K and V, by products of 8x8 matrices: what
/// flash_attn_decode.metal does, for GPUs whose matrices have units of their own.
///
/// There a lane multiplies its columns of a key and sums the product over lanes: at four queries 73 instructions a key
/// of 4 bits, which is what bounds it. Here they are 36. A SIMD group owns a block of 256 keys and a tile of four
/// queries; the SIMD groups of a threadgroup have one tile, whose queries they rotate together. In leaves of 32 keys:
///   S^T [32, 8]  = K [32, D] * Q^T [D, 8]      columns 0 to 3 the upper halves of q, 4 to 7 the lower, added up
///   P^T [32, 8]  = exp2(S^T - m) * norm of V   the same split, times a power of two
///   O^T [D, 8]  += V^T [D, 32] * P^T [32, 8]   D / 4 float accumulators a lane
/// Matrices have half elements: q, centroids and weights are sums of two halves each, 22 bits together, their products
/// exact in float. A row of q or of P is scaled by a power of two so that its largest element is about 2^15, and no
/// half that matters is subnormal: the NRMSE is 1.5 to 3 times that of sums in float, and within the same bound.
///
/// What a row adds up follows from its own keys and their positions alone, as in the other kernel; the two do not give
/// the same bits.
///
/// Grid: threadgroups (ceil(n_blocks / S) * n_tiles, Hkv, B) of (32, S, 1), S up to 4.
/// Threadgroup memory at D = 64, 128: 10.2, 16.2 KiB: sums on their way to rows, the rotated queries, and
/// the centroids. Registers (nvptx64, sm_90, 4 bits): 128, at D = 128 20 bytes spilled.
/// At D = 256 there are none for the sums, and their error leaves the bound. A key is bound by its look-ups, 8 a
/// lane at D = 128, and by 2 operations for each.
#include <metal_stdlib>
#include <metal_simdgroup>
#include <metal_simdgroup_matrix>

#include "ShaderTypes.h"
#include "common/instantiate.h"
#include "common/simdgroup_tile.h"
#include "flash_attn_decode_codes.h"
#include "flash_attn_decode_finish.h"
#include "flash_attn_decode_keys.h"
#include "flash_attn_decode_lanes.h"
#include "flash_attn_decode_queries.h"
#include "flash_attn_decode_softmax.h"

using namespace metal;

/// Formats of the codes of K and V, as CodeFormat has them.
constant uint k_format [[function_constant(420)]];
constant uint v_format [[function_constant(421)]];
/// Whether the first rows of both begin at multiples of 16 bytes.
constant bool are_rows_aligned [[function_constant(422)]];

/// Queries of a tile, and SIMD groups that a threadgroup may have.
constant constexpr int kQueries = 4;
constant constexpr int kMostGroups = 4;

/// The maximum over the lanes of a column, and of the one four further on.
inline float maximum_of_column(float value) {
  value = max(value, simd_shuffle_xor(value, 2));
  value = max(value, simd_shuffle_xor(value, 4));
  value = max(value, simd_shuffle_xor(value, 8));
  return max(value, simd_shuffle_xor(value, 16));
}

/// The same of the lane's two columns, of which the lanes of columns 4 on take the second.
inline void maxima_of_columns(thread float *values, bool is_second) {
  const float kept = is_second ? values[1] : values[0];
  const float given = is_second ? values[0] : values[1];
  float value = max(kept, simd_shuffle_xor(given, 8));
  value = max(value, simd_shuffle_xor(value, 2));
  value = max(value, simd_shuffle_xor(value, 4));
  value = max(value, simd_shuffle_xor(value, 16));
  const float other = simd_shuffle_xor(value, 8);
  values[0] = is_second ? other : value;
  values[1] = is_second ? value : other;
}

/// The sum over the same lanes.
inline float sum_of_column(float value) {
  value += simd_shuffle_xor(value, 2);
  value += simd_shuffle_xor(value, 4);
  value += simd_shuffle_xor(value, 8);
  return value + simd_shuffle_xor(value, 16);
}

/// 2^(14 - e) for a largest number of 2^e, as far as that is a number: a half holds what it makes of it.
inline float power_for(float largest) {
  const uint exponent = as_type<uint>(largest) >> 23 & 255;
  return as_type<float>(min(268 - exponent, 253u) << 23);
}

/// 1 / power, of a power of two.
inline float inverse_of_power(float power) { return as_type<float>((254u << 23) - as_type<uint>(power)); }

/// Where coordinate d of a query's sums lies in threadgroup memory: lanes that have every (D / 8)th meet in no bank.
template <int D>
inline uint place_of_sum(uint query, uint d) {
  return query * (D + 33) + d + d / (D / 8) * 4;
}

/// Rotates a query, scales it to 2^15 and stores its halves where a product with keys finds them: coordinate
/// p * (D / 4) + t twice in matrix t, at columns 2 p and 2 p + 1 of the query's row, the lower half four rows further
/// on. The inverse of the scale goes to `unit`.
template <int D>
inline void store_query(constant FlashAttnDecodeParams &params, const device uchar *q, uint query, bool exists,
                        uint lane, threadgroup half *row, threadgroup float &unit) {
  typedef Lanes<D> L;
  float values[L::values];
  load_queries<D, 1>(params, q, query, exists ? 1 : 0, lane, values);
  sign_lanes<D>(values, lane);
  hadamard_lanes<D>(values, lane);
  float largest = 0.0f;
#pragma clang loop unroll(full)
  for (int i = 0; i < L::values; i++) {
    largest = max(largest, fabs(values[i]));
  }
  const float power = power_for(simd_max(largest));
  if (lane == 0) {
    unit = inverse_of_power(power);
  }
#pragma clang loop unroll(full)
  for (int i = 0; i < L::values; i++) {
    const int d = L::first(i / L::width, lane) + i % L::width;
    const float value = values[i] * power;
    const half high = half(value);
    threadgroup half *twice = row + d % (D / 4) * 8 + d / (D / 4) * 2;
    *(threadgroup half2 *)twice = half2(high);
    *(threadgroup half2 *)(twice + kQueries * (2 * D + 8)) = half2(half(value - float(high)));
  }
}

/// The softmax of a lane's two queries, and the scale of their weights.
struct MatrixSoftmax {
  Softmax queries[2];
  /// The largest norm of V so far, and the power of two that weights are multiplied by for it: no weight is larger.
  float largest_norm[2] = {0.0f, 0.0f};
  float power[2] = {1.0f, 1.0f};

  /// Turns the scores of a leaf (-infinity: not seen) into weights times norms of V, in two halves; gives the factors
  /// that what came before takes. The norms of `norm_of_query` are the largest that a query sees.
  void add(const thread float (&scores)[2][2], const thread float *norm_v, const thread float *norm_of_query,
           bool is_low, thread half2 *high, thread half2 *low, thread float *factors) {
    float maxima[2] = {max(scores[0][0], scores[0][1]), max(scores[1][0], scores[1][1])};
    maxima_of_columns(maxima, is_low);
#pragma clang loop unroll(full)
    for (int i = 0; i < 2; i++) {
      thread Softmax &query = queries[i];
      const float maximum = max(maxima[i], query.maximum);
      const float factor = weight_of(query.maximum, maximum);
      const float weights[2] = {weight_of(scores[i][0], maximum), weight_of(scores[i][1], maximum)};
      query.sum = fma(query.sum, factor, weights[0] + weights[1]);
      query.maximum = maximum;
      largest_norm[i] = max(largest_norm[i], norm_of_query[i]);
      const float next_power = power_for(largest_norm[i]);
      factors[i] = factor * (next_power * inverse_of_power(power[i]));
      power[i] = next_power;
#pragma clang loop unroll(full)
      for (int m = 0; m < 2; m++) {
        // The norm of a key that the query does not see may be anything.
        const float value = scores[i][m] == -INFINITY ? 0.0f : weights[m] * norm_v[m] * next_power;
        high[m][i] = half(value);
        low[m][i] = half(value - float(high[m][i]));
      }
    }
  }

 private:
  /// e^(score - maximum). Errors of exp2 are far below those of half.
  static float weight_of(float score, float maximum) {
    return score == -INFINITY ? 0.0f : fast::exp2((score - maximum) * M_LOG2E_F);
  }
};

/// Weights of the keys whose scores the lane has, as matrices with the rows of a key there twice, in the order of
/// LeafOfValues: upper halves in columns 0 to 3, lower ones in the others.
inline void spread_weights(const thread half2 *high, const thread half2 *low, MatrixLane at,
                           thread HalfMatrix *weights) {
  const bool is_low = at.pair >= 2;
  const bool is_odd = at.row % 2 != 0;
#pragma clang loop unroll(full)
  for (int m = 0; m < 2; m++) {
    const uint kept = as_type<uint>(is_low ? low[m] : high[m]);
    const uint taken = simd_shuffle_xor(as_type<uint>(is_low ? high[m] : low[m]), 8);
    const uint own[2] = {is_low ? taken : kept, is_low ? kept : taken};
#pragma clang loop unroll(full)
    for (int i = 0; i < 2; i++) {
      const uint other = simd_shuffle_xor(own[i], 2);
      weights[2 * (m + 2 * i)].thread_elements() = as_type<half2>(is_odd ? other : own[i]);
      weights[2 * (m + 2 * i) + 1].thread_elements() = as_type<half2>(is_odd ? own[i] : other);
    }
  }
}

/// D is the head size of all tensors.
template <int D>
[[kernel, max_total_threads_per_threadgroup(512)]] void attend_codes(
    const device uchar *q [[buffer(0)]], const device uchar *k [[buffer(1)]], const device float *norms_k [[buffer(2)]],
    const device uchar *v [[buffer(3)]], const device float *norms_v [[buffer(4)]],
    constant FlashAttnDecodeParams &params [[buffer(5)]], device uchar *out [[buffer(6)]],
    device float *lse [[buffer(7)]], const device int *seq_lens [[buffer(8)]],
    const device int *block_table [[buffer(9)]], const device float *sinks [[buffer(10)]],
    const device float *alibi_slopes [[buffer(11)]], const device uint *tree_mask [[buffer(12)]],
    device float *states [[buffer(13)]], device float *outputs [[buffer(14)]], uint lane [[thread_index_in_simdgroup]],
    uint simd_group [[simdgroup_index_in_threadgroup]], uint3 threads [[threads_per_threadgroup]],
    uint3 group [[threadgroup_position_in_grid]]) {
  typedef Lanes<D> L;
  threadgroup float sums_of_groups[kMostGroups][kQueries * (D + 33)];
  threadgroup half rotated[2 * kQueries * (2 * D + 8)];
  threadgroup float units[kQueries];
  threadgroup Centroid tables[2][256];

  const CodeFormat k_codes(k_format, are_rows_aligned);
  const CodeFormat v_codes(v_format, are_rows_aligned);
  fill_table(tables[0], k_codes, simd_group * 32, 32 * threads.y, lane);
  fill_table(tables[1], v_codes, simd_group * 32, 32 * threads.y, lane);

  const uint first_in_head = group.x % params.n_tiles * kQueries;
  const uint block = group.x / params.n_tiles * threads.y + simd_group;
  const bool exists = block < params.n_blocks;
  const uint kv_head = group.y;
  const uint batch = group.z;
  const uint queries = params.n_heads / params.n_kv_heads * params.n_q;  // that share the head of K and V
  const uint first_query = (batch * params.n_kv_heads + kv_head) * queries + first_in_head;

  const Sequence sequence(params, seq_lens, batch);
  const CacheRows cache(params, block_table, batch, kv_head);
  const int start = (sequence.first_block(params) + int(block)) * kBlockKeys;
  const int first_key = max(start, sequence.first_seen(params));
  const int end_key = exists ? min(start + kBlockKeys, sequence.length) : start;
  const int first_leaf = max(start, first_key / kLeafKeys * kLeafKeys);
  const int last_key = max(first_key, end_key - 1);

  // The first leaf is on its way while queries are rotated. A key that nobody sees is read as one that somebody does.
  const MatrixLane at(lane);
  const bool has_keys = first_leaf < end_key;
  LeafRows rows(has_keys ? cache.at(uint(clamp(first_leaf + int(lane), first_key, last_key))) : 0, lane);
  LeafOfKeys<D> keys;
  if (has_keys) {
    keys.load(k, norms_k, norms_v, k_codes, rows, at);
  }
  for (uint n = simd_group; n < uint(kQueries); n += threads.y) {
    store_query<D>(params, q, first_query + n, first_in_head + n < queries, lane, rotated + n * (2 * D + 8), units[n]);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (!exists) {
    return;
  }

  // The lane's queries, and of those past the last that one.
  const bool is_low = at.pair >= 2;
  const uint first_of_lane = at.pair % 2 * 2;
  const uint query_of_lane[2] = {min(first_in_head + first_of_lane, queries - 1),
                                 min(first_in_head + first_of_lane + 1, queries - 1)};
  const float2 factor_of_query =
      params.scale * unit_of_codes<D>(params) / kCentroidUnit * float2(units[first_of_lane], units[first_of_lane + 1]);
  // Keys that each row sees.
  const int first_for_all =
      params.window == 0 ? sequence.first : max(sequence.first, sequence.length - int(params.window));
  const bool has_tree = (params.present & MA_DECODE_TREE_MASK) != 0;
  const int end_for_all = sequence.length - int(has_tree ? params.tree_columns : params.n_q - 1);

  MatrixSoftmax softmax;
  Accumulator sums[D / 8];
#pragma clang loop unroll(full)
  for (int j = 0; j < D / 8; j++) {
    sums[j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  }

  for (int leaf = first_leaf; leaf < end_key; leaf += kLeafKeys) {
    Accumulator products[4];
    keys.multiply(k_codes, tables[0], rotated, products);
    float scores[2][2];
#pragma clang loop unroll(full)
    for (int m = 0; m < 2; m++) {
#pragma clang loop unroll(full)
      for (int i = 0; i < 2; i++) {
        const float first = products[m].thread_elements()[i];
        const float second = products[m + 2].thread_elements()[i];
        const float product = (is_low ? second : first) + simd_shuffle_xor(is_low ? first : second, 8);
        scores[i][m] = product * keys.norm_k[m] * factor_of_query[i];
      }
    }
    const float norm_v[2] = {keys.norm_v[0], keys.norm_v[1]};
    const float largest_norm = maximum_of_column(max(norm_v[0], norm_v[1]));
    float norm_of_query[2] = {largest_norm, largest_norm};
    LeafOfValues<D> values;
    values.load(v, v_codes, rows, at);
    // What the next leaf needs is on its way from here on; behind the last it is read again.
    rows = LeafRows(cache.at(uint(clamp(leaf + kLeafKeys + int(lane), first_key, last_key))), lane);
    keys.load(k, norms_k, norms_v, k_codes, rows, at);

    const int key_of_lane = leaf + int(at.row) + (is_low ? 16 : 0);
    if (params.softcap != 0.0f) {
// Scores move down: registers have no index.
#pragma clang loop unroll(disable)
      for (int n = 0; n < 4; n++) {
        const float score = params.softcap * precise::tanh(scores[0][0] / params.softcap);
        scores[0][0] = scores[0][1];
        scores[0][1] = scores[1][0];
        scores[1][0] = scores[1][1];
        scores[1][1] = score;
      }
    }
    if ((params.present & MA_DECODE_ALIBI) != 0) {
#pragma clang loop unroll(full)
      for (int i = 0; i < 2; i++) {
        const float slope = alibi_slopes[kv_head * (queries / params.n_q) + query_of_lane[i] / params.n_q];
        const int position =
            sequence.position_of_first_row(params) + int(query_of_lane[i] % params.n_q + params.alibi_distance);
        scores[i][0] += slope * float(key_of_lane - position);
        scores[i][1] += slope * float(key_of_lane + 8 - position);
      }
    }
    if (leaf < first_for_all || leaf + kLeafKeys > end_for_all) {
#pragma clang loop unroll(full)
      for (int i = 0; i < 2; i++) {
        const Visible visible(params, sequence, tree_mask, batch, query_of_lane[i] % params.n_q);
        float norm = 0.0f;
#pragma clang loop unroll(full)
        for (int m = 0; m < 2; m++) {
          const bool is_seen = visible.sees(key_of_lane + 8 * m);
          scores[i][m] = is_seen ? scores[i][m] : -INFINITY;
          norm = is_seen ? max(norm, norm_v[m]) : norm;
        }
        norm_of_query[i] = maximum_of_column(norm);
      }
    }

    half2 high[2];
    half2 low[2];
    float factors[2];
    softmax.add(scores, norm_v, norm_of_query, is_low, high, low, factors);
    HalfMatrix weights[8];
    spread_weights(high, low, at, weights);
    values.accumulate(v_codes, tables[1], weights, factors, sums);
  }

  // From matrices to rows.
  threadgroup float *rows_of_sums = sums_of_groups[simd_group];
#pragma clang loop unroll(full)
  for (int i = 0; i < 2; i++) {
    const float unit = inverse_of_power(softmax.power[i]) / kCentroidUnit;
#pragma clang loop unroll(full)
    for (int j = 0; j < D / 8; j++) {
      const float part = sums[j].thread_elements()[i];
      const float sum = part + simd_shuffle_xor(part, 8);
      if (!is_low) {
        rows_of_sums[place_of_sum<D>(first_of_lane + uint(i), at.row * (D / 8) + uint(j))] = sum * unit;
      }
    }
  }
  simdgroup_barrier(mem_flags::mem_threadgroup);
  float output[kQueries * L::values];
#pragma clang loop unroll(full)
  for (int n = 0; n < kQueries; n++) {
#pragma clang loop unroll(full)
    for (int i = 0; i < L::values; i++) {
      const int d = L::first(i / L::width, lane) + i % L::width;
      output[n * L::values + i] = rows_of_sums[place_of_sum<D>(uint(n), uint(d))];
    }
  }
  // A query's softmax is in all lanes of its column, and goes to those that stand for it at the end.
  Softmax of_query;
  const uint query = lane / (32 / kQueries);
#pragma clang loop unroll(full)
  for (uint i = 0; i < 2; i++) {
    const float sum = sum_of_column(softmax.queries[i].sum);
    const float maximum_of_query = simd_shuffle(softmax.queries[i].maximum, ushort(query / 2));
    const float sum_of_query = simd_shuffle(sum, ushort(query / 2));
    of_query.maximum = query % 2 == i ? maximum_of_query : of_query.maximum;
    of_query.sum = query % 2 == i ? sum_of_query : of_query.sum;
  }
  store_block<D, kQueries>(params, sinks, out, lse, states, outputs, block, first_query, first_in_head, kv_head, lane,
                           of_query, output);
}

// Entry points.

instantiate_kernel("flash_attn_vec_tq_matrices_d64", attend_codes, 64);
instantiate_kernel("flash_attn_vec_tq_matrices_d128", attend_codes, 128);
