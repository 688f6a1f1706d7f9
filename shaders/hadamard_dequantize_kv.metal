/// Reads a quantized cache back: the inverse of `hadamard_quantize_kv_seq.metal`,
/// where the lanes' parts are described; hadamard_encode.h has the layouts.
///
/// A coordinate is y = centroid * norm / sqrt(D) for D <= 256, centroid * norm /
/// scaleFactorD512 above, and x = S H y / sqrt(B): the transform is its own
/// inverse, and the signs come after it. A norm of 0 gives zeros, NaN gives NaN.
///
/// Layouts: packed [heads, capacity, row bytes], norms [heads, capacity,
/// max(1, D / 256)] f32, out [heads, n_tokens, D] f32, f16 or bf16.
/// Grid: threads (heads * n_tokens * L, streams, 1), L lanes a head vector, in
/// runs of up to 32 coordinates; any threadgroup size. No threadgroup memory, no
/// exchange between lanes: each of the L lanes looks up all D codes, which stay
/// in the cache.
/// Work per vector: D L look-ups, D (L + log2 B) additions; bound by memory.
///
/// Any power of two up to 4,096: `hadamard_dequantize_kv*` without a size, in
/// threadgroup memory.
#include <metal_stdlib>

#include "ShaderTypes.h"
#include "common/element.h"
#include "common/instantiate.h"
#include "hadamard_formats.h"
#include "hadamard_rows.h"
#include "hadamard_transform.h"

using namespace metal;

/// A lane's part of a head vector of D values.
template <uint D>
using Part = LanePart<D, 32>;

/// What multiplies the sums of the transform: norm / sqrt(D B) for D <= 256, where B is the block.
template <uint D>
inline float factor_of(float norm, float scale_factor_d512) {
  return D <= 256 ? norm / sqrt(float(D) * float(Head<D>::block)) : norm / (scale_factor_d512 * sqrt(float(D)));
}

/// Coordinates k to k + N - 1 of the runs of a group: joins each L of them to
/// coordinates of a run of this lane.
template <uint D, int N>
inline void join_runs(thread float *terms, uint lane, int k, thread float *joined) {
  constexpr int lanes = Head<D>::lanes;
  constexpr int run = Part<D>::run;
  for (int r = 0; r < int(Part<D>::group) / run; r++) {
    join_lanes<lanes, N>(terms + r * lanes * N, lane);
    for (int j = 0; j < N; j++) {
      joined[r * run + k + j] = terms[r * lanes * N + j];
    }
  }
}

/// This lane's part of x.
template <uint D, typename Format>
inline void dequantize_part(DecodedStream row, uint lane, float scale_factor_d512, uint bits, thread float *values) {
  typedef Head<D> H;
  typedef Part<D> P;
  constexpr int run = P::run;
  constexpr int terms = D / run / H::norms;
  constexpr int codes = Format::load_codes;
  const float factor = factor_of<D>(row.norms[0], scale_factor_d512);
  const float last_factor = factor_of<D>(row.norms[H::norms - 1], scale_factor_d512);
  const int bytes = Format::load_bytes(bits);
  // Not in `values`: clang follows an array through few uses only, and would store one float at a time.
  float joined[P::values];
  // GPU registers cannot be indexed. SoftMetal vectorises this loop instead.
#pragma clang loop unroll(full)
  for (int k = 0; k < run / codes; k++) {
    float first[terms * codes];
    for (int p = 0; p < terms; p++) {
      Format::load(row.packed + (p * (run / codes) + k) * bytes, first + p * codes, bits);
    }
    if (H::norms == 2) {
      float second[terms * codes];
      for (int p = 0; p < terms; p++) {
        Format::load(row.packed + ((terms + p) * (run / codes) + k) * bytes, second + p * codes, bits);
      }
      for (int i = 0; i < terms * codes; i++) {
        const float low = first[i] * factor;
        const float high = second[i] * last_factor;
        first[i] = low + high;
        second[i] = low - high;
      }
      join_runs<D, codes>(second, lane, k * codes, joined + P::values / 2);
    }
    join_runs<D, codes>(first, lane, k * codes, joined);
  }
  for (int i = 0; i < int(P::values); i++) {
    values[i] = joined[i];
  }
  butterflies<P::values, P::run, P::span>(values);
  butterflies<P::values, 1, P::run>(values);
  for (int r = 0; r < int(P::values) / run; r++) {
    const constant float *run_signs = signs + (r * H::lanes + lane) * run;
    for (int j = 0; j < run; j++) {
      const float value = H::norms == 1 ? values[r * run + j] * factor : values[r * run + j];
      // Adding 0 makes -0 a plain 0.
      values[r * run + j] = value * run_signs[j] + 0.0f;
    }
  }
}

// Kernels for these sizes.

