#include <metal_stdlib>
#include <metal_simdgroup>
using namespace metal;
typedef bfloat bfloat16_t;
#define instantiate_kernel(name, func, ...) \
  template [[host_name(name)]] [[kernel]] decltype(func<__VA_ARGS__>) func<__VA_ARGS__>;
#define MLX_MTL_CONST static constant constexpr const
#define MLX_MTL_LOOP_UNROLL _Pragma("clang loop unroll(full)")
MLX_MTL_CONST int SIMD_SIZE = 32;

template <typename U>
struct Limits {
  static const constant U max = metal::numeric_limits<U>::max();
};
template <>
struct Limits<float> {
  static constexpr constant float max = metal::numeric_limits<float>::infinity();
};
template <typename T>
struct LessThan {
  static constexpr constant T init = Limits<T>::max;
  METAL_FUNC bool operator()(T a, T b) {
    if constexpr (metal::is_floating_point_v<T>) {
      bool an = metal::isnan(a), bn = metal::isnan(b);
      if (an | bn) {
        return (!an) & bn;
      }
    }
    return a < b;
  }
};
template <typename T>
METAL_FUNC void thread_swap(thread T& a, thread T& b) {
  T w = a;
  a = b;
  b = w;
}

template <typename val_t, typename idx_t, bool ARG_SORT, short N_PER_THREAD, typename CompareOp>
struct ThreadSort {
  static METAL_FUNC void sort(thread val_t (&vals)[N_PER_THREAD], thread idx_t (&idxs)[N_PER_THREAD]) {
    CompareOp op;
    MLX_MTL_LOOP_UNROLL
    for (short i = 0; i < N_PER_THREAD; ++i) {
      MLX_MTL_LOOP_UNROLL
      for (short j = i & 1; j < N_PER_THREAD - 1; j += 2) {
        if (op(vals[j + 1], vals[j])) {
          thread_swap(vals[j + 1], vals[j]);
          if (ARG_SORT) {
            thread_swap(idxs[j + 1], idxs[j]);
          }
        }
      }
    }
  }
};

template <typename val_t, typename idx_t, bool ARG_SORT, short BLOCK_THREADS, short N_PER_THREAD, typename CompareOp>
struct BlockMergeSort {
  using thread_sort_t = ThreadSort<val_t, idx_t, ARG_SORT, N_PER_THREAD, CompareOp>;
  static METAL_FUNC int merge_partition(const threadgroup val_t* As, const threadgroup val_t* Bs, short A_sz, short B_sz, short sort_md) {
    CompareOp op;
    short A_st = max(0, sort_md - B_sz);
    short A_ed = min(sort_md, A_sz);
    while (A_st < A_ed) {
      short md = A_st + (A_ed - A_st) / 2;
      auto a = As[md];
      auto b = Bs[sort_md - 1 - md];
      if (op(b, a)) {
        A_ed = md;
      } else {
        A_st = md + 1;
      }
    }
    return A_ed;
  }
  static METAL_FUNC void merge_step(const threadgroup val_t* As, const threadgroup val_t* Bs, const threadgroup idx_t* As_idx, const threadgroup idx_t* Bs_idx, short A_sz, short B_sz, thread val_t (&vals)[N_PER_THREAD], thread idx_t (&idxs)[N_PER_THREAD]) {
    CompareOp op;
    short a_idx = 0;
    short b_idx = 0;
    for (int i = 0; i < N_PER_THREAD; ++i) {
      auto a = (a_idx < A_sz) ? As[a_idx] : val_t(CompareOp::init);
      auto b = (b_idx < B_sz) ? Bs[b_idx] : val_t(CompareOp::init);
      bool pred = (b_idx < B_sz) && (a_idx >= A_sz || op(b, a));
      vals[i] = pred ? b : a;
      if (ARG_SORT) {
        if (pred) {
          idxs[i] = Bs_idx[b_idx];
        } else {
          idxs[i] = (a_idx < A_sz) ? As_idx[a_idx] : idx_t(0);
        }
      }
      b_idx += short(pred);
      a_idx += short(!pred);
    }
  }
  static METAL_FUNC void sort(threadgroup val_t* tgp_vals [[threadgroup(0)]], threadgroup idx_t* tgp_idxs [[threadgroup(1)]], int size_sorted_axis, uint3 lid [[thread_position_in_threadgroup]]) {
    int idx = lid.x * N_PER_THREAD;
    thread val_t thread_vals[N_PER_THREAD];
    thread idx_t thread_idxs[N_PER_THREAD];
    for (int i = 0; i < N_PER_THREAD; ++i) {
      thread_vals[i] = tgp_vals[idx + i];
      if (ARG_SORT) {
        thread_idxs[i] = tgp_idxs[idx + i];
      }
    }
    if (idx < size_sorted_axis) {
      thread_sort_t::sort(thread_vals, thread_idxs);
    }
    for (int merge_threads = 2; merge_threads <= BLOCK_THREADS; merge_threads *= 2) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      for (int i = 0; i < N_PER_THREAD; ++i) {
        tgp_vals[idx + i] = thread_vals[i];
        if (ARG_SORT) {
          tgp_idxs[idx + i] = thread_idxs[i];
        }
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
      int merge_group = lid.x / merge_threads;
      int merge_lane = lid.x % merge_threads;
      int sort_sz = N_PER_THREAD * merge_threads;
      int sort_st = N_PER_THREAD * merge_threads * merge_group;
      int A_st = sort_st;
      int A_ed = sort_st + sort_sz / 2;
      int B_st = sort_st + sort_sz / 2;
      int B_ed = sort_st + sort_sz;
      const threadgroup val_t* As = tgp_vals + A_st;
      const threadgroup val_t* Bs = tgp_vals + B_st;
      int A_sz = A_ed - A_st;
      int B_sz = B_ed - B_st;
      int sort_md = N_PER_THREAD * merge_lane;
      int partition = merge_partition(As, Bs, A_sz, B_sz, sort_md);
      As += partition;
      Bs += sort_md - partition;
      A_sz -= partition;
      B_sz -= sort_md - partition;
      const threadgroup idx_t* As_idx = ARG_SORT ? tgp_idxs + A_st + partition : nullptr;
      const threadgroup idx_t* Bs_idx = ARG_SORT ? tgp_idxs + B_st + sort_md - partition : nullptr;
      merge_step(As, Bs, As_idx, Bs_idx, A_sz, B_sz, thread_vals, thread_idxs);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int i = 0; i < N_PER_THREAD; ++i) {
      tgp_vals[idx + i] = thread_vals[i];
      if (ARG_SORT) {
        tgp_idxs[idx + i] = thread_idxs[i];
      }
    }
  }
};

