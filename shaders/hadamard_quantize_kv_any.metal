/// Writes head vectors of any power of two up to 4,096 values into a quantized
/// cache: one token, or many tokens in one dispatch; see hadamard_encode.h for
/// what is computed. The order of sums is that of a transform in memory:
/// butterflies at distances 1, 2, 4 and so on, squares pairwise.
///
/// One threadgroup per head vector. Grid: threadgroups (rows, streams, batch size) with
/// rows = heads * tokens, y the stream; up to head_dim threads, each of which
/// takes every thread_count-th item; 8 * head_dim bytes of threadgroup memory,
/// half for the coordinates and half for the sums of their squares.
/// Registers: 31 to 33 (nvptx64, sm_90; f32 source). Bytes moved per vector: 4 head_dim read, 2 head_dim of 16-bit
/// sources, head_dim * width / 8 and the norms written.
/// Work: head_dim log2(head_dim) additions; bound by the barriers.
#include <metal_stdlib>

#include "ShaderTypes.h"
#include "common/arithmetic.h"
#include "common/instantiate.h"
#include "hadamard_encode.h"

using namespace metal;

/// Byte `byte` of a row of codes of `width` bits without gaps.
inline uchar byte_of_row(const threadgroup float *codes, uint byte, uint width) {
  uint result = 0;
  for (uint i = byte * 8 / width; i * width < byte * 8 + 8; i++) {
    const uint code = as_type<uint>(codes[i]);
    const int shift = int(i * width) - int(byte * 8);
    result |= shift < 0 ? code >> -shift : code << shift;
  }
  return uchar(result);
}

/// Writes a head vector, with codes that take `width` bits of the row. All threads of the threadgroup call it. `probe`
/// gets the scaled coordinates.
inline void quantize_vector(EncodedStream row, uint head_dim, float scale_factor_d512, uint width, Probe probe,
                            threadgroup float *values, uint thread_index, uint thread_count) {
  for (uint i = thread_index; i < head_dim; i += thread_count) {
    values[i] = load_element(row.x, i, source_dtype) * sign_of(i);
  }
  transform(values, head_dim, thread_index, thread_count);
  // Of y, since the squares of sqrt(head_dim) y leave f32 earlier.
  threadgroup float *squares = values + head_dim;
  for (uint i = thread_index; i < head_dim; i += thread_count) {
    const float y = values[i] / sqrt(float(head_dim));
    squares[i] = y * y;
  }
  const uint group = min(head_dim, 256u);
  for (uint step = group / 2; step > 0; step /= 2) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = thread_index; i < head_dim; i += thread_count) {
      if (i % group < step) {
        squares[i] += squares[i + step];
      }
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint i = thread_index; i < head_dim; i += thread_count) {
    const Scale scale = scale_of_group(squares[i / group * group], head_dim, scale_factor_d512);
    if (i % group == 0) {
      row.norms[i / group] = scale.norm;
    }
    const float z = values[i] * scale.factor;
    values[i] = as_type<float>(code_search_of(row.bits).code(z));
    probe.store(i, z, head_dim);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint byte = thread_index; byte < head_dim * width / 8; byte += thread_count) {
    row.packed[byte] = byte_of_row(values, byte, width);
  }
}

// Packings of K and V. `width`: bits of a row that a code of a stream takes.

/// Both have one.
template <typename Format>
struct OnePacking {
  static uint width(EncodedStream stream) { return Format::width(stream.bits); }
};

/// Each has its own.
struct OwnPackings {
  static uint width(EncodedStream stream) { return packing_of(stream) == 2 ? 8 : stream.bits; }
};

