/// Masks for the attention kernels, built and summarised on the device.
///
/// A mask [qL, kL] is additive in bf16 or f16 (0 attends, -infinity blocks) or
/// bool (1 attends, 0 blocks). Query row i sits at position p = i + qL_off:
///   causal          attends keys j <= p
///   sliding window  attends keys p - window < j <= p
///
/// Tile classes tell an attention kernel which of its mask tiles [BQ, BK] it
/// need not compute (blocked) or need not read (unmasked). Keys past kL and rows
/// past qL do not count.
///
/// No threadgroup memory, no barriers, any threadgroup size, of whole SIMD groups for the classifiers. Registers: 18 to
/// 24 of the builders, of runs of bools 14 to 17, 32 of the classifiers (nvptx64, sm_90). Bound by memory: the builders
/// write and the classifiers read each mask element once.
#include <metal_stdlib>
#include <metal_simdgroup>

#include "ShaderTypes.h"
#include "common/arithmetic.h"
#include "common/instantiate.h"
#include "common/mask_tiles.h"

using namespace metal;

/// Rows of bools are whole runs of 16, which begin at multiples of 16 bytes.
constant bool are_runs [[function_constant(600)]];

/// How a mask element says "attend" and "blocked".
template <typename T>
struct AdditiveElement {
  typedef T Type;
  static constant constexpr bool is_bool = false;
  static T from(bool attends) { return attends ? T(0) : T(-INFINITY); }
  static bool is_blocked(T bias) { return float(bias) == -INFINITY; }
  static bool is_unmasked(T bias) { return float(bias) == 0; }
};

struct BoolElement {
  typedef uchar Type;
  static constant constexpr bool is_bool = true;
  static uchar from(bool attends) { return attends ? 1 : 0; }
  static bool is_blocked(uchar attends) { return attends == 0; }
  static bool is_unmasked(uchar attends) { return attends != 0; }
};

/// Elements of a row that a thread writes, as far apart as a SIMD group has lanes, so that these write neighbours.
constant constexpr uint elements_per_thread = 8;
constant constexpr uint lanes = 32;
/// Bools of a run, which a thread stores at once.
constant constexpr uint bools_per_thread = 16;

/// Eight bools: those up to `last` are 1.
inline ulong bools_through(int last) { return last < 0 ? 0ul : 0x0101010101010101ul >> (8 * (7 - min(last, 7))); }

/// Writes a mask [qL, kL]. Grid (32 ceil(kL / 256), qL, 1): 32 threads write 256 consecutive elements of a row; of runs
/// of bools (kL / 16, qL, 1). `kWindow` is false for the causal mask, which has no oldest key and does not read
/// `window`.
template <typename Element, bool kWindow>
[[kernel]] void build_mask(device typename Element::Type *mask [[buffer(0)]],
                           constant BuildMaskParams &params [[buffer(1)]], uint2 position [[thread_position_in_grid]]) {
  const int newest = int(position.y) + params.qL_off;
  const int oldest = kWindow ? max(newest - params.window + 1, 0) : 0;
  device typename Element::Type *row = mask + long(position.y) * params.kL;
  if (Element::is_bool && are_runs) {
    // Up to the newest, but for those before the oldest.
    const int key = int(position.x * bools_per_thread);
    const int last = newest - key, before = oldest - 1 - key;
    ((device ulong2 *)row)[position.x] =
        ulong2(bools_through(last) ^ bools_through(before), bools_through(last - 8) ^ bools_through(before - 8));
    return;
  }
  const uint first_key = position.x / lanes * (lanes * elements_per_thread) + position.x % lanes;
  for (uint i = 0; i < elements_per_thread; i++) {
    const uint key = first_key + i * lanes;
    if (key < uint(params.kL)) {
      row[key] = Element::from(int(key) >= oldest && int(key) <= newest);
    }
  }
}

