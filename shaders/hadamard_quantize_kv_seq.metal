/// Writes many tokens of K, or of K and V, into a quantized cache in one
/// dispatch; see hadamard_encode.h for what is computed and in which order.
///
/// 8 lanes own a head vector (hadamard_lanes.h), 4 at D = 80 and 112, 16 at 512: loads and stores of the lanes lie
/// side by side, 4 elements each and a word of codes each; log2(lanes) stages of shuffles, no barrier. A SIMD group
/// may hold the end of the rows: the lanes of a vector leave together.
///
/// K and V have one dtype, and widths of their own; packings of their own in `hadamard_quantize_kv_seq_mixed_d*`, where
/// a threadgroup takes the branch of its stream.
///
/// K may turn by its rotary positions on its way (hadamard_turn.h): a thread has heads_of_thread heads of a token then,
/// which share its angles, else one.
///
/// Grid: threads (rows * lanes, streams, batch size) with rows = ceil(heads / heads of a thread) * tokens, x up to
/// whole SIMD groups; threadgroups (32 n, 1, 1). No threadgroup memory. Registers: 30 to 72 at 4 bits, up to 96 else
/// (nvptx64, sm_90; no spills), of an f32 source that does not turn.
/// Bytes moved per vector: 4 D read, 2 D of 16-bit sources, D * width / 8 and the norms written, each once; D log2 B
/// additions, then a look-up a code. Bound by memory.
#include <metal_stdlib>

#include "ShaderTypes.h"
#include "common/arithmetic.h"
#include "common/instantiate.h"
#include "hadamard_encode.h"

using namespace metal;

/// Where a thread is in the grid: its vector and those beside it that it takes, its stream and lane.
struct RunPlace {
  uint row;
  uint batch;
  uint simd_lane;
  EncodedStream stream;
};

/// Writes the head vectors of a stream that a thread takes part in.
template <uint D, typename Format>
inline void quantize_rows(RunPlace at, constant HadamardQuantizeSeqParams &params, TokenPlaces places,
                          constant float *inv_freq) {
  const uint heads = turns ? params.heads_of_thread : 1;
  const uint groups = turns ? (params.num_kv_heads + heads - 1) / heads : params.num_kv_heads;
  const uint token = at.row / groups;
  if (token >= params.n_tokens) {
    return;
  }
  const uint first = at.row % groups * heads;
  const ulong source_row = source_row_of(params, at.batch, first, token);
  const long cache_row = written_row_of(params, places, at.batch, first, token);
  if (cache_row < 0) {
    return;
  }
  const uint width = Format::width(at.stream.bits);
  if (!turns) {
    quantize_vector<D, Format>(at.stream.at(source_row, ulong(cache_row), D, width), at.simd_lane,
                               params.scale_factor_d512, no_probe(), NoTurn(), false);
    return;
  }
  const bool does_turn = !at.stream.is_v;
  Turn<D> turn;
  turn.half_dim = params.rotaryDim / 2;
  if (does_turn) {
    const int angle_position = int(position_of(params, places, at.batch, token)) + params.ropeOffset;
    turn.fill(float(angle_position), inv_freq, params.attentionScale, at.simd_lane % LaneQuads<D>::lanes);
  }
  const uint count = min(heads, params.num_kv_heads - first);
  for (uint head = 0; head < count; head++) {
    const EncodedStream of_head =
        at.stream.at(source_row + head, ulong(cache_row) + head * rows_of_head(params), D, width);
    quantize_vector<D, Format>(of_head, at.simd_lane, params.scale_factor_d512, no_probe(), turn, does_turn);
  }
}

// Packings of K and V. `quantize`: quantize_rows in that of a stream.

/// Both have one.
template <typename Format>
struct OnePacking {
  template <uint D>
  static void quantize(RunPlace at, constant HadamardQuantizeSeqParams &params, TokenPlaces places,
                       constant float *inv_freq) {
    quantize_rows<D, Format>(at, params, places, inv_freq);
  }
};

/// Each has its own: a threadgroup takes one of the branches, first of all, so that no loop has them inside.
struct OwnPackings {
  template <uint D>
  static void quantize(RunPlace at, constant HadamardQuantizeSeqParams &params, TokenPlaces places,
                       constant float *inv_freq) {
    const uint packing = packing_of(at.stream);
    if (packing == 1) {
      quantize_rows<D, NibblePacking>(at, params, places, inv_freq);
    } else if (packing == 2) {
      quantize_rows<D, BytePacking>(at, params, places, inv_freq);
    } else {
      quantize_rows<D, DensePacking>(at, params, places, inv_freq);
    }
  }
};

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
  const EncodedStream k = {source_k, packed_k, norms_k, params.codebook_bits, false};
  const EncodedStream v = {source_v, packed_v, norms_v, params.codebook_bits_v, true};
  const EncodedStream stream = group.y != 0 ? v : k;
  Packings::template quantize<D>({position.x / LaneQuads<D>::lanes, position.z, simd_lane, stream}, params,
                                 {positions, block_table}, inv_freq);
}

// Entry points.

instantiate_head_sizes("hadamard_quantize_kv_seq_fast_d", quantize_run, OnePacking<NibblePacking>);
instantiate_head_sizes("hadamard_quantize_kv_seq_hb_d", quantize_run, OnePacking<BytePacking>);
instantiate_head_sizes("hadamard_quantize_kv_seq_dense_d", quantize_run, OnePacking<DensePacking>);
instantiate_head_sizes("hadamard_quantize_kv_seq_mixed_d", quantize_run, OwnPackings);
