#include <metal_stdlib>
using namespace metal;
typedef void (*RadixFunc)(thread float2*, thread float2*);
METAL_FUNC float2 complex_mul(float2 a, float2 b) { return float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
METAL_FUNC float2 get_twiddle(int k, int p) { float theta = -2.0f * k * M_PI_F / p; return {metal::fast::cos(theta), metal::fast::sin(theta)}; }
METAL_FUNC void radix2(thread float2* x, thread float2* y) { y[0] = x[0] + x[1]; y[1] = x[0] - x[1]; }
METAL_FUNC void radix4(thread float2* x, thread float2* y) {
  float2 z_0 = x[0] + x[2];
  float2 z_1 = x[0] - x[2];
  float2 z_2 = x[1] + x[3];
  float2 z_3 = x[1] - x[3];
  float2 z_3_i = {z_3.y, -z_3.x};
  y[0] = z_0 + z_2;
  y[1] = z_1 + z_3_i;
  y[2] = z_0 - z_2;
  y[3] = z_1 - z_3_i;
}
constant bool inv_ [[function_constant(0)]];
constant bool is_power_of_2_ [[function_constant(1)]];
constant int elems_per_thread_ [[function_constant(2)]];
constant int radix_4_steps_ [[function_constant(4)]];
constant int radix_2_steps_ [[function_constant(5)]];
template <int radix, RadixFunc radix_func>
METAL_FUNC void radix_butterfly(int i, int p, thread float2* x, thread short* indices, thread float2* y) {
  int k, j;
  if (is_power_of_2_) { k = i & (p - 1); } else { k = i % p; }
  if (p > 1) {
    for (short t = 1; t < radix; t++) {
      x[t] = complex_mul(x[t], get_twiddle(k * t, radix * p));
    }
  }
  radix_func(x, y);
  j = (i - k) * radix + k;
  for (int t = 0; t < radix; t++) { indices[t] = j + t * p; }
}
template <int radix, RadixFunc radix_func>
METAL_FUNC void radix_n_steps(int i, thread int* p, int m, int n, int num_steps, thread float2* inputs, thread short* indices, thread float2* values, threadgroup float2* buf) {
  int m_r = n / radix;
  for (int s = 0; s < num_steps; s++) {
    for (int t = 0; t < elems_per_thread_ / radix; t++) {
      int index = i + t * m;
      for (int r = 0; r < radix; r++) inputs[r] = buf[index + r * m_r];
      radix_butterfly<radix, radix_func>(index, *p, inputs, indices + t * radix, values + t * radix);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int t = 0; t < elems_per_thread_ / radix; t++) {
      for (int r = 0; r < radix; r++) buf[indices[t * radix + r]] = values[t * radix + r];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    *p *= radix;
  }
}
template <int tg_mem_size, typename in_T, typename out_T>
[[kernel]] void fft(const device in_T* in [[buffer(0)]], device out_T* out [[buffer(1)]], constant const int& n, constant const int& batch_size, uint3 elem [[thread_position_in_grid]], uint3 grid [[threads_per_grid]]) {
  threadgroup float2 shared_in[tg_mem_size];
  thread short indices[16];
  thread float2 inputs[4];
  thread float2 values[16];
  threadgroup float2* buf = &shared_in[elem.y % 1 * n];
  const int m = grid.x, i = elem.x;
  for (int t = 0; t < elems_per_thread_; t++) {
    float2 v = in[elem.y * n + i + t * m];
    if (inv_) v.y = -v.y;
    buf[i + t * m] = v;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  int p = 1;
  radix_n_steps<4, radix4>(i, &p, m, n, radix_4_steps_, inputs, indices, values, buf);
  radix_n_steps<2, radix2>(i, &p, m, n, radix_2_steps_, inputs, indices, values, buf);
  float2 inv_factor = {1.0f / n, -1.0f / n};
  for (int t = 0; t < elems_per_thread_; t++) {
    int index = i + t * m;
    out[elem.y * n + index] = inv_ ? buf[index] * inv_factor : buf[index];
  }
}
#define instantiate_fft(tg) template [[host_name("fft_mem_" #tg "_float2_float2")]] [[kernel]] decltype(fft<tg, float2, float2>) fft<tg, float2, float2>;
instantiate_fft(256)
instantiate_fft(1024)

// winograd
template <int M, int R, int S>
struct WinogradTransforms {};
template <>
struct WinogradTransforms<6, 3, 8> {
  static constexpr constant int OUT_TILE_SIZE = 6;
  static constexpr constant int WINO_MATRIX_SIZE = 8;
  static constexpr constant float in_transform[8][2] = {{1, 0}, {0, 1}, {-5.25f, 1}, {0, -1}, {5.25f, 0.5f}, {0, -0.5f}, {-1, 2}, {0, -2}};
  static constexpr constant float wt_transform[2][3] = {{1.00f, 0.00f, 0.00f}, {-2.0f / 9.00f, -2.0f / 9.00f, -2.0f / 9.00f}};
};
constant constexpr const float WinogradTransforms<6, 3, 8>::wt_transform[2][3];
constant constexpr const float WinogradTransforms<6, 3, 8>::in_transform[8][2];
template <typename T, int BC = 32, int M = 6, int R = 3>
[[kernel, max_total_threads_per_threadgroup(BC)]] void winograd_weight(const device T* wt_in [[buffer(0)]], device T* wt_out [[buffer(1)]], const constant int& C [[buffer(2)]], uint tid [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
  using WGT = WinogradTransforms<M, R, M + R - 1>;
  constexpr int bc = BC;
  threadgroup T Ws[R][BC];
  for (int r = 0; r < R; ++r) Ws[r][lane] = wt_in[(tid * R + r) * C + lane];
  simdgroup_barrier(mem_flags::mem_threadgroup);
  for (int k = 0; k < 2; ++k) {
    T sum = 0;
    for (int r = 0; r < R; ++r) sum += WGT::wt_transform[k][r] * Ws[r][lane];
    for (int j = 0; j < 8; ++j) sum += WGT::in_transform[j][k] * 0;
    wt_out[(tid * 2 + k) * bc + lane] = sum;
  }
}
#define instantiate_winograd(name, itype, bc) template [[host_name("winograd_weight_" #name "_bc" #bc)]] [[kernel]] void winograd_weight<itype, bc>(const device itype* wt_in [[buffer(0)]], device itype* wt_out [[buffer(1)]], const constant int& C [[buffer(2)]], uint tid [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]]);
instantiate_winograd(float32, float, 32)

// ggml small ops
typedef struct { int32_t IW, IH, CHW; int64_t ofs0, ofs1; int32_t s0, s1, p0, p1, d0, d1, N, KH, KW, KHW; } ggml_metal_kargs_im2col;
typedef void (im2col_t)(
        constant ggml_metal_kargs_im2col & args,
        device const float * x,
        device        char * dst,
        uint3 tgpig[[threadgroup_position_in_grid]],
        uint3  tgpg[[threadgroups_per_grid]],
        uint3 tpitg[[thread_position_in_threadgroup]],
        uint3   ntg[[threads_per_threadgroup]]);

template <typename T>
kernel void kernel_im2col(
        constant ggml_metal_kargs_im2col & args,
        device const float * x,
        device        char * dst,
        uint3 tgpig[[threadgroup_position_in_grid]],
        uint3  tgpg[[threadgroups_per_grid]],
        uint3 tpitg[[thread_position_in_threadgroup]],
        uint3   ntg[[threads_per_threadgroup]]) {
    const int64_t OH = tgpg[1];
    const int64_t OW = tgpg[2];
    const int64_t  in = tpitg[0];
    const int64_t ikh = tpitg[1];
    const int64_t ikw = tpitg[2];
    const int64_t iic = tgpig[0];
    const int64_t ioh = tgpig[1];
    const int64_t iow = tgpig[2];
    const int64_t iiw = iow*args.s0 + ikw*args.d0 - args.p0;
    const int64_t iih = ioh*args.s1 + ikh*args.d1 - args.p1;
    int64_t offset_dst = (in*OH*OW + ioh*OW + iow)*args.CHW + (iic*(args.KHW) + ikh*args.KW + ikw);
    device T * pdst = (device T *) (dst);
    if (iih < 0 || iih >= args.IH || iiw < 0 || iiw >= args.IW) {
        pdst[offset_dst] = 0.0f;
    } else {
        const int64_t offset_src = in*args.ofs0 + iic*args.ofs1 + iih*args.IW + iiw;
        pdst[offset_dst] = x[offset_src];
    }
}
template [[host_name("kernel_im2col_f32")]] kernel im2col_t kernel_im2col<float>;
template [[host_name("kernel_im2col_f16")]] kernel im2col_t kernel_im2col<half>;

enum ggml_sort_order { GGML_SORT_ORDER_ASC, GGML_SORT_ORDER_DESC };
#define SWAP(x, y) { auto tmp = (x); (x) = (y); (y) = tmp; }
typedef struct { int64_t ncols; int64_t ncols_pad; } ggml_metal_kargs_argsort;
typedef void (argsort_t)(constant ggml_metal_kargs_argsort & args, device const float * x, device int32_t * dst, threadgroup int32_t * shared_values [[threadgroup(0)]], uint3 tgpig[[threadgroup_position_in_grid]], uint3 tpitg[[thread_position_in_threadgroup]]);
template<ggml_sort_order order>
kernel void kernel_argsort_f32_i32(constant ggml_metal_kargs_argsort & args, device const float * x, device int32_t * dst, threadgroup int32_t * shared_values [[threadgroup(0)]], uint3 tgpig[[threadgroup_position_in_grid]], uint3 tpitg[[thread_position_in_threadgroup]]) {
    int col = tpitg[0];
    int row = tgpig[1];
    if (col >= args.ncols_pad) return;
    device const float   * x_row   = x + row * args.ncols;
    threadgroup int32_t  * dst_row = shared_values;
    dst_row[col] = col;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int k = 2; k <= args.ncols_pad; k *= 2) {
        for (int j = k / 2; j > 0; j /= 2) {
            int ixj = col ^ j;
            if (ixj > col) {
                if ((col & k) == 0) {
                    if (dst_row[col] >= args.ncols ||
                        (dst_row[ixj] < args.ncols && (order == GGML_SORT_ORDER_ASC ?
                            x_row[dst_row[col]] > x_row[dst_row[ixj]] :
                            x_row[dst_row[col]] < x_row[dst_row[ixj]]))
                    ) {
                        SWAP(dst_row[col], dst_row[ixj]);
                    }
                } else {
                    if (dst_row[ixj] >= args.ncols ||
                        (dst_row[col] < args.ncols && (order == GGML_SORT_ORDER_ASC ?
                            x_row[dst_row[col]] < x_row[dst_row[ixj]] :
                            x_row[dst_row[col]] > x_row[dst_row[ixj]]))
                    ) {
                        SWAP(dst_row[col], dst_row[ixj]);
                    }
                }
            }
            threadgroup_barrier(mem_flags::mem_threadgroup);
        }
    }
    if (col < args.ncols) dst[row * args.ncols + col] = dst_row[col];
}
template [[host_name("kernel_argsort_f32_i32_asc")]]  kernel argsort_t kernel_argsort_f32_i32<GGML_SORT_ORDER_ASC>;
template [[host_name("kernel_argsort_f32_i32_desc")]] kernel argsort_t kernel_argsort_f32_i32<GGML_SORT_ORDER_DESC>;

typedef struct { int32_t n_past, n_dims, n_ctx_orig; float freq_base, freq_scale, ext_factor, attn_factor, beta_fast, beta_slow; int32_t sect_0; bool src2; int32_t ne0; uint64_t nb01; } ggml_metal_kargs_rope;
constant bool FC_rope_is_imrope [[function_constant(50)]];
static float rope_yarn_ramp(const float low, const float high, const int i0) {
    const float y = (i0 / 2 - low) / max(0.001f, high - low);
    return 1.0f - min(1.0f, max(0.0f, y));
}
static void rope_yarn(
    float theta_extrap, float freq_scale, float corr_dims[2], int i0, float ext_factor, float mscale,
    thread float * cos_theta, thread float * sin_theta) {
    float theta_interp = freq_scale * theta_extrap;
    float theta = theta_interp;
    if (ext_factor != 0.0f) {
        float ramp_mix = rope_yarn_ramp(corr_dims[0], corr_dims[1], i0) * ext_factor;
        theta = theta_interp * (1 - ramp_mix) + theta_extrap * ramp_mix;
        mscale *= 1.0f + 0.1f * log(1.0f / freq_scale);
    }
    *cos_theta = cos(theta) * mscale;
    *sin_theta = sin(theta) * mscale;
}
static float rope_yarn_corr_factor(int n_dims, int n_ctx_orig, float n_rot, float base) {
    return n_dims * log(n_ctx_orig / (n_rot * 2 * M_PI_F)) / (2 * log(base));
}
static void rope_yarn_corr_dims(int n_dims, int n_ctx_orig, float freq_base, float beta_fast, float beta_slow, float dims[2]) {
    dims[0] = max(0.0f,         floor(rope_yarn_corr_factor(n_dims, n_ctx_orig, beta_fast, freq_base)));
    dims[1] = min(n_dims - 1.0f, ceil(rope_yarn_corr_factor(n_dims, n_ctx_orig, beta_slow, freq_base)));
}
template<typename T>
kernel void kernel_rope_neox(
        constant ggml_metal_kargs_rope & args,
        device const char * src0, device const char * src1, device const char * src2, device char * dst,
        ushort  tiitg[[thread_index_in_threadgroup]], ushort3 tptg [[threads_per_threadgroup]], uint3 tgpig[[threadgroup_position_in_grid]]) {
    float corr_dims[2];
    rope_yarn_corr_dims(args.n_dims, args.n_ctx_orig, args.freq_base, args.beta_fast, args.beta_slow, corr_dims);
    device const int32_t * pos = (device const int32_t *) src1;
    const float theta_base = (float) pos[tgpig[0]];
    const float inv_ndims = -1.f/args.n_dims;
    float cos_theta;
    float sin_theta;
    for (int i0 = 2*tiitg; i0 < args.ne0; i0 += 2*tptg.x) {
        if (i0 < args.n_dims) {
            const int ic = i0/2;
            const float theta = theta_base * pow(args.freq_base, inv_ndims*i0);
            const float freq_factor = args.src2 ? ((device const float *) src2)[ic] : 1.0f;
            rope_yarn(theta/freq_factor, args.freq_scale, corr_dims, i0, args.ext_factor, args.attn_factor, &cos_theta, &sin_theta);
            device const T * const src = (device T *)(src0 + tgpig[0]*args.nb01 + ic*sizeof(T));
            device       T * dst_data  = (device T *)( dst + tgpig[0]*args.nb01 + ic*sizeof(T));
            const float x0 = src[0];
            const float x1 = src[args.n_dims/2];
            dst_data[0]             = x0*cos_theta - x1*sin_theta;
            dst_data[args.n_dims/2] = x0*sin_theta + x1*cos_theta;
        } else {
            device const T * const src = (device T *)(src0 + tgpig[0]*args.nb01 + i0*sizeof(T));
            device       T * dst_data  = (device T *)( dst + tgpig[0]*args.nb01 + i0*sizeof(T));
            dst_data[0] = src[0];
            dst_data[1] = src[1];
        }
    }
}
typedef decltype(kernel_rope_neox<float>) kernel_rope_neox_t;
template [[host_name("kernel_rope_neox_f32")]] kernel kernel_rope_neox_t kernel_rope_neox<float>;
template [[host_name("kernel_rope_neox_f16")]] kernel kernel_rope_neox_t kernel_rope_neox<half>;

// soft_max with mask types, norm fused by F
template<typename T>
kernel void kernel_soft_max(device const char * src0, device const char * src1, device char * dst, constant int32_t & ne00, constant float & scale, threadgroup float * buf [[threadgroup(0)]],
        uint3 tgpig[[threadgroup_position_in_grid]], uint3 tpitg[[thread_position_in_threadgroup]], uint sgitg[[simdgroup_index_in_threadgroup]], uint tiisg[[thread_index_in_simdgroup]], uint3 tptg[[threads_per_threadgroup]]) {
    device const float * psrc0 = (device const float *) (src0 + tgpig.x*ne00*4);
    device const     T * pmask = src1 != src0 ? (device const T *) src1 : nullptr;
    device       float * pdst  = (device float *) dst + tgpig.x*ne00;
    float lmax = -INFINITY;
    for (int i00 = tpitg.x; i00 < ne00; i00 += tptg.x) lmax = max(lmax, psrc0[i00]*scale + (pmask ? pmask[i00] : 0.0f));
    float max_val = simd_max(lmax);
    if (tptg.x > 32) {
        if (sgitg == 0) buf[tiisg] = -INFINITY;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (tiisg == 0) buf[sgitg] = max_val;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        max_val = simd_max(buf[tiisg]);
    }
    float lsum = 0.0f;
    for (int i00 = tpitg.x; i00 < ne00; i00 += tptg.x) {
        const float exp_psrc0 = exp((psrc0[i00]*scale + (pmask ? pmask[i00] : 0.0f)) - max_val);
        lsum += exp_psrc0;
        pdst[i00] = exp_psrc0;
    }
    threadgroup_barrier(mem_flags::mem_none);
    float sum = simd_sum(lsum);
    if (tptg.x > 32) {
        if (sgitg == 0) buf[tiisg] = 0.0f;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (tiisg == 0) buf[sgitg] = sum;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        sum = simd_sum(buf[tiisg]);
    }
    const float inv_sum = 1.0f/sum;
    for (int i00 = tpitg.x; i00 < ne00; i00 += tptg.x) pdst[i00] *= inv_sum;
}
#define MAX_(x) x
typedef decltype(kernel_soft_max<float>) kernel_soft_max_t;
template [[host_name("kernel_soft_max_f16")]] kernel kernel_soft_max_t kernel_soft_max<half>;
template [[host_name("kernel_soft_max_f32")]] kernel kernel_soft_max_t kernel_soft_max<float>;

template <typename T> inline T norm_sum(T x);
template <> inline float norm_sum<float>(float x) { return x; }
template <> inline float4 norm_sum<float4>(float4 x) { return x; }
inline static float dot(float x, float y) { return x*y; }
inline float sum_of(float x) { return x; }
inline float sum_of(float4 x) { return dot(x, float4(1.0f)); }
template <typename T, short F>
kernel void kernel_rms_norm_fuse_impl(constant int32_t & ne00, constant float & eps, device const char * src0, device const char * f0, device const char * f1, device char * dst, threadgroup float * shmem_f32 [[threadgroup(0)]],
        uint3 tgpig[[threadgroup_position_in_grid]], ushort3 tpitg[[thread_position_in_threadgroup]], ushort sgitg[[simdgroup_index_in_threadgroup]], ushort tiisg[[thread_index_in_simdgroup]], ushort3 ntg[[threads_per_threadgroup]]) {
    const int n = ne00 / (sizeof(T)/4);
    if (sgitg == 0) shmem_f32[tiisg] = 0.0f;
    device const T * x = (device const T *) src0 + tgpig.x*n;
    device const T * w0 = (device const T *) f0;
    device const T * w1 = (device const T *) f1;
    float sumf = 0.0f;
    for (int i = tpitg.x; i < n; i += ntg.x) sumf += dot(x[i], x[i]);
    sumf = simd_sum(sumf);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (tiisg == 0) shmem_f32[sgitg] = sumf;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    sumf = shmem_f32[tiisg];
    sumf = simd_sum(sumf);
    const float mean = sumf/ne00;
    const float scale = 1.0f/sqrt(mean + eps);
    device T * y = (device T *) dst + tgpig.x*n;
    for (int i = tpitg.x; i < n; i += ntg.x) {
        if (F == 1) { y[i] = (x[i]*scale); }
        if (F == 2) { y[i] = (x[i]*scale)*w0[i]; }
        if (F == 3) { y[i] = (x[i]*scale)*w0[i] + w1[i]; }
    }
}
typedef decltype(kernel_rms_norm_fuse_impl<float4, 1>) kernel_rms_norm_fuse_t;
template [[host_name("kernel_rms_norm_f32_4")]]         kernel kernel_rms_norm_fuse_t kernel_rms_norm_fuse_impl<float4, 1>;
template [[host_name("kernel_rms_norm_mul_add_f32_4")]] kernel kernel_rms_norm_fuse_t kernel_rms_norm_fuse_impl<float4, 3>;
template [[host_name("kernel_rms_norm_mul_f32")]]       kernel kernel_rms_norm_fuse_t kernel_rms_norm_fuse_impl<float, 2>;
