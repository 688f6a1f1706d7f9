/** Kernels in the manner of the public libraries of language models: sources of the suite models.test.ts. */

/** 4-bit rows times a vector, and rows by their index, in the manner of ggml: templates with a function as argument. */
export const quantizedProduct = `#include <metal_stdlib>

using namespace metal;

#define MAX(x, y) ((x) > (y) ? (x) : (y))
#define QK4_0 32
#define N_DST 4
#define N_SIMDGROUP 2
#define N_SIMDWIDTH 32

typedef struct {
    half    d;             // delta
    uint8_t qs[QK4_0 / 2]; // nibbles
} block_q4_0;

typedef struct {
    int32_t ne00;
    int32_t ne01;
} mul_mv_args;

// dot product of half a q4_0 block with 16 values of y, already scaled by the nibble's place
inline float block_q_n_dot_y(device const block_q4_0 * qb_curr, float sumy, thread float * yl, int il) {
    float d = qb_curr->d;
    float acc[4] = { 0.0f, 0.0f, 0.0f, 0.0f };
    device const uint16_t * qs = ((device const uint16_t *) qb_curr + 1 + il/2);
    for (int i = 0; i < 8; i += 2) {
        acc[0] += yl[i + 0] * (qs[i / 2] & 0x000F);
        acc[1] += yl[i + 1] * (qs[i / 2] & 0x0F00);
        acc[2] += yl[i + 8] * (qs[i / 2] & 0x00F0);
        acc[3] += yl[i + 9] * (qs[i / 2] & 0xF000);
    }
    return d * (sumy * -8.f + acc[0] + acc[1] + acc[2] + acc[3]);
}

template<typename block_q_type, int nr, int nsg, int nw>
void mul_vec_q_n_f32_impl(
        constant mul_mv_args & args,
        device const char * src0,
        device const char * src1,
        device       char * dst,
        uint3  tgpig,
        ushort tiisg,
        ushort sgitg) {
    const int nb = args.ne00/QK4_0;
    const int first_row = (tgpig.x * nsg + sgitg) * nr;
    device const float * y = (device const float *) src1;
    device const block_q_type * ax[nr];
    for (int row = 0; row < nr; ++row) {
        ax[row] = (device const block_q_type *) src0 + min(first_row + row, args.ne01 - 1) * nb;
    }
    float yl[16]; // src1 vector cache
    float sumf[nr] = {0.f};
    const short ix = (tiisg/2);
    const short il = (tiisg%2)*8;
    device const float * yb = y + ix*QK4_0 + il;
    // each thread in a SIMD group deals with half a block.
    for (int ib = ix; ib < nb; ib += nw/2) {
        float sumy[2] = { 0.f, 0.f };
#pragma unroll
        for (short i = 0; i < 8; i += 2) {
            sumy[0]  += yb[i +  0] + yb[i +  1];
            yl[i + 0] = yb[i +  0];
            yl[i + 1] = yb[i +  1]/256.f;
            sumy[1]  += yb[i + 16] + yb[i + 17];
            yl[i + 8] = yb[i + 16]/16.f;
            yl[i + 9] = yb[i + 17]/4096.f;
        }
#pragma unroll
        for (short row = 0; row < nr; row++) {
            sumf[row] += block_q_n_dot_y(ax[row] + ib, sumy[0] + sumy[1], yl, il);
        }
        yb += QK4_0 * 16;
    }
    device float * dst_f32 = (device float *) dst;
    for (int row = 0; row < nr; ++row) {
        const float tot = simd_sum(sumf[row]);
        if (tiisg == 0 && first_row + row < args.ne01) {
            dst_f32[first_row + row] = tot;
        }
    }
}

kernel void kernel_mul_vec_q4_0_f32(
        device       char * dst          [[buffer(0)]],
        device const char * src0         [[buffer(1)]],
        device const char * src1         [[buffer(2)]],
        constant mul_mv_args & args      [[buffer(3)]],
        uint3  tgpig[[threadgroup_position_in_grid]],
        ushort tiisg[[thread_index_in_simdgroup]],
        ushort sgitg[[simdgroup_index_in_threadgroup]]) {
    mul_vec_q_n_f32_impl<block_q4_0, N_DST, N_SIMDGROUP, N_SIMDWIDTH>(args, src0, src1, dst, tgpig, tiisg, sgitg);
}

// reads 16 values of a block into a 4x4 matrix of registers
template <typename type4x4>
void dequantize_q4_0(device const block_q4_0 * xb, short il, thread type4x4 & reg) {
    device const uint16_t * qs = ((device const uint16_t *)xb + 1);
    const float d1 = il ? (xb->d / 16.h) : xb->d;
    const float d2 = d1 / 256.f;
    const float md = -8.h * xb->d;
    const ushort mask0 = il ? 0x00F0 : 0x000F;
    const ushort mask1 = mask0 << 8;
    float4x4 reg_f;
    for (int i = 0; i < 8; i++) {
        reg_f[i/2][2*(i%2) + 0] = d1 * (qs[i] & mask0) + md;
        reg_f[i/2][2*(i%2) + 1] = d2 * (qs[i] & mask1) + md;
    }
    reg = (type4x4) reg_f;
}

template<typename block_q, short nl, void (*dequantize_func)(device const block_q *, short, thread float4x4 &)>
kernel void kernel_get_rows_q(
        device float       * dst   [[buffer(0)]],
        device const void  * src0  [[buffer(1)]],
        device const int   * ids   [[buffer(2)]],
        constant mul_mv_args & args [[buffer(3)]],
        uint                 tgpig [[threadgroup_position_in_grid]],
        uint                 tiitg [[thread_index_in_threadgroup]],
        uint                 tptg  [[threads_per_threadgroup]]) {
    const int64_t r = ids[tgpig];
    for (int64_t ind = tiitg; ind < args.ne00/16; ind += tptg) {
        float4x4 temp;
        dequantize_func(((device const block_q *) src0) + r*(args.ne00/QK4_0) + ind/nl, ind%nl, temp);
        *(((device float4x4 *) ((device char *) dst + tgpig*args.ne00*4)) + ind) = temp;
    }
}

typedef decltype(kernel_get_rows_q<block_q4_0, 2, dequantize_q4_0>) get_rows_q_t;
template [[host_name("kernel_get_rows_q4_0")]] kernel get_rows_q_t kernel_get_rows_q<block_q4_0, 2, dequantize_q4_0>;
`;

