/// Decode attention by products of 8x8 matrices, over f16, bf16, codes, or values in one of K and V and codes in the
/// other: what flash_attn_decode.metal does, for GPUs whose matrices have units of their own.
///
/// There a lane multiplies its columns of a key and sums the product over lanes: at four queries 73 instructions a key
/// of 4 bits, which is what bounds it. Here they are 36. A threadgroup of four SIMD groups owns 1,024 keys and a tile
/// of four queries, each SIMD group every fourth leaf of 32 keys, so that few keys keep all of them busy, and what they
/// read lies together. SIMD group n begins and ends query n for all: rotates it, and joins the four states. In a leaf:
///   S^T [32, 8]  = K [32, D] * Q^T [D, 8]      columns 0 to 3 the upper halves of q, 4 to 7 the lower, added up
///   P^T [32, 8]  = exp2(S^T - m) * norm of V   the same split, times a power of two
///   O^T [D, 8]  += V^T [D, 32] * P^T [32, 8]   D / 4 float accumulators a lane
/// Matrices have half elements: q, centroids and weights are sums of two halves each, 22 bits together, their products
/// exact in float. A row of q or of P is scaled by a power of two so that its largest element is about 2^15, and no
/// half that matters is subnormal: the NRMSE is 1.5 to 3 times that of sums in float, and within the same bound. Beside
/// K or V of bf16 they have bfloat elements, of which three make all 24 bits: a second right factor has the third.
///
/// What a row adds up follows from its own keys and their positions alone, as in the other kernel; the two do not give
/// the same bits.
///
/// Grid: threadgroups (n_blocks * n_tiles, Hkv, B) of (32, 4, 1); n_blocks counts states, of 1,024 keys each.
///
/// | K, V | threadgroup KiB at D = 64, 128 | registers, bytes spilled at D = 64 | at D = 128 |
/// | --- | --- | --- | --- |
/// | codes of up to 4 bits | 8.5, 14.5 | 128, 0 | 128, 8 |
/// | codes, some of more | 24.6, 30.6 | 128, 0 | 168, 4; V of 8 bits 76 |
/// | f16 | 10.3, 19.3 | 168, 0 | 168, 0 |
/// | bf16 | 11.4, 21.4 | 168, 0 | 168, 44 |
/// | f16 or bf16, codes | 18.3 or 19.4, 27.3 or 29.4 | 168, 0 | 168, 12 to 24 |
/// | codes, f16 or bf16 | 19.3, 29.3 | 128, 0 to 32 | 168, 48 to 72 |
///
/// The memory has sums on their way to rows, or rows on theirs to matrices, queries, and the centroids. Registers
/// (nvptx64, sm_90): 128 leave 16 SIMD groups a core, 168 twelve. Over f16 and bf16 memory bounds it, over codes of up
/// to 4 bits threadgroup memory, where a lane looks up 8 centroids a key at D = 128. At D = 256 there are no registers
/// for the sums, and their error leaves the bound.
#include <metal_stdlib>
#include <metal_simdgroup>
#include <metal_simdgroup_matrix>

#include "ShaderTypes.h"
#include "common/arithmetic.h"
#include "common/instantiate.h"
#include "common/simdgroup_tile.h"
#include "flash_attn_decode_codes.h"
#include "flash_attn_decode_elements.h"
#include "flash_attn_decode_finish.h"
#include "flash_attn_decode_keys.h"
#include "flash_attn_decode_lanes.h"
#include "flash_attn_decode_leaf.h"
#include "flash_attn_decode_queries.h"
#include "flash_attn_decode_softmax.h"
#include "flash_attn_decode_weights.h"

using namespace metal;

/// Formats of K and V, as DecodeFormat of the host has them.
constant uint k_format [[function_constant(420)]];
constant uint v_format [[function_constant(421)]];
/// Whether the first rows of both begin at multiples of 16 bytes.
constant bool are_rows_aligned [[function_constant(422)]];

/// Queries of a tile, as many as a threadgroup has SIMD groups.
constant constexpr int kQueries = 4;
/// Keys from one leaf of a SIMD group to its next, and of a state.
constant constexpr int kLeafStep = kQueries * kLeafKeys;
constant constexpr int kStateKeys = 1024;

/// Where coordinate d of a query's sums lies in threadgroup memory: lanes that have every (D / 8)th meet in no bank.
template <int D>
inline uint place_of_sum(uint query, uint d) {
  return query * (D + 33) + d + d / (D / 8) * 4;
}

