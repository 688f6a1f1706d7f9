#include <metal_stdlib>
#include <metal_limits>
using namespace metal;

#define MAX(x, y) ((x) > (y) ? (x) : (y))
#if __METAL_VERSION__ >= 310
#define HAS_BF 1
#endif

METAL_FUNC uint nonzero(uint n) { return n == 0 ? 1 : n; }
template <uint N>
constexpr uint nonzero() { return N == 0 ? 1 : N; }
template <typename T>

METAL_FUNC uint next_p2(uint x) { return 1 << (32 - clz(x - 1)); }
METAL_FUNC uint prev_p2(uint x) { return 1 << (31 - clz(x)); }

constant uint MAX_SHARED_MEM = 32767;

METAL_FUNC uint get_strided_index(
    uint idx,
    constant const uint &num_dims,
    constant const size_t *dims,
    constant const size_t *strides
) {
    uint strided_i = 0;
    for (uint d = 0; d < num_dims; d++) {
        uint dim_idx = num_dims - 1 - d;
        strided_i += (idx % dims[dim_idx]) * strides[dim_idx];
        idx /= dims[dim_idx];
    }
    return strided_i;
}

struct Divide {
    template<typename T>
    METAL_FUNC T operator()(T a, T b) { return a / b; }
    METAL_FUNC float  operator()(float  a, float  b) { return fast::divide(a, b); }
    METAL_FUNC half   operator()(half   a, half   b) { return divide(a, b); }
};

struct Exp {
    template<typename T>
    METAL_FUNC T operator()(T a) { return fast::exp(a); }
    METAL_FUNC half   operator()(half a) { return exp(a); }
    METAL_FUNC bfloat operator()(bfloat a) { return static_cast<bfloat>(fast::exp(static_cast<float>(a))); }
};

template<typename T>
struct indexed {
    uint i;
    T val;

    constexpr indexed<T>() threadgroup = default;
    constexpr indexed<T>() thread = default;
    constexpr indexed<T>(uint _i, T _val) : i(_i), val(_val) {}
};

template<typename T>
struct is_indexed_type { static constant constexpr bool value = false; };
template<typename T>
struct is_indexed_type<indexed<T>> { static constant constexpr bool value = true; };
template<typename T>
constexpr constant bool is_indexed_t = is_indexed_type<T>::value;
template<typename T>
constexpr constant bool not_indexed_t = !is_indexed_t<T>;

template<typename T>
constexpr METAL_FUNC bool operator<(indexed<T> lhs, indexed<T> rhs) { return lhs.val < rhs.val || (lhs.val == rhs.val && lhs.i < rhs.i); }
template<typename T>
constexpr METAL_FUNC bool operator>(indexed<T> lhs, indexed<T> rhs) { return lhs.val > rhs.val || (lhs.val == rhs.val && lhs.i < rhs.i); }

namespace metal {
template<typename T>
struct _numeric_limits_impl<indexed<T>> {
    static constexpr METAL_FUNC indexed<T> lowest() { return indexed<T>{ 0, numeric_limits<T>::lowest() }; }
    static constexpr METAL_FUNC indexed<T> max() { return indexed<T>{ 0, numeric_limits<T>::max() }; }
};
}

METAL_FUNC int64_t simd_shuffle_down(int64_t data, uint16_t delta) { return as_type<int64_t>(simd_shuffle_down(as_type<uint2>(data), delta)); }
METAL_FUNC bool simd_shuffle_down(bool data, uint16_t delta) { return simd_shuffle_down(static_cast<uint32_t>(data), delta); }
template<typename T>
METAL_FUNC indexed<T> simd_shuffle_down(indexed<T> iv, uint16_t delta) {
    return indexed<T> { simd_shuffle_down(iv.i, delta), simd_shuffle_down(iv.val, delta) };
}

