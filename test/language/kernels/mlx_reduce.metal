#include <metal_stdlib>
#include <metal_atomic>
using namespace metal;
typedef half float16_t;
typedef bfloat bfloat16_t;
#define instantiate_kernel(name, func, ...) \
  template [[host_name(name)]] [[kernel]] decltype(func<__VA_ARGS__>) func<__VA_ARGS__>;

struct complex64_t;
template <typename T>
static constexpr constant bool can_convert_to_complex64 = !is_same_v<T, complex64_t> && is_convertible_v<T, float>;
template <typename T>
static constexpr constant bool can_convert_from_complex64 = !is_same_v<T, complex64_t> && (is_convertible_v<float, T> || is_convertible_v<bfloat16_t, T>);

struct complex64_t {
  float real;
  float imag;

  // Constructors
  constexpr complex64_t(float real, float imag) : real(real), imag(imag) {};
  constexpr complex64_t() : real(0), imag(0) {};
  constexpr complex64_t() threadgroup : real(0), imag(0) {};

  // Conversions to complex64_t
  template <typename T, typename = typename enable_if<can_convert_to_complex64<T>>::type>
  constexpr complex64_t(T x) thread : real(x), imag(0) {}
  template <typename T, typename = typename enable_if<can_convert_to_complex64<T>>::type>
  constexpr complex64_t(T x) threadgroup : real(x), imag(0) {}
  template <typename T, typename = typename enable_if<can_convert_to_complex64<T>>::type>
  constexpr complex64_t(T x) device : real(x), imag(0) {}
  template <typename T, typename = typename enable_if<can_convert_to_complex64<T>>::type>
  constexpr complex64_t(T x) constant : real(x), imag(0) {}

  // Conversions from complex64_t
  template <typename T, typename = typename enable_if<can_convert_from_complex64<T>>::type>
  constexpr operator T() const thread { return static_cast<T>(real); }
  template <typename T, typename = typename enable_if<can_convert_from_complex64<T>>::type>
  constexpr operator T() const threadgroup { return static_cast<T>(real); }
  template <typename T, typename = typename enable_if<can_convert_from_complex64<T>>::type>
  constexpr operator T() const device { return static_cast<T>(real); }
  template <typename T, typename = typename enable_if<can_convert_from_complex64<T>>::type>
  constexpr operator T() const constant { return static_cast<T>(real); }
};

constexpr complex64_t operator-(complex64_t x) { return {-x.real, -x.imag}; }
constexpr bool operator>=(complex64_t a, complex64_t b) { return (a.real > b.real) || (a.real == b.real && a.imag >= b.imag); }
constexpr bool operator>(complex64_t a, complex64_t b) { return (a.real > b.real) || (a.real == b.real && a.imag > b.imag); }
constexpr bool operator<=(complex64_t a, complex64_t b) { return operator>=(b, a); }
constexpr bool operator<(complex64_t a, complex64_t b) { return operator>(b, a); }
constexpr bool operator==(complex64_t a, complex64_t b) { return a.real == b.real && a.imag == b.imag; }
constexpr complex64_t operator+(complex64_t a, complex64_t b) { return {a.real + b.real, a.imag + b.imag}; }
constexpr thread complex64_t& operator+=(thread complex64_t& a, complex64_t b) { a.real += b.real; a.imag += b.imag; return a; }
constexpr threadgroup complex64_t& operator+=(threadgroup complex64_t& a, complex64_t b) { a.real += b.real; a.imag += b.imag; return a; }
constexpr device complex64_t& operator+=(device complex64_t& a, complex64_t b) { a.real += b.real; a.imag += b.imag; return a; }
constexpr complex64_t operator+(float a, complex64_t b) { return {a + b.real, b.imag}; }
constexpr complex64_t operator+(complex64_t a, float b) { return {a.real + b, a.imag}; }
constexpr complex64_t operator*(complex64_t a, complex64_t b) { return {a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real}; }
template <typename U>
struct Limits {
  static const constant U max = metal::numeric_limits<U>::max();
  static const constant U min = metal::numeric_limits<U>::min();
  static const constant U finite_max = metal::numeric_limits<U>::max();
  static const constant U finite_min = metal::numeric_limits<U>::min();
};
#define instantiate_float_limit(type)                                    \
  template <>                                                            \
  struct Limits<type> {                                                  \
    static constexpr constant type max = metal::numeric_limits<type>::infinity();  \
    static constexpr constant type min = -metal::numeric_limits<type>::infinity(); \
    static constexpr constant type finite_max = metal::numeric_limits<type>::max();  \
    static constexpr constant type finite_min = -metal::numeric_limits<type>::max(); \
  };