template <typename T, typename U, bool ARG_SORT, short BLOCK_THREADS, short N_PER_THREAD, typename CompareOp = LessThan<T>>
struct KernelMergeSort {
  using ValT = T;
  using IdxT = uint;
  using block_merge_sort_t = BlockMergeSort<ValT, IdxT, ARG_SORT, BLOCK_THREADS, N_PER_THREAD, CompareOp>;
  MLX_MTL_CONST short N_PER_BLOCK = BLOCK_THREADS * N_PER_THREAD;
  static METAL_FUNC void block_sort(const device T* inp, device U* out, const constant int& size_sorted_axis, const constant int& in_stride_sorted_axis, threadgroup ValT* tgp_vals, threadgroup IdxT* tgp_idxs, uint3 tid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
    inp += tid.y * size_sorted_axis;
    out += tid.y * size_sorted_axis;
    for (short i = lid.x; i < N_PER_BLOCK; i += BLOCK_THREADS) {
      tgp_vals[i] = i < size_sorted_axis ? inp[i * in_stride_sorted_axis] : ValT(CompareOp::init);
      if (ARG_SORT) {
        tgp_idxs[i] = i;
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    block_merge_sort_t::sort(tgp_vals, tgp_idxs, size_sorted_axis, lid);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int i = lid.x; i < size_sorted_axis; i += BLOCK_THREADS) {
      if (ARG_SORT) {
        out[i] = tgp_idxs[i];
      } else {
        out[i] = tgp_vals[i];
      }
    }
  }
};

template <typename T, typename U, bool ARG_SORT, short BLOCK_THREADS, short N_PER_THREAD>
[[kernel, max_total_threads_per_threadgroup(BLOCK_THREADS)]] void block_sort(
    const device T* inp [[buffer(0)]],
    device U* out [[buffer(1)]],
    const constant int& size_sorted_axis [[buffer(2)]],
    const constant int& in_stride_sorted_axis [[buffer(3)]],
    uint3 tid [[threadgroup_position_in_grid]],
    uint3 lid [[thread_position_in_threadgroup]]) {
  using sort_kernel = KernelMergeSort<T, U, ARG_SORT, BLOCK_THREADS, N_PER_THREAD>;
  using ValT = typename sort_kernel::ValT;
  using IdxT = typename sort_kernel::IdxT;
  if (ARG_SORT) {
    threadgroup ValT tgp_vals[sort_kernel::N_PER_BLOCK];
    threadgroup IdxT tgp_idxs[sort_kernel::N_PER_BLOCK];
    sort_kernel::block_sort(inp, out, size_sorted_axis, in_stride_sorted_axis, tgp_vals, tgp_idxs, tid, lid);
  } else {
    threadgroup ValT tgp_vals[sort_kernel::N_PER_BLOCK];
    sort_kernel::block_sort(inp, out, size_sorted_axis, in_stride_sorted_axis, tgp_vals, nullptr, tid, lid);
  }
}
instantiate_kernel("carg_block_sort_float32_uint32_bn128_tn8", block_sort, float, uint, true, 128, 8)
instantiate_kernel("c_block_sort_int16_int16_bn64_tn4", block_sort, short, short, false, 64, 4)