/// Rotates a query for codes, scales it to 2^15 and stores its parts where a product with keys finds them, each four
/// rows further on. The inverse of the scale goes to `unit`.
template <int D, typename Keys>
inline void store_query(constant FlashAttnDecodeParams &params, const device uchar *q, uint query, bool exists,
                        uint lane, threadgroup typename Keys::Element *row, threadgroup float &unit) {
  typedef typename Keys::Element Element;
  typedef Lanes<D> L;
  float values[L::values];
  load_queries<D, 1>(params, q, query, exists ? 1 : 0, lane, values);
  if (Keys::is_coded) {
    sign_lanes<D>(values, lane);
    hadamard_lanes<D>(values, lane);
  }
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
    float2 rest = values[i] * power;
    threadgroup Element *to = row + Keys::place(uint(d));
#pragma clang loop unroll(full)
    for (int p = 0; p < 2 * RightFactors<Element>::count; p++) {
      const vec<Element, 2> part = take_part<Element>(rest);
      if (Keys::columns == 2) {
        *(threadgroup vec<Element, 2> *)to = part;
      } else {
        *to = part.x;
      }
      to += kQueries * Keys::query_row;
    }
  }
}

/// D is the head size of all tensors.
template <int D, typename Keys, typename Values>
[[kernel, max_total_threads_per_threadgroup(Keys::most_threads)]] void attend_blocks(
    const device uchar *q [[buffer(0)]], const device uchar *k [[buffer(1)]], const device float *norms_k [[buffer(2)]],
    const device uchar *v [[buffer(3)]], const device float *norms_v [[buffer(4)]],
    constant FlashAttnDecodeParams &params [[buffer(5)]], device uchar *out [[buffer(6)]],
    device float *lse [[buffer(7)]], const device int *seq_lens [[buffer(8)]],
    const device int *block_table [[buffer(9)]], const device float *sinks [[buffer(10)]],
    const device float *alibi_slopes [[buffer(11)]], const device uint *tree_mask [[buffer(12)]],
    device float *states [[buffer(13)]], device float *outputs [[buffer(14)]], uint lane [[thread_index_in_simdgroup]],
    uint simd_group [[simdgroup_index_in_threadgroup]], uint3 group [[threadgroup_position_in_grid]]) {
  typedef Lanes<D> L;
  constexpr bool are_both_coded = Keys::is_coded && Values::is_coded;
  constexpr bool is_any_coded = Keys::is_coded || Values::is_coded;
  // Whether there are registers for the next leaf of K beside this one of V.
  constexpr bool is_ahead = are_both_coded || D <= 64;
  // Of a SIMD group: rows on their way to matrices, and behind the last leaf sums on their way to rows.
  constexpr int staged = (Keys::is_coded ? Values::staged_bytes : Keys::staged_bytes) / 16;
  constexpr int summed = (kQueries * (D + 33) + 3) / 4;
  threadgroup uint4 memory[kQueries][staged > summed ? staged : summed];
  threadgroup float2 softmaxes[kQueries][kQueries];  // maximum and sum
  threadgroup
      typename Keys::Element rotated[RightFactors<typename Keys::Element>::count * 2 * kQueries * Keys::query_row];
  threadgroup float units[kQueries];
  // Centroids of K and V: of as many bits in both they are the same.
  threadgroup uint4 tables[are_both_coded ? Keys::table_words / 4 : is_any_coded ? kTableBesideRows / 4 : 1];

  const uint k_codes = Keys::is_coded ? k_format : 0;
  const uint v_codes = Values::is_coded ? v_format : 0;
  const CodeFormat format_k(k_codes, v_codes, are_rows_aligned);
  const CodeFormat format_v(v_codes, k_codes, are_rows_aligned);
  threadgroup uint *k_table = (threadgroup uint *)tables;
  threadgroup uint *v_table =
      k_table + (are_both_coded && format_k.bits != format_v.bits ? format_k.words_of_table() : 0);
  if (Keys::is_coded) {
    fill_table<32 * kQueries>(k_table, format_k, simd_group * 32 + lane);
  }
  if (Values::is_coded) {
    fill_table<32 * kQueries>(v_table, format_v, simd_group * 32 + lane);
  }

  const uint first_in_head = group.x % params.n_tiles * kQueries;
  const uint state = group.x / params.n_tiles;
  const uint kv_head = group.y;
  const uint batch = group.z;
  const uint queries = params.n_heads / params.n_kv_heads * params.n_q;  // that share the head of K and V
  const uint first_query = (batch * params.n_kv_heads + kv_head) * queries + first_in_head;

  const Sequence sequence(params, seq_lens, batch);
  const CacheRows cache(params, block_table, batch, kv_head);
  const int first_key = sequence.first_seen(params);
  const int start = (first_key / kStateKeys + int(state)) * kStateKeys;
  const int end_key = min(start + kStateKeys, sequence.length);
  const int last_key = max(first_key, end_key - 1);
  // The first of the SIMD group's leaves with a key that a row sees.
  const int own_start = start + int(simd_group) * kLeafKeys;
  const int first_leaf = own_start + max(0, first_key - own_start - kLeafKeys + kLeafStep) / kLeafStep * kLeafStep;

  // The first leaf is on its way while queries are rotated. A key that nobody sees is read as one that somebody does.
  const MatrixLane at(lane);
  const bool has_keys = first_leaf < end_key;
  LeafRows rows(has_keys ? cache.at(uint(clamp(first_leaf + int(lane), first_key, last_key))) : 0, lane);
  // An address that nobody needs would take a register.
  threadgroup uint4 *own_memory = staged == 0 ? nullptr : memory[simd_group];
  Keys keys(k_codes, v_codes, are_rows_aligned, k_table, lane, own_memory);
  LeafNorms norms;
  if (has_keys) {
    keys.load(k, rows, at);
    norms.load<Keys::is_coded, Values::is_coded>(norms_k, norms_v, rows, at);
  }
  store_query<D, Keys>(params, q, first_query + simd_group, first_in_head + simd_group < queries, lane,
                       rotated + simd_group * Keys::query_row, units[simd_group]);
  threadgroup_barrier(mem_flags::mem_threadgroup);

  // The lane's queries, and of those past the last that one.
  const bool is_low = at.pair >= 2;
  const uint first_of_lane = at.pair % 2 * 2;
  const uint query_of_lane[2] = {min(first_in_head + first_of_lane, queries - 1),
                                 min(first_in_head + first_of_lane + 1, queries - 1)};
  const float2 factor_of_query = params.scale * (Keys::is_coded ? unit_of_codes<D>(params) / kCentroidUnit : 1.0f) *
                                 float2(units[first_of_lane], units[first_of_lane + 1]);
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

  for (int leaf = first_leaf; leaf < end_key; leaf += kLeafStep) {
    Values values(v_codes, k_codes, are_rows_aligned, v_table, lane, own_memory);
    Accumulator products[4];
    if (!Keys::is_coded) {
      keys.stage(0, at);
      multiply_leaf<D, 0>(keys, rotated, products);
      keys.stage(1, at);
    }
    if (!Values::is_coded) {
      values.load(v, rows, at);
    }
    multiply_leaf<D, Keys::parts - 1>(keys, rotated, products);
    float scores[2][2];
#pragma clang loop unroll(full)
    for (int m = 0; m < 2; m++) {
#pragma clang loop unroll(full)
      for (int i = 0; i < 2; i++) {
        const float first = products[m].thread_elements()[i];
        const float second = products[m + 2].thread_elements()[i];
        const float product = (is_low ? second : first) + simd_shuffle_xor(is_low ? first : second, 8);
        scores[i][m] = product * norms.k[m] * factor_of_query[i];
      }
    }
    const float norm_v[2] = {norms.v[0], norms.v[1]};
    const float largest_norm = Values::is_coded ? maximum_of_column(max(norm_v[0], norm_v[1])) : 1.0f;
    float norm_of_query[2] = {largest_norm, largest_norm};
    if (Values::is_coded) {
      values.load(v, rows, at);
    }
    // What the next leaf needs is on its way as early as registers allow; behind the last it is read again.
    rows = LeafRows(cache.at(uint(clamp(leaf + kLeafStep + int(lane), first_key, last_key))), lane);
    if (is_ahead) {
      keys.load(k, rows, at);
      norms.load<Keys::is_coded, Values::is_coded>(norms_k, norms_v, rows, at);
    }

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
        if (Values::is_coded) {
          norm_of_query[i] = maximum_of_column(norm);
        }
      }
    }

    float2 weights_of_key[2];
    float factors[2];
    softmax.add(scores, norm_v, norm_of_query, is_low, weights_of_key, factors);
    typedef typename Values::Element Element;
    Matrix<Element> weights[Values::matrices * RightFactors<Element>::count];
    Values::spread(weights_of_key, at, weights);
    // Codes are not staged: they are multiplied as they are read.
    values.stage(0, at);
    accumulate_leaf<D, 0>(values, weights, factors, sums);
    values.stage(1, at);
    if (!is_ahead) {
      keys.load(k, rows, at);
      norms.load<Keys::is_coded, Values::is_coded>(norms_k, norms_v, rows, at);
    }
    if (!Values::is_coded) {
      accumulate_leaf<D, 1>(values, weights, factors, sums);
    }
  }

  // From matrices to rows.
  simdgroup_barrier(mem_flags::mem_threadgroup);
  threadgroup float *rows_of_sums = (threadgroup float *)memory[simd_group];
