/// Writes many tokens of K, or of K and V, into a quantised cache in one
/// dispatch; see hadamard_encode.h for what is computed and in which order.
///
/// 1 to 8 lanes own a head vector, each at most 64 coordinates in registers, in
/// runs of R consecutive ones:
///   D             64  80  96  112  128  192  256  512
///   lanes (L)      1   2   2    2    2    4    4    8
///   per lane      64  40  48   56   64   48   64   64
///   run (R)       16   8  16    8   16   16   16   16
/// Coordinate c belongs to lane (c / R) % L. The butterflies between lanes come
/// first: a lane reads the L runs that meet in its own and adds them up with its
/// signs, so lanes exchange nothing: no shuffle, no barrier, no divergence, and
/// every lane has seen all of x, which gives it the norm (|H S x| = |x| sqrt(B)).
/// On an Apple GPU the L lanes of a vector read the same addresses in the same
/// instruction, so a vector crosses the memory bus once, in whole 128-byte
/// lines used up before the next; the runs that its lanes store lie side by side.
/// On a CPU the loops over runs and values become vector instructions, and a
/// thread runs from start to end, where a shuffle would switch 32 fibres.
///
/// Grid: threads (rows * L, streams, 1) with rows = heads * tokens; any
/// threadgroup size, whole threadgroups allowed. No threadgroup memory.
/// Work per vector: D (L + log2 B) additions, then the search; bound by memory
/// on a GPU. Register floats per lane: 64 and the runs being added.
#include <metal_stdlib>

#include "ShaderTypes.h"
#include "hadamard_encode.h"
#include "hadamard_formats.h"

using namespace metal;

/// A lane's part of a head vector of D values.
template <uint D>
struct Part {
  static constant constexpr uint run = order_run<D>();
  static constant constexpr uint values = D / Head<D>::lanes;
  /// Values of a group with a norm of its own.
  static constant constexpr uint group = values / Head<D>::norms;
  /// Values of a transform, without the halves that meet on loading.
  static constant constexpr uint span = Head<D>::block / Head<D>::lanes / Head<D>::norms;
};

/// Adds up COUNT runs of N quads pairwise, neighbours first, and leaves the sum in the first.
template <int COUNT, int N>
inline void add_runs(thread float4 *runs) {
  for (int step = 1; step < COUNT; step *= 2) {
    for (int p = 0; p + step < COUNT; p += 2 * step) {
      for (int j = 0; j < N; j++) {
        runs[p * N + j] += runs[(p + step) * N + j];
      }
    }
  }
}

/// Adds up the squares of COUNT runs of N quads.
template <int COUNT, int N>
inline void add_squares(const thread float4 *terms, thread float4 *sums) {
  float4 squares[COUNT * N];
  for (int j = 0; j < COUNT * N; j++) {
    squares[j] = terms[j] * terms[j];
  }
  add_runs<COUNT, N>(squares);
  for (int j = 0; j < N; j++) {
    sums[j] = squares[j];
  }
}

/// Stores N quads.
template <int N>
inline void store_quads(thread float *values, const thread float4 *quads) {
  for (int i = 0; i < N; i++) {
    for (int j = 0; j < 4; j++) {
      values[4 * i + j] = quads[i][j];
    }
  }
}

