/// Writes many tokens of K, or of K and V, into a quantized cache in one
/// dispatch; see hadamard_encode.h for what is computed and in which order.
///
/// 8 lanes own a head vector (hadamard_lanes.h), 4 of D = 80 and 112: loads and stores of the lanes lie side by
/// side, 4 elements each and a word of codes each; 3 stages of shuffles, no barrier. A SIMD group may
/// hold the end of the rows: the lanes of a vector leave together.
///
/// K and V have one dtype, and widths of their own; packings of their own in `hadamard_quantize_kv_seq_mixed_d*`, where
/// a threadgroup takes the branch of its stream behind all that the streams share.
///
/// K may turn by its rotary positions on its way (hadamard_turn.h): a thread has heads_of_thread heads of a token then,
/// which share its angles, else one.
///
/// Grid: threads (rows * lanes, streams, batch size) with rows = ceil(heads / heads of a thread) * tokens; any
/// threadgroup size of whole vectors, (n, 1, 1). No threadgroup memory. Registers: 30 to 72 at 4 bits, up to 96 else
/// (nvptx64, sm_90; no spills), of an f32 source that does not turn.
/// Bytes moved per vector: 4 D read, 2 D of 16-bit sources, D * width / 8 and the norms written, each once; D log2 B
/// additions, then a look-up a code. Bound by memory.
#include <metal_stdlib>

#include "ShaderTypes.h"
#include "common/instantiate.h"
#include "hadamard_encode.h"

using namespace metal;

/// y of the grid is the stream, K or V, z the batch.
template <uint D, typename Packings>
[[kernel]] void quantize_run(const device uchar *source_k [[buffer(0)]], device uchar *packed_k [[buffer(1)]],
                             device float *norms_k [[buffer(2)]],
                             constant HadamardQuantizeSeqParams &params [[buffer(3)]],
                             const device uchar *source_v [[buffer(4)]], device uchar *packed_v [[buffer(5)]],
                             device float *norms_v [[buffer(6)]], const device int *positions [[buffer(7)]],
                             const device int *block_table [[buffer(8)]],
                             constant float *inv_freq [[buffer(9), function_constant(turns)]],
                             uint3 position [[thread_position_in_grid]], uint3 group [[threadgroup_position_in_grid]],
                             uint simd_lane [[thread_index_in_simdgroup]]) {
  const uint heads = turns ? params.heads_of_thread : 1;
  const uint groups = turns ? (params.num_kv_heads + heads - 1) / heads : params.num_kv_heads;
  const uint row = position.x / LaneQuads<D>::lanes;
  const uint token = row / groups;
  if (token >= params.n_tokens) {
    return;
  }
  const uint first = row % groups * heads;
  const TokenPlaces places = {positions, block_table};
  const ulong source_row = source_row_of(params, position.z, first, token);
  const long cache_row = written_row_of(params, places, position.z, first, token);
  if (cache_row < 0) {
    return;
  }
  const EncodedStream k = {source_k, packed_k, norms_k, params.codebook_bits, false};
  const EncodedStream v = {source_v, packed_v, norms_v, params.codebook_bits_v, true};
  const EncodedStream stream = group.y != 0 ? v : k;
  const uint width = Packings::width(stream);
  if (!turns) {
    quantize_vector<D, Packings>(stream.at(source_row, ulong(cache_row), D, width), simd_lane, params.scale_factor_d512,
                                 no_probe(), NoTurn(), false);
    return;
  }
  const bool does_turn = !stream.is_v;
  Turn<D> turn;
  turn.half_dim = params.rotaryDim / 2;
  if (does_turn) {
    const int angle_position = int(position_of(params, places, position.z, token)) + params.ropeOffset;
    turn.fill(float(angle_position), inv_freq, params.attentionScale, simd_lane % LaneQuads<D>::lanes);
  }
  const uint count = min(heads, params.num_kv_heads - first);
  for (uint head = 0; head < count; head++) {
    const EncodedStream of_head =
        stream.at(source_row + head, ulong(cache_row) + head * rows_of_head(params), D, width);
    quantize_vector<D, Packings>(of_head, simd_lane, params.scale_factor_d512, no_probe(), turn, does_turn);
  }
}

// Entry points.

instantiate_head_sizes("hadamard_quantize_kv_seq_fast_d", quantize_run, Alike<NibblePacking>);
instantiate_head_sizes("hadamard_quantize_kv_seq_hb_d", quantize_run, Alike<BytePacking>);
instantiate_head_sizes("hadamard_quantize_kv_seq_dense_d", quantize_run, Alike<DensePacking>);
instantiate_head_sizes("hadamard_quantize_kv_seq_mixed_d", quantize_run, Unlike);
