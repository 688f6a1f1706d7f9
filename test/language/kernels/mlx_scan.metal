#include <metal_stdlib>
#include <metal_simdgroup>
using namespace metal;
typedef bfloat bfloat16_t;
#define instantiate_kernel(name, func, ...) \
  template [[host_name(name)]] [[kernel]] decltype(func<__VA_ARGS__>) func<__VA_ARGS__>;
#define MLX_MTL_CONST static constant constexpr const
#define MLX_MTL_LOOP_UNROLL _Pragma("clang loop unroll(full)")
MLX_MTL_CONST int SIMD_SIZE = 32;

static constexpr constant uint32_t rotations[2][4] = {
    {13, 15, 26, 6},
    {17, 29, 16, 24}};

union rbits {
  uint2 val;
  uchar4 bytes[2];
};

rbits threefry2x32_hash(const thread uint2& key, uint2 count) {
  uint4 ks = {key.x, key.y, key.x ^ key.y ^ 0x1BD11BDA};
  rbits v;
  v.val.x = count.x + ks[0];
  v.val.y = count.y + ks[1];
  for (int i = 0; i < 5; ++i) {
    for (auto r : rotations[i % 2]) {
      v.val.x += v.val.y;
      v.val.y = (v.val.y << r) | (v.val.y >> (32 - r));
      v.val.y ^= v.val.x;
    }
    v.val.x += ks[(i + 1) % 3];
    v.val.y += ks[(i + 2) % 3] + i + 1;
  }
  return v;
}

[[kernel]] void rbitsc(
    device const uint32_t* keys,
    device char* out,
    constant const bool& odd,
    constant const uint& bytes_per_key,
    uint2 grid_dim [[threads_per_grid]],
    uint2 index [[thread_position_in_grid]]) {
  auto kidx = 2 * index.x;
  auto key = uint2(keys[kidx], keys[kidx + 1]);
  auto half_size = grid_dim.y - odd;
  out += index.x * bytes_per_key;
  bool drop_last = odd && (index.y == half_size);
  auto bits = threefry2x32_hash(key, uint2(index.y, drop_last ? 0 : index.y + grid_dim.y));
  size_t idx = size_t(index.y) << 2;
  for (int i = 0; i < 4; ++i) {
    out[idx + i] = bits.bytes[0][i];
  }
  if (!drop_last) {
    idx = (drop_last ? 0 : size_t(index.y) + grid_dim.y) << 2;
    if ((index.y + 1) == half_size && (bytes_per_key % 4) > 0) {
      int edge_bytes = (bytes_per_key % 4);
      for (int i = 0; i < edge_bytes; ++i) {
        out[idx + i] = bits.bytes[1][i];
      }
    } else {
      for (int i = 0; i < 4; ++i) {
        out[idx + i] = bits.bytes[1][i];
      }
    }
  }
}

template <typename T, typename U>
inline T ceildiv_(T N, U M) {
  return (N + M - 1) / M;
}
inline uint64_t simd_shuffle_and_fill_up(uint64_t data, uint64_t filling, uint16_t delta) {
  return as_type<uint64_t>(metal::simd_shuffle_and_fill_up(as_type<uint2>(data), as_type<uint2>(filling), delta));
}
inline int64_t simd_shuffle_and_fill_up(int64_t data, int64_t filling, uint16_t delta) {
  return as_type<int64_t>(metal::simd_shuffle_and_fill_up(as_type<uint2>(data), as_type<uint2>(filling), delta));
}
#define DEFINE_SIMD_SCAN()                                               \
  template <typename T, metal::enable_if_t<sizeof(T) < 8, bool> = true>  \
  T simd_scan(T val) {                                                   \
    return simd_scan_impl(val);                                          \
  }                                                                      \
                                                                         \
  template <typename T, metal::enable_if_t<sizeof(T) == 8, bool> = true> \
  T simd_scan(T val) {                                                   \
    for (int i = 1; i <= 16; i *= 2) {                                   \
      val = operator()(val, simd_shuffle_and_fill_up(val, init, i));     \
    }                                                                    \
    return val;                                                          \
  }
#define DEFINE_SIMD_EXCLUSIVE_SCAN()                                     \
  template <typename T, metal::enable_if_t<sizeof(T) < 8, bool> = true>  \
  T simd_exclusive_scan(T val) {                                         \
    return simd_exclusive_scan_impl(val);                                \
  }                                                                      \
                                                                         \
  template <typename T, metal::enable_if_t<sizeof(T) == 8, bool> = true> \
  T simd_exclusive_scan(T val) {                                         \
    val = simd_scan(val);                                                \
    return simd_shuffle_and_fill_up(val, init, 1);                       \
  }
