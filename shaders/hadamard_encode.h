/// What the encoders of head vectors share: source, turned or not, with signs, order of sums, norm and scale.
///
/// A head vector x of D values has blocks of B, the largest power of two that
/// divides D. With S the diagonal of signs and H the Hadamard matrix of a block,
///   y = H S x / sqrt(B),
///   D <= 256: norm = |y|,                        z = y * sqrt(D) / norm,
///   D > 256:  norm = sqrt(mean of y^2) per 256,  z = y * scaleFactorD512 / norm,
/// and the code of z is the number of boundaries below it. A norm of 1e-10 or
/// less is stored as 0; one that is not finite as NaN, with codes 0 throughout.
///
/// Layouts: source [tokens, heads, D] of f32, or of f16 or bf16, which become f32 as they are loaded; packed [heads,
/// capacity, row bytes], norms [heads, capacity, max(1, D / 256)] f32.
///
/// The kernels for one token and for many encode a vector by the same function, so
/// a token gets the same bytes from both.
#pragma once

#include "hadamard_packings.h"
#include "hadamard_rows.h"
#include "hadamard_turn.h"

/// A norm this small counts as 0.
constant float smallest_norm = 1e-10f;

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

/// The quads of a lane, of elements E.
template <uint D, typename E>
inline void load_quads(const device uchar *x, uint lane, thread float4 *quads) {
  typedef LaneQuads<D> Q;
#pragma clang loop unroll(full)
  for (uint i = 0; i < Q::count; i++) {
    quads[i] = load_quad<E>(x, 4 * (i * Q::lanes + lane));
  }
}

/// Writes a head vector, which the lanes of a `LaneQuads` group hold together; all of them
/// call it. `simd_lane` is the lane's number in the SIMD group. `turn` turns it before, where `does_turn` says so.
/// `probe` gets the scaled coordinates.
template <uint D, typename Format, typename Turning>
inline void quantize_vector(EncodedStream row, uint simd_lane, float scale_factor_d512, Probe probe,
                            thread const Turning &turn, bool does_turn) {
  typedef LaneQuads<D> Q;
  const uint lane = simd_lane % Q::lanes;
  float4 quads[Q::count];
  if (source_dtype == 1) {
    load_quads<D, Float32>(row.x, lane, quads);
  } else if (source_dtype == 2) {
    load_quads<D, Float16>(row.x, lane, quads);
  } else {
    load_quads<D, Bfloat16>(row.x, lane, quads);
  }
  if (does_turn) {
    turn.apply(quads, row.x, lane);
  }
#pragma clang loop unroll(full)
  for (uint i = 0; i < Q::count; i++) {
    quads[i] = with_signs<D>(quads[i], i, lane);
  }
  if (Head<D>::norms == 2) {
    butterflies_in_lane<Q::count>(quads, Q::group, Q::group * 2);
  }
  float factors[Head<D>::norms];
#pragma clang loop unroll(full)
  for (uint n = 0; n < Head<D>::norms; n++) {
    const Scale scale = scale_of_sums<D>(sum_of_squares<Q::group, Q::lanes>(quads + n * Q::group), scale_factor_d512);
    factors[n] = scale.factor;
    if (lane == 0) {
      row.norms[n] = scale.norm;
    }
  }
  butterflies_of_groups<D>(quads, lane);
#pragma clang loop unroll(full)
  for (uint i = 0; i < Q::count; i++) {
    const float4 z = quads[i] * factors[i / Q::group];
    probe.store(4 * (i * Q::lanes + lane), z, D);
    Format::template store<Q::lanes>(row.packed, i, simd_lane, Format::codes(z, row.bits), row.bits);
  }
}