template<typename T>
struct Sum {
    static constexpr METAL_FUNC T init() { return 0; }
    static METAL_FUNC T simd_op(T a) { return simd_sum(a); }
    template<typename V>
    METAL_FUNC V operator()(V a, V b) { return a + b; }
};
template<typename T>
struct Max {
    static constexpr METAL_FUNC T init() { return numeric_limits<T>::lowest(); }
    static METAL_FUNC T simd_op(T a) { return a; }
    template<typename V, metal::enable_if_t<not_indexed_t<V>, bool> _E = true>
    METAL_FUNC V operator()(V a, V b) { return max(a, b); }
    template<typename V, metal::enable_if_t<is_indexed_t<V>, bool> _E = true>
    METAL_FUNC V operator()(V a, V b) { return a > b ? a : b; }
};
template <typename T>
struct ArgMax : Max<T> {};

template<typename OP, ushort BLOCKSIZE, typename T, typename _E = void>
struct block_reducer {
    OP operation;
    threadgroup T *shared;

    block_reducer(threadgroup T _shared[BLOCKSIZE]) { shared = _shared; }

    METAL_FUNC T operator()(T value, const ushort tid) {
        if (BLOCKSIZE >= 64) {
            shared[tid] = value;
            threadgroup_barrier(mem_flags::mem_none);
        }
        #pragma clang loop unroll(full)
        for (ushort s = BLOCKSIZE / 2; s >= 64; s >>= 1) {
            if (tid < s) { shared[tid] = operation(shared[tid], shared[tid + s]); }
            threadgroup_barrier(mem_flags::mem_none);
        }
        if (tid < 32) {
            if (BLOCKSIZE >= 64) { value = operation(shared[tid], shared[tid + 32]); }
            #pragma clang loop unroll(full)
            for (ushort s = 16; s > 0; s >>= 1) {
                value = operation(value, simd_shuffle_down(value, s));
            }
        }
        return value;
    }
};

template<typename T, typename R, typename OP, ushort BLOCKSIZE, bool STRIDED = false>
struct loader {
    OP operation;
    METAL_FUNC R operator()(R value, constant uint &src_numel, constant uint &el_per_block, device const T *src, const uint offset, const uint tid) {
        uint idx = tid + offset;
        const uint stop_idx = min(el_per_block + offset, src_numel);
        #pragma clang loop unroll(full)
        for (uint i = idx; i < stop_idx; i += BLOCKSIZE) {
            value = operation(value, static_cast<R>(src[i]));
        }
        return value;
    }
};
template<typename T, typename OP, ushort BLOCKSIZE, bool STRIDED>
struct loader<T, indexed<T>, OP, BLOCKSIZE, STRIDED> {
    OP operation;
    METAL_FUNC indexed<T> operator()(indexed<T> value, constant uint &src_numel, constant uint &el_per_block, device const T *src, const uint offset, const uint tid) {
        uint idx = tid + offset;
        const uint stop_idx = min(el_per_block + offset, src_numel);
        for (uint i = idx; i < stop_idx; i += BLOCKSIZE) {
            value = operation(value, indexed<T>(i - offset, src[i]));
        }
        return value;
    }
};

template<typename T, typename R>
struct to_out { static METAL_FUNC R get(R v) { return v; } };
template<typename T>
struct to_out<T, indexed<T>> { static METAL_FUNC uint get(indexed<T> v) { return v.i; } };

template<typename T, typename R, typename OUT, typename OP, ushort BLOCKSIZE>
METAL_FUNC void reduce(
    constant uint &src_numel,
    constant uint &el_per_block,
    device const T *src,
    device OUT *dst,
    threadgroup R shared[BLOCKSIZE],
    uint tid [[ thread_index_in_threadgroup ]],
    uint dst_id [[ threadgroup_position_in_grid ]]
) {
    loader<T, R, OP, BLOCKSIZE> load;
    block_reducer<OP, BLOCKSIZE, R> reduce(shared);
    const uint offset = dst_id * el_per_block;
    R value = load(OP::init(), src_numel, el_per_block, src, offset, tid);
    R result = reduce(value, tid);
    if (tid == 0) dst[dst_id] = to_out<T, R>::get(result);
}

#define reduce_case(OP, T, R, OUT, N)               \
case N: {                                           \
    threadgroup R shared[N];                        \
    reduce<T, R, OUT, OP, N>(src_numel, el_per_block, src, dst, shared, tid, dst_id); \
    break;                                          \
}