instantiate_float_limit(half);
instantiate_float_limit(float);
instantiate_float_limit(bfloat16_t);
template <>
struct Limits<bool> {
  static constexpr constant bool max = true;
  static constexpr constant bool min = false;
};
template <>
struct Limits<complex64_t> {
  static constexpr constant complex64_t max = complex64_t(metal::numeric_limits<float>::infinity(), metal::numeric_limits<float>::infinity());
  static constexpr constant complex64_t min = complex64_t(-metal::numeric_limits<float>::infinity(), -metal::numeric_limits<float>::infinity());
};

inline ulong simd_shuffle_down(ulong data, uint16_t delta) { return as_type<ulong>(metal::simd_shuffle_down(as_type<uint2>(data), delta)); }
inline int64_t simd_shuffle_down(int64_t data, uint16_t delta) { return as_type<int64_t>(metal::simd_shuffle_down(as_type<uint2>(data), delta)); }
inline bool simd_shuffle_down(bool data, uint16_t delta) { return simd_shuffle_down(static_cast<uint32_t>(data), delta); }
inline complex64_t simd_shuffle_down(complex64_t data, uint16_t delta) {
  return complex64_t(simd_shuffle_down(data.real, delta), simd_shuffle_down(data.imag, delta));
}
#define DEFINE_SIMD_REDUCE()                                             \
  template <typename T, metal::enable_if_t<sizeof(T) < 8, bool> = true>  \
  T simd_reduce(T val) {                                                 \
    return simd_reduce_impl(val);                                        \
  }                                                                      \
                                                                         \
  template <typename T, metal::enable_if_t<sizeof(T) == 8, bool> = true> \
  T simd_reduce(T val) {                                                 \
    for (short i = simd_size / 2; i > 0; i /= 2) {                       \
      val = operator()(val, simd_shuffle_down(val, i));                  \
    }                                                                    \
    return val;                                                          \
  }

static constant constexpr const uint8_t simd_size = 32;

template <typename U = bool>
struct And {
  DEFINE_SIMD_REDUCE()
  bool simd_reduce_impl(bool val) { return simd_all(val); }
  static constexpr constant bool init = true;
  bool operator()(bool a, bool b) { return a && b; }
};
template <typename U>
struct Sum {
  DEFINE_SIMD_REDUCE()
  template <typename T>
  T simd_reduce_impl(T val) { return simd_sum(val); }
  static constexpr constant U init = U(0);
  template <typename T>
  U operator()(U a, T b) { return a + b; }
};
template <typename U>
struct Prod {
  DEFINE_SIMD_REDUCE()
  template <typename T>
  T simd_reduce_impl(T val) { return simd_product(val); }
  static constexpr constant U init = U(1);
  U operator()(U a, U b) { return a * b; }
};
template <typename U>
struct Max {
  DEFINE_SIMD_REDUCE()
  template <typename T>
  metal::enable_if_t<metal::is_integral_v<T>, T> simd_reduce_impl(T val) { return simd_max(val); }
  template <typename T>
  metal::enable_if_t<!metal::is_integral_v<T>, T> simd_reduce_impl(T val) {
    if (simd_any(val != val)) {
      return static_cast<T>(NAN);
    }
    return simd_max(val);
  }
  static constexpr constant U init = Limits<U>::min;
  template <typename T>
  metal::enable_if_t<metal::is_integral_v<T>, T> operator()(T a, T b) { return a > b ? a : b; }
  template <typename T>
  metal::enable_if_t<!metal::is_integral_v<T>, T> operator()(T a, T b) {
    if (metal::isnan(a) || metal::isnan(b)) {
      return static_cast<T>(NAN);
    } else {
      return a > b ? a : b;
    }
  }
  complex64_t operator()(complex64_t a, complex64_t b) { return a > b ? a : b; }
};

