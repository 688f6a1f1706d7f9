#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

enum class GEMMOperandPrecision : ushort { FP32 = 0, FP16 = 1, BF16 = 2 };

METAL_FUNC static ushort2 morton_order(ushort thread_index_in_simdgroup) {
  ushort lane_id = thread_index_in_simdgroup;
  ushort quad_id = lane_id / 4;
  constexpr ushort QUADRANT_SPAN_M = 4;
  constexpr ushort THREADS_PER_QUADRANT = 8;
  ushort M_floor_of_quadrant = (quad_id / 4) * QUADRANT_SPAN_M;
  ushort M_in_quadrant = (lane_id / 2) % (THREADS_PER_QUADRANT / 2);
  ushort M_in_simd = M_floor_of_quadrant + M_in_quadrant;
  ushort N_floor_of_quadrant = (quad_id & 2) * 2;
  ushort N_in_quadrant = (lane_id % 2) * 2;
  ushort N_in_simd = N_floor_of_quadrant + N_in_quadrant;
  return ushort2(N_in_simd, M_in_simd);
}

#pragma METAL internals : enable
namespace metal
{
  template <typename T>
  struct simdgroup_matrix_storage {
    typedef vec<T, 2> storage_type;
    storage_type t;

    METAL_FUNC thread vec<T, 2>* thread_elements() thread {
      return reinterpret_cast<thread vec<T, 2>*>(&t);
    }
    METAL_FUNC simdgroup_matrix_storage() thread = default;
    METAL_FUNC simdgroup_matrix_storage(vec<T, 2> thread_elements) thread {
      *(this->thread_elements()) = thread_elements;
    }
    METAL_FUNC static device T* apply_offset(device T *src, uint elements_per_row, uint2 matrix_origin, bool transpose_matrix = false) {
      if (transpose_matrix) {
        return src + ulong(matrix_origin.x * elements_per_row) + matrix_origin.y;
      } else {
        return src + ulong(matrix_origin.y * elements_per_row) + matrix_origin.x;
      }
    }
    METAL_FUNC static threadgroup T* apply_offset(threadgroup T *src, ushort elements_per_row, ushort2 matrix_origin, bool transpose_matrix = false) {
      if (transpose_matrix) {
        return src + matrix_origin.x * elements_per_row + matrix_origin.y;
      } else {
        return src + matrix_origin.y * elements_per_row + matrix_origin.x;
      }
    }
    template <typename U>
    METAL_FUNC void load(const device U *src, uint elements_per_row, ushort2 matrix_origin, bool transpose_matrix = false) {
      if (transpose_matrix) {
        const uint address0 = uint(matrix_origin.x + 0) * elements_per_row + uint(matrix_origin.y);
        const uint address1 = uint(matrix_origin.x + 1) * elements_per_row + uint(matrix_origin.y);
        const U memoryForm0 = src[address0];
        const U memoryForm1 = src[address1];
        ((thread T*)thread_elements())[0] = T(memoryForm0);
        ((thread T*)thread_elements())[1] = T(memoryForm1);
      } else if (elements_per_row % 2 != 0) {
        const uint address = uint(matrix_origin.y) * elements_per_row + uint(matrix_origin.x);
        ((thread T*)thread_elements())[0] = T(src[address]);
        ((thread T*)thread_elements())[1] = T(src[address + 1]);
      } else {
        const uint combinedAddress = uint(matrix_origin.y) * elements_per_row + uint(matrix_origin.x + 0);
        const vec<U, 2> memoryForm = *(const device vec<U, 2>*)(src + combinedAddress);
        *(thread_elements()) = vec<T, 2>(memoryForm);
      }
    }
    template <typename U>
    METAL_FUNC void load(const threadgroup U *src, ushort elements_per_row, ushort2 matrix_origin, bool transpose_matrix = false) {
      if (transpose_matrix) {
        ushort address0 = ushort(matrix_origin.x + 0) * elements_per_row + ushort(matrix_origin.y);
        ushort address1 = ushort(matrix_origin.x + 1) * elements_per_row + ushort(matrix_origin.y);
        *(thread_elements()) = vec<T, 2>(T(src[address0]), T(src[address1]));
      } else {
        ushort combinedAddress = ushort(matrix_origin.y) * elements_per_row + ushort(matrix_origin.x + 0);
        *(thread_elements()) = vec<T, 2>(*(const threadgroup vec<U, 2>*)(src + combinedAddress));
      }
    }
    METAL_FUNC void load_bfloat(const device bfloat *src, uint elements_per_row, ushort2 matrix_origin) {
      const uint combinedAddress = uint(matrix_origin.y) * elements_per_row + uint(matrix_origin.x);
      bfloat2 memoryForm = *(const device packed_bfloat2*)(src + combinedAddress);
      thread float2 &registerForm = *(thread float2*)(thread_elements());
      ((thread bfloat4*)&registerForm)->yw = memoryForm;
      ((thread bfloat4*)&registerForm)->xz = bfloat2(0);
    }
    template <typename U>
    METAL_FUNC void store(device U *dst, uint elements_per_row, ushort2 matrix_origin, bool transpose_matrix = false) {
      vec<T, 2> registerForm = *(thread_elements());
      uint combinedAddress = uint(matrix_origin.y) * elements_per_row + uint(matrix_origin.x);
      *(device vec<U, 2>*)(dst + combinedAddress) = vec<U, 2>(registerForm);
    }
    template <typename U, typename V>
    METAL_FUNC void multiply(simdgroup_matrix_storage<U> a, simdgroup_matrix_storage<V> b, bool accumulate = true) {
      simdgroup_matrix<U, 8, 8> A;
      simdgroup_matrix<V, 8, 8> B;
      simdgroup_matrix<T, 8, 8> C;
      A.thread_elements() = *(a.thread_elements());
      B.thread_elements() = *(b.thread_elements());
      if (!accumulate) {
        *(thread_elements()) = vec<T, 2>(0);
      }
      C.thread_elements() = *(thread_elements());
      simdgroup_multiply_accumulate(C, A, B, C);
      *(thread_elements()) = C.thread_elements();
    }
  };
} // namespace metal
#pragma METAL internals : disable

