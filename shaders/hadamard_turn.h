/// Rotary positions of a head vector that lies over lanes as hadamard_lanes.h has it, turned in registers before it is
/// encoded. With sines that have the sign of their side, both coordinates of a pair turn alike:
///   out = own * cos + other * sin,  sin of i + rotaryDim / 2 (or 2 i + 1) that of the pair, of the other its negative,
/// in the roundings of `apply_rope`. The other coordinate is in the same quad where pairs are neighbours, in the
/// same lane where half the quads are whole rounds of the lanes and all coordinates turn, and else read again.
#pragma once

#include <metal_stdlib>

#include "common/rope.h"
#include "hadamard_rows.h"

using namespace metal;

/// Vectors of K turn.
constant bool turns [[function_constant(3)]];
/// Pairs are coordinates 2 i and 2 i + 1, not i and i + rotary_dim / 2.
constant bool interleaved [[function_constant(4)]];
/// Pairs of halves, and all coordinates turn.
constant bool turns_halves [[function_constant(5)]];

/// The angles of a lane's coordinates at one position, of all heads.
template <uint D>
struct Turn {
  typedef LaneQuads<D> Q;
  /// Whether quad i + count / 2 of a lane has the other coordinates of quad i.
  static constant constexpr bool has_halves = D / 8 % Q::lanes == 0;

  float4 cosines[Q::count];
  float4 sines[Q::count];
  uint half_dim;  ///< pairs that turn

  /// Angles at `position`, all times `scale`, for lane `lane` of those that share a vector.
  void fill(float position, constant float *inv_freq, float scale, uint lane) {
    if (interleaved) {
      fill_neighbours(position, inv_freq, scale, lane);
    } else if (has_halves && turns_halves) {
      fill_halves(position, inv_freq, scale, lane);
    } else {
      fill_any(position, inv_freq, scale, lane);
    }
  }

  /// (cos, sin) of a pair; of one that does not turn (1, 0).
  float2 angle_of(float position, constant float *inv_freq, float scale, uint pair) const {
    const Angles<1> angle = angles_of<1>(position, inv_freq, min(pair, half_dim - 1), scale);
    return pair < half_dim ? float2(angle.cosine, angle.sine) : float2(1.0f, 0.0f);
  }

  void fill_neighbours(float position, constant float *inv_freq, float scale, uint lane) {
#pragma clang loop unroll(full)
    for (uint i = 0; i < Q::count; i++) {
      const uint pair = 2 * (i * Q::lanes + lane);
      const float2 first = angle_of(position, inv_freq, scale, pair);
      const float2 second = angle_of(position, inv_freq, scale, pair + 1);
      cosines[i] = float4(first.x, first.x, second.x, second.x);
      sines[i] = float4(-first.y, first.y, -second.y, second.y);
    }
  }

  void fill_halves(float position, constant float *inv_freq, float scale, uint lane) {
    constexpr uint half_count = Q::count / 2;
#pragma clang loop unroll(full)
    for (uint i = 0; i < half_count; i++) {
#pragma clang loop unroll(full)
      for (uint j = 0; j < 4; j++) {
        const float2 angle = angle_of(position, inv_freq, scale, 4 * (i * Q::lanes + lane) + j);
        cosines[i][j] = angle.x;
        sines[i][j] = -angle.y;
      }
      cosines[i + half_count] = cosines[i];
      sines[i + half_count] = -sines[i];
    }
  }

  void fill_any(float position, constant float *inv_freq, float scale, uint lane) {
#pragma clang loop unroll(full)
    for (uint i = 0; i < Q::count; i++) {
#pragma clang loop unroll(full)
      for (uint j = 0; j < 4; j++) {
        const uint coordinate = 4 * (i * Q::lanes + lane) + j;
        const bool is_first = coordinate < half_dim;
        const float2 angle = angle_of(position, inv_freq, scale, is_first ? coordinate : coordinate - half_dim);
        cosines[i][j] = angle.x;
        sines[i][j] = is_first ? -angle.y : angle.y;
      }
    }
  }

  /// The other coordinates of the pairs of a quad from `first` on, out of memory.
  float4 others(const device uchar *x, uint first) const {
    float4 quad;
#pragma clang loop unroll(full)
    for (uint j = 0; j < 4; j++) {
      const uint coordinate = first + j;
      const uint other = coordinate < half_dim ? coordinate + half_dim : coordinate - half_dim;
      const uint place = coordinate < 2 * half_dim ? other : coordinate;
      if (source_dtype == 1) {
        quad[j] = load_element<Float32>(x, place);
      } else {
        const ushort bits = ((const device ushort *)x)[place];
        quad[j] = source_dtype == 2 ? float(as_type<half>(bits)) : Bfloat16::decode(bits);
      }
    }
    return quad;
  }

  /// Turns the quads of a lane, which are those of the vector at `x`.
  void apply(thread float4 *quads, const device uchar *x, uint lane) const {
    float4 turned[Q::count];
#pragma clang loop unroll(full)
    for (uint i = 0; i < Q::count; i++) {
      float4 other;
      if (interleaved) {
        other = quads[i].yxwz;
      } else if (has_halves && turns_halves) {
        other = quads[(i + Q::count / 2) % Q::count];
      } else {
        other = others(x, 4 * (i * Q::lanes + lane));
      }
      turned[i] = fma(quads[i], cosines[i], other * sines[i]);
    }
#pragma clang loop unroll(full)
    for (uint i = 0; i < Q::count; i++) {
      quads[i] = turned[i];
    }
  }
};

/// In place of one, where nothing turns.
struct NoTurn {
  void apply(thread float4 *, const device uchar *, uint) const {}
};
