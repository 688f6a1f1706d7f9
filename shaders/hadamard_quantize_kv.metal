/// Writes one token of K, or of K and V, into a quantized cache; see
/// hadamard_encode.h for what is computed and in which order.
///
/// As many lanes own a head vector as in hadamard_quantize_kv_seq.metal, and encode it by the same function.
///
/// Grid: threads (lanes * heads, streams, 1), y the stream, x up to whole SIMD groups; threadgroups (32 n, 1, 1). No
/// threadgroup memory, no barrier; registers and bytes as there. Bound by the launch: a token is a few KB.
#include <metal_stdlib>

#include "ShaderTypes.h"
#include "common/arithmetic.h"
#include "common/instantiate.h"
#include "hadamard_encode.h"

using namespace metal;

/// Writes the head vector that a thread of the grid takes part in.
template <uint D, typename Format, typename Params>
inline void quantize_token(EncodedStream stream, constant Params &params, Probe probe, uint thread_position,
                           uint simd_lane) {
  const uint head = thread_position / LaneQuads<D>::lanes;
  if (head >= params.num_kv_heads) {
    return;
  }
  const ulong cache_row = cache_row_of(params, head, params.write_pos, 0);
  quantize_vector<D, Format>(stream.at(head, cache_row, D, Format::width(stream.bits)), simd_lane,
                             params.scale_factor_d512, probe.at(head, D), NoTurn(), false);
}

/// 4 bits; `scratch` gets the scaled coordinates of K if asked for.
template <uint D, typename Format>
[[kernel]] void quantize_nibbles(const device uchar *source_k [[buffer(0)]], device uchar *packed_k [[buffer(1)]],
                                 device float *norms_k [[buffer(2)]],
                                 constant HadamardQuantizeParams &params [[buffer(3)]],
                                 device float *scratch [[buffer(4)]], const device uchar *source_v [[buffer(5)]],
                                 device uchar *packed_v [[buffer(6)]], device float *norms_v [[buffer(7)]],
                                 uint3 position [[thread_position_in_grid]],
                                 uint simd_lane [[thread_index_in_simdgroup]]) {
  const bool is_v = position.y != 0;
  const EncodedStream k = {source_k, packed_k, norms_k, 4, false};
  const EncodedStream v = {source_v, packed_v, norms_v, 4, true};
  const Probe probe = {params.rms_probe_enabled != 0 && !is_v ? scratch : nullptr, params.rms_probe_enabled};
  quantize_token<D, Format>(is_v ? v : k, params, probe, position.x, simd_lane);
}

/// Any other format.
template <uint D, typename Format>
[[kernel]] void quantize_codes(const device uchar *source_k [[buffer(0)]], device uchar *packed_k [[buffer(1)]],
                               device float *norms_k [[buffer(2)]],
                               constant HadamardQuantizeHbParams &params [[buffer(3)]],
                               const device uchar *source_v [[buffer(5)]], device uchar *packed_v [[buffer(6)]],
                               device float *norms_v [[buffer(7)]], uint3 position [[thread_position_in_grid]],
                               uint simd_lane [[thread_index_in_simdgroup]]) {
  const EncodedStream k = {source_k, packed_k, norms_k, params.codebook_bits, false};
  const EncodedStream v = {source_v, packed_v, norms_v, params.codebook_bits, true};
  quantize_token<D, Format>(position.y != 0 ? v : k, params, no_probe(), position.x, simd_lane);
}

// Entry points.

instantiate_head_sizes("hadamard_quantize_kv_fast_d", quantize_nibbles, NibblePacking);
instantiate_head_sizes("hadamard_quantize_kv_hb_d", quantize_codes, BytePacking);
instantiate_head_sizes("hadamard_quantize_kv_dense_d", quantize_codes, DensePacking);
