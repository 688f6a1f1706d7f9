/// Writes one token of K, or of K and V, into a quantized cache; see
/// hadamard_encode.h for what is computed and in which order.
///
/// One SIMD group owns a head vector: quad q, coordinates 4q to 4q + 3, lies in
/// lane q % 32 as float4 number q / 32. Butterflies at distances 1 and 2 are
/// inside a quad, at 128 and 256 between the quads of a lane, all others
/// exchange quads between lanes, four values a shuffle:
///   D              64  80  96  112  128  192  256  512
///   quads          16  20  24   28   32   48   64  128
///   quads a lane    1   1   1    1    1    2    2    4
/// Where quads do not fill the lanes, the rest are 0. No butterfly joins them with a quad of
/// the vector, since a block is a whole number of quads, and
/// every lane takes part in every shuffle: no SIMD-group function is in
/// divergent flow, since a SIMD group without a row leaves as a whole.
///
/// Grid: threads (32 * heads, streams, 1), y the stream; threadgroups of a
/// multiple of 32 threads, whole ones allowed. No threadgroup memory, no
/// barrier. 4 to 16 values a lane in registers.
/// Work per vector: D log2 B additions, up to 13 shuffles of a float4 a quad,
/// then the search; bound by the launch: a token is a few KB.
#include <metal_stdlib>

#include "ShaderTypes.h"
#include "common/instantiate.h"
#include "hadamard_encode.h"
#include "hadamard_formats.h"

using namespace metal;

constant constexpr uint simd_width = 32;

/// The quads of one lane.
template <uint D>
struct Quads {
  /// Quads of the vector.
  static constant constexpr uint count = D / 4;
  static constant constexpr uint a_lane = (count + simd_width - 1) / simd_width;
  /// Those of a group with a norm of its own.
  static constant constexpr uint group = a_lane / Head<D>::norms;
};

/// Coordinates `first` to first + 3 of S x.
inline float4 signed_quad(const device float *x, uint first) {
  return float4(x[first] * signs[first], x[first + 1] * signs[first + 1], x[first + 2] * signs[first + 2],
                x[first + 3] * signs[first + 3]);
}

/// Butterflies between quads of this lane, `step` apart.
template <uint COUNT>
inline void butterflies_in_lane(thread float4 *quads, uint step) {
  for (uint i = 0; i < COUNT; i += 2 * step) {
    for (uint j = i; j < i + step; j++) {
      const float4 low = quads[j];
      const float4 high = quads[j + step];
      quads[j] = low + high;
      quads[j + step] = low - high;
    }
  }
}

/// Butterflies between lanes, from FIRST apart up to below END.
template <uint COUNT, uint FIRST, uint END>
inline void butterflies_across_lanes(thread float4 *quads, uint lane) {
  for (uint step = FIRST; step < END; step *= 2) {
    const float4 sign = float4((lane & step) != 0 ? -1.0f : 1.0f);
    for (uint i = 0; i < COUNT; i++) {
      quads[i] = fma(sign, quads[i], simd_shuffle_xor(quads[i], ushort(step)));
    }
  }
}

/// Butterflies inside a quad.
inline float4 butterflies_in_quad(float4 quad) {
  const float4 at_1 = float4(quad.xz + quad.yw, quad.xz - quad.yw).xzyw;
  return float4(at_1.xy + at_1.zw, at_1.xy - at_1.zw);
}

/// The sum of squares of a group of COUNT quads a lane; RUN quads are the run of the order.
template <uint COUNT, uint RUN>
inline float square_sum(const thread float4 *quads) {
  float4 sums[COUNT];
  for (uint i = 0; i < COUNT; i++) {
    sums[i] = quads[i] * quads[i];
    for (uint step = RUN; step < simd_width; step *= 2) {
      sums[i] += simd_shuffle_xor(sums[i], ushort(step));
    }
  }
  float4 sum = COUNT == 2 ? sums[0] + sums[COUNT - 1] : sums[0];
  for (uint step = RUN / 2; step > 0; step /= 2) {
    sum += simd_shuffle_xor(sum, ushort(step));
  }
  return sum_of<1>(&sum);
}

