/// Decode attention: one to 16 query rows of each sequence over its cache, f32,
/// f16, bf16 or Hadamard-quantized, K and V each their own, never decoded to memory:
///   s[j] = scale * <q, K[j]>, softcap * tanh(s / softcap), + slope * (j - p), for the keys j that row p sees
///   O    = sum_j exp(s[j] - m) V[j] / (sum_j exp(s[j] - m) + exp(sink - m))
/// Over codes q is rotated once, q^ = H S q / sqrt(B), since <q, K[j]> = norm * <q^, centroids>, and O
/// is rotated back once, in f32; hadamard_encode.h says what a cache holds.
///
/// Shapes: q, out [B, H, nQ, D] f32, f16 or bf16; K, V [B, Hkv, capacity, row] or pages [n_pages, Hkv,
/// page_tokens, row]; lse [B, H, nQ] f32.
///
/// Keys are cut at multiples of 256, whatever the cache, into blocks. A threadgroup owns a block and a
/// tile of QUERIES of the H / Hkv * nQ queries that share its head of K and V, so that they share each
/// load and each decoded code. Its two SIMD groups own half of the keys each, a part; they rotate the
/// queries once between them, and join their states at the end, through threadgroup memory. A SIMD group
/// walks leaves of 32 keys:
///   scores   a key a load of all lanes; 32 products at a time (32 / QUERIES keys) summed over lanes
///   softmax  a lane a score, exp2 once a score
///   O        += weight * V[j], in the order of keys
/// The states (m, l, O) of the blocks go to scratch, [queries, n_blocks] of two floats and then of D,
/// and `flash_attn_vec_reduce*` joins them in the order of blocks; a sequence that the host knows to
/// have one block is finished here. The order of all sums follows from positions alone: neither batch,
/// heads that share, rows of a call, capacity, pages, ring nor splits change a bit.
///
/// Grid: threadgroups (n_blocks * n_tiles, Hkv, B) of (32, 2, 1). Threadgroup memory in bytes:
/// 4 QUERIES (D + 2 (V_DIM + 2)), 6,208 at QUERIES = 4, D = 128, at most 12,352 (D = 256 and 512).
/// Floats a lane at QUERIES = 4, D = 128: 16 (q) + 16 (O) + 32 (products) + 4 (a row), and of dense rows
/// 32 words of the step being used and 32 of the next, half of them in f16.
/// Work a key and query: 2 D multiplications, 63 operations to sum 32 products, an exp2. Dense rows are
/// bound by memory: by how many bytes are on their way, which is why a step is asked for before the one
/// before it is used. Codes are bound by the arithmetic that decodes them.
#include <metal_stdlib>
#include <metal_simdgroup>

#include "ShaderTypes.h"
#include "common/element.h"
#include "common/instantiate.h"
#include "flash_attn_decode_finish.h"
#include "flash_attn_decode_keys.h"
#include "flash_attn_decode_lanes.h"
#include "flash_attn_decode_rows.h"
#include "flash_attn_decode_softmax.h"

using namespace metal;

/// Formats of K and V: of a dense one MA_DTYPE_*, of codes what CodeRows says.
constant uint k_format [[function_constant(420)]];
constant uint v_format [[function_constant(421)]];

/// The rows of a head of K or V: dense, or codes.
template <int D, int STRIDE, bool CODES>
struct RowsOf {
  typedef DenseRows<D, STRIDE> type;
  static type of(const device uchar *rows, uint format, uint) { return {rows, format}; }
};
template <int D, int STRIDE>
struct RowsOf<D, STRIDE, true> {
  typedef CodeRows<D> type;
  static type of(const device uchar *rows, uint format, uint lane) { return type(rows, format, lane); }
};

/// 32 keys: lane l has the row of key l. `is_run`: they are neighbours; `is_aligned`: rows begin at 16 bytes.
struct Leaf {
  uint row;
  bool is_run;
  bool is_aligned;
};

