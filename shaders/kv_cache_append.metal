/// Appends tokens of K, or of K and V, to head-major caches in one dispatch: K
/// turned by its rotary positions or as it is, V as it is, each rounded once to the
/// cache's dtype. `common/rope.h` has the angles, those of `apply_rope`.
///
/// Sources [batch, nTokens, heads, headDim]; caches [batch, heads, capacity,
/// headDim], where position p lies in slot p, in a ring p mod capacity; with pages
/// [nPages, heads, pageTokens, headDim], where slot s lies in slot s mod pageTokens
/// of page blockTable[batch, s / pageTokens]. Positions follow one another or lie
/// in device memory. A token whose position is below 0 or beyond the last slot, or
/// whose page there is not, is left out: no number there leads outside.
///
/// Grid: (headDim / 2, batch * nTokens, groups of heads); a thread moves one pair
/// of all heads of its group. Any threadgroup size; no threadgroup memory, no
/// barriers.
/// Work: bound by memory bandwidth; an angle a thread, then 4 multiplications a
/// pair of K. 32 lanes read and write two runs of 64 (16-bit) or 128 bytes.
#include <metal_stdlib>

#include "ShaderTypes.h"
#include "common/instantiate.h"
#include "common/rope.h"

using namespace metal;

constant bool has_v [[function_constant(500)]];
constant bool has_positions [[function_constant(501)]];
/// Caches are pages.
constant bool has_pages [[function_constant(502)]];
/// K turns.
constant bool turns [[function_constant(503)]];
/// Pairs are coordinates 2 i and 2 i + 1, not i and i + rotaryDim / 2.
constant bool interleaved [[function_constant(504)]];
/// K turns, in its first rotaryDim coordinates alone.
constant bool has_rest [[function_constant(505)]];

/// The first slot of head 0 that a token goes to, in head vectors, or -1: it is left out.
inline long place_of(constant KvCacheAppendParams &params, const device int *block_table, uint batch, long position) {
  if (position < 0 || (params.isSliding == 0 && position >= long(params.capacity))) {
    return -1;
  }
  const uint slot = params.isSliding != 0 ? uint(position) % params.capacity : uint(position);
  if (!has_pages) {
    return long(batch) * params.nHeads * params.capacity + slot;
  }
  const uint page = uint(block_table[ulong(batch) * (params.capacity / params.pageTokens) + slot / params.pageTokens]);
  return page < params.nPages ? long(page) * params.nHeads * params.pageTokens + slot % params.pageTokens : -1;
}

template <typename From, typename To>
[[kernel]] void kv_cache_append(const device typename From::Bits *source_k [[buffer(0)]],
                                device typename To::Bits *cache_k [[buffer(1)]],
                                const device typename From::Bits *source_v [[buffer(2), function_constant(has_v)]],
                                device typename To::Bits *cache_v [[buffer(3), function_constant(has_v)]],
                                const device int *positions [[buffer(4), function_constant(has_positions)]],
                                const device int *block_table [[buffer(5), function_constant(has_pages)]],
                                constant float *inv_freq [[buffer(6), function_constant(turns)]],
                                constant KvCacheAppendParams &params [[buffer(7)]],
                                uint3 position [[thread_position_in_grid]], uint3 grid [[threads_per_grid]]) {
  const uint index = position.x;
  const uint row = position.y;
  const uint batch = row / params.nTokens;
  const uint token = row % params.nTokens;
  long p = long(params.start) + token;
  if (has_positions) {
    p = positions[params.positionsPerBatch ? row : token];
  }
  const long place = place_of(params, block_table, batch, p);
  if (place < 0) {
    return;
  }
  const uint slots = has_pages ? params.pageTokens : params.capacity;
  const uint group = (params.nHeads + grid.z - 1) / grid.z;
  const uint first = min(position.z * group, params.nHeads);
  const ulong head_dim = params.headDim;
  const HeadWalk walk = {(ulong(row) * params.nHeads + first) * head_dim, head_dim,
                         (ulong(place) + ulong(first) * slots) * head_dim, slots * head_dim,
                         min(group, params.nHeads - first)};

  const uint half_dim = params.headDim / 2;
  if (has_v) {
    each_head<From, To, false>(source_v, cache_v, walk, index, half_dim, float2(0.0f));
  }
  if (!turns) {
    each_head<From, To, false>(source_k, cache_k, walk, index, half_dim, float2(0.0f));
    return;
  }
  const uint pairs = params.rotaryDim / 2;
  const float2 angle = params.attentionScale *
                       rotation(float(int(p) + params.ropeOffset), inv_freq[has_rest ? min(index, pairs - 1) : index]);
  turn_or_keep_heads<From, To>(source_k, cache_k, walk, index, pairs, interleaved, has_rest, angle);
}

// Entry points.

instantiate_kernel("kv_cache_append_f32", kv_cache_append, Float32, Float32);
instantiate_kernel("kv_cache_append_f32_to_f16", kv_cache_append, Float32, Float16);
instantiate_kernel("kv_cache_append_f32_to_bf16", kv_cache_append, Float32, Bfloat16);
instantiate_kernel("kv_cache_append_f16_to_f32", kv_cache_append, Float16, Float32);
instantiate_kernel("kv_cache_append_f16", kv_cache_append, Float16, Float16);
instantiate_kernel("kv_cache_append_f16_to_bf16", kv_cache_append, Float16, Bfloat16);
instantiate_kernel("kv_cache_append_bf16_to_f32", kv_cache_append, Bfloat16, Float32);
instantiate_kernel("kv_cache_append_bf16_to_f16", kv_cache_append, Bfloat16, Float16);
instantiate_kernel("kv_cache_append_bf16", kv_cache_append, Bfloat16, Bfloat16);
