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
/// Grid: (headDim / 2 / N, batch * nTokens, groups of heads of K, then as many of V
/// where there is V); a thread moves N neighbouring pairs of all heads of its group,
/// N being 2 where constant `is_wide` says so, else 1. Any threadgroup size; no
/// threadgroup memory, no barriers.
/// Work: bound by memory bandwidth; an angle a thread and pair, then 4
/// multiplications a pair of K. 32 lanes read and write two runs of 128 bytes, in
/// 16 bits one pair at a time of 64. Each value is read and written once. Registers: 32
/// (nvptx64, sm_90). K and V have threads of their own: each head of a cache is a stream
/// of memory, and half as many at a time are faster. An append that `kv_cache_copy_seq` can do is dispatched as that.
#include <metal_stdlib>

#include "ShaderTypes.h"
#include "common/arithmetic.h"
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
/// A thread has two neighbouring pairs: vectors and tensors begin at multiples of 4 bytes, and if K turns, all of it.
constant bool is_wide [[function_constant(506)]];

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

/// N pairs of the heads of a group, of K or of V. `place` is the token's in the caches, p its position.
template <typename From, typename To, int N>
inline void append_group(const device typename From::Bits *source_k, device typename To::Bits *cache_k,
                         const device typename From::Bits *source_v, device typename To::Bits *cache_v,
                         constant float *inv_freq, constant KvCacheAppendParams &params, long place, long p,
                         uint3 position, uint all_groups) {
  const uint index = position.x;
  const uint row = position.y;
  const uint slots = has_pages ? params.pageTokens : params.capacity;
  const uint groups = has_v ? all_groups / 2 : all_groups;
  const bool is_v = position.z >= groups;
  const uint group = (params.nHeads + groups - 1) / groups;
  const uint first = min((is_v ? position.z - groups : position.z) * group, params.nHeads);
  const ulong head_dim = params.headDim / N;
  const HeadWalk walk = {(ulong(row) * params.nHeads + first) * head_dim, head_dim,
                         (ulong(place) + ulong(first) * slots) * head_dim, slots * head_dim,
                         min(group, params.nHeads - first)};

  const uint half_dim = params.headDim / 2 / N;
  if (has_v && is_v) {
    keep_heads<From, To, N>(source_v, cache_v, walk, index, half_dim);
    return;
  }
  if (!turns) {
    keep_heads<From, To, N>(source_k, cache_k, walk, index, half_dim);
    return;
  }
  const uint runs = params.rotaryDim / 2 / N;
  const Angles<N> angles = angles_of<N>(float(int(p) + params.ropeOffset), inv_freq,
                                        N == 1 && has_rest ? min(index, runs - 1) : index, params.attentionScale);
  turn_or_keep_heads<From, To, N>(source_k, cache_k, walk, index, runs, interleaved, N == 1 && has_rest, angles);
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
  if (is_wide) {
    append_group<From, To, 2>(source_k, cache_k, source_v, cache_v, inv_freq, params, place, p, position, grid.z);
  } else {
    append_group<From, To, 1>(source_k, cache_k, source_v, cache_v, inv_freq, params, place, p, position, grid.z);
  }
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
