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
/// Grid: (headDim / 2, batch * nTokens, ceil(heads of q and k / kHeadsPerThread));
/// a thread turns one pair of up to kHeadsPerThread heads by one angle.
/// Any threadgroup size; no threadgroup memory, no barriers.
/// Work: bound by memory bandwidth. Neighbouring lanes take neighbouring pairs.
#include <metal_stdlib>

#include "ShaderTypes.h"
#include "common/element.h"
#include "common/instantiate.h"

using namespace metal;

/// Pairs are coordinates 2 i and 2 i + 1, not i and i + rotaryDim / 2.
constant bool interleaved [[function_constant(400)]];
constant bool has_k [[function_constant(401)]];
constant bool has_positions [[function_constant(402)]];

/// Heads that share a thread's sine and cosine.
constant constexpr uint kHeadsPerThread = 4;

/// 1 / (2 pi) in two parts: the nearest float, and what it leaves.
constant constexpr float kTurnsPerRadian = 0.15915494f;
constant constexpr float kTurnsPerRadianRest = 6.4206382e-9f;

/// (cos, sin) of position * frequency. The angle is formed in turns, in two
/// floats, and reduced before they are added: right to the last bits of a turn for
/// positions up to 2^24, where the plain product is off by a radian.
inline float2 rotation(float position, float frequency) {
  const float turns = frequency * kTurnsPerRadian;
  const float turns_rest = fma(frequency, kTurnsPerRadian, -turns) + frequency * kTurnsPerRadianRest;
  const float product = position * turns;
  const float product_rest = fma(position, turns, -product) + position * turns_rest;
  const float half_turns = 2.0f * ((product - rint(product)) + product_rest);
  return float2(cospi(half_turns), sinpi(half_turns));
}

/// The two coordinates that a thread owns.
struct Pair {
  uint first;
  uint second;
};

inline Pair pair_of(uint index, uint rotary_dim) {
  const uint pairs = rotary_dim / 2;
  if (index >= pairs) {
    return {2 * index, 2 * index + 1};
  }
  return interleaved ? Pair{2 * index, 2 * index + 1} : Pair{index, index + pairs};
}

/// Of a head vector of one of `heads`, in elements.
inline ulong offset_of(constant RopeParams &params, uint row, uint head, uint heads) {
  const ulong batch = row / params.nTokens;
  const uint token = row % params.nTokens;
  const ulong vector =
      params.sequenceMajor ? ulong(row) * heads + head : (batch * heads + head) * params.nTokens + token;
  return vector * params.headDim;
}

template <typename From, typename To>
inline void turn(const device typename From::Bits *from, device typename To::Bits *to, Pair pair, float2 rotation,
                 bool turns) {
  const float a = From::decode(from[pair.first]);
  const float b = From::decode(from[pair.second]);
  to[pair.first] = To::encode(turns ? fma(a, rotation.x, -(b * rotation.y)) : a);
  to[pair.second] = To::encode(turns ? fma(b, rotation.x, a * rotation.y) : b);
}

template <typename From, typename To>
[[kernel]] void apply_rope(const device typename From::Bits *q [[buffer(0)]],
                           device typename To::Bits *out_q [[buffer(1)]],
                           const device typename From::Bits *k [[buffer(2), function_constant(has_k)]],
                           device typename To::Bits *out_k [[buffer(3), function_constant(has_k)]],
                           const device int *positions [[buffer(4), function_constant(has_positions)]],
                           constant float *inv_freq [[buffer(5)]], constant RopeParams &params [[buffer(6)]],
                           uint3 position [[thread_position_in_grid]]) {
  const uint row = position.y;
  const bool turns = position.x < params.rotaryDim / 2;
  int p = params.start + int(row % params.nTokens);
  if (has_positions) {
    p = positions[params.positionsPerBatch ? row : row % params.nTokens];
  }
  const float2 angle = turns ? params.attentionScale * rotation(float(p), inv_freq[position.x]) : float2(1, 0);
  const Pair pair = pair_of(position.x, params.rotaryDim);

  const uint heads = params.nHeads + params.nKvHeads;
  const uint first = position.z * kHeadsPerThread;
  for (uint head = first; head < min(first + kHeadsPerThread, heads); head++) {
    if (head < params.nHeads) {
      const ulong offset = offset_of(params, row, head, params.nHeads);
      turn<From, To>(q + offset, out_q + offset, pair, angle, turns);
    } else if (has_k) {
      const ulong offset = offset_of(params, row, head - params.nHeads, params.nKvHeads);
      turn<From, To>(k + offset, out_k + offset, pair, angle, turns);
    }
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
