/// Joins the states of a query's blocks, in the order of the blocks: with M the largest m,
///   O = sum_b exp(m_b - M) O_b / sum_b exp(m_b - M) l_b,
/// then what ends a row: sink, rotation back, LSE. A block of which the query sees nothing has
/// l = 0 and is left out, whatever its O is.
///
/// Grid: threadgroups (queries, 1, 1) of one SIMD group; no threadgroup memory. A lane
/// holds the maxima of 32 blocks, and of several O_b at once its part of a row.
/// Work a query: n_blocks (D multiplications and an exp2); bound by memory.
#include <metal_stdlib>
#include <metal_simdgroup>

#include "ShaderTypes.h"
#include "common/instantiate.h"
#include "flash_attn_decode_finish.h"
#include "flash_attn_decode_lanes.h"
#include "flash_attn_decode_softmax.h"

using namespace metal;

template <int D>
[[kernel]] void join_blocks(const device float *states [[buffer(0)]], const device float *outputs [[buffer(1)]],
                            const device float *sinks [[buffer(2)]],
                            constant FlashAttnDecodeParams &params [[buffer(5)]], device uchar *out [[buffer(6)]],
                            device float *lse [[buffer(7)]], uint lane [[thread_index_in_simdgroup]],
                            uint3 group [[threadgroup_position_in_grid]]) {
  typedef Lanes<D> L;
  // Blocks whose rows are asked for at once, so that they are on their way together: 32 floats a lane.
  constexpr uint kBlocksAhead = L::values < 32 ? 32 / L::values : 1;
  const uint query = group.x;
  const uint blocks = params.n_blocks;
  const device float *states_of_query = states + 2 * ulong(query) * blocks;
  const device float *outputs_of_query = outputs + ulong(query) * blocks * D;

  float maximum = -INFINITY;
  for (uint block = lane; block < blocks; block += 32) {
    maximum = max(maximum, states_of_query[2 * block]);
  }
  maximum = simd_max(maximum);

  float sum = 0.0f;
  float output[L::values];
#pragma clang loop unroll(full)
  for (int i = 0; i < L::values; i++) {
    output[i] = 0.0f;
  }
  for (uint first = 0; first < blocks; first += kBlocksAhead) {
    float maxima[kBlocksAhead];
    float sums[kBlocksAhead];
    float rows[kBlocksAhead * L::values];
#pragma clang loop unroll(full)
    for (uint k = 0; k < kBlocksAhead; k++) {
      // Past the last block, that again, which then counts for nothing.
      const uint block = min(first + k, blocks - 1);
      sums[k] = first + k < blocks ? states_of_query[2 * block + 1] : 0.0f;
      maxima[k] = states_of_query[2 * block];
#pragma clang loop unroll(full)
      for (int c = 0; c < L::chunks; c++) {
#pragma clang loop unroll(full)
        for (int i = 0; i < L::width; i++) {
          rows[k * L::values + c * L::width + i] =
              L::holds(c, lane) ? outputs_of_query[ulong(block) * D + uint(L::first(c, lane) + i)] : 0.0f;
        }
      }
    }
#pragma clang loop unroll(full)
    for (uint k = 0; k < kBlocksAhead; k++) {
      if (sums[k] != 0.0f) {
        const float factor = exp_of_difference(maxima[k] - maximum);
        sum = fma(factor, sums[k], sum);
#pragma clang loop unroll(full)
        for (int i = 0; i < L::values; i++) {
          output[i] = fma(factor, rows[k * L::values + i], output[i]);
        }
      }
    }
  }
  finish_row<D>(params, sinks, out, lse, query, query / params.n_q % params.n_heads, lane, maximum, sum, output);
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
