/// 4 neighbouring elements, which a thread loads or stores at once.
#pragma once

#include <metal_stdlib>

#include "common/element.h"

using namespace metal;

/// Elements E: `Bits` at multiples of the size of four, `Packed` at those of an element.
template <typename E>
struct ElementQuad;

template <>
struct ElementQuad<Float32> {
  typedef float4 Bits;
  typedef packed_float4 Packed;
  static float4 decode(Bits bits) { return bits; }
};

template <>
struct ElementQuad<Float16> {
  typedef half4 Bits;
  typedef packed_half4 Packed;
  static float4 decode(Bits bits) { return float4(bits); }
};

template <>
struct ElementQuad<Bfloat16> {
  typedef ushort4 Bits;
  typedef packed_ushort4 Packed;
  static float4 decode(Bits bits) { return as_type<float4>(uint4(bits) << 16); }
};
