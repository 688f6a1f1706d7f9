/// Masks for the attention kernels, built and summarised on the device.
///
/// A mask [qL, kL] is additive in bf16 or f16 (0 attends, -infinity blocks) or
/// bool (1 attends, 0 blocks). Query row i sits at position p = i + qL_off:
///   causal          attends keys j <= p
///   sliding window  attends keys p - window < j <= p
///
/// Tile classes tell an attention kernel which of its mask tiles [BQ, BK] it
/// need not compute (0: all blocked) or need not read (2: nothing masked); 1 is
/// all others. Keys past kL and rows past qL do not count.
///
/// No threadgroup memory, no barriers, any threadgroup size. Bound by memory: the
/// builders write and the classifiers read each mask element once.
#include <metal_stdlib>

#include "ShaderTypes.h"

using namespace metal;

/// How a mask element says "attend" and "blocked".
template <typename T>
struct AdditiveElement {
  typedef T Type;
  static T from(bool attends) { return attends ? T(0) : T(-INFINITY); }
  static bool is_blocked(T bias) { return float(bias) == -INFINITY; }
  static bool is_unmasked(T bias) { return float(bias) == 0; }
};

struct BoolElement {
  typedef uchar Type;
  static uchar from(bool attends) { return attends ? 1 : 0; }
  static bool is_blocked(uchar attends) { return attends == 0; }
  static bool is_unmasked(uchar attends) { return attends != 0; }
};

/// Writes a mask [qL, kL]. Grid (ceil(kL / 8), qL, 1): a thread writes 8
/// consecutive elements of a row. `kWindow` is false for the causal mask, which
/// has no oldest key and does not read `window`.
template <typename Element, bool kWindow>
[[kernel]] void build_mask(device typename Element::Type *mask [[buffer(0)]],
                           constant BuildMaskParams &params [[buffer(1)]], uint2 position [[thread_position_in_grid]]) {
  const int newest = int(position.y) + params.qL_off;
  const int oldest = kWindow ? max(newest - params.window + 1, 0) : 0;
  const int first_key = int(position.x) * 8;
  const int keys = min(8, params.kL - first_key);
  device typename Element::Type *part = mask + long(position.y) * params.kL + first_key;
  for (int i = 0; i < keys; i++) {
    part[i] = Element::from(first_key + i >= oldest && first_key + i <= newest);
  }
}

/// Grid (NK, NQ, planes): a thread classifies one tile of one mask plane, so that
/// the 32 threads of a SIMD group read neighbouring tiles, whole lines of memory.
/// Classes are [planes, NQ, NK]; the mask's planes
/// are its batches (1 where that stride is 0) times its heads (likewise).
template <typename Element, short BQ, short BK>
[[kernel]] void classify_mask_tiles(const device typename Element::Type *mask [[buffer(0)]],
                                    device uchar *tile_classes [[buffer(1)]],
                                    constant ClassifyMaskParams &params [[buffer(2)]],
                                    uint3 position [[thread_position_in_grid]]) {
  const int head_planes = params.M_strides[1] != 0 ? params.H : 1;
  const int batch = int(position.z) / head_planes;
  const int head = int(position.z) % head_planes;
  const int first_row = int(position.y) * BQ;
  const int first_key = int(position.x) * BK;
  const int rows = min(int(BQ), params.qL - first_row);
  const int keys = min(int(BK), params.kL - first_key);
  const device typename Element::Type *tile_row =
      mask + batch * params.M_strides[0] + head * params.M_strides[1] + first_row * params.M_strides[2] + first_key;
  bool all_blocked = true;
  bool all_unmasked = true;
  for (int row = 0; row < rows; row++) {
    for (int key = 0; key < keys; key++) {
      const typename Element::Type element = tile_row[key];
      all_blocked &= Element::is_blocked(element);
      all_unmasked &= Element::is_unmasked(element);
    }
    tile_row += params.M_strides[2];
  }
  const long tile = (long(position.z) * params.NQ + position.y) * params.NK + position.x;
  tile_classes[tile] = all_blocked ? 0 : (all_unmasked ? 2 : 1);
}

// Entry points.

typedef AdditiveElement<bfloat> BfloatElement;
typedef AdditiveElement<half> HalfElement;

template [[host_name("build_causal_mask_bf16")]] [[kernel]]
decltype(build_mask<BfloatElement, false>) build_mask<BfloatElement, false>;
template [[host_name("build_causal_mask_f16")]] [[kernel]]
decltype(build_mask<HalfElement, false>) build_mask<HalfElement, false>;
template [[host_name("build_causal_mask_bool")]] [[kernel]]
decltype(build_mask<BoolElement, false>) build_mask<BoolElement, false>;

template [[host_name("build_sliding_window_mask_bf16")]] [[kernel]]
decltype(build_mask<BfloatElement, true>) build_mask<BfloatElement, true>;
template [[host_name("build_sliding_window_mask_f16")]] [[kernel]]
decltype(build_mask<HalfElement, true>) build_mask<HalfElement, true>;
template [[host_name("build_sliding_window_mask_bool")]] [[kernel]]
decltype(build_mask<BoolElement, true>) build_mask<BoolElement, true>;

template [[host_name("classify_mask_tiles_bf16_q32_k16")]] [[kernel]]
decltype(classify_mask_tiles<BfloatElement, 32, 16>) classify_mask_tiles<BfloatElement, 32, 16>;
template [[host_name("classify_mask_tiles_f16_q32_k16")]] [[kernel]]
decltype(classify_mask_tiles<HalfElement, 32, 16>) classify_mask_tiles<HalfElement, 32, 16>;
template [[host_name("classify_mask_tiles_bool_q32_k16")]] [[kernel]]
decltype(classify_mask_tiles<BoolElement, 32, 16>) classify_mask_tiles<BoolElement, 32, 16>;

template [[host_name("classify_mask_tiles_bf16_q8_k8")]] [[kernel]]
decltype(classify_mask_tiles<BfloatElement, 8, 8>) classify_mask_tiles<BfloatElement, 8, 8>;
template [[host_name("classify_mask_tiles_f16_q8_k8")]] [[kernel]]
decltype(classify_mask_tiles<HalfElement, 8, 8>) classify_mask_tiles<HalfElement, 8, 8>;
template [[host_name("classify_mask_tiles_bool_q8_k8")]] [[kernel]]
decltype(classify_mask_tiles<BoolElement, 8, 8>) classify_mask_tiles<BoolElement, 8, 8>;
