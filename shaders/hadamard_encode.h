/// What the encoders of head vectors share: source with signs, order of sums, norm and scale.
///
/// A head vector x of D values has blocks of B, the largest power of two that
/// divides D. With S the diagonal of signs and H the Hadamard matrix of a block,
///   y = H S x / sqrt(B),
///   D <= 256: norm = |y|,                        z = y * sqrt(D) / norm,
///   D > 256:  norm = sqrt(mean of y^2) per 256,  z = y * scaleFactorD512 / norm,
/// and the code of z is the number of boundaries below it. A norm of 1e-10 or
/// less is stored as 0; one that is not finite as NaN, with codes 0 throughout.
///
/// Layouts: source [tokens, heads, D] f32, packed [heads, capacity, row bytes],
/// norms [heads, capacity, max(1, D / 256)] f32.
///
/// A token gets the same bytes from the kernels for one token and for many,
/// since both add the same numbers in the same order, with D and R = order_run(D):
///   - butterflies at distance 256 for D = 512, then R, 2R, 4R and so on as far
///     as the block (or 256) goes, then 1, 2, 4 up to R / 2;
///   - squares of what has its signs (D = 512: and its first butterflies)
///     pairwise at distances R, 2R and so on, missing terms are 0, then R / 2 down to 1.
#pragma once

#include "hadamard_rows.h"
#include "hadamard_transform.h"

/// Coordinates whose butterflies come last.
template <uint D>
constexpr uint order_run() {
  return LanePart<D, 16>::run;
}

/// A norm this small counts as 0.
constant float smallest_norm = 1e-10f;

/// The sum of the values of N quads, pairwise.
template <int N>
inline float sum_of(thread float4 *quads) {
  for (int step = N / 2; step > 0; step /= 2) {
    for (int j = 0; j < step; j++) {
      quads[j] += quads[j + step];
    }
  }
  return (quads[0].x + quads[0].z) + (quads[0].y + quads[0].w);
}

/// A stored norm and the factor that brings sqrt(D) y to unit variance.
struct Scale {
  float norm;
  float factor;
};

/// Of a group with |y|^2 = `square_sum`: all coordinates for D <= 256, then norm |y|;
/// 256 of them above, then norm the root of their mean square.
inline Scale scale_of_group(float square_sum, uint head_dim, float scale_factor_d512) {
  const float root = sqrt(square_sum);
  const float norm = head_dim <= 256 ? root : root * 0.0625f;
  if (!isfinite(square_sum)) {
    return {NAN, NAN};
  }
  if (norm <= smallest_norm) {
    return {0.0f, 0.0f};
  }
  return {norm, head_dim <= 256 ? 1.0f / norm : scale_factor_d512 / (norm * sqrt(float(head_dim)))};
}

/// The scale of group n of D coordinates, for sums of the transform: those of a
/// block are sqrt(block) y, not sqrt(D) y. `square_sum` is what the squares above add up to.
template <uint D>
inline Scale scale_of_sums(float square_sum, float scale_factor_d512) {
  const Scale scale = scale_of_group(square_sum / float(Head<D>::norms), D, scale_factor_d512);
  return {scale.norm, scale.factor * sqrt(float(D / Head<D>::block))};
}
