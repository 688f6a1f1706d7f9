/// Elements of tensors, computed with as float.
#pragma once

#include <metal_stdlib>

#include "common/bfloat.h"

using namespace metal;

struct Float32 {
  typedef float Bits;
  static float decode(Bits bits) { return bits; }
  static Bits encode(float value) { return value; }
};

/// Rounds to nearest even.
struct Float16 {
  typedef half Bits;
  static float decode(Bits bits) { return float(bits); }
  static Bits encode(float value) { return half(value); }
};

/// Rounds to nearest even; NaN stays a (quiet) NaN.
struct Bfloat16 {
  typedef ushort Bits;
  static float decode(Bits bits) { return float_of_bfloat(bits); }
  static Bits encode(float value) { return bfloat_bits(value); }
};