/// This lane's part of H S x, and the sum of squares of each group of 256
/// coordinates (of all for D <= 256) before the butterflies inside it, which
/// multiply it by their span.
template <uint D>
inline void rotate(const device float *x, uint lane, thread float *values, thread float *square_sums) {
  typedef Head<D> H;
  typedef Part<D> P;
  constexpr int quads = P::run / 4;
  constexpr int runs = P::group / P::run;
  float4 sums[H::norms][runs * quads];
  for (int r = 0; r < runs; r++) {
    const int i = r * P::run;
    float4 terms[H::lanes * quads];
    for (int p = 0; p < int(H::lanes); p++) {
      load_signed<quads>(x, i * H::lanes + p * P::run, terms + p * quads);
    }
    if (H::norms == 2) {
      float4 differences[H::lanes * quads];
      for (int p = 0; p < int(H::lanes); p++) {
        load_signed<quads>(x, (P::group + i) * H::lanes + p * P::run, differences + p * quads);
      }
      for (int j = 0; j < int(H::lanes) * quads; j++) {
        const float4 low = terms[j];
        terms[j] = low + differences[j];
        differences[j] = low - differences[j];
      }
      add_squares<H::lanes, quads>(differences, sums[H::norms - 1] + r * quads);
      join_lanes<H::lanes, quads>(differences, lane);
      store_quads<quads>(values + P::group + i, differences);
    }
    add_squares<H::lanes, quads>(terms, sums[0] + r * quads);
    join_lanes<H::lanes, quads>(terms, lane);
    store_quads<quads>(values + i, terms);
  }
  for (int n = 0; n < int(H::norms); n++) {
    add_runs<runs, quads>(sums[n]);
    square_sums[n] = sum_of<quads>(sums[n]);
  }
  butterflies<P::values, P::run, P::span>(values);
  butterflies<P::values, 1, P::run>(values);
}

/// Writes this lane's part of a head vector.
template <uint D, typename Format>
inline void quantize_part(const device float *x, device uchar *row, device float *norms, uint lane,
                          float scale_factor_d512, uint bits) {
  typedef Head<D> H;
  typedef Part<D> P;
  float values[P::values];
  float square_sums[H::norms];
  rotate<D>(x, lane, values, square_sums);
  for (uint n = 0; n < H::norms; n++) {
    const Scale scale = scale_of_sums<D>(square_sums[n], scale_factor_d512);
    if (lane == 0) {
      norms[n] = scale.norm;
    }
    for (uint i = n * P::group; i < (n + 1) * P::group; i++) {
      values[i] *= scale.factor;
    }
  }
  uchar encoded[Format::encoded_size(P::values)];
  Format::template encode<P::values>(values, bits, encoded);
  for (int i = 0; i < int(P::values); i += P::run) {
    device uchar *run = row + (i * H::lanes + lane * P::run) / 8 * Format::width(bits);
    Format::template store<P::run>(run, encoded + Format::encoded_size(i), bits);
  }
}

/// y of the grid is the stream: K, or V.
template <uint D, typename Format>
[[kernel]] void bulk(const device float *source_k [[buffer(0)]], device uchar *packed_k [[buffer(1)]],
                     device float *norms_k [[buffer(2)]], constant HadamardQuantizeSeqParams &params [[buffer(3)]],
                     const device float *source_v [[buffer(4)]], device uchar *packed_v [[buffer(5)]],
                     device float *norms_v [[buffer(6)]], uint3 position [[thread_position_in_grid]]) {
  const uint row = position.x / Head<D>::lanes;
  const uint token = row / params.num_kv_heads;
  if (token >= params.n_tokens) {
    return;
  }
  const uint head = row % params.num_kv_heads;
  const uint slot = slot_of(params.write_pos_start, token, params.cache_capacity, params.is_sliding != 0);
  const ulong source_row = (ulong(params.src_tok_offset) + token) * params.num_kv_heads + head;
  const ulong cache_row = ulong(head) * params.cache_capacity + slot;
  const bool is_v = position.y != 0;
  quantize_part<D, Format>((is_v ? source_v : source_k) + source_row * D,
                           (is_v ? packed_v : packed_k) + cache_row * (D / 8 * Format::width(params.codebook_bits)),
                           (is_v ? norms_v : norms_k) + cache_row * Head<D>::norms, position.x % Head<D>::lanes,
                           params.scale_factor_d512, params.codebook_bits);
}

// Entry points.