/// Writes a head vector; all lanes of a SIMD group call it. `probe`
/// gets the scaled coordinates.
template <uint D, typename Format>
inline void quantize_vector(EncodedStream row, uint lane, float scale_factor_d512, uint bits, Probe probe) {
  typedef Head<D> H;
  typedef Quads<D> Q;
  constexpr uint run = order_run<D>() / 4;
  constexpr uint block = H::block / 4;
  float4 quads[Q::a_lane];
  for (uint i = 0; i < Q::a_lane; i++) {
    quads[i] = float4(0.0f);
    const uint q = i * simd_width + lane;
    if (q < Q::count) {
      quads[i] = signed_quad(row.x, 4 * q);
    }
  }
  if (H::norms == 2) {
    butterflies_in_lane<Q::a_lane>(quads, Q::group);
  }
  float square_sums[H::norms];
  for (uint n = 0; n < H::norms; n++) {
    square_sums[n] = square_sum<Q::group, run>(quads + n * Q::group);
  }
  butterflies_across_lanes<Q::a_lane, run, (block < simd_width ? block : simd_width)>(quads, lane);
  if (block > simd_width) {
    butterflies_in_lane<Q::a_lane>(quads, 1);
  }
  for (uint i = 0; i < Q::a_lane; i++) {
    quads[i] = butterflies_in_quad(quads[i]);
  }
  butterflies_across_lanes<Q::a_lane, 1, run>(quads, lane);

  const uint width = Format::width(bits);
  for (uint i = 0; i < Q::a_lane; i++) {
    const uint n = i / Q::group;
    const Scale scale = scale_of_sums<D>(square_sums[n], scale_factor_d512);
    if (lane == 0 && i % Q::group == 0) {
      row.norms[n] = scale.norm;
    }
    const float4 z = quads[i] * scale.factor;
    const uint q = i * simd_width + lane;
    if (q < Q::count) {
      for (uint j = 0; j < 4; j++) {
        probe.store(4 * q + j, z[j], D);
      }
    }
    // 8 codes are a whole number of bytes: an even lane stores its own and the next lane's.
    const float values[4] = {z.x, z.y, z.z, z.w};
    constexpr int size = Format::encoded_size(4);
    uchar encoded[8] = {};
    Format::template encode<4>(values, bits, encoded);
    const uchar4 others = simd_shuffle_xor(uchar4(encoded[0], encoded[1], encoded[2], encoded[3]), ushort(1));
    for (int j = 0; j < size; j++) {
      encoded[size + j] = others[j];
    }
    if (lane % 2 == 0 && q < Q::count) {
      Format::template store<8>(row.packed + q / 2 * width, encoded, bits);
    }
  }
}

/// Writes the head vector that a thread of the grid takes part in.
template <uint D, typename Format, typename Params>
inline void quantize_token(EncodedStream stream, constant Params &params, uint bits, Probe probe,
                           uint thread_position) {
  const uint head = thread_position / simd_width;
  if (head >= params.num_kv_heads) {
    return;
  }
  const ulong cache_row = cache_row_of(params, head, params.write_pos, 0);
  quantize_vector<D, Format>(stream.at(head, cache_row, D, Format::width(bits)), thread_position % simd_width,
                             params.scale_factor_d512, bits, probe.at(head, D));
}

/// 4 bits; `scratch` gets the scaled coordinates of K if asked for.
template <uint D, typename Format>
[[kernel]] void quantize_nibbles(const device float *source_k [[buffer(0)]], device uchar *packed_k [[buffer(1)]],
                                 device float *norms_k [[buffer(2)]],
                                 constant HadamardQuantizeParams &params [[buffer(3)]],
                                 device float *scratch [[buffer(4)]], const device float *source_v [[buffer(5)]],
                                 device uchar *packed_v [[buffer(6)]], device float *norms_v [[buffer(7)]],
                                 uint3 position [[thread_position_in_grid]]) {
  const bool is_v = position.y != 0;
  const EncodedStream k = {source_k, packed_k, norms_k};
  const EncodedStream v = {source_v, packed_v, norms_v};
  const Probe probe = {params.rms_probe_enabled != 0 && !is_v ? scratch : nullptr, params.rms_probe_enabled};
  quantize_token<D, Format>(is_v ? v : k, params, 4, probe, position.x);
}

/// Any other format.
template <uint D, typename Format>
[[kernel]] void quantize_codes(const device float *source_k [[buffer(0)]], device uchar *packed_k [[buffer(1)]],
                               device float *norms_k [[buffer(2)]],
                               constant HadamardQuantizeHbParams &params [[buffer(3)]],
                               const device float *source_v [[buffer(5)]], device uchar *packed_v [[buffer(6)]],
                               device float *norms_v [[buffer(7)]], uint3 position [[thread_position_in_grid]]) {
  const EncodedStream k = {source_k, packed_k, norms_k};
  const EncodedStream v = {source_v, packed_v, norms_v};
  quantize_token<D, Format>(position.y != 0 ? v : k, params, params.codebook_bits, no_probe(), position.x);
}

// Entry points.

instantiate_head_sizes("hadamard_quantize_kv_fast_d", quantize_nibbles, NibblePacking);
instantiate_head_sizes("hadamard_quantize_kv_hb_d", quantize_codes, BytePacking);
instantiate_head_sizes("hadamard_quantize_kv_dense_d", quantize_codes, DensePacking);