constant uint M [[function_constant(0)]];
constant uint N [[function_constant(1)]];
constant uint K [[function_constant(2)]];
constant bool A_trans [[function_constant(10)]];
constant bool B_trans [[function_constant(11)]];
constant bool load_previous_C [[function_constant(14)]];
constant ushort M_group [[function_constant(200)]];
constant ushort N_group [[function_constant(201)]];

constant uint A_leading_dimension = A_trans ? M : K;
constant uint B_leading_dimension = B_trans ? K : N;
constant ushort K_group = 16;
constant ushort M_register = 16;
constant ushort N_register = 16;
constant ushort M_shift = (M < M_group) ? 0 : M_register - M % M_register;
constant bool is_edge = M_shift < 1000 && !load_previous_C;

METAL_FUNC thread simdgroup_matrix_storage<float>* get_sram(thread simdgroup_matrix_storage<float> *sram, ushort sram_leading_dim, ushort2 matrix_origin) {
  return sram + (matrix_origin.y / 8) * (sram_leading_dim / 8) + (matrix_origin.x / 8);
}

template <typename TA, typename TB>
METAL_FUNC void multiply_accumulate(const device TA *A_src, const device TB *B_src,
                                    thread simdgroup_matrix_storage<TA> *A_sram,
                                    thread simdgroup_matrix_storage<TB> *B_sram,
                                    thread simdgroup_matrix_storage<float> *C_sram,
                                    ushort k)
{
#pragma clang loop unroll(full)
  for (ushort m = 0; m < M_register; m += 8) {
    ushort2 origin(0, m);
    A_sram[m / 8].load(A_src, A_leading_dimension, ushort2(k, m), A_trans);
  }
#pragma clang loop unroll(full)
  for (ushort n = 0; n < 16; n += 8) {
    B_sram[n / 8].load(B_src, B_leading_dimension, ushort2(n, k), B_trans);
  }
#pragma clang loop unroll(full)
  for (ushort m = 0; m < 16; m += 8) {
#pragma clang loop unroll(full)
    for (ushort n = 0; n < 16; n += 8) {
      auto A = A_sram[m / 8];
      auto B = B_sram[n / 8];
      auto C = get_sram(C_sram, 16, ushort2(n, m));
      C->multiply(A, B);
    }
  }
}