#define ARG(...) __VA_ARGS__
#define impl_reduce_inner(OP, NAME, T, R, OUT)      \
kernel void NAME(                                   \
    constant uint &src_numel,                       \
    constant uint &el_per_block,                    \
    device const T *src,                            \
    device OUT *dst,                                \
    uint tid [[ thread_index_in_threadgroup ]],     \
    uint dst_id [[ threadgroup_position_in_grid ]], \
    uint block_dim [[ threads_per_threadgroup ]]    \
) {                                                 \
    switch (max(block_dim, 1u)) {                   \
        reduce_case(ARG(OP), ARG(T), ARG(R), OUT, 256);  \
        reduce_case(ARG(OP), ARG(T), ARG(R), OUT, 64);   \
        reduce_case(ARG(OP), ARG(T), ARG(R), OUT, 32);   \
    }                                               \
}
impl_reduce_inner(Sum<float>, fast_sum_f32, float, float, float)
impl_reduce_inner(Max<half>, fast_max_f16, half, half, half)
impl_reduce_inner(ARG(ArgMax<indexed<float>>), fast_argmax_f32, float, indexed<float>, uint)
impl_reduce_inner(Sum<uint>, fast_sum_u8, uchar, uint, uint)

#define UNARY(FN, TYPENAME, FN_NAME, FN_NAME_STRIDED) \
kernel void FN_NAME( \
    constant size_t &dim, \
    device const TYPENAME *input,  \
    device TYPENAME *output, \
    uint tid [[ thread_position_in_grid ]] \
) { \
    if (tid >= dim) { \
        return; \
    } \
    output[tid] = TYPENAME(FN(float(input[tid]))); \
} \
kernel void FN_NAME_STRIDED( \
    constant size_t &dim, \
    constant uint &num_dims, \
    constant size_t *dims, \
    constant size_t *strides, \
    device const TYPENAME *input,  \
    device TYPENAME *output, \
    uint tid [[ thread_position_in_grid ]] \
) { \
    if (tid >= dim) { \
        return; \
    } \
    output[tid] = TYPENAME(FN(float(input[get_strided_index(tid, num_dims, dims, strides)]))); \
}
#define UNARY_OP(NAME) UNARY(NAME, float, NAME##_f32, NAME##_f32_strided); UNARY(NAME, half, NAME##_f16, NAME##_f16_strided);
#define BFLOAT_UNARY_OP(NAME) UNARY(NAME, bfloat, NAME##_bf16, NAME##_bf16_strided);
template <typename T> METAL_FUNC T sqr(T in){ return in * in; }
template <typename T> METAL_FUNC T erf(T in){
    float x = (float) in;
    float a1 =  0.254829592, a2 = -0.284496736, a3 = 1.421413741, a4 = -1.453152027, a5 = 1.061405429, p = 0.3275911;
    int sign = 1;
    if (x < 0) sign = -1;
    x = fabs(x);
    float t = 1.0/(1.0 + p*x);
    float y = 1.0 - (((((a5*t + a4)*t) + a3)*t + a2)*t + a1)*t*exp(-x*x);
    return T(sign*y);
}
template <typename T> METAL_FUNC T gelu_erf(T x) { return T(x * (1 + erf(x * M_SQRT1_2_F)) / 2); }
template <typename T> METAL_FUNC T gelu(T x) {
    if (x > 5) { return x; }
    T x_sq = x * x;
    T x_cube = x_sq * x;
    T alpha = x + static_cast<T>(0.044715) * x_cube;
    T beta =  (static_cast<T>(M_2_SQRTPI_F * M_SQRT1_2_F) * alpha);
    return static_cast<T>(0.5) * x * (static_cast<T>(1.0) + T(precise::tanh(beta)));
}
UNARY_OP(sqr)
UNARY_OP(gelu_erf)
UNARY_OP(gelu)
#if defined(__HAVE_BFLOAT__)
BFLOAT_UNARY_OP(gelu)
#endif