/// n_tokens positions of K, or of K and V, in one dispatch: y of the grid is the stream.
template <uint D, typename Format>
[[kernel]] void decode(const device uchar *packed_k [[buffer(0)]], const device float *norms_k [[buffer(1)]],
                       device uchar *out_k [[buffer(2)]], constant HadamardDequantizeParams &params [[buffer(3)]],
                       const device uchar *packed_v [[buffer(4)]], const device float *norms_v [[buffer(5)]],
                       device uchar *out_v [[buffer(6)]], uint3 position [[thread_position_in_grid]]) {
  typedef Head<D> H;
  const uint row = position.x / H::lanes;
  const uint lane = position.x % H::lanes;
  const uint head = row / params.n_tokens;
  if (head >= params.num_kv_heads) {
    return;
  }
  const uint token = row % params.n_tokens;
  const DecodedStream k = {packed_k, norms_k, out_k};
  const DecodedStream v = {packed_v, norms_v, out_v};
  const ulong cache_row = cache_row_of(params, head, params.read_pos_start, token);
  const DecodedStream stored = (position.y != 0 ? v : k).at(cache_row, D, Format::width(params.codebook_bits));
  float values[Part<D>::values];
  dequantize_part<D, Format>(stored, lane, params.scale_factor_d512, params.codebook_bits, values);
  constexpr uint run = Part<D>::run;
  for (uint r = 0; r < Part<D>::values / run; r++) {
    store_run<run>(stored.out, ulong(row) * D + (r * H::lanes + lane) * run, values + r * run, params.out_dtype);
  }
}

// Any power of two up to 4,096: one threadgroup per head vector.
//
// Grid: threadgroups (heads * n_tokens, streams, 1) of up to head_dim threads,
// each of which takes every thread_count-th item; 4 * head_dim bytes of
// threadgroup memory. Work: head_dim log2(head_dim) additions; bound by the barriers.

/// Code i of a row whose codes take `width` bits each.
inline uint code_in_row(const device uchar *row, uint i, uint bits, uint width) {
  const uint first = i * width;
  const uint low = row[first / 8];
  const uint high = first % 8 + bits > 8 ? row[first / 8 + 1] : 0;
  return ((low | high << 8) >> (first % 8)) & ((1u << bits) - 1);
}

template <typename Format>
[[kernel]] void decode_any(const device uchar *packed_k [[buffer(0)]], const device float *norms_k [[buffer(1)]],
                           device uchar *out_k [[buffer(2)]], constant HadamardDequantizeParams &params [[buffer(3)]],
                           const device uchar *packed_v [[buffer(4)]], const device float *norms_v [[buffer(5)]],
                           device uchar *out_v [[buffer(6)]], threadgroup float *values [[threadgroup(0)]],
                           uint3 position [[threadgroup_position_in_grid]],
                           uint thread_index [[thread_index_in_threadgroup]],
                           uint3 threads [[threads_per_threadgroup]]) {
  const uint head_dim = params.head_dim;
  const uint bits = params.codebook_bits;
  const uint width = Format::width(bits);
  const uint head = position.x / params.n_tokens;
  const uint token = position.x % params.n_tokens;
  const DecodedStream k = {packed_k, norms_k, out_k};
  const DecodedStream v = {packed_v, norms_v, out_v};
  const ulong cache_row = cache_row_of(params, head, params.read_pos_start, token);
  const DecodedStream stored = (position.y != 0 ? v : k).at(cache_row, head_dim, width);
  // sqrt(head_dim) y is centroid * norm for up to 256 coordinates.
  const float unit = head_dim <= 256 ? 1.0f : sqrt(float(head_dim)) / params.scale_factor_d512;
  for (uint i = thread_index; i < head_dim; i += threads.x) {
    values[i] = centroids_of(bits)[code_in_row(stored.packed, i, bits, width)] * (stored.norms[i / 256] * unit);
  }
  transform(values, head_dim, thread_index, threads.x);
  for (uint i = thread_index; i < head_dim; i += threads.x) {
    const float value = values[i] / float(head_dim) * signs[i % 512] + 0.0f;
    store_run<1>(stored.out, ulong(position.x) * head_dim + i, &value, params.out_dtype);
  }
}

// Entry points.

instantiate_head_sizes("hadamard_dequantize_kv_fast_d", decode, NibblePacking);
instantiate_head_sizes("hadamard_dequantize_kv_hb_d", decode, BytePacking);
instantiate_head_sizes("hadamard_dequantize_kv_dense_d", decode, DensePacking);

instantiate_kernel("hadamard_dequantize_kv", decode_any, NibblePacking);
instantiate_kernel("hadamard_dequantize_kv_hb", decode_any, BytePacking);
instantiate_kernel("hadamard_dequantize_kv_dense", decode_any, DensePacking);