// strided indexing
template <typename IdxT = int64_t>
METAL_FUNC IdxT elem_to_loc(IdxT elem, constant const int* shape, constant const int64_t* strides, int ndim) {
  IdxT loc = 0;
  for (int i = ndim - 1; i >= 0 && elem > 0; --i) {
    loc += (elem % shape[i]) * IdxT(strides[i]);
    elem /= shape[i];
  }
  return loc;
}
template <int DIM, typename OffsetT = size_t, bool General = true>
struct LoopedElemToLoc {
  int dim;
  LoopedElemToLoc<DIM - 1, OffsetT, General> inner_looper;
  OffsetT offset{0};
  int index{0};

  LoopedElemToLoc(int dim) : dim(dim), inner_looper(dim - 1) {}

  void next(const constant int* shape, const constant int64_t* strides) {
    if (dim == 0) {
      return;
    }
    index++;
    offset += OffsetT(strides[dim - 1]);
    if (index >= shape[dim - 1]) {
      index = 0;
      inner_looper.next(shape, strides);
      offset = inner_looper.offset;
    }
  }
  OffsetT location() { return offset; }
};
template <typename OffsetT>
struct LoopedElemToLoc<1, OffsetT, true> {
  int dim;
  OffsetT offset{0};
  uint index{0};
  LoopedElemToLoc(int dim) : dim(dim) {}
  void next(const constant int* shape, const constant int64_t* strides) {
    index++;
    if (dim > 1) {
      offset = elem_to_loc<OffsetT>(index, shape, strides, dim);
    } else {
      offset += OffsetT(strides[0]);
    }
  }
  OffsetT location() { return offset; }
};

template <typename OffsetT>
struct LoopedElemToLoc<1, OffsetT, false> {
  OffsetT offset{0};
  LoopedElemToLoc(int) {}
  void next(const constant int*, const constant int64_t* strides) { offset += OffsetT(strides[0]); }
  OffsetT location() { return offset; }
};
template <typename T, typename U, typename Op, typename IdxT, int NDIMS>
[[kernel]] void col_reduce_looped(
    const device T* in [[buffer(0)]],
    device U* out [[buffer(1)]],
    const constant size_t& reduction_size [[buffer(2)]],
    const constant int64_t& reduction_stride [[buffer(3)]],
    const constant int* shape [[buffer(4)]],
    const constant int64_t* strides [[buffer(5)]],
    const constant int& ndim [[buffer(6)]],
    uint3 gid [[threadgroup_position_in_grid]],
    uint3 gsize [[threadgroups_per_grid]],
    uint simd_lane_id [[thread_index_in_simdgroup]],
    uint simd_group_id [[simdgroup_index_in_threadgroup]]) {
  Op op;
  LoopedElemToLoc<NDIMS, IdxT, (NDIMS > 2)> loop(ndim);
  U total = Op::init;
  for (size_t r = 0; r < reduction_size; r++) {
    total = op(total, in[loop.location() + gid.x * reduction_stride]);
    loop.next(shape, strides);
  }
  if (simd_lane_id == 0 && simd_group_id == 0) {
    out[gid.x + gsize.x * gid.y] = total;
  }
}
instantiate_kernel("col_reduce_looped_sum_c64", col_reduce_looped, complex64_t, complex64_t, Sum<complex64_t>, int64_t, 2)
instantiate_kernel("col_reduce_looped_max_f32", col_reduce_looped, float, float, Max<float>, int, 3)
instantiate_kernel("col_reduce_looped_max_c64", col_reduce_looped, complex64_t, complex64_t, Max<complex64_t>, size_t, 2)

