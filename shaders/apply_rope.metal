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

/// Of a head vector of one of `heads`, in elements.
inline ulong offset_of(constant RopeParams &params, uint row, uint head, uint heads) {
  const ulong batch = row / params.nTokens;
  const uint token = row % params.nTokens;
  const ulong vector =
      params.sequenceMajor ? ulong(row) * heads + head : (batch * heads + head) * params.nTokens + token;
  return vector * params.headDim;
}

/// Turns coordinates a and b of a head vector.
template <typename From, typename To>
inline void turn(const device typename From::Bits *from, device typename To::Bits *to, uint a, uint b, float2 angle) {
  const float x = From::decode(from[a]);
  const float y = From::decode(from[b]);
  to[a] = To::encode(fma(x, angle.x, -(y * angle.y)));
  to[b] = To::encode(fma(y, angle.x, x * angle.y));
}

/// Copies two coordinates from `first` on.
template <typename From, typename To>
inline void keep(const device typename From::Bits *from, device typename To::Bits *to, uint first) {
  const float x = From::decode(from[first]);
  const float y = From::decode(from[first + 1]);
  to[first] = To::encode(x);
  to[first + 1] = To::encode(y);
}

/// The share of thread `index` in a head vector.
template <typename From, typename To>
inline void turn_or_keep(const device typename From::Bits *from, device typename To::Bits *to, uint index, uint pairs,
                         float2 angle) {
  if (index >= pairs) {
    keep<From, To>(from, to, 2 * index);
  } else if (interleaved) {
    turn<From, To>(from, to, 2 * index, 2 * index + 1, angle);
  } else {
    turn<From, To>(from, to, index, index + pairs, angle);
  }
}

template <typename From, typename To>
[[kernel]] void apply_rope(const device typename From::Bits *q [[buffer(0)]],
                           device typename To::Bits *out_q [[buffer(1)]],
                           const device typename From::Bits *k [[buffer(2), function_constant(has_k)]],
                           device typename To::Bits *out_k [[buffer(3), function_constant(has_k)]],
                           const device int *positions [[buffer(4), function_constant(has_positions)]],
                           constant float *inv_freq [[buffer(5)]], constant RopeParams &params [[buffer(6)]],
                           uint3 position [[thread_position_in_grid]]) {
  const uint index = position.x;
  const uint row = position.y;
  const uint pairs = params.rotaryDim / 2;
  int p = params.start + int(row % params.nTokens);
  if (has_positions) {
    p = positions[params.positionsPerBatch ? row : row % params.nTokens];
  }
  const float2 angle = params.attentionScale * rotation(float(p), inv_freq[min(index, pairs - 1)]);

  const uint first = position.z * kHeadsPerThread;
  for (uint i = 0; i < kHeadsPerThread; i++) {
    const uint head = first + i;
    if (head < params.nHeads) {
      const ulong offset = offset_of(params, row, head, params.nHeads);
      turn_or_keep<From, To>(q + offset, out_q + offset, index, pairs, angle);
    } else if (has_k && head < params.nHeads + params.nKvHeads) {
      const ulong offset = offset_of(params, row, head - params.nHeads, params.nKvHeads);
      turn_or_keep<From, To>(k + offset, out_k + offset, index, pairs, angle);
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
