/// Joins the states of a query's blocks, in the order of the blocks: with M the largest m,
///   O = sum_b exp(m_b - M) O_b / sum_b exp(m_b - M) l_b,
/// then what ends a row: sink, rotation back, LSE. A block of which the query sees nothing has
/// l = 0 and is left out, its O is not read.
///
/// Grid: threadgroups (queries, 1, 1) of (32, 4, 1), which have the row in threadgroup memory at the end,
/// 4 D bytes. A thread adds up a coordinate in 128 over all blocks, of which it asks for 32 at once: there
/// are few threads, and each would wait for memory as often as it asks.
/// Work a query: n_blocks (D multiplications and an exp2); bound by memory.
#include <metal_stdlib>
#include <metal_simdgroup>

#include "ShaderTypes.h"
#include "common/instantiate.h"
#include "flash_attn_decode_finish.h"
#include "flash_attn_decode_lanes.h"
#include "flash_attn_decode_softmax.h"

using namespace metal;

/// SIMD groups of a threadgroup, and blocks whose sums a thread asks for at once.
constant constexpr uint kJoiners = 4;
constant constexpr uint kLoads = 32;

template <int D>
[[kernel, max_total_threads_per_threadgroup(32 * kJoiners)]] void join_blocks(
    const device float *states [[buffer(0)]], const device float *outputs [[buffer(1)]],
    const device float *sinks [[buffer(2)]], constant FlashAttnDecodeParams &params [[buffer(5)]],
    device uchar *out [[buffer(6)]], device float *lse [[buffer(7)]], uint lane [[thread_index_in_simdgroup]],
    uint simd_group [[simdgroup_index_in_threadgroup]], uint3 group [[threadgroup_position_in_grid]]) {
  typedef Lanes<D> L;
  constexpr int values = (D + 32 * int(kJoiners) - 1) / (32 * int(kJoiners));
  threadgroup float row[D];
  const uint query = group.x;
  const uint blocks = params.n_blocks;
  const device float *states_of_query = states + 2 * ulong(query) * blocks;
  const device float *outputs_of_query = outputs + ulong(query) * blocks * D;
  const uint thread_of_row = simd_group * 32 + lane;

  float maximum = -INFINITY;
  for (uint block = lane; block < blocks; block += 32) {
    maximum = max(maximum, states_of_query[2 * block]);
  }
  maximum = simd_max(maximum);

  float sum = 0.0f;
  float output[values];
#pragma clang loop unroll(full)
  for (int i = 0; i < values; i++) {
    output[i] = 0.0f;
  }
  for (uint first = 0; first < blocks; first += 32) {
    const uint own = first + lane;
    const float sum_of_own = own < blocks ? states_of_query[2 * own + 1] : 0.0f;
    const float factor_of_own = sum_of_own == 0.0f ? 0.0f : exp_of_difference(states_of_query[2 * own] - maximum);
    for (uint some = 0; some < 32 && first + some < blocks; some += kLoads) {
      float loaded[kLoads * values];
#pragma clang loop unroll(full)
      for (uint b = 0; b < kLoads; b++) {
        const uint block = min(first + some + b, blocks - 1);
#pragma clang loop unroll(full)
        for (int i = 0; i < values; i++) {
          const uint coordinate = min(thread_of_row + uint(i) * 32 * kJoiners, uint(D - 1));
          loaded[b * values + i] = outputs_of_query[block * D + coordinate];
        }
      }
#pragma clang loop unroll(full)
      for (uint b = 0; b < kLoads; b++) {
        const float sum_of_block = simd_shuffle(sum_of_own, ushort(some + b));
        const float factor = simd_shuffle(factor_of_own, ushort(some + b));
        if (sum_of_block != 0.0f) {
          sum = fma(factor, sum_of_block, sum);
#pragma clang loop unroll(full)
          for (int i = 0; i < values; i++) {
            output[i] = fma(factor, loaded[b * values + i], output[i]);
          }
        }
      }
    }
  }
#pragma clang loop unroll(full)
  for (int i = 0; i < values; i++) {
    const uint coordinate = thread_of_row + uint(i) * 32 * kJoiners;
    if (coordinate < uint(D)) {
      row[coordinate] = output[i];
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (simd_group != 0) {
    return;
  }
  float whole[L::values];
#pragma clang loop unroll(full)
  for (int i = 0; i < L::values; i++) {
    const int chunk = i / L::width;
    whole[i] = L::holds(chunk, lane) ? row[L::first(chunk, lane) + i % L::width] : 0.0f;
  }
  finish_row<D>(params, sinks, out, lse, query, query / params.n_q % params.n_heads, lane, maximum, sum, whole);
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
