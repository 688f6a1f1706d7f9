/// Joins the states of a query's blocks, in the order of the blocks: with M the largest m,
///   O = sum_b exp(m_b - M) O_b / sum_b exp(m_b - M) l_b,
/// then what ends a row: sink, rotation back, LSE. A block of which the query sees nothing has
/// l = 0 and is left out, its O is not read.
///
/// Grid: threadgroups (queries, 1, 1) of one SIMD group; no threadgroup memory. A lane
/// holds the maxima of 32 blocks, and of each O_b its part of a row.
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
  for (uint block = 0; block < blocks; block++) {
    const float sum_of_block = states_of_query[2 * block + 1];
    if (sum_of_block == 0.0f) {
      continue;
    }
    const float factor = exp_of_difference(states_of_query[2 * block] - maximum);
    sum = fma(factor, sum_of_block, sum);
    const device float *block_output = outputs_of_query + block * D;
#pragma clang loop unroll(full)
    for (int c = 0; c < L::chunks; c++) {
      if (L::holds(c, lane)) {
#pragma clang loop unroll(full)
        for (int i = 0; i < L::width; i++) {
          const int place = c * L::width + i;
          output[place] = fma(factor, block_output[L::first(c, lane) + i], output[place]);
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