template <typename U>
struct CumSum {
  DEFINE_SIMD_SCAN()
  DEFINE_SIMD_EXCLUSIVE_SCAN()
  static constexpr constant U init = static_cast<U>(0);
  template <typename T>
  U operator()(U a, T b) { return a + b; }
  U simd_scan_impl(U x) { return simd_prefix_inclusive_sum(x); }
  U simd_exclusive_scan_impl(U x) { return simd_prefix_exclusive_sum(x); }
};
template <typename U>
struct CumMax {
  static constexpr constant U init = metal::numeric_limits<U>::lowest();
  template <typename T>
  U operator()(U a, T b) { return (a >= b) ? a : b; }
  U simd_scan(U x) {
    for (int i = 1; i <= 16; i *= 2) {
      U y = simd_shuffle_and_fill_up(x, init, i);
      x = (x >= y) ? x : y;
    }
    return x;
  }
  U simd_exclusive_scan(U x) {
    x = simd_scan(x);
    return simd_shuffle_and_fill_up(x, init, 1);
  }
};
template <typename T, typename U, int N_READS, bool reverse>
inline void load_unsafe(U values[N_READS], const device T* input) {
  if (reverse) {
    for (int i = 0; i < N_READS; i++) { values[N_READS - i - 1] = input[i]; }
  } else {
    for (int i = 0; i < N_READS; i++) { values[i] = input[i]; }
  }
}
template <typename T, typename U, int N_READS, bool reverse>
inline void load_safe(U values[N_READS], const device T* input, int start, int total, U init) {
  if (reverse) {
    for (int i = 0; i < N_READS; i++) { values[N_READS - i - 1] = (start + N_READS - i - 1 < total) ? input[i] : init; }
  } else {
    for (int i = 0; i < N_READS; i++) { values[i] = (start + i < total) ? input[i] : init; }
  }
}
template <typename U, int N_READS, bool reverse>
inline void write_unsafe(U values[N_READS], device U* out) {
  if (reverse) {
    for (int i = 0; i < N_READS; i++) { out[i] = values[N_READS - i - 1]; }
  } else {
    for (int i = 0; i < N_READS; i++) { out[i] = values[i]; }
  }
}
template <typename U, int N_READS, bool reverse>
inline void write_safe(U values[N_READS], device U* out, int start, int total) {
  if (reverse) {
    for (int i = 0; i < N_READS; i++) { if (start + N_READS - i - 1 < total) { out[i] = values[N_READS - i - 1]; } }
  } else {
    for (int i = 0; i < N_READS; i++) { if (start + i < total) { out[i] = values[i]; } }
  }
}
template <typename T, typename U, typename Op, int N_READS, bool inclusive, bool reverse>
[[kernel]] void contiguous_scan(
    const device T* in [[buffer(0)]],
    device U* out [[buffer(1)]],
    const constant size_t& axis_size [[buffer(2)]],
    uint3 gid [[threadgroup_position_in_grid]],
    uint3 gsize [[threadgroups_per_grid]],
    uint3 lid [[thread_position_in_threadgroup]],
    uint3 lsize [[threads_per_threadgroup]],
    uint simd_size [[threads_per_simdgroup]],
    uint simd_lane_id [[thread_index_in_simdgroup]],
    uint simd_group_id [[simdgroup_index_in_threadgroup]]) {
  Op op;
  size_t offset = (gid.y + gsize.y * size_t(gid.z)) * axis_size;
  in += offset;
  out += offset;
  uint simd_groups = lsize.x / simd_size;
  U prefix = Op::init;
  U values[N_READS];
  threadgroup U simdgroup_sums[32];
  for (uint r = 0; r < ceildiv_(axis_size, N_READS * lsize.x); r++) {
    uint offset = r * lsize.x * N_READS + lid.x * N_READS;
    if (reverse) {
      if ((offset + N_READS) < axis_size) {
        load_unsafe<T, U, N_READS, reverse>(values, in + axis_size - offset - N_READS);
      } else {
        load_safe<T, U, N_READS, reverse>(values, in + axis_size - offset - N_READS, offset, axis_size, Op::init);
      }
    } else {
      if ((offset + N_READS) < axis_size) {
        load_unsafe<T, U, N_READS, reverse>(values, in + offset);
      } else {
        load_safe<T, U, N_READS, reverse>(values, in + offset, offset, axis_size, Op::init);
      }
    }
    for (int i = 1; i < N_READS; i++) {
      values[i] = op(values[i], values[i - 1]);
    }
    U prev_thread = op.simd_exclusive_scan(values[N_READS - 1]);
    if (simd_lane_id == simd_size - 1) {
      simdgroup_sums[simd_group_id] = op(prev_thread, values[N_READS - 1]);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (simd_group_id == 0) {
      U prev_simdgroup = op.simd_exclusive_scan(simdgroup_sums[simd_lane_id]);
      simdgroup_sums[simd_lane_id] = prev_simdgroup;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int i = 0; i < N_READS; i++) {
      values[i] = op(values[i], prefix);
      values[i] = op(values[i], simdgroup_sums[simd_group_id]);
      values[i] = op(values[i], prev_thread);
    }
    if (reverse) {
      if ((offset + N_READS) < axis_size) {
        write_unsafe<U, N_READS, reverse>(values, out + axis_size - offset - N_READS);
      } else {
        write_safe<U, N_READS, reverse>(values, out + axis_size - offset - N_READS, offset, axis_size);
      }
    } else {
      if ((offset + N_READS) < axis_size) {
        write_unsafe<U, N_READS, reverse>(values, out + offset);
      } else {
        write_safe<U, N_READS, reverse>(values, out + offset, offset, axis_size);
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (simd_group_id == simd_groups - 1 && simd_lane_id == simd_size - 1) {
      simdgroup_sums[0] = values[N_READS - 1];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    prefix = simdgroup_sums[0];
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
}
instantiate_kernel("contiguous_scan_inclusive_sum_float32_float32", contiguous_scan, float, float, CumSum<float>, 4, true, false)
instantiate_kernel("contiguous_scan_inclusive_sum_int64_int64", contiguous_scan, int64_t, int64_t, CumSum<int64_t>, 2, true, true)
instantiate_kernel("contiguous_scan_inclusive_max_bf16", contiguous_scan, bfloat16_t, bfloat16_t, CumMax<bfloat16_t>, 4, true, false)
