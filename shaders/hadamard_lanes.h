/// A head vector over lanes of a SIMD group that lie side by side: quad q, coordinates 4q to 4q + 3, is float4
/// number q / lanes of lane q % lanes, so quads number i of the lanes are neighbours in memory, 128 bytes of
/// f32 for 8 lanes.
///   D              64  80  96  112  128  192  256  512
///   lanes           8   4   8    4    8    8    8   16
///   quads a lane    2   5   3    7    4    6    8    8
/// 4 lanes are of sizes whose quads are no multiple of 8; 16 keep a vector of 512 within 128 registers.
/// Butterflies at distances 1 and 2 are inside a quad, those of 4 * lanes and more between quads of a lane; the others,
/// a shuffle of each quad a stage, between lanes.
#pragma once

#include <metal_stdlib>

#include "common/element_quad.h"
#include "hadamard_transform.h"

using namespace metal;

/// Whether vectors and rows of codes begin where whole words can be moved: f32 at 16 bytes, 16-bit
/// elements at 8, codes at 4. Tensors may begin at any element.
constant bool whole_words [[function_constant(2)]];

template <uint D>
struct LaneQuads {
  static constant constexpr uint lanes = D == 512 ? 16 : D % 32 == 0 ? 8 : 4;
  static constant constexpr uint count = D / 4 / lanes;
  /// Those of a group with a norm of its own.
  static constant constexpr uint group = count / Head<D>::norms;
  /// Those of a transform, of which a vector of 512 has one.
  static constant constexpr uint block = Head<D>::block / 4 / lanes;
};

/// A word of 4 * LANES bits.
template <uint LANES>
struct LaneWord {
  typedef uint type;
};
template <>
struct LaneWord<4> {
  typedef ushort type;
};

/// 4 elements E of a vector from number `first` on.
template <typename E>
inline float4 load_quad(const device uchar *vector, uint first) {
  typedef ElementQuad<E> Quad;
  const device typename E::Bits *from = (const device typename E::Bits *)vector + first;
  if (whole_words) {
    return Quad::decode(*reinterpret_cast<const device typename Quad::Bits *>(from));
  }
  return Quad::decode(typename Quad::Bits(*reinterpret_cast<const device typename Quad::Packed *>(from)));
}

/// A word of a row of codes, whose bytes are its own.
template <typename Word>
inline Word load_word(const device uchar *from) {
  if (whole_words) {
    return *reinterpret_cast<const device Word *>(from);
  }
  uint word = 0;
#pragma clang loop unroll(full)
  for (uint i = 0; i < sizeof(Word); i++) {
    word |= uint(from[i]) << (8 * i);
  }
  return Word(word);
}

template <typename Word>
inline void store_word(device uchar *to, Word word) {
  if (whole_words) {
    *reinterpret_cast<device Word *>(to) = word;
    return;
  }
#pragma clang loop unroll(full)
  for (uint i = 0; i < sizeof(Word); i++) {
    to[i] = uchar(word >> (8 * i));
  }
}

/// Quad number i of a lane with the signs of its coordinates.
template <uint D>
inline float4 with_signs(float4 quad, uint i, uint lane) {
  const uint q = i * LaneQuads<D>::lanes + lane;
  const uint bits = sign_words[q / 8] >> (4 * (q % 8));
  const uint4 flips = uint4(bits << 31, bits << 30, bits << 29, bits << 28) & 0x80000000u;
  return as_type<float4>(as_type<uint4>(quad) ^ flips);
}

/// Butterflies between the COUNT quads of a lane, from `first` apart up to below `end`.
template <uint COUNT>
inline void butterflies_in_lane(thread float4 *quads, uint first, uint end) {
#pragma clang loop unroll(full)
  for (uint step = first; step < end; step *= 2) {
#pragma clang loop unroll(full)
    for (uint i = 0; i < COUNT; i += 2 * step) {
#pragma clang loop unroll(full)
      for (uint j = i; j < i + step; j++) {
        const float4 low = quads[j];
        const float4 high = quads[j + step];
        quads[j] = low + high;
        quads[j + step] = low - high;
      }
    }
  }
}

/// Butterflies between LANES lanes.
template <uint COUNT, uint LANES>
inline void butterflies_between_lanes(thread float4 *quads, uint lane) {
#pragma clang loop unroll(full)
  for (uint step = 1; step < LANES; step *= 2) {
    const float4 sign = float4((lane & step) != 0 ? -1.0f : 1.0f);
#pragma clang loop unroll(full)
    for (uint i = 0; i < COUNT; i++) {
      quads[i] = fma(sign, quads[i], simd_shuffle_xor(quads[i], ushort(step)));
    }
  }
}

/// Butterflies inside a quad.
inline float4 butterflies_in_quad(float4 quad) {
  const float4 at_1 = float4(quad.x + quad.y, quad.x - quad.y, quad.z + quad.w, quad.z - quad.w);
  return float4(at_1.x + at_1.z, at_1.y + at_1.w, at_1.x - at_1.z, at_1.y - at_1.w);
}

/// All butterflies of a vector but those of D = 512 at distance 256.
template <uint D>
inline void butterflies_of_groups(thread float4 *quads, uint lane) {
  typedef LaneQuads<D> Q;
#pragma clang loop unroll(full)
  for (uint i = 0; i < Q::count; i++) {
    quads[i] = butterflies_in_quad(quads[i]);
  }
  butterflies_in_lane<Q::count>(quads, 1, Head<D>::norms == 2 ? Q::group : Q::block);
  butterflies_between_lanes<Q::count, Q::lanes>(quads, lane);
}

/// The sum of squares of COUNT quads in each of LANES lanes.
template <uint COUNT, uint LANES>
inline float sum_of_squares(const thread float4 *quads) {
  float4 sums = float4(0.0f);
#pragma clang loop unroll(full)
  for (uint i = 0; i < COUNT; i++) {
    sums += quads[i] * quads[i];
  }
  float sum = (sums.x + sums.z) + (sums.y + sums.w);
#pragma clang loop unroll(full)
  for (uint step = 1; step < LANES; step *= 2) {
    sum += simd_shuffle_xor(sum, ushort(step));
  }
  return sum;
}
