#include <metal_stdlib>
#include <metal_math>
#include <metal_atomic>
using namespace metal;

namespace c10 {
namespace metal {
namespace detail {
template <typename T>
struct vectypes {};
template <>
struct vectypes<float> { using type4 = float4; using type3 = float3; using type2 = float2; };
template <>
struct vectypes<half> { using type4 = half4; using type3 = half3; using type2 = half2; };
template <>
struct vectypes<bfloat> { using type4 = bfloat4; using type3 = bfloat3; using type2 = bfloat2; };
template <>
struct vectypes<int> { using type4 = int4; using type3 = int3; using type2 = int2; };
template <typename T>
struct OpMathType { using type = T; };
template <>
struct OpMathType<half> { using type = float; };
template <>
struct OpMathType<short> { using type = int; };
template <>
struct OpMathType<char> { using type = int; };
template <>
struct OpMathType<uchar> { using type = int; };
template <>
struct OpMathType<bfloat> { using type = float; };
template <typename T>
struct AccumulationType { using type = T; };
template <>
struct AccumulationType<half> { using type = float; };
} // namespace detail

template <typename T>
::metal::enable_if_t<::metal::is_floating_point_v<T>, T> max(T a, T b) {
  return ::metal::isunordered(a, b) ? T(NAN) : ::metal::max(a, b);
}
template <typename T, typename U>
::metal::enable_if_t<::metal::is_integral_v<T> && ::metal::is_integral_v<U>, T> max(T a, U b) {
  return ::metal::max(a, static_cast<T>(b));
}
template <typename T>
using vec2type_t = typename detail::vectypes<T>::type2;
template <typename T>
using vec4type_t = typename detail::vectypes<T>::type4;
template <typename T>
using opmath_t = typename detail::OpMathType<T>::type;
template <typename T>
constexpr constant bool is_complex_v = ::metal::is_same_v<T, float2> || ::metal::is_same_v<T, half2>;
template <typename T>
constexpr constant bool is_scalar_floating_point_v = ::metal::is_floating_point_v<T> && ::metal::is_scalar_v<T>;

template <typename T>
::metal::enable_if_t<is_complex_v<T>, T> mul(const T x, const T y) {
  return T(x.x * y.x - x.y * y.y, x.x * y.y + x.y * y.x);
}
template <typename T, typename U>
::metal::enable_if_t<!is_complex_v<T> && !is_complex_v<U>, decltype(T() * U())> mul(const T x, const U y) { return x * y; }

template <typename T>
inline device T& ref_at_offs(device void* ptr, long offs) {
  return *reinterpret_cast<device T*>(static_cast<device char*>(ptr) + offs);
}
template <typename T>
inline T val_at_offs(constant void* ptr, long offs) {
  return *reinterpret_cast<constant T*>(static_cast<constant char*>(ptr) + offs);
}
template <typename T>
inline long offset_from_coord(thread T idx[16], constant long* strides, uint ndim) {
  long rc = 0;
  for (uint i = 0; i < ndim; ++i) {
    rc += idx[i] * strides[i];
  }
  return rc;
}
template <typename T>
inline void pos_from_thread_index(T idx, thread T pos[16], constant long* sizes, uint ndim) {
  T x = idx;
  for (uint i = 0; i < ndim; ++i) {
    pos[i] = x % sizes[i];
    x /= sizes[i];
  }
}
template <typename F, typename... Args>
using result_of = decltype(::metal::declval<F>()(::metal::declval<Args>()...));

constexpr constant unsigned max_ndim = 16;
constexpr constant unsigned simdgroup_size = 32;

template <typename T>
inline T simd_argmax_impl(T val) { return val; }

struct pair_ { float first; uint second; };

template <typename F, typename T, typename om_t = opmath_t<T>>
kernel void binary_strided(
    device void* output [[buffer(0)]],
    constant void* input [[buffer(1)]],
    constant void* other [[buffer(2)]],
    constant long* sizes [[buffer(3)]],
    constant long* output_strides [[buffer(4)]],
    constant long* input_strides [[buffer(5)]],
    constant long* other_strides [[buffer(6)]],
    constant uint3& ndim [[buffer(7)]],
    uint index [[thread_position_in_grid]]) {
  F f;
  using res_t = result_of<F, T, T>;
  int pos[max_ndim];
  pos_from_thread_index(int(index), pos, sizes, ndim.x);
  const auto input_offs = offset_from_coord(pos, input_strides, ndim.x);
  const auto other_offs = offset_from_coord(pos, other_strides, ndim.x);
  const auto output_offs = offset_from_coord(pos, output_strides, ndim.x);
  const auto a = val_at_offs<T>(input, input_offs);
  const auto b = val_at_offs<T>(other, other_offs);
  ref_at_offs<res_t>(output, output_offs) = static_cast<res_t>(f(a, b));
}

template <typename T, typename F>
kernel void binary_dense(
    device result_of<F, T, T>* out [[buffer(0)]],
    constant T* input [[buffer(1)]],
    constant T* other [[buffer(2)]],
    uint tid [[thread_position_in_grid]]) {
  F f;
  out[tid] = f(input[tid], other[tid]);
}

#define REGISTER_BINARY_OP(NAME, DTYPEI, DTYPEO)                             \
  static_assert(                                                             \
      ::metal::is_same_v<                                                    \
          DTYPEO,                                                            \
          ::c10::metal::result_of<NAME##_functor, DTYPEI, DTYPEI>>,          \
      "Output dtype mismatch for binary op " #NAME " and input " #DTYPEI);   \
  template [[host_name(#NAME "_strided_" #DTYPEO "_" #DTYPEI)]] kernel void :: \
      c10::metal::binary_strided<NAME##_functor, DTYPEI>(                    \
          device void* out,                                                  \
          constant void* input,                                              \
          constant void* other,                                              \
          constant long* sizes,                                              \
          constant long* output_strides,                                     \
          constant long* input_strides,                                      \
          constant long* other_strides,                                      \
          constant uint3& ndim,                                              \
          uint tid);                                                         \
  template [[host_name(#NAME "_dense_" #DTYPEO "_" #DTYPEI)]] kernel void    \
  c10::metal::binary_dense<DTYPEI, NAME##_functor>(                          \
      device ::c10::metal::result_of<NAME##_functor, DTYPEI, DTYPEI> * out_, \
      constant DTYPEI * input_,                                              \
      constant DTYPEI * other_,                                              \
      uint tid)
} // namespace metal
} // namespace c10

struct fmax_functor {
  template <typename T>
  inline T operator()(const T a, const T b) {
    return static_cast<T>(::metal::fmax(a, b));
  }
};
struct lt_functor {
  template <typename T>
  inline bool operator()(const T a, const T b) {
    return a < b;
  }
};
struct make_complex_functor {
  template <typename T>
  inline c10::metal::vec2type_t<T> operator()(const T a, const T b) {
    return c10::metal::vec2type_t<T>(a, b);
  }
};
struct add_mul_functor {
  template <typename T, ::metal::enable_if_t<::metal::is_integral_v<T>, bool> = true>
  inline T operator()(const T a, const T b) { return static_cast<T>(a + c10::metal::mul(a, b)); }
  template <typename T, ::metal::enable_if_t<!::metal::is_integral_v<T>, bool> = true>
  inline T operator()(const T a, const T b) { return static_cast<T>(c10::metal::opmath_t<T>(a) + c10::metal::mul(c10::metal::opmath_t<T>(a), c10::metal::opmath_t<T>(b))); }
};
REGISTER_BINARY_OP(fmax, float, float);
REGISTER_BINARY_OP(lt, half, bool);
REGISTER_BINARY_OP(make_complex, float, float2);
REGISTER_BINARY_OP(add_mul, short, short);
REGISTER_BINARY_OP(add_mul, bfloat, bfloat);

template <typename T, typename OFFSET_T>
kernel void index_put(
    device void* outputData [[buffer(0)]], constant void* inputData [[buffer(1)]],
    constant void* indexArray [[buffer(2)]], constant OFFSET_T* offsets [[buffer(3)]],
    constant int64_t& n [[buffer(4)]], uint thread_index [[thread_position_in_grid]]) {
  constant int64_t* index = (constant int64_t*)indexArray;
  int64_t at = index[thread_index];
  if (at < 0) at += n;
  device T* out = reinterpret_cast<device T*>((device char*)outputData + offsets[thread_index].x + at * int64_t(sizeof(T)));
  *out = *(constant T*)((constant char*)inputData + offsets[thread_index].y);
}
#define REGISTER_INDEX_OP(DTYPE_SIZE, IDX_SIZE, DTYPE, IDX_DTYPE) \
  template [[host_name("index_put_" DTYPE_SIZE "_" IDX_SIZE)]] kernel void index_put<DTYPE, IDX_DTYPE>( \
    device void* outputData, constant void* inputData, constant void* indexArray, constant IDX_DTYPE* offsets, constant int64_t& n, uint thread_index);
REGISTER_INDEX_OP("32bit", "idx32", int, uint3);
REGISTER_INDEX_OP("8bit", "idx64", char, ulong3);

kernel void bincount(constant int* input [[buffer(0)]], device atomic_int* bins [[buffer(1)]], constant int& minlength, uint i [[thread_position_in_grid]]) {
  atomic_fetch_add_explicit(&bins[::metal::min(input[i], minlength - 1)], 1, memory_order_relaxed);
}

// unfold/erfinv/layer_norm-like
template <typename T>
inline float4 as_float4(const device T* p) { return float4(*reinterpret_cast<const device c10::metal::vec4type_t<T>*>(p)); }
#define N_READS 4
template <typename T>
[[kernel]] void layer_norm_single_row(
    constant T* input [[buffer(0)]],
    device T* output [[buffer(1)]],
    device float* meanOut [[buffer(2)]],
    device float* rstdOut [[buffer(3)]],
    constant uint& axis_size [[buffer(4)]],
    constant float& epsilon [[buffer(5)]],
    constant int& use_weight [[buffer(6)]],
    constant int& use_bias [[buffer(7)]],
    constant T* weight [[buffer(8)]],
    constant T* bias [[buffer(9)]],
    uint tg_id [[threadgroup_position_in_grid]],
    uint tid [[thread_position_in_threadgroup]],
    uint simd_lane_id [[thread_index_in_simdgroup]],
    uint simdgroup_id [[simdgroup_index_in_threadgroup]]) {
  constexpr int SIMD_SIZE = 32;
  auto xptr = input + tg_id * axis_size + tid * N_READS;
  auto optr = output + tg_id * axis_size + tid * N_READS;
  const constant auto* wptr = weight + tid * N_READS;
  const constant auto* bptr = bias + tid * N_READS;
  float4 partial_sum = 0, partial_sum_sq = 0;
  float v[N_READS];
#pragma unroll
  for (int i = 0; i < N_READS; i++) {
    v[i] = tid * N_READS + i < axis_size ? float(xptr[i]) : 0.0f;
    partial_sum[i] += v[i];
    partial_sum_sq[i] += v[i] * v[i];
  }
  threadgroup float local_sums[SIMD_SIZE];
  threadgroup float local_sums_sq[SIMD_SIZE];
  threadgroup float tg_mean[1];
  threadgroup float tg_inv_std[1];
  if (simdgroup_id == 0) {
    local_sums[simd_lane_id] = 0;
    local_sums_sq[simd_lane_id] = 0;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float sum = simd_sum(dot(partial_sum, float4(1)));
  float sum_sq = simd_sum(partial_sum_sq[0] + partial_sum_sq[1] + partial_sum_sq[2] + partial_sum_sq[3]);
  if (simd_lane_id == 0) {
    local_sums[simdgroup_id] = sum;
    local_sums_sq[simdgroup_id] = sum_sq;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (simdgroup_id == 0) {
    sum = simd_sum(local_sums[simd_lane_id]);
    sum_sq = simd_sum(local_sums_sq[simd_lane_id]);
    if (simd_lane_id == 0) {
      tg_mean[0] = sum / axis_size;
      tg_inv_std[0] = ::metal::precise::rsqrt(sum_sq / axis_size - tg_mean[0] * tg_mean[0] + epsilon);
      meanOut[tg_id] = tg_mean[0];
      rstdOut[tg_id] = tg_inv_std[0];
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (int i = 0; i < N_READS; i++) {
    if (tid * N_READS + i >= axis_size) break;
    float norm = (v[i] - tg_mean[0]) * tg_inv_std[0];
    if (use_weight) norm *= float(wptr[i]);
    if (use_bias) norm += float(bptr[i]);
    optr[i] = static_cast<T>(norm);
  }
}
#define instantiate_layer_norm(DTYPE)                                     \
  template [[host_name("layer_norm_single_row_" #DTYPE)]] [[kernel]] void \
  layer_norm_single_row<DTYPE>(                                           \
      constant DTYPE * input [[buffer(0)]],                               \
      device DTYPE * output [[buffer(1)]],                                \
      device float* meanOut [[buffer(2)]],                                \
      device float* rstdOut [[buffer(3)]],                                \
      constant uint& axis_size [[buffer(4)]],                             \
      constant float& epsilon [[buffer(5)]],                              \
      constant int& use_weight [[buffer(6)]],                             \
      constant int& use_bias [[buffer(7)]],                               \
      constant DTYPE* weight [[buffer(8)]],                               \
      constant DTYPE* bias [[buffer(9)]],                                 \
      uint tg_id [[threadgroup_position_in_grid]],                        \
      uint tid [[thread_position_in_threadgroup]],                        \
      uint simd_lane_id [[thread_index_in_simdgroup]],                    \
      uint simdgroup_id [[simdgroup_index_in_threadgroup]]);
instantiate_layer_norm(float)
instantiate_layer_norm(half)
