/// Rows of the sources and caches of head vectors. The params structs of these
/// kernels have names in common, and a kernel's K and V share all but memory.
#pragma once

#include "common/ring.h"
#include "hadamard_transform.h"

/// What encoders read, MA_DTYPE_F32 (1), F16 (2) or BF16 (3).
constant uint source_dtype [[function_constant(6)]];
/// The packings of K and of V where each has its own, MA_PACKING_NIBBLE (1), BYTE (2) or DENSE (3).
constant uint packing_k [[function_constant(7)]];
constant uint packing_v [[function_constant(8)]];

/// The row of a token of a head in sources [B, n_src_tokens, num_kv_heads, head_dim].
inline ulong source_row_of(constant HadamardQuantizeSeqParams &params, uint batch, uint head, uint token) {
  const ulong source_token = ulong(batch) * params.n_src_tokens + params.src_tok_offset + token;
  return source_token * params.num_kv_heads + head;
}

/// The row of position first + token of a head, in caches [num_kv_heads, cache_capacity, ...].
template <typename Params>
inline ulong cache_row_of(constant Params &params, uint head, uint first, uint token) {
  return ulong(head) * params.cache_capacity + slot_of(first, token, params.cache_capacity, params.is_sliding != 0);
}

/// Positions of tokens in device memory, and the pages of each batch; not read where the parameters say that there are
/// none.
struct TokenPlaces {
  const device int *positions;
  const device int *block_table;
};

/// The position of a token of a batch.
inline long position_of(constant HadamardQuantizeSeqParams &params, TokenPlaces places, uint batch, uint token) {
  if (params.has_positions != 0) {
    return places.positions[(params.positions_per_batch != 0 ? batch * params.n_tokens : 0) + token];
  }
  return long(params.write_pos_start) + token;
}

/// Rows from one head to the next, in a cache or in a page.
inline ulong rows_of_head(constant HadamardQuantizeSeqParams &params) {
  return params.page_tokens != 0 ? params.page_tokens : params.cache_capacity;
}

/// The row that a token of a head goes to, in caches [B, num_kv_heads, cache_capacity, ...] or pages [n_pages,
/// num_kv_heads, page_tokens, ...]; -1 where it is left out.
inline long written_row_of(constant HadamardQuantizeSeqParams &params, TokenPlaces places, uint batch, uint head,
                           uint token) {
  if (params.has_positions == 0 && params.page_tokens == 0) {
    return long(cache_row_of(params, batch * params.num_kv_heads + head, params.write_pos_start, token));
  }
  const long position = position_of(params, places, batch, token);
  const bool is_ring = params.is_sliding != 0;
  if (position < 0 || (!is_ring && position >= long(params.cache_capacity))) {
    return -1;
  }
  const uint slot = is_ring ? uint(position) % params.cache_capacity : uint(position);
  if (params.page_tokens == 0) {
    return (long(batch) * params.num_kv_heads + head) * params.cache_capacity + slot;
  }
  const ulong pages = params.cache_capacity / params.page_tokens;
  const uint page = uint(places.block_table[ulong(batch) * pages + slot / params.page_tokens]);
  if (page >= params.n_pages) {
    return -1;
  }
  return (long(page) * params.num_kv_heads + head) * params.page_tokens + slot % params.page_tokens;
}

/// What is encoded of K or V, and where to.
struct EncodedStream {
  const device uchar *x;  ///< elements of source_dtype
  device uchar *packed;
  device float *norms;
  uint bits;  ///< of a code
  bool is_v;

  /// At a row of the source and one of the cache, whose codes take `width` bits each.
  EncodedStream at(ulong source_row, ulong cache_row, uint head_dim, uint width) const {
    const uint element_size = source_dtype == 1 ? 4 : 2;
    return {x + source_row * (head_dim * element_size), packed + cache_row * (head_dim * width / 8),
            norms + cache_row * norms_of(head_dim), bits, is_v};
  }
};

/// The packing of a stream where each has its own.
inline uint packing_of(EncodedStream stream) { return stream.is_v ? packing_v : packing_k; }

/// Where the scaled coordinates of K go besides; nowhere while `values` is null.
/// Of each head vector all of them, or the first 16 of each norm, as
/// `rms_probe_enabled` says: 1 or 16.
struct Probe {
  device float *values;
  uint mode;

  /// At a head vector of [heads, head_dim] or [heads, norms, 16].
  Probe at(uint head, uint head_dim) const {
    const uint row = mode == 16 ? norms_of(head_dim) * 16 : head_dim;
    return {values == nullptr ? nullptr : values + ulong(head) * row, mode};
  }

  /// Stores coordinates i to i + 3.
  void store(uint i, float4 coordinates, uint head_dim) const {
    if (values != nullptr) {
      for (uint j = 0; j < 4; j++) {
        store(i + j, coordinates[j], head_dim);
      }
    }
  }

  /// Stores coordinate i.
  void store(uint i, float coordinate, uint head_dim) const {
    if (values == nullptr) {
      return;
    }
    const uint group = head_dim / norms_of(head_dim);
    if (mode != 16) {
      values[i] = coordinate;
    } else if (i % group < 16) {
      values[i / group * 16 + i % group] = coordinate;
    }
  }
};

/// The probe of kernels without one.
inline Probe no_probe() { return {nullptr, 0}; }

/// What is decoded to K or V.
struct DecodedStream {
  const device uchar *packed;
  const device float *norms;
  device uchar *out;

  /// The stream advanced to a row of the cache; `out` is unchanged.
  DecodedStream at(ulong cache_row, uint head_dim, uint width) const {
    return {packed + cache_row * (head_dim * width / 8), norms + cache_row * norms_of(head_dim), out};
  }
};
