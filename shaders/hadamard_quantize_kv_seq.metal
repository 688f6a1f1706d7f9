/// Writes many tokens of K, or of K and V, into a quantized cache in one
/// dispatch; see hadamard_encode.h for what is computed and in which order.
///
/// 8 lanes own a head vector (hadamard_lanes.h), 4 of D = 80 and 112: loads and stores of the lanes lie side by
/// side, float4 each and a word of codes each; 3 stages of shuffles, no barrier. A SIMD group may
/// hold the end of the rows: the lanes of a vector leave together.
///
/// Grid: threads (rows * lanes, streams, batch size) with rows = heads * tokens; any threadgroup size of
/// whole vectors. No threadgroup memory. Registers: 30 to 72 at 4 bits, up to 96 else (nvptx64, sm_90; no spills).
/// Bytes moved per vector: 4 D read, D * width / 8 and the norms written, each once; D log2 B additions, then the
/// search. Bound by memory at 4 bits; by the search's reads of its table at 5 and more.
#include <metal_stdlib>

#include "ShaderTypes.h"
#include "common/instantiate.h"
#include "hadamard_encode.h"

using namespace metal;

/// y of the grid is the stream, K or V, z the batch.
template <uint D, typename Format>
[[kernel]] void quantize_run(const device float *source_k [[buffer(0)]], device uchar *packed_k [[buffer(1)]],
                             device float *norms_k [[buffer(2)]],
                             constant HadamardQuantizeSeqParams &params [[buffer(3)]],
                             const device float *source_v [[buffer(4)]], device uchar *packed_v [[buffer(5)]],
                             device float *norms_v [[buffer(6)]], const device int *positions [[buffer(7)]],
                             const device int *block_table [[buffer(8)]], uint3 position [[thread_position_in_grid]],
                             uint simd_lane [[thread_index_in_simdgroup]]) {
  const uint row = position.x / LaneQuads<D>::lanes;
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
  quantize_vector<D, Format>(
      (position.y != 0 ? v : k).at(source_row, ulong(cache_row), D, Format::width(params.codebook_bits)), simd_lane,
      params.scale_factor_d512, params.codebook_bits, no_probe());
}

// Entry points.

instantiate_head_sizes("hadamard_quantize_kv_seq_fast_d", quantize_run, NibblePacking);
instantiate_head_sizes("hadamard_quantize_kv_seq_hb_d", quantize_run, BytePacking);
instantiate_head_sizes("hadamard_quantize_kv_seq_dense_d", quantize_run, DensePacking);