/// Many tokens.
template <typename Packings>
[[kernel]] void quantize_run(const device uchar *source_k [[buffer(0)]], device uchar *packed_k [[buffer(1)]],
                             device float *norms_k [[buffer(2)]],
                             constant HadamardQuantizeSeqParams &params [[buffer(3)]],
                             const device uchar *source_v [[buffer(4)]], device uchar *packed_v [[buffer(5)]],
                             device float *norms_v [[buffer(6)]], const device int *positions [[buffer(7)]],
                             const device int *block_table [[buffer(8)]], threadgroup float *values [[threadgroup(0)]],
                             uint3 position [[threadgroup_position_in_grid]],
                             uint thread_index [[thread_index_in_threadgroup]],
                             uint3 threads [[threads_per_threadgroup]]) {
  const uint token = position.x / params.num_kv_heads;
  const uint head = position.x % params.num_kv_heads;
  const ulong source_row = source_row_of(params, position.z, head, token);
  const long cache_row = written_row_of(params, {positions, block_table}, position.z, head, token);
  if (cache_row < 0) {
    return;
  }
  const EncodedStream k = {source_k, packed_k, norms_k, params.codebook_bits, false};
  const EncodedStream v = {source_v, packed_v, norms_v, params.codebook_bits_v, true};
  const EncodedStream stream = position.y != 0 ? v : k;
  const uint width = Packings::width(stream);
  quantize_vector(stream.at(source_row, ulong(cache_row), params.head_dim, width), params.head_dim,
                  params.scale_factor_d512, width, no_probe(), values, thread_index, threads.x);
}

/// One token, 4 bits; `scratch` gets the scaled coordinates [heads, head_dim] of K if asked for.
template <typename Format>
[[kernel]] void quantize_nibbles(const device uchar *source_k [[buffer(0)]], device uchar *packed_k [[buffer(1)]],
                                 device float *norms_k [[buffer(2)]],
                                 constant HadamardQuantizeParams &params [[buffer(3)]],
                                 device float *scratch [[buffer(4)]], const device uchar *source_v [[buffer(5)]],
                                 device uchar *packed_v [[buffer(6)]], device float *norms_v [[buffer(7)]],
                                 threadgroup float *values [[threadgroup(0)]],
                                 uint3 position [[threadgroup_position_in_grid]],
                                 uint thread_index [[thread_index_in_threadgroup]],
                                 uint3 threads [[threads_per_threadgroup]]) {
  const uint head = position.x;
  const ulong cache_row = cache_row_of(params, head, params.write_pos, 0);
  const bool is_v = position.y != 0;
  const EncodedStream k = {source_k, packed_k, norms_k, 4, false};
  const EncodedStream v = {source_v, packed_v, norms_v, 4, true};
  const uint width = Format::width(4);
  const Probe probe = {params.rms_probe_enabled != 0 && !is_v ? scratch : nullptr, params.rms_probe_enabled};
  quantize_vector((is_v ? v : k).at(head, cache_row, params.head_dim, width), params.head_dim, params.scale_factor_d512,
                  width, probe.at(head, params.head_dim), values, thread_index, threads.x);
}

/// One token, any other format.
template <typename Format>
[[kernel]] void quantize_codes(const device uchar *source_k [[buffer(0)]], device uchar *packed_k [[buffer(1)]],
                               device float *norms_k [[buffer(2)]],
                               constant HadamardQuantizeHbParams &params [[buffer(3)]],
                               const device uchar *source_v [[buffer(5)]], device uchar *packed_v [[buffer(6)]],
                               device float *norms_v [[buffer(7)]], threadgroup float *values [[threadgroup(0)]],
                               uint3 position [[threadgroup_position_in_grid]],
                               uint thread_index [[thread_index_in_threadgroup]],
                               uint3 threads [[threads_per_threadgroup]]) {
  const uint head = position.x;
  const ulong cache_row = cache_row_of(params, head, params.write_pos, 0);
  const EncodedStream k = {source_k, packed_k, norms_k, params.codebook_bits, false};
  const EncodedStream v = {source_v, packed_v, norms_v, params.codebook_bits, true};
  const uint width = Format::width(params.codebook_bits);
  quantize_vector((position.y != 0 ? v : k).at(head, cache_row, params.head_dim, width), params.head_dim,
                  params.scale_factor_d512, width, no_probe(), values, thread_index, threads.x);
}

// Entry points.

instantiate_kernel("hadamard_quantize_kv", quantize_nibbles, NibblePacking);
instantiate_kernel("hadamard_quantize_kv_hb", quantize_codes, BytePacking);
instantiate_kernel("hadamard_quantize_kv_dense", quantize_codes, DensePacking);
instantiate_kernel("hadamard_quantize_kv_seq", quantize_run, OnePacking<NibblePacking>);
instantiate_kernel("hadamard_quantize_kv_seq_hb", quantize_run, OnePacking<BytePacking>);
instantiate_kernel("hadamard_quantize_kv_seq_dense", quantize_run, OnePacking<DensePacking>);
instantiate_kernel("hadamard_quantize_kv_seq_mixed", quantize_run, OwnPackings);
