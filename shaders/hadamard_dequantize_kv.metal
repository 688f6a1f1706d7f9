/// Reads a quantized cache back: the inverse of `hadamard_quantize_kv_seq.metal`,
/// with its lanes; hadamard_encode.h has the layouts.
///
/// A coordinate is y = centroid * norm / sqrt(D) for D <= 256, centroid * norm /
/// scaleFactorD512 above, and x = S H y / sqrt(B): the transform is its own
/// inverse, and the signs come after it. A norm of 0 gives zeros, NaN gives NaN.
///
/// Layouts: packed [heads, capacity, row bytes], norms [heads, capacity,
/// max(1, D / 256)] f32, out [heads, n_tokens, D] f32, f16 or bf16.
/// Grid: threads (heads * n_tokens * lanes, streams, 1), the lanes of hadamard_lanes.h; any threadgroup size of
/// whole vectors. No threadgroup memory, log2(lanes) stages of shuffles. Registers: 28 to 89 (nvptx64, sm_90; no
/// spills).
/// Bytes moved per vector: D * width / 8 and the norms read, D elements written, each once. Bound by memory.
///
/// Any power of two up to 4,096: `hadamard_dequantize_kv*` without a size, in
/// threadgroup memory, with 29 registers and the same bytes moved; bound by its barriers.
#include <metal_stdlib>

#include "ShaderTypes.h"
#include "common/arithmetic.h"
#include "common/element_quad.h"
#include "common/instantiate.h"
#include "hadamard_packings.h"
#include "hadamard_rows.h"
#include "hadamard_transform.h"

using namespace metal;

/// What multiplies the sums of the transform: norm / sqrt(D B) for D <= 256, where B is the block.
template <uint D>
inline float factor_of(float norm, float scale_factor_d512) {
  return D <= 256 ? norm / sqrt(float(D) * float(Head<D>::block)) : norm / (scale_factor_d512 * sqrt(float(D)));
}

/// This lane's quads of x.
template <uint D, typename Format>
inline void dequantize_quads(DecodedStream row, uint lane, float scale_factor_d512, uint bits, thread float4 *quads) {
  typedef LaneQuads<D> Q;
  const float factor = factor_of<D>(row.norms[0], scale_factor_d512);
#pragma clang loop unroll(full)
  for (uint i = 0; i < Q::count; i++) {
    quads[i] = Format::load(row.packed, i * Q::lanes + lane, bits);
  }
  if (Head<D>::norms == 2) {
    const float last_factor = factor_of<D>(row.norms[1], scale_factor_d512);
#pragma clang loop unroll(full)
    for (uint i = 0; i < Q::count; i++) {
      quads[i] *= i < Q::group ? factor : last_factor;
    }
    butterflies_in_lane<Q::count>(quads, Q::group, Q::group * 2);
  }
  butterflies_of_groups<D>(quads, lane);
#pragma clang loop unroll(full)
  for (uint i = 0; i < Q::count; i++) {
    // Adding 0 makes -0 a plain 0.
    quads[i] = with_signs<D>(Head<D>::norms == 2 ? quads[i] : quads[i] * factor, i, lane) + 0.0f;
  }
}

/// Stores 4 elements E from element `first` on.
template <typename E>
inline void store_quad(device uchar *tensor, ulong first, float4 quad) {
  typedef typename ElementQuad<E>::Bits Quad;
  device typename E::Bits *to = (device typename E::Bits *)tensor + first;
  if (whole_words) {
    *reinterpret_cast<device Quad *>(to) =
        Quad(E::encode(quad.x), E::encode(quad.y), E::encode(quad.z), E::encode(quad.w));
  } else {
    for (uint j = 0; j < 4; j++) {
      to[j] = E::encode(quad[j]);
    }
  }
}

/// Stores this lane's quads of a vector of D elements E.
template <uint D, typename E>
inline void store_quads(device uchar *out, ulong row, uint lane, const thread float4 *quads) {
  typedef LaneQuads<D> Q;
#pragma clang loop unroll(full)
  for (uint i = 0; i < Q::count; i++) {
    store_quad<E>(out, row * D + 4 * (i * Q::lanes + lane), quads[i]);
  }
}

// Kernels for these sizes.

/// n_tokens positions of K, or of K and V, in one dispatch: y of the grid is the stream.
template <uint D, typename Format>
[[kernel]] void decode(const device uchar *packed_k [[buffer(0)]], const device float *norms_k [[buffer(1)]],
                       device uchar *out_k [[buffer(2)]], constant HadamardDequantizeParams &params [[buffer(3)]],
                       const device uchar *packed_v [[buffer(4)]], const device float *norms_v [[buffer(5)]],
                       device uchar *out_v [[buffer(6)]], uint3 position [[thread_position_in_grid]]) {
  typedef LaneQuads<D> Q;
  const uint row = position.x / Q::lanes;
  const uint lane = position.x % Q::lanes;
  const uint head = row / params.n_tokens;
  if (head >= params.num_kv_heads) {
    return;
  }
  const uint token = row % params.n_tokens;
  const DecodedStream k = {packed_k, norms_k, out_k};
  const DecodedStream v = {packed_v, norms_v, out_v};
  const ulong cache_row = cache_row_of(params, head, params.read_pos_start, token);
  const DecodedStream stored = (position.y != 0 ? v : k).at(cache_row, D, Format::width(params.codebook_bits));
  float4 quads[Q::count];
  dequantize_quads<D, Format>(stored, lane, params.scale_factor_d512, params.codebook_bits, quads);
  if (params.out_dtype == 1) {
    store_quads<D, Float32>(stored.out, row, lane, quads);
  } else if (params.out_dtype == 2) {
    store_quads<D, Float16>(stored.out, row, lane, quads);
  } else {
    store_quads<D, Bfloat16>(stored.out, row, lane, quads);
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
    const float value = values[i] / float(head_dim) * sign_of(i) + 0.0f;
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