#pragma clang loop unroll(full)
  for (int i = 0; i < 2; i++) {
    const float unit = inverse_of_power(softmax.power[i]) / (Values::is_coded ? kCentroidUnit : 1.0f);
#pragma clang loop unroll(full)
    for (int j = 0; j < D / 8; j++) {
      const float part = sums[j].thread_elements()[i];
      const float sum = part + simd_shuffle_xor(part, 8);
      if (!is_low) {
        const uint d = Values::coordinate(at.row, uint(j));
        rows_of_sums[place_of_sum<D>(first_of_lane + uint(i), d)] = sum * unit;
      }
    }
    const float weights = sum_of_column(softmax.queries[i].sum);
    if (!is_low && at.row == 0) {
      softmaxes[simd_group][first_of_lane + uint(i)] = float2(softmax.queries[i].maximum, weights);
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);

  // The state of a query over the SIMD groups, in their order.
  Softmax joined;
#pragma clang loop unroll(full)
  for (int g = 0; g < kQueries; g++) {
    joined.maximum = max(joined.maximum, softmaxes[g][simd_group].x);
  }
  float output[L::values] = {};
#pragma clang loop unroll(full)
  for (int g = 0; g < kQueries; g++) {
    const float2 of_group = softmaxes[g][simd_group];
    const threadgroup float *rows_of_group = (const threadgroup float *)memory[g];
    // One that has no key in sight of the query has no maximum.
    const float factor = of_group.y == 0.0f ? 0.0f : exp_of_difference(of_group.x - joined.maximum);
    joined.sum = fma(of_group.y, factor, joined.sum);
#pragma clang loop unroll(full)
    for (int i = 0; i < L::values; i++) {
      const int d = L::first(i / L::width, lane) + i % L::width;
      output[i] = fma(rows_of_group[place_of_sum<D>(simd_group, uint(d))], factor, output[i]);
    }
  }
  store_block<D, 1>(params, sinks, out, lse, states, outputs, state, first_query + simd_group,
                    first_in_head + simd_group, kv_head, lane, joined, output);
}