/// Grid: threadgroups (ceil(kL / (32 T)), NQ, planes) of (32, T, 1): the lanes of a SIMD group classify the tiles of 32
/// neighbouring keys of one mask plane, a key each.
template <typename Element, short BQ, short BK>
[[kernel]] void classify_mask_tiles(const device typename Element::Type *mask [[buffer(0)]],
                                    device uchar *tile_classes [[buffer(1)]],
                                    constant ClassifyMaskParams &params [[buffer(2)]],
                                    uint lane [[thread_index_in_simdgroup]],
                                    uint simd_group [[simdgroup_index_in_threadgroup]],
                                    uint3 group [[threadgroup_position_in_grid]],
                                    uint3 threads [[threads_per_threadgroup]]) {
  static_assert(lanes % BK == 0, "lanes have whole tiles");
  const long first_key = long(group.x * threads.y + simd_group) * lanes;
  if (first_key >= params.kL) {
    return;
  }
  const int heads = head_planes(params.M_strides, params.H);
  const int batch = int(group.z) / heads;
  const int head = int(group.z) % heads;
  const int first_row = int(group.y) * BQ;
  const int rows = min(int(BQ), params.qL - first_row);
  const bool has_key = first_key + lane < params.kL;
  const device typename Element::Type *keys =
      mask + batch * params.M_strides[0] + head * params.M_strides[1] + first_row * params.M_strides[2] + first_key;
  bool all_blocked = true;
  bool all_unmasked = true;
  if (has_key) {
// Loads of eight rows are under way together.
#pragma clang loop unroll_count(8)
    for (int row = 0; row < rows; row++) {
      const typename Element::Type element = keys[row * params.M_strides[2] + lane];
      all_blocked &= Element::is_blocked(element);
      all_unmasked &= Element::is_unmasked(element);
    }
  }
  // Of the lanes of a tile, where those past the last key do not count.
  const ulong of_tile = ((1ul << BK) - 1) << (lane / BK * BK);
  const ulong blocked = ulong(simd_vote::vote_t(simd_ballot(all_blocked))) & of_tile;
  const ulong unmasked = ulong(simd_vote::vote_t(simd_ballot(all_unmasked))) & of_tile;
  if (lane % BK == 0 && has_key) {
    const long tile = (long(group.z) * params.NQ + group.y) * params.NK + (first_key + lane) / BK;
    tile_classes[tile] = blocked == of_tile ? kTileBlocked : (unmasked == of_tile ? kTileUnmasked : kTileMixed);
  }
}

// Entry points.

instantiate_kernel("build_causal_mask_bf16", build_mask, AdditiveElement<bfloat>, false);
instantiate_kernel("build_sliding_window_mask_bf16", build_mask, AdditiveElement<bfloat>, true);
instantiate_kernel("classify_mask_tiles_bf16_q64_k32", classify_mask_tiles, AdditiveElement<bfloat>, 64, 32);
instantiate_kernel("classify_mask_tiles_bf16_q64_k16", classify_mask_tiles, AdditiveElement<bfloat>, 64, 16);
instantiate_kernel("classify_mask_tiles_bf16_q32_k16", classify_mask_tiles, AdditiveElement<bfloat>, 32, 16);
instantiate_kernel("classify_mask_tiles_bf16_q16_k16", classify_mask_tiles, AdditiveElement<bfloat>, 16, 16);

instantiate_kernel("build_causal_mask_f16", build_mask, AdditiveElement<half>, false);
instantiate_kernel("build_sliding_window_mask_f16", build_mask, AdditiveElement<half>, true);
instantiate_kernel("classify_mask_tiles_f16_q64_k32", classify_mask_tiles, AdditiveElement<half>, 64, 32);
instantiate_kernel("classify_mask_tiles_f16_q64_k16", classify_mask_tiles, AdditiveElement<half>, 64, 16);
instantiate_kernel("classify_mask_tiles_f16_q32_k16", classify_mask_tiles, AdditiveElement<half>, 32, 16);
instantiate_kernel("classify_mask_tiles_f16_q16_k16", classify_mask_tiles, AdditiveElement<half>, 16, 16);

instantiate_kernel("build_causal_mask_bool", build_mask, BoolElement, false);
instantiate_kernel("build_sliding_window_mask_bool", build_mask, BoolElement, true);
instantiate_kernel("classify_mask_tiles_bool_q64_k32", classify_mask_tiles, BoolElement, 64, 32);
instantiate_kernel("classify_mask_tiles_bool_q64_k16", classify_mask_tiles, BoolElement, 64, 16);
instantiate_kernel("classify_mask_tiles_bool_q32_k16", classify_mask_tiles, BoolElement, 32, 16);
instantiate_kernel("classify_mask_tiles_bool_q16_k16", classify_mask_tiles, BoolElement, 16, 16);