template <typename T, typename U, typename Op, int N_READS = 4, int N_WRITES = 4>
METAL_FUNC void per_thread_row_reduce(
    thread U totals[N_WRITES],
    const device T* inputs[N_WRITES],
    int blocks,
    int extra,
    uint lsize_x,
    uint lid_x) {
  Op op;
  for (int i = 0; i < N_WRITES; i++) {
    totals[i] = Op::init;
  }
  for (int i = 0; i < blocks; i++) {
    for (int j = 0; j < N_WRITES; j++) {
      for (int k = 0; k < N_READS; k++) {
        totals[j] = op(static_cast<U>(inputs[j][k]), totals[j]);
      }
      inputs[j] += lsize_x * N_READS;
    }
  }
  int index = lid_x * N_READS;
  if (index + N_READS <= extra) {
    for (int j = 0; j < N_WRITES; j++) {
      for (int i = 0; i < N_READS; i++) {
        totals[j] = op(static_cast<U>(inputs[j][i]), totals[j]);
      }
    }
  } else {
    for (int j = 0; j < N_WRITES; j++) {
      for (int i = 0; index + i < extra; i++) {
        totals[j] = op(static_cast<U>(inputs[j][i]), totals[j]);
      }
    }
  }
}

template <typename T, typename U, typename Op, int N_READS = 4, int N_WRITES = 4>
METAL_FUNC void threadgroup_reduce(
    thread U totals[N_WRITES],
    threadgroup U* shared_vals,
    uint3 lid [[thread_position_in_threadgroup]],
    uint simd_lane_id [[thread_index_in_simdgroup]],
    uint simd_per_group [[simdgroups_per_threadgroup]],
    uint simd_group_id [[simdgroup_index_in_threadgroup]]) {
  Op op;
  for (int i = 0; i < N_WRITES; i++) {
    totals[i] = op.simd_reduce(totals[i]);
  }
  if (simd_per_group > 1) {
    if (simd_lane_id == 0) {
      for (int i = 0; i < N_WRITES; i++) {
        shared_vals[simd_group_id * N_WRITES + i] = totals[i];
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    U values[N_WRITES];
    for (int i = 0; i < N_WRITES; i++) {
      values[i] = (lid.x < simd_per_group) ? shared_vals[lid.x * N_WRITES + i] : op.init;
    }
    for (int i = 0; i < N_WRITES; i++) {
      totals[i] = op.simd_reduce(values[i]);
    }
  }
}

template <typename T, typename U, typename Op, typename IdxT = int64_t, int N_READS = 4, int N_WRITES = 4>
[[kernel]] void row_reduce_simple(
    const device T* in [[buffer(0)]],
    device U* out [[buffer(1)]],
    const constant size_t& reduction_size [[buffer(2)]],
    const constant int64_t& out_size [[buffer(3)]],
    uint3 gid [[threadgroup_position_in_grid]],
    uint3 gsize [[threadgroups_per_grid]],
    uint3 lid [[thread_position_in_threadgroup]],
    uint3 lsize [[threads_per_threadgroup]],
    uint simd_lane_id [[thread_index_in_simdgroup]],
    uint simd_per_group [[simdgroups_per_threadgroup]],
    uint simd_group_id [[simdgroup_index_in_threadgroup]]) {
  threadgroup U shared_vals[simd_size * N_WRITES];
  U totals[N_WRITES];

  IdxT out_idx = N_WRITES * (gid.y + gsize.y * IdxT(gid.z));
  if (out_idx + N_WRITES > out_size) {
    out_idx = out_size - N_WRITES;
  }
  in += out_idx * IdxT(reduction_size);
  out += out_idx;

  int blocks = reduction_size / (lsize.x * N_READS);
  int extra = reduction_size - blocks * (lsize.x * N_READS);
  const device T* rows[N_WRITES];
  rows[0] = in + lid.x * N_READS;
  for (int i = 1; i < N_WRITES; i++) {
    rows[i] = rows[i - 1] + reduction_size;
  }
  per_thread_row_reduce<T, U, Op, N_READS, N_WRITES>(totals, rows, blocks, extra, lsize.x, lid.x);
  threadgroup_reduce<T, U, Op, N_READS, N_WRITES>(totals, shared_vals, lid, simd_lane_id, simd_per_group, simd_group_id);
  if (lid.x == 0) {
    for (int i = 0; i < N_WRITES; i++) {
      out[i] = totals[i];
    }
  }
}
instantiate_kernel("row_reduce_simple_sum_f32", row_reduce_simple, float, float, Sum<float>)
instantiate_kernel("row_reduce_simple_sum_i64", row_reduce_simple, int, int64_t, Sum<int64_t>)
instantiate_kernel("row_reduce_simple_max_bf16", row_reduce_simple, bfloat16_t, bfloat16_t, Max<bfloat16_t>)
instantiate_kernel("row_reduce_simple_prod_c64", row_reduce_simple, complex64_t, complex64_t, Prod<complex64_t>)
instantiate_kernel("row_reduce_simple_and_bool", row_reduce_simple, bool, bool, And<bool>)

// Atomics of any type through words
template <typename T>
constexpr constant bool is_metal_atomic = _disjunction<is_same<T, int>, is_same<T, uint>, is_same<T, ulong>, is_same<T, float>>::value;
template <typename T, typename = void>
struct mlx_atomic {
  atomic<uint> val;
};
template <typename T>
struct mlx_atomic<T, enable_if_t<is_metal_atomic<T>>> {
  atomic<T> val;
};
template <typename T, enable_if_t<is_metal_atomic<T>, bool> = true>
METAL_FUNC void mlx_atomic_fetch_add_explicit(device mlx_atomic<T>* object, T val, size_t offset) {
  atomic_fetch_add_explicit(&(object[offset].val), val, memory_order_relaxed);
}
template <typename T>
constexpr constant uint packing_size = sizeof(uint) / sizeof(T);
template <typename T>
union uint_or_packed {
  uint val;
  T packed[packing_size<T>];
};
template <typename T, typename Op>
struct mlx_atomic_update_helper {
  uint operator()(uint_or_packed<T> init, T update, size_t elem_offset) {
    Op op;
    init.packed[elem_offset] = op(update, init.packed[elem_offset]);
    return init.val;
  }
};
template <typename T, typename Op>
METAL_FUNC void mlx_atomic_update_and_store(device mlx_atomic<T>* object, T update, size_t offset) {
  size_t pack_offset = offset / packing_size<T>;
  size_t elem_offset = offset % packing_size<T>;
  mlx_atomic_update_helper<T, Op> helper;
  uint_or_packed<T> expected;
  expected.val = atomic_load_explicit(&(object[pack_offset].val), memory_order_relaxed);
  while (Op::condition(update, expected.packed[elem_offset]) &&
         !atomic_compare_exchange_weak_explicit(
             &(object[pack_offset].val),
             &expected.val,
             helper(expected, update, elem_offset),
             memory_order_relaxed,
             memory_order_relaxed)) {
  }
}
template <typename T>
struct __Add {
  static bool condition(T a, T b) { return true; }
  T operator()(T a, T b) { return a + b; }
};
template <typename T, enable_if_t<!is_metal_atomic<T>, bool> = true>
METAL_FUNC void mlx_atomic_fetch_add_explicit(device mlx_atomic<T>* object, T val, size_t offset) {
  mlx_atomic_update_and_store<T, __Add<T>>(object, val, offset);
}
template <typename T>
[[kernel]] void scatter_add(const device T* updates [[buffer(1)]], device mlx_atomic<T>* out [[buffer(0)]], const device uint* indices [[buffer(2)]], uint gid [[thread_position_in_grid]]) {
  mlx_atomic_fetch_add_explicit<T>(out, updates[gid], indices[gid]);
}
instantiate_kernel("scatter_add_float16", scatter_add, half)
instantiate_kernel("scatter_add_uint8", scatter_add, uint8_t)
instantiate_kernel("scatter_add_float32", scatter_add, float)