// Entry points.

// K and V of f16, of bf16.
instantiate_kernel("flash_attn_vec_matrices_d64", attend_blocks, 64, DenseKeys<64, half>, DenseValues<64, half>);
instantiate_kernel("flash_attn_vec_matrices_d128", attend_blocks, 128, DenseKeys<128, half>, DenseValues<128, half>);
instantiate_kernel("flash_attn_vec_bf16_matrices_d64", attend_blocks, 64, DenseKeys<64, bfloat>,
                   DenseValues<64, bfloat>);
instantiate_kernel("flash_attn_vec_bf16_matrices_d128", attend_blocks, 128, DenseKeys<128, bfloat>,
                   DenseValues<128, bfloat>);
// Codes of up to 4 bits in K and V; of more in one of them.
instantiate_kernel("flash_attn_vec_tq_matrices_d64", attend_blocks, 64, CodedKeys<64, false>, CodedValues<64, false>);
instantiate_kernel("flash_attn_vec_tq_matrices_d128", attend_blocks, 128, CodedKeys<128, false>,
                   CodedValues<128, false>);
instantiate_kernel("flash_attn_vec_hb_matrices_d64", attend_blocks, 64, CodedKeys<64, true>, CodedValues<64, true>);
instantiate_kernel("flash_attn_vec_hb_matrices_d128", attend_blocks, 128, CodedKeys<128, true>, CodedValues<128, true>);
// Codes of any width in V, in K, beside values.
instantiate_kernel("flash_attn_vec_hybrid_matrices_d64", attend_blocks, 64, DenseKeys<64, half>, CodedValues<64, true>);
instantiate_kernel("flash_attn_vec_hybrid_matrices_d128", attend_blocks, 128, DenseKeys<128, half>,
                   CodedValues<128, true>);
instantiate_kernel("flash_attn_vec_hybrid_k_matrices_d64", attend_blocks, 64, CodedKeys<64, true>,
                   DenseValues<64, half>);
instantiate_kernel("flash_attn_vec_hybrid_k_matrices_d128", attend_blocks, 128, CodedKeys<128, true>,
                   DenseValues<128, half>);
instantiate_kernel("flash_attn_vec_hybrid_bf16_matrices_d64", attend_blocks, 64, DenseKeys<64, bfloat>,
                   CodedValues<64, true>);
instantiate_kernel("flash_attn_vec_hybrid_bf16_matrices_d128", attend_blocks, 128, DenseKeys<128, bfloat>,
                   CodedValues<128, true>);
instantiate_kernel("flash_attn_vec_hybrid_k_bf16_matrices_d64", attend_blocks, 64, CodedKeys<64, true>,
                   DenseValues<64, bfloat>);
instantiate_kernel("flash_attn_vec_hybrid_k_bf16_matrices_d128", attend_blocks, 128, CodedKeys<128, true>,
                   DenseValues<128, bfloat>);
