/// Codes of a quantized cache to rows that `flash_attn_prefill_*` reads, as the cache's own dtype would have
/// them: x = S H y / sqrt(B), rounded once; hadamard_encode.h has the formats.
///
/// Prefill reads each key once per 16 to 64 query rows and head, so that codes decoded in its tiles would be
/// decoded as often; here they are decoded once a call, for all of these. Only keys that a row may see are.
///
/// Shapes: codes u8 [B, n_kv_heads, capacity, row] or pages [n_pages, n_kv_heads, capacity, row], norms f32
/// likewise; out [B, n_kv_heads, n_slots, D], a slot a position, or a slot of the ring.
///
/// Grid: threadgroups (ceil(n_slots / 4), n_kv_heads, B) of (32, 4, 1): a SIMD group a row, no threadgroup
/// memory. Floats a lane: D / 32; registers: 26 to 40 (nvptx64, sm_90). Bytes moved per row: D * width / 8 and the
/// norms read, 2 D or 4 D written. Work a row: D look-ups, D log2(B) additions; bound by memory.
#include <metal_stdlib>
#include <metal_simdgroup>

#include "ShaderTypes.h"
#include "common/arithmetic.h"
#include "common/element.h"
#include "common/instantiate.h"
#include "common/positions.h"
#include "flash_attn_decode_lanes.h"
#include "flash_attn_decode_rows.h"

using namespace metal;

/// The format of the codes, as CodeRows has it.
constant uint code_format [[function_constant(430)]];

/// Whether slot `slot` has a key that a row may see. Lengths in device memory are the caller's.
inline bool is_needed(constant AttnCodeParams &params, const device int *seq_lens, uint batch, uint slot) {
  const bool is_ring = params.is_sliding != 0;
  const int most = is_ring ? kMostPositions : int(params.n_slots);
  const int length = params.has_lengths != 0 ? clamp(seq_lens[batch], 0, most) : int(params.seq_len);
  const bool is_past = params.keys_seen != 0 && !is_ring && int(slot) < length - int(params.keys_seen);
  return int(slot) < length && !is_past;
}

template <int D>
[[kernel]] void decode_keys(const device uchar *codes [[buffer(0)]], const device float *norms [[buffer(1)]],
                            constant AttnCodeParams &params [[buffer(2)]], device uchar *out [[buffer(3)]],
                            const device int *seq_lens [[buffer(4)]], const device int *block_table [[buffer(5)]],
                            uint lane [[thread_index_in_simdgroup]], uint simd_group [[simdgroup_index_in_threadgroup]],
                            uint3 threads [[threads_per_threadgroup]], uint3 group [[threadgroup_position_in_grid]]) {
  typedef Lanes<D> L;
  const uint slot = group.x * threads.y + simd_group;
  const uint kv_head = group.y;
  const uint batch = group.z;
  if (slot >= params.n_slots || !is_needed(params, seq_lens, batch, slot)) {
    return;
  }
  uint plane = batch;
  uint slot_of_plane = slot;
  if (params.has_pages != 0) {
    const uint page_of_sequence = slot / params.capacity;
    plane = uint(clamp(block_table[batch * params.max_pages + page_of_sequence], 0, int(params.n_pages) - 1));
    slot_of_plane = slot - page_of_sequence * params.capacity;
  }
  const uint row = (plane * params.n_kv_heads + kv_head) * params.capacity + slot_of_plane;

  float values[L::values];
  typedef CodeRows<D, L, false, const constant float *> Rows;
  Rows(codes, code_format, lane, centroids_of(8)).load(row, lane, values);
  constexpr int norm_count = Rows::norms;
  constexpr int values_a_norm = L::values / norm_count;
  constexpr float block = float(Head<D>::block);
  const float unit = D <= 256 ? 1.0f / sqrt(float(D) * block) : 1.0f / (params.scale_factor_d512 * sqrt(block));
#pragma clang loop unroll(full)
  for (int n = 0; n < norm_count; n++) {
    const float factor = norms[ulong(row) * norm_count + n] * unit;
#pragma clang loop unroll(full)
    for (int i = 0; i < values_a_norm; i++) {
      values[n * values_a_norm + i] *= factor;
    }
  }
  hadamard_lanes<D>(values, lane);
  sign_lanes<D>(values, lane);
  const ulong to = ((ulong(batch) * params.n_kv_heads + kv_head) * params.n_slots + slot) * D;
#pragma clang loop unroll(full)
  for (int c = 0; c < L::chunks; c++) {
    if (L::holds(c, lane)) {
      store_run<L::width>(out, to + uint(L::first(c, lane)), values + c * L::width, params.out_dtype);
    }
  }
}

// Entry points.

instantiate_kernel("flash_attn_prefill_decode_d64", decode_keys, 64);
instantiate_kernel("flash_attn_prefill_decode_d80", decode_keys, 80);
instantiate_kernel("flash_attn_prefill_decode_d96", decode_keys, 96);
instantiate_kernel("flash_attn_prefill_decode_d112", decode_keys, 112);
instantiate_kernel("flash_attn_prefill_decode_d128", decode_keys, 128);
instantiate_kernel("flash_attn_prefill_decode_d192", decode_keys, 192);
instantiate_kernel("flash_attn_prefill_decode_d256", decode_keys, 256);
instantiate_kernel("flash_attn_prefill_decode_d512", decode_keys, 512);