/** Reductions of rows in the manner of MLX: functors, function constants, an optional buffer, instantiations by a macro. */
export const rowReduce = `#include <metal_atomic>
#include <metal_simdgroup>
#include <metal_stdlib>

typedef half float16_t;
typedef bfloat bfloat16_t;
#define instantiate_kernel(name, func, ...) \\
  template [[host_name(name)]] [[kernel]] decltype(func<__VA_ARGS__>) func<__VA_ARGS__>;

constant bool align_M [[function_constant(200)]];
constant bool has_bias [[function_constant(201)]];
constant int power [[function_constant(202)]];
constant bool squares = power == 2;

template <typename U>
struct Limits {
  static constexpr constant U max = metal::numeric_limits<U>::max();
  static constexpr constant U min = metal::numeric_limits<U>::min();
};
template <>
struct Limits<float> {
  static constexpr constant float max = metal::numeric_limits<float>::infinity();
  static constexpr constant float min = -metal::numeric_limits<float>::infinity();
};

template <typename U>
struct Sum {
  static constexpr constant U init = U(0);
  U simd_reduce(U val) { return metal::simd_sum(val); }
  U operator()(U a, U b) { return a + b; }
};
template <typename U>
struct Max {
  static constexpr constant U init = Limits<U>::min;
  U simd_reduce(U val) { return metal::simd_max(val); }
  U operator()(U a, U b) { return a > b ? a : b; }
};

template <typename T, typename N>
METAL_FUNC N ceildiv(T a, N b) {
  return (a + b - 1) / b;
}

template <typename T, typename U, typename Op, int N_READS = 4>
[[kernel]] void row_reduce(
    device U* out [[buffer(0)]],
    const device T* in [[buffer(1)]],
    constant const size_t& row_size [[buffer(2)]],
    const device T* bias [[buffer(3), function_constant(has_bias)]],
    uint3 gid [[threadgroup_position_in_grid]],
    uint3 lid [[thread_position_in_threadgroup]],
    uint3 lsize [[threads_per_threadgroup]],
    uint simd_lane_id [[thread_index_in_simdgroup]],
    uint simd_per_group [[simdgroups_per_threadgroup]],
    uint simd_group_id [[simdgroup_index_in_threadgroup]]) {
  Op op;
  threadgroup U shared_vals[32];
  U total = Op::init;
  in += gid.x * row_size;
  const size_t blocks = align_M ? row_size / N_READS : ceildiv(row_size, size_t(N_READS));
  for (size_t b = lid.x; b < blocks; b += lsize.x) {
    U vals[N_READS];
    for (int i = 0; i < N_READS; i++) {
      size_t at = b * N_READS + i;
      vals[i] = align_M || at < row_size ? static_cast<U>(in[at]) : Op::init;
      if (has_bias && (align_M || at < row_size)) {
        vals[i] += static_cast<U>(bias[at]);
      }
      if (squares) {
        vals[i] *= vals[i];
      }
    }
    for (int i = 0; i < N_READS; i++) {
      total = op(vals[i], total);
    }
  }
  total = op.simd_reduce(total);
  if (simd_lane_id == 0) {
    shared_vals[simd_group_id] = total;
  }
  metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
  total = lid.x < simd_per_group ? shared_vals[lid.x] : Op::init;
  total = op.simd_reduce(total);
  if (lid.x == 0) {
    out[gid.x] = total;
  }
}

instantiate_kernel("row_reduce_max_f32", row_reduce, float, float, Max<float>)
instantiate_kernel("row_reduce_max_bf16", row_reduce, bfloat16_t, float, Max<float>, 8)
instantiate_kernel("row_reduce_sum_f16", row_reduce, float16_t, float, Sum<float>)
`;
