/// Joins the states of a query's blocks, in the order of the blocks: with M the largest m,
///   O = sum_b exp(m_b - M) O_b / sum_b exp(m_b - M) l_b,
/// then what ends a row: sink, rotation back, LSE. A block of which the query sees nothing has
/// l = 0 and is left out, whatever its O is.
///
/// Grid: threadgroups (queries, 1, 1) of (32, ceil(D / 32), 1): a lane has a coordinate, and of up to
/// 32 blocks at once one's factor, which the others get by a shuffle. Rows of 32 blocks are on their way
/// together. The first SIMD group ends the row. Threadgroup memory: 4 D bytes.
/// Registers: 56 (nvptx64, sm_90). Bytes moved per query: n_blocks (4 D + 8) read, a row of out written.
/// Work a query: n_blocks (D multiplications and D / 32 exp2); bound by the latency of memory.
#include <metal_stdlib>
#include <metal_simdgroup>

#include "ShaderTypes.h"
#include "common/arithmetic.h"
#include "common/instantiate.h"
#include "flash_attn_decode_finish.h"
#include "flash_attn_decode_lanes.h"
#include "flash_attn_decode_softmax.h"

using namespace metal;

/// N blocks from one on, of which some may be past the last: a lane has the state of one, and a coordinate of all.
template <int D, uint N>
struct Blocks {
  float maximum;
  float sum;
  float rows[N];

  /// All of it is on its way at once. Past the last block, that again, which counts for nothing.
  void load(const device float *states, const device float *outputs, uint first, uint blocks, uint coordinate,
            uint lane) {
    const uint own = min(first + lane, blocks - 1);
    maximum = states[2 * own];
    sum = first + lane < blocks ? states[2 * own + 1] : 0.0f;
#pragma clang loop unroll(full)
    for (uint k = 0; k < N; k++) {
      rows[k] = outputs[ulong(min(first + k, blocks - 1)) * D + coordinate];
    }
  }

  /// Adds them to the sums of the weights and of the coordinate.
  void add(float maximum_of_all, thread float &weights, thread float &output) const {
    const float own_factor = exp_of_difference(maximum - maximum_of_all);
#pragma clang loop unroll(full)
    for (uint k = 0; k < N; k++) {
      const float weight = simd_shuffle(sum, ushort(k));
      const float factor = simd_shuffle(own_factor, ushort(k));
      if (weight != 0.0f) {
        weights = fma(factor, weight, weights);
        output = fma(factor, rows[k], output);
      }
    }
  }
};

/// The sums of a query over its blocks.
struct JoinedSums {
  float maximum;
  float weights = 0.0f;
  float output = 0.0f;

  /// Adds up all blocks, N at once. The first are on their way while the maximum is looked for.
  template <int D, uint N>
  void join(const device float *states, const device float *outputs, uint blocks, uint coordinate, uint lane) {
    Blocks<D, N> some;
    some.load(states, outputs, 0, blocks, coordinate, lane);
    maximum = some.maximum;
    for (uint block = 32 + lane; block < blocks; block += 32) {
      maximum = max(maximum, states[2 * block]);
    }
    maximum = simd_max(maximum);
    some.add(maximum, weights, output);
    for (uint first = N; first < blocks; first += N) {
      some.load(states, outputs, first, blocks, coordinate, lane);
      some.add(maximum, weights, output);
    }
  }
};

template <int D>
[[kernel, max_total_threads_per_threadgroup((D + 31) / 32 * 32)]] void join_blocks(
    const device float *states [[buffer(0)]], const device float *outputs [[buffer(1)]],
    const device float *sinks [[buffer(2)]], constant FlashAttnDecodeParams &params [[buffer(5)]],
    device uchar *out [[buffer(6)]], device float *lse [[buffer(7)]], uint lane [[thread_index_in_simdgroup]],
    uint simd_group [[simdgroup_index_in_threadgroup]], uint3 group [[threadgroup_position_in_grid]]) {
  typedef Lanes<D> L;
  threadgroup float row[D];
  const uint query = group.x;
  const uint blocks = params.n_blocks;
  const device float *states_of_query = states + 2 * ulong(query) * blocks;
  const device float *outputs_of_query = outputs + ulong(query) * blocks * D;

  const uint coordinate = simd_group * 32 + lane;
  // Lanes past the last coordinate go along with it.
  const uint read = min(coordinate, uint(D - 1));
  JoinedSums sums;
  if (blocks > 16) {
    sums.join<D, 32>(states_of_query, outputs_of_query, blocks, read, lane);
  } else if (blocks > 4) {
    sums.join<D, 16>(states_of_query, outputs_of_query, blocks, read, lane);
  } else {
    sums.join<D, 4>(states_of_query, outputs_of_query, blocks, read, lane);
  }
  if (coordinate < uint(D)) {
    row[coordinate] = sums.output;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (simd_group != 0) {
    return;
  }
  float output[L::values];
#pragma clang loop unroll(full)
  for (int c = 0; c < L::chunks; c++) {
#pragma clang loop unroll(full)
    for (int i = 0; i < L::width; i++) {
      output[c * L::width + i] = L::holds(c, lane) ? row[L::first(c, lane) + i] : 0.0f;
    }
  }
  finish_row<D>(params, sinks, out, lse, query, query / params.n_q % params.n_heads, lane, sums.maximum, sums.weights,
                output);
}

// Entry points.

instantiate_kernel("flash_attn_vec_reduce_d64", join_blocks, 64);
instantiate_kernel("flash_attn_vec_reduce_d80", join_blocks, 80);
instantiate_kernel("flash_attn_vec_reduce_d96", join_blocks, 96);
instantiate_kernel("flash_attn_vec_reduce_d112", join_blocks, 112);
instantiate_kernel("flash_attn_vec_reduce_d128", join_blocks, 128);
instantiate_kernel("flash_attn_vec_reduce_d192", join_blocks, 192);
instantiate_kernel("flash_attn_vec_reduce_d256", join_blocks, 256);
instantiate_kernel("flash_attn_vec_reduce_d512", join_blocks, 512);
