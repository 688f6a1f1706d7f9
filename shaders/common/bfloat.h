/// bf16 by its 16 bits, the upper half of those of f32.
#pragma once

#include <metal_stdlib>

using namespace metal;

/// The nearest bf16, ties to even; NaN stays a (quiet) NaN.
inline ushort bfloat_bits(float value) {
  const uint bits = as_type<uint>(value);
  const uint rounded = bits + ((bits & 0x10000u) != 0 ? 0x8000u : 0x7fffu);
  const uint quiet = bits | 0x400000u;
  return ushort((isnan(value) ? quiet : rounded) >> 16);
}

/// Exact.
inline float float_of_bfloat(ushort bits) { return as_type<float>(uint(bits) << 16); }