/// The bits of the rows of a step of a leaf: those of dense rows are asked for a step before they are used,
/// while codes take so long to decode that others fill the time.
template <int QUERIES, typename Rows>
struct Fetched {
  static constant constexpr int per_step = 32 / QUERIES;
  /// Where a lane has registers for two steps.
  static constant constexpr bool is_ahead = Rows::norms == 0 && per_step * Rows::words <= 32;
  uint next[per_step * Rows::words];

  void fetch(Rows rows, Leaf leaf, int step, uint lane) thread {
    if (leaf.is_run && leaf.is_aligned) {
      const device uchar *first = rows.at(simd_shuffle(leaf.row, ushort(step * per_step)));
#pragma clang loop unroll(full)
      for (int k = 0; k < per_step; k++) {
        rows.template fetch<true>(first + uint(k) * rows.row_bytes(), lane, next + k * Rows::words);
      }
    } else if (leaf.is_aligned) {
      fetch_rows<true>(rows, leaf, step, lane);
    } else {
      fetch_rows<false>(rows, leaf, step, lane);
    }
  }

  template <bool IS_ALIGNED>
  void fetch_rows(Rows rows, Leaf leaf, int step, uint lane) thread {
#pragma clang loop unroll(full)
    for (int k = 0; k < per_step; k++) {
      const uint row = simd_shuffle(leaf.row, ushort(step * per_step + k));
      rows.template fetch<IS_ALIGNED>(rows.at(row), lane, next + k * Rows::words);
    }
  }

  /// Asks for the first step.
  void start(Rows rows, Leaf leaf, uint lane) thread {
    if (is_ahead) {
      fetch(rows, leaf, 0, lane);
    }
  }

  /// The bits of step `step`.
  void take(Rows rows, Leaf leaf, int step, uint lane, thread uint *bits) thread {
    if (!is_ahead) {
      fetch(rows, leaf, step, lane);
    }
#pragma clang loop unroll(full)
    for (int i = 0; i < per_step * Rows::words; i++) {
      bits[i] = next[i];
    }
    if (is_ahead && step + 1 < QUERIES) {
      fetch(rows, leaf, step + 1, lane);
    }
  }
};

/// The products of 32 keys with the queries, from rows of K: for step n of a leaf in products[n].
template <int D, int QUERIES, typename Rows>
inline void multiply_leaf(Rows keys, Leaf leaf, const thread float *q, uint lane, const device float *norms,
                          thread float *products) {
  typedef Lanes<D> L;
  constexpr int per_step = 32 / QUERIES;
  Fetched<QUERIES, Rows> fetched;
  fetched.start(keys, leaf, lane);
  const float norm = Rows::norms == 1 ? norms[leaf.row] : 0.0f;
  // A loop, and products move down: registers have no index.
#pragma clang loop unroll(disable)
  for (int step = 0; step < QUERIES; step++) {
    uint bits[per_step * Rows::words];
    float parts[32];
    fetched.take(keys, leaf, step, lane, bits);
#pragma clang loop unroll(full)
    for (int k = 0; k < per_step; k++) {
      float values[L::values];
      keys.decode(bits + k * Rows::words, values);
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
          const uint row_of_key = simd_shuffle(leaf.row, ushort(step * per_step + k));
          part = fma(high, norms[row_of_key * 2 + 1], low * norms[row_of_key * 2]);
        } else {
#pragma clang loop unroll(full)
          for (int i = 0; i < L::values; i++) {
            part = fma(q[n * L::values + i], values[i], part);
          }
        }
        parts[n * per_step + k] = part;
      }
    }
#pragma clang loop unroll(full)
    for (int i = 0; i + 1 < QUERIES; i++) {
      products[i] = products[i + 1];
    }
    products[QUERIES - 1] = sums_of_lanes(parts, lane);
    if (Rows::norms == 1) {
      products[QUERIES - 1] *= simd_shuffle(norm, ushort(step * per_step + lane % per_step));
    }
  }
}