kernel void gemm(device half *A [[buffer(0)]],
                 device half *B [[buffer(1)]],
                 device float *C [[buffer(2)]],
                 threadgroup uchar *threadgroup_block [[threadgroup(0)]],
                 uint3 gid [[threadgroup_position_in_grid]],
                 ushort sidx [[simdgroup_index_in_threadgroup]],
                 ushort lane_id [[thread_index_in_simdgroup]])
{
  auto A_block = (threadgroup half*)(threadgroup_block);
  auto B_block = (threadgroup half*)(threadgroup_block + 512);
  ushort2 sid(sidx % 2, sidx / 2);
  ushort2 morton_offset = morton_order(lane_id);

  uint M_offset = gid.y * M_group;
  uint N_offset = gid.x * N_group;
  {
    if (M_offset + sid.y * M_register >= M || N_offset + sid.x * N_register >= N) {
      return;
    }
  }
  uint2 offset_in_group(sid.x * N_register + morton_offset.x, sid.y * M_register + morton_offset.y);
  (void)A_block; (void)B_block;

  simdgroup_matrix_storage<float> C_sram[(16 / 8) * (16 / 8)];
  if (load_previous_C) {
    uint2 C_offset(N_offset + offset_in_group.x, M_offset + offset_in_group.y);
    device float *C_dst = simdgroup_matrix_storage<float>::apply_offset(C, N, C_offset);
#pragma clang loop unroll(full)
    for (ushort m = 0; m < 16; m += 8)
#pragma clang loop unroll(full)
      for (ushort n = 0; n < 16; n += 8)
        get_sram(C_sram, 16, ushort2(n, m))->load(C_dst, N, ushort2(n, m));
  } else {
#pragma clang loop unroll(full)
    for (ushort m = 0; m < M_register; m += 8) {
#pragma clang loop unroll(full)
      for (ushort n = 0; n < N_register; n += 8) {
        ushort2 origin(m, n);
        auto C = get_sram(C_sram, N_register, ushort2(n, m));
        *C = simdgroup_matrix_storage<float>(float2(0));
      }
    }
  }
  for (uint k = 0; k < K; k += 8) {
    uint2 A_offset(k, M_offset);
    uint2 B_offset(N_offset, k);
    A_offset += uint2(morton_offset.x, offset_in_group.y);
    B_offset += uint2(offset_in_group.x, morton_offset.y);
    auto A_src = simdgroup_matrix_storage<half>::apply_offset(A, A_leading_dimension, A_offset, A_trans);
    auto B_src = simdgroup_matrix_storage<half>::apply_offset(B, B_leading_dimension, B_offset, B_trans);
    simdgroup_matrix_storage<half> A_sram[2];
    simdgroup_matrix_storage<half> B_sram[2];
    multiply_accumulate(A_src, B_src, A_sram, B_sram, C_sram, 0);
  }
  {
    uint2 C_offset(N_offset + offset_in_group.x, M_offset + offset_in_group.y);
    device float *C_dst = simdgroup_matrix_storage<float>::apply_offset(C, N, C_offset);
#pragma clang loop unroll(full)
    for (ushort m = 0; m < 16; m += 8) {
#pragma clang loop unroll(full)
      for (ushort n = 0; n < 16; n += 8) {
        ushort2 origin(n, m);
        auto C = get_sram(C_sram, 16, origin);
        C->store(C_dst, N, origin);
      }
    }
  }
}
