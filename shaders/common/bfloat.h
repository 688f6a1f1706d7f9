/// bf16 by its 16 bits, the upper half of those of f32.
#pragma once

#include <metal_stdlib>

using namespace metal;

/// The nearest bf16, ties to even; NaN stays a (quiet) NaN.
inline ushort bfloat_bits(float value) { return as_type<ushort>(bfloat(value)); }

/// Exact.
inline float float_of_bfloat(ushort bits) { return as_type<float>(uint(bits) << 16); }