/// output += weights * rows of V, of which `fetched` has the first step. A weight below 0 is that of a
/// key that the query does not see, whose row may hold anything; where `IS_EDGE` is false there is none.
template <int V, int QUERIES, bool IS_EDGE, typename Rows>
inline void accumulate_leaf(Rows rows, thread Fetched<QUERIES, Rows> &fetched, Leaf leaf, thread float *weights,
                            uint lane, const device float *norms, thread float *output) {
  typedef Lanes<V> L;
  constexpr int per_step = 32 / QUERIES;
  constexpr int norm_count = Rows::norms == 0 ? 1 : Rows::norms;
  constexpr int values_a_norm = L::values / norm_count;
  float norm_of_lane[norm_count];
#pragma clang loop unroll(full)
  for (int n = 0; n < norm_count; n++) {
    norm_of_lane[n] = Rows::norms == 0 ? 1.0f : norms[leaf.row * norm_count + n];
  }
#pragma clang loop unroll(disable)
  for (int step = 0; step < QUERIES; step++) {
    uint bits[per_step * Rows::words];
    fetched.take(rows, leaf, step, lane, bits);
    const ushort key_of_lane = ushort(step * per_step + lane % per_step);
    float scaled[norm_count];
#pragma clang loop unroll(full)
    for (int n = 0; n < norm_count; n++) {
      scaled[n] = Rows::norms == 0 ? weights[0] : weights[0] * simd_shuffle(norm_of_lane[n], key_of_lane);
    }
#pragma clang loop unroll(full)
    for (int k = 0; k < per_step; k++) {
      float values[L::values];
      rows.decode(bits + k * Rows::words, values);
      float shares[QUERIES * norm_count];
      bool is_seen[QUERIES];
#pragma clang loop unroll(full)
      for (int i = 0; i < QUERIES * norm_count; i++) {
        const ushort source = ushort(i / norm_count * per_step + k);
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

/// Puts a query, rotated where K is, where all SIMD groups of the block find it.
template <int D, bool K_CODES>
inline void share_query(constant FlashAttnDecodeParams &params, const device uchar *queries, uint query, bool exists,
                        uint lane, threadgroup float *shared) {
  typedef Lanes<D> L;
  float values[L::values];
#pragma clang loop unroll(full)
  for (int i = 0; i < L::values; i++) {
    const int chunk = i / L::width;
    values[i] =
        exists && L::holds(chunk, lane)
            ? load_element(queries, ulong(query) * D + uint(L::first(chunk, lane) + i % L::width), params.q_dtype)
            : 0.0f;
  }
  if (K_CODES) {
    sign_lanes<D>(values, lane);
    hadamard_lanes<D>(values, lane);
  }
#pragma clang loop unroll(full)
  for (int i = 0; i < L::values; i++) {
    const int chunk = i / L::width;
    if (L::holds(chunk, lane)) {
      shared[L::first(chunk, lane) + i % L::width] = values[i];
    }
  }
}

/// Joins the parts of a block for query n of the tile, in their order, as blocks are joined. A part of
/// which the query sees nothing has sum 0 and is left out.
template <int V_DIM, int QUERIES>
inline Softmax join_parts(const threadgroup float *states, const threadgroup float *outputs, uint n, uint lane,
                          thread float *joined) {
  typedef Lanes<V_DIM> L;
  Softmax state;
#pragma clang loop unroll(full)
  for (int part = 0; part < kBlockParts; part++) {
    state.maximum = max(state.maximum, states[(uint(part * QUERIES) + n) * 2]);
  }
#pragma clang loop unroll(full)
  for (int i = 0; i < L::values; i++) {
    joined[i] = 0.0f;
  }
#pragma clang loop unroll(full)
  for (int part = 0; part < kBlockParts; part++) {
    const uint place = uint(part * QUERIES) + n;
    const float sum = states[place * 2 + 1];
    if (sum == 0.0f) {
      continue;
    }
    const float factor = exp_of_difference(states[place * 2] - state.maximum);
    state.sum = fma(factor, sum, state.sum);
#pragma clang loop unroll(full)
    for (int i = 0; i < L::values; i++) {
      const int chunk = i / L::width;
      if (L::holds(chunk, lane)) {
        joined[i] = fma(factor, outputs[place * V_DIM + uint(L::first(chunk, lane) + i % L::width)], joined[i]);
      }
    }
  }
  return state;
}

/// Stores the state of a block: the maximum and the sum of a query, and its sums of rows, which nobody reads
/// where there are none.
template <int D>
inline void store_state(device float *states, device float *outputs, ulong state, uint lane, float maximum, float sum,
                        const thread float *output) {
  typedef Lanes<D> L;
  if (lane == 0) {
    states[2 * state] = maximum;
    states[2 * state + 1] = sum;
  }
#pragma clang loop unroll(full)
  for (int c = 0; c < L::chunks; c++) {
    if (L::holds(c, lane)) {
#pragma clang loop unroll(full)
      for (int i = 0; i < L::width; i++) {
        outputs[state * D + uint(L::first(c, lane) + i)] = output[c * L::width + i];
      }
    }
  }
}

/// D is the head size of q and K, V_DIM that of V and out, in rows V_STRIDE apart.
template <int D, int V_DIM, int V_STRIDE, int QUERIES, bool K_CODES, bool V_CODES>
[[kernel, max_total_threads_per_threadgroup(32 * kBlockParts)]] void attend_block(
    const device uchar *q [[buffer(0)]], const device uchar *k [[buffer(1)]], const device float *norms_k [[buffer(2)]],
    const device uchar *v [[buffer(3)]], const device float *norms_v [[buffer(4)]],
    constant FlashAttnDecodeParams &params [[buffer(5)]], device uchar *out [[buffer(6)]],
    device float *lse [[buffer(7)]], const device int *seq_lens [[buffer(8)]],
    const device int *block_table [[buffer(9)]], const device float *sinks [[buffer(10)]],
    const device float *alibi_slopes [[buffer(11)]], const device uint *tree_mask [[buffer(12)]],
    device float *states [[buffer(13)]], device float *outputs [[buffer(14)]], uint lane [[thread_index_in_simdgroup]],
    uint simd_group [[simdgroup_index_in_threadgroup]], uint3 group [[threadgroup_position_in_grid]]) {
  typedef Lanes<D> K;
  typedef Lanes<V_DIM> V;
  constexpr int per_step = 32 / QUERIES;
  threadgroup float shared_queries[QUERIES * D];
  threadgroup float shared_outputs[kBlockParts * QUERIES * V_DIM];
  threadgroup float shared_states[kBlockParts * QUERIES * 2];

  const uint block = group.x / params.n_tiles;
  const uint kv_head = group.y;
  const uint batch = group.z;
  const uint queries = params.n_heads / params.n_kv_heads * params.n_q;  // that share the head of K and V
  const uint first_in_head = group.x % params.n_tiles * QUERIES;
  const uint first_query = (batch * params.n_kv_heads + kv_head) * queries + first_in_head;

  const Sequence sequence(params, seq_lens, batch);
  const int block_start = (sequence.first_block(params) + int(block)) * kBlockKeys;
  const int part_start = block_start + int(simd_group) * kPartKeys;
  const int first_key = max(block_start, sequence.first_seen(params));
  const int end_key = min(block_start + kBlockKeys, sequence.length);

  for (uint n = simd_group; n < uint(QUERIES); n += kBlockParts) {
    share_query<D, K_CODES>(params, q, first_query + n, first_in_head + n < queries, lane, shared_queries + n * D);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);

  // Of the lane's query in scores; those past the last stand for it, and are dropped.
  const uint query_of_lane = min(first_in_head + lane / per_step, queries - 1);
  const uint head_of_lane = kv_head * (queries / params.n_q) + query_of_lane / params.n_q;
  const Visible visible(params, sequence, tree_mask, batch, query_of_lane % params.n_q);
  const ScoreRule rule = {params.scale * (K_CODES ? unit_of_codes<D>(params) : 1.0f), params.softcap,
                          (params.present & MA_DECODE_ALIBI) != 0 ? alibi_slopes[head_of_lane] : 0.0f,
                          sequence.position_of_first_row(params) + int(query_of_lane % params.n_q)};

  float query[QUERIES * K::values];
  float output[QUERIES * V::values];
  Softmax softmax;
#pragma clang loop unroll(full)
  for (int i = 0; i < QUERIES * K::values; i++) {
    const int chunk = i % K::values / K::width;
    query[i] = K::holds(chunk, lane) ? shared_queries[i / K::values * D + K::first(chunk, lane) + i % K::width] : 0.0f;
  }
#pragma clang loop unroll(full)
  for (int i = 0; i < QUERIES * V::values; i++) {
    output[i] = 0.0f;
  }

  using Keys = typename RowsOf<D, D, K_CODES>::type;
  using Values = typename RowsOf<V_DIM, V_STRIDE, V_CODES>::type;
  const bool is_aligned = (params.present & MA_DECODE_ALIGNED) != 0;
  const Keys keys = RowsOf<D, D, K_CODES>::of(k, k_format, lane);
  const Values values = RowsOf<V_DIM, V_STRIDE, V_CODES>::of(v, v_format, lane);
#pragma clang loop unroll(disable)
  for (int start = part_start; start < min(part_start + kPartKeys, end_key); start += kLeafKeys) {
    if (start + kLeafKeys <= first_key) {
      continue;
    }
    // A key that nobody sees is read as one that somebody does.
    const int key_of_row = clamp(start + int(lane), first_key, end_key - 1);
    const uint row = row_of(params, block_table, batch, kv_head, uint(key_of_row));
    const Leaf leaf = {row, simd_all(row == simd_shuffle(row, ushort(0)) + lane), is_aligned};
    float scores[QUERIES];
    multiply_leaf<D, QUERIES>(keys, leaf, query, lane, norms_k, scores);
    Fetched<QUERIES, Values> fetched;
    fetched.start(values, leaf, lane);
    const bool is_inner = simd_all(visible.sees_all(start, start + kLeafKeys - 1));
#pragma clang loop unroll(full)
    for (int step = 0; step < QUERIES; step++) {
      scores[step] = rule.of(scores[step], start + step * per_step + int(lane % per_step));
    }
    if (!is_inner) {
#pragma clang loop unroll(full)
      for (int step = 0; step < QUERIES; step++) {
        const int key = start + step * per_step + int(lane % per_step);
        scores[step] = visible.sees(key) ? scores[step] : -INFINITY;
      }
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
        output[i] *= factors[i / V::values];
      }
    }
    if (is_inner) {
      accumulate_leaf<V_DIM, QUERIES, false>(values, fetched, leaf, scores, lane, norms_v, output);
    } else {
#pragma clang loop unroll(full)
      for (int step = 0; step < QUERIES; step++) {
        const int key = start + step * per_step + int(lane % per_step);
        scores[step] = visible.sees(key) ? scores[step] : -1.0f;
      }
      accumulate_leaf<V_DIM, QUERIES, true>(values, fetched, leaf, scores, lane, norms_v, output);
    }
  }

  if (lane % per_step == 0) {
    const uint place = (simd_group * QUERIES + lane / per_step) * 2;
    shared_states[place] = softmax.maximum;
    shared_states[place + 1] = softmax.sum;
  }
#pragma clang loop unroll(full)
  for (int i = 0; i < QUERIES * V::values; i++) {
    const int chunk = i % V::values / V::width;
    if (V::holds(chunk, lane)) {
      shared_outputs[(int(simd_group) * QUERIES + i / V::values) * V_DIM + V::first(chunk, lane) + i % V::width] =
          output[i];
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);

  for (uint n = simd_group; n < uint(QUERIES) && first_in_head + n < queries; n += kBlockParts) {
    float joined[Lanes<V_DIM>::values];
    const Softmax state = join_parts<V_DIM, QUERIES>(shared_states, shared_outputs, n, lane, joined);
    const uint index = first_query + n;
    if (params.n_blocks == 1) {
      const uint head = kv_head * (queries / params.n_q) + (first_in_head + n) / params.n_q;
      finish_row<V_DIM>(params, sinks, out, lse, index, head, lane, state.maximum, state.sum, joined);
    } else {
      store_state<V_DIM>(states, outputs, ulong(index) * params.n_blocks + block, lane, state.maximum, state.sum,
                         joined);
    }
  }
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
