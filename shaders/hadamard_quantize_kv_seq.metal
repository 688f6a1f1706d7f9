/// Writes many tokens of K, or of K and V, into a quantized cache in one
/// dispatch; see hadamard_encode.h for what is computed and in which order.
///
/// 1 to 8 lanes own a head vector, each at most 64 coordinates in registers, in
/// runs of R consecutive ones:
///   D             64  80  96  112  128  192  256  512
///   lanes (L)      1   2   2    2    2    4    4    8
///   per lane      64  40  48   56   64   48   64   64
///   run (R)       16   8  16    8   16   16   16   16
/// Coordinate c belongs to lane (c / R) % L. The butterflies between lanes come
/// first: a lane reads the L runs that its own depends on and adds them up with its
/// signs, so lanes exchange nothing: no shuffle, no barrier, no divergence, and
/// every lane has seen all of x, which gives it the norm (|H S x| = |x| sqrt(B)).
/// On an Apple GPU the L lanes of a vector read the same addresses in the same
/// instruction, so a vector crosses the memory bus once, in whole 128-byte
/// lines used up before the next; the runs that its lanes store lie side by side.
///
/// Grid: threads (rows * L, streams, batch size) with rows = heads * tokens; any
/// threadgroup size, whole threadgroups allowed. No threadgroup memory.
/// Work per vector: D (L + log2 B) additions, then the search; bound by memory
/// on a GPU. Register floats per lane: 64 and the runs being added.
#include <metal_stdlib>

#include "ShaderTypes.h"
#include "common/instantiate.h"
#include "hadamard_encode.h"
#include "hadamard_formats.h"

using namespace metal;

/// A lane's part of a head vector of D values, in the runs of the order.
template <uint D>
using Part = LanePart<D, order_run<D>()>;

/// The sum of the squares of COUNT values, neighbours first.
template <int COUNT>
inline float sum_of_squares(const thread float *values) {
  float squares[COUNT];
  for (int i = 0; i < COUNT; i++) {
    squares[i] = values[i] * values[i];
  }
  for (int step = 1; step < COUNT; step *= 2) {
    for (int i = 0; i + step < COUNT; i += 2 * step) {
      squares[i] += squares[i + step];
    }
  }
  return squares[0];
}

/// The sum of N values, halves first.
template <int N>
inline float sum_of_run(const thread float *values) {
  float4 quads[N / 4];
  for (int i = 0; i < N / 4; i++) {
    quads[i] = float4(values[4 * i], values[4 * i + 1], values[4 * i + 2], values[4 * i + 3]);
  }
  return sum_of<N / 4>(quads);
}

/// Coordinate j of the runs of a group: sums up their squares, and joins each L
/// of them to coordinate j of a run of this lane.
template <uint D>
inline void join_runs(thread float *terms, uint lane, int j, thread float *joined, thread float *squares) {
  constexpr int lanes = Head<D>::lanes;
  constexpr int run = Part<D>::run;
  constexpr int runs = Part<D>::group / run;
  squares[j] = sum_of_squares<runs * lanes>(terms);
  for (int r = 0; r < runs; r++) {
    join_lanes<lanes, 1>(terms + r * lanes, lane);
    joined[r * run + j] = terms[r * lanes];
  }
}

/// This lane's part of H S x, and the sum of squares of each group of 256
/// coordinates (of all for D <= 256) before the butterflies inside it, which
/// multiply it by their span.
template <uint D>
inline void rotate(const device float *x, uint lane, thread float *values, thread float *square_sums) {
  typedef Head<D> H;
  typedef Part<D> P;
  constexpr int run = P::run;
  constexpr int terms = D / run / H::norms;
  // Not in `values`: clang follows an array through few uses only, and would store one float at a time.
  float joined[P::values];
  float squares[H::norms][run];
  // GPU registers cannot be indexed. SoftMetal vectorises this loop instead.
#pragma clang loop unroll(full)
  for (int j = 0; j < run; j++) {
    float first[terms];
    for (int p = 0; p < terms; p++) {
      first[p] = x[p * run + j] * signs[p * run + j];
    }
    if (H::norms == 2) {
      float second[terms];
      for (int p = 0; p < terms; p++) {
        const float low = first[p];
        const float high = x[256 + p * run + j] * signs[256 + p * run + j];
        first[p] = low + high;
        second[p] = low - high;
      }
      join_runs<D>(second, lane, j, joined + P::values / 2, squares[H::norms - 1]);
    }
    join_runs<D>(first, lane, j, joined, squares[0]);
  }
  for (int n = 0; n < int(H::norms); n++) {
    square_sums[n] = sum_of_run<run>(squares[n]);
  }
  for (int i = 0; i < int(P::values); i++) {
    values[i] = joined[i];
  }
  butterflies<P::values, P::run, P::span>(values);
  butterflies<P::values, 1, P::run>(values);
}

/// Writes this lane's part of a head vector.
template <uint D, typename Format>
inline void quantize_part(EncodedStream row, uint lane, float scale_factor_d512, uint bits) {
  typedef Head<D> H;
  typedef Part<D> P;
  float values[P::values];
  float square_sums[H::norms];
  rotate<D>(row.x, lane, values, square_sums);
  for (uint n = 0; n < H::norms; n++) {
    const Scale scale = scale_of_sums<D>(square_sums[n], scale_factor_d512);
    if (lane == 0) {
      row.norms[n] = scale.norm;
    }
    for (uint i = n * P::group; i < (n + 1) * P::group; i++) {
      values[i] *= scale.factor;
    }
  }
  uchar encoded[Format::encoded_size(P::values)];
  Format::template encode<P::values>(values, bits, encoded);
  for (int i = 0; i < int(P::values); i += P::run) {
    device uchar *run = row.packed + (i * H::lanes + lane * P::run) / 8 * Format::width(bits);
    Format::template store<P::run>(run, encoded + Format::encoded_size(i), bits);
  }
}

/// y of the grid is the stream, K or V, z the batch.
template <uint D, typename Format>
[[kernel]] void quantize_run(const device float *source_k [[buffer(0)]], device uchar *packed_k [[buffer(1)]],
                             device float *norms_k [[buffer(2)]],
                             constant HadamardQuantizeSeqParams &params [[buffer(3)]],
                             const device float *source_v [[buffer(4)]], device uchar *packed_v [[buffer(5)]],
                             device float *norms_v [[buffer(6)]], const device int *positions [[buffer(7)]],
                             const device int *block_table [[buffer(8)]], uint3 position [[thread_position_in_grid]]) {
  const uint row = position.x / Head<D>::lanes;
  const uint token = row / params.num_kv_heads;
  if (token >= params.n_tokens) {
    return;
  }
  const uint head = row % params.num_kv_heads;
  const ulong source_row = source_row_of(params, position.z, head, token);
  const long cache_row = written_row_of(params, {positions, block_table}, position.z, head, token);
  if (cache_row < 0) {
    return;
  }
  const EncodedStream k = {source_k, packed_k, norms_k};
  const EncodedStream v = {source_v, packed_v, norms_v};
  quantize_part<D, Format>(
      (position.y != 0 ? v : k).at(source_row, ulong(cache_row), D, Format::width(params.codebook_bits)),
      position.x % Head<D>::lanes, params.scale_factor_d512, params.codebook_bits);
}

// Entry points.

instantiate_head_sizes("hadamard_quantize_kv_seq_fast_d", quantize_run, NibblePacking);
instantiate_head_sizes("hadamard_quantize_kv_seq_hb_d", quantize_run, BytePacking);
instantiate_head_sizes("hadamard_quantize_kv_seq_dense_d", quantize_run, DensePacking);