// clang-format off
template [[host_name("hadamard_quantize_kv_seq_fast_d64")]] [[kernel]] decltype(bulk<64, Nibbles>) bulk<64, Nibbles>;
template [[host_name("hadamard_quantize_kv_seq_fast_d80")]] [[kernel]] decltype(bulk<80, Nibbles>) bulk<80, Nibbles>;
template [[host_name("hadamard_quantize_kv_seq_fast_d96")]] [[kernel]] decltype(bulk<96, Nibbles>) bulk<96, Nibbles>;
template [[host_name("hadamard_quantize_kv_seq_fast_d112")]] [[kernel]] decltype(bulk<112, Nibbles>) bulk<112, Nibbles>;
template [[host_name("hadamard_quantize_kv_seq_fast_d128")]] [[kernel]] decltype(bulk<128, Nibbles>) bulk<128, Nibbles>;
template [[host_name("hadamard_quantize_kv_seq_fast_d192")]] [[kernel]] decltype(bulk<192, Nibbles>) bulk<192, Nibbles>;
template [[host_name("hadamard_quantize_kv_seq_fast_d256")]] [[kernel]] decltype(bulk<256, Nibbles>) bulk<256, Nibbles>;
template [[host_name("hadamard_quantize_kv_seq_fast_d512")]] [[kernel]] decltype(bulk<512, Nibbles>) bulk<512, Nibbles>;
template [[host_name("hadamard_quantize_kv_seq_hb_d64")]] [[kernel]] decltype(bulk<64, Bytes>) bulk<64, Bytes>;
template [[host_name("hadamard_quantize_kv_seq_hb_d80")]] [[kernel]] decltype(bulk<80, Bytes>) bulk<80, Bytes>;
template [[host_name("hadamard_quantize_kv_seq_hb_d96")]] [[kernel]] decltype(bulk<96, Bytes>) bulk<96, Bytes>;
template [[host_name("hadamard_quantize_kv_seq_hb_d112")]] [[kernel]] decltype(bulk<112, Bytes>) bulk<112, Bytes>;
template [[host_name("hadamard_quantize_kv_seq_hb_d128")]] [[kernel]] decltype(bulk<128, Bytes>) bulk<128, Bytes>;
template [[host_name("hadamard_quantize_kv_seq_hb_d192")]] [[kernel]] decltype(bulk<192, Bytes>) bulk<192, Bytes>;
template [[host_name("hadamard_quantize_kv_seq_hb_d256")]] [[kernel]] decltype(bulk<256, Bytes>) bulk<256, Bytes>;
template [[host_name("hadamard_quantize_kv_seq_hb_d512")]] [[kernel]] decltype(bulk<512, Bytes>) bulk<512, Bytes>;
template [[host_name("hadamard_quantize_kv_seq_dense_d64")]] [[kernel]] decltype(bulk<64, Dense>) bulk<64, Dense>;
template [[host_name("hadamard_quantize_kv_seq_dense_d80")]] [[kernel]] decltype(bulk<80, Dense>) bulk<80, Dense>;
template [[host_name("hadamard_quantize_kv_seq_dense_d96")]] [[kernel]] decltype(bulk<96, Dense>) bulk<96, Dense>;
template [[host_name("hadamard_quantize_kv_seq_dense_d112")]] [[kernel]] decltype(bulk<112, Dense>) bulk<112, Dense>;
template [[host_name("hadamard_quantize_kv_seq_dense_d128")]] [[kernel]] decltype(bulk<128, Dense>) bulk<128, Dense>;
template [[host_name("hadamard_quantize_kv_seq_dense_d192")]] [[kernel]] decltype(bulk<192, Dense>) bulk<192, Dense>;
template [[host_name("hadamard_quantize_kv_seq_dense_d256")]] [[kernel]] decltype(bulk<256, Dense>) bulk<256, Dense>;
template [[host_name("hadamard_quantize_kv_seq_dense_d512")]] [[kernel]] decltype(bulk<512, Dense>) bulk<512, Dense>;
// clang-format on
