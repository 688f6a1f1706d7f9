/// Rotary position embedding (Su et al. 2021, "RoFormer"): pair i of the first
/// rotaryDim coordinates of a head vector at position p turns by p * invFreq[i],
///   out_a = a cos - b sin
///   out_b = b cos + a sin
/// with sine and cosine times attentionScale. The other coordinates keep their
/// values. Computed in f32, rounded once.
///
/// Head vectors are [batch, heads, nTokens, headDim] or, sequence-major,
/// [batch, nTokens, heads, headDim]; k may have other heads than q.
///
/// Grid: (headDim / 2 / N, batch * nTokens, groups of the heads of q and k); a thread
/// turns N neighbouring pairs of all heads of its group by their angles, N being 2
/// where constant `is_wide` says so, else 1. Any threadgroup size; no threadgroup
/// memory, no barriers.
/// Work: an angle (some 30 operations) a thread and pair, then 4 multiplications a
/// pair; bound by memory bandwidth where a group has several heads. Neighbouring
/// lanes take neighbouring pairs: 32 lanes read two runs of 128 bytes, in 16 bits
/// one pair at a time of 64. Each value is read and written once. Registers: 32 to 48
/// (nvptx64, sm_90).
#include <metal_stdlib>

#include "ShaderTypes.h"
#include "common/arithmetic.h"
#include "common/instantiate.h"
#include "common/rope.h"

using namespace metal;

/// Pairs are coordinates 2 i and 2 i + 1, not i and i + rotaryDim / 2.
constant bool interleaved [[function_constant(400)]];
constant bool has_k [[function_constant(401)]];
constant bool has_positions [[function_constant(402)]];
/// rotaryDim is less than headDim.
constant bool has_rest [[function_constant(403)]];
/// A thread has two neighbouring pairs: vectors and tensors begin at multiples of 4 bytes, and all coordinates turn.
constant bool is_wide [[function_constant(404)]];

/// Heads [first, first + count) of a token, in a tensor of `heads`; written where they are read. In runs of N elements.
inline HeadWalk walk_of(constant RopeParams &params, uint row, uint heads, uint first, uint count, uint n) {
  const ulong head_dim = params.headDim / n;
  ulong vector = ulong(row) * heads + first;
  ulong step = head_dim;
  if (!params.sequenceMajor) {
    const ulong batch = row / params.nTokens;
    vector = (batch * heads + first) * params.nTokens + row % params.nTokens;
    step = head_dim * params.nTokens;
  }
  return {vector * head_dim, step, vector * head_dim, step, count};
}

/// N pairs of all heads of a group: those of q first, then those of k, in groups of one size.
template <typename From, typename To, int N>
inline void turn_group(const device typename From::Bits *q, device typename To::Bits *out_q,
                       const device typename From::Bits *k, device typename To::Bits *out_k, constant float *inv_freq,
                       constant RopeParams &params, int p, uint3 position, uint groups) {
  const uint index = position.x;
  const uint row = position.y;
  const uint runs = params.rotaryDim / 2 / N;
  const Angles<N> angles =
      angles_of<N>(float(p), inv_freq, N == 1 && has_rest ? min(index, runs - 1) : index, params.attentionScale);

  const uint heads = params.nHeads + params.nKvHeads;
  const uint group = (heads + groups - 1) / groups;
  const uint first = position.z * group;
  const uint end = min(first + group, heads);
  if (first < params.nHeads) {
    const uint count = min(end, params.nHeads) - first;
    turn_or_keep_heads<From, To, N>(q, out_q, walk_of(params, row, params.nHeads, first, count, N), index, runs,
                                    interleaved, N == 1 && has_rest, angles);
  }
  if (has_k && end > params.nHeads) {
    const uint first_of_k = max(first, params.nHeads) - params.nHeads;
    const uint count = end - params.nHeads - first_of_k;
    turn_or_keep_heads<From, To, N>(k, out_k, walk_of(params, row, params.nKvHeads, first_of_k, count, N), index, runs,
                                    interleaved, N == 1 && has_rest, angles);
  }
}

template <typename From, typename To>
[[kernel]] void apply_rope(const device typename From::Bits *q [[buffer(0)]],
                           device typename To::Bits *out_q [[buffer(1)]],
                           const device typename From::Bits *k [[buffer(2), function_constant(has_k)]],
                           device typename To::Bits *out_k [[buffer(3), function_constant(has_k)]],
                           const device int *positions [[buffer(4), function_constant(has_positions)]],
                           constant float *inv_freq [[buffer(5)]], constant RopeParams &params [[buffer(6)]],
                           uint3 position [[thread_position_in_grid]], uint3 grid [[threads_per_grid]]) {
  const uint token = position.y % params.nTokens;
  int p = params.start + int(token);
  if (has_positions) {
    p = positions[params.positionsPerBatch ? position.y : token];
  }
  if (is_wide) {
    turn_group<From, To, 2>(q, out_q, k, out_k, inv_freq, params, p, position, grid.z);
  } else {
    turn_group<From, To, 1>(q, out_q, k, out_k, inv_freq, params, p, position, grid.z);
  }
}

// Entry points.

instantiate_kernel("apply_rope_f32", apply_rope, Float32, Float32);
instantiate_kernel("apply_rope_f32_to_f16", apply_rope, Float32, Float16);
instantiate_kernel("apply_rope_f32_to_bf16", apply_rope, Float32, Bfloat16);
instantiate_kernel("apply_rope_f16_to_f32", apply_rope, Float16, Float32);
instantiate_kernel("apply_rope_f16", apply_rope, Float16, Float16);
instantiate_kernel("apply_rope_f16_to_bf16", apply_rope, Float16, Bfloat16);
instantiate_kernel("apply_rope_bf16_to_f32", apply_rope, Bfloat16, Float32);
instantiate_kernel("apply_rope_bf16_to_f16", apply_rope, Bfloat16, Float16);
instantiate_kernel("apply_rope_bf16", apply_rope, Bfloat16, Bfloat16);
