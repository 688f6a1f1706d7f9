/** Kernels as the field writes them: sources of the suite programs.test.ts. */

/** Tiled products of matrices through threadgroup memory, 16 x 16 threads a tile. */
export const tiledProduct = `#include <metal_stdlib>
using namespace metal;

struct Shape { uint rows, columns, inner; };
constant constexpr uint kTile = 16;

kernel void tiled_product(device float *out [[buffer(0)]],
                          const device float *a [[buffer(1)]],
                          const device float *b [[buffer(2)]],
                          constant Shape &shape [[buffer(3)]],
                          uint2 group [[threadgroup_position_in_grid]],
                          ushort2 local [[thread_position_in_threadgroup]]) {
  threadgroup float tile_a[kTile][kTile + 1];
  threadgroup float tile_b[kTile][kTile + 1];
  const uint row = group.y * kTile + local.y, column = group.x * kTile + local.x;
  float sum = 0;
  for (uint start = 0; start < shape.inner; start += kTile) {
    tile_a[local.y][local.x] = row < shape.rows && start + local.x < shape.inner ? a[row * shape.inner + start + local.x] : 0;
    tile_b[local.y][local.x] = column < shape.columns && start + local.y < shape.inner ? b[(start + local.y) * shape.columns + column] : 0;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    #pragma unroll
    for (uint k = 0; k < kTile; ++k) { sum = fma(tile_a[local.y][k], tile_b[k][local.x], sum); }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (row < shape.rows && column < shape.columns) { out[row * shape.columns + column] = sum; }
}
`;

/** RMS norm of rows: one threadgroup a row, sums by simd_sum, then over the SIMD groups. */
export const rmsNorm = `#include <metal_common>
#include <metal_math>
#include <metal_simdgroup>
#include <metal_compute>
using namespace metal;

template <typename T, int N_READS = 4>
[[kernel]] void rms(const device T *x [[buffer(1)]],
                    const device T *w [[buffer(2)]],
                    device T *out [[buffer(0)]],
                    constant float &eps [[buffer(3)]],
                    constant uint &axis_size [[buffer(4)]],
                    uint gid [[threadgroup_position_in_grid]],
                    uint lid [[thread_position_in_threadgroup]],
                    uint simd_lane_id [[thread_index_in_simdgroup]],
                    uint simd_group_id [[simdgroup_index_in_threadgroup]]) {
  constexpr int SIMD_SIZE = 32;
  threadgroup float local_inv_mean[1];
  threadgroup float local_sums[SIMD_SIZE];
  float acc = 0;
  x += gid * size_t(axis_size) + lid * N_READS;
  w += lid * N_READS;
  if (lid * N_READS + N_READS <= axis_size) {
    for (int i = 0; i < N_READS; i++) { float xi = x[i]; acc += xi * xi; }
  } else {
    for (int i = 0; i < N_READS; i++) { if ((lid * N_READS + i) < axis_size) { float xi = x[i]; acc += xi * xi; } }
  }
  acc = simd_sum(acc);
  if (simd_group_id == 0) { local_sums[simd_lane_id] = 0; }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (simd_lane_id == 0) { local_sums[simd_group_id] = acc; }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (simd_group_id == 0) {
    acc = simd_sum(local_sums[simd_lane_id]);
    if (simd_lane_id == 0) { local_inv_mean[0] = metal::precise::rsqrt(acc / axis_size + eps); }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out += gid * size_t(axis_size) + lid * N_READS;
  for (int i = 0; i < N_READS; i++) {
    if ((lid * N_READS + i) < axis_size) { out[i] = w[i] * static_cast<T>(x[i] * local_inv_mean[0]); }
  }
}

#define instantiate_rms(name, itype) \\
  template [[host_name("rms" #name)]] [[kernel]] decltype(rms<itype>) rms<itype>;
instantiate_rms(float32, float)
instantiate_rms(float16, half)
instantiate_rms(bfloat16, bfloat)
`;

/** Softmax of rows with a reduction over lanes, then over SIMD groups, in two passes: maximum and sum. */
export const softmax = `#include <metal_stdlib>
using namespace metal;

struct MaxOp { template <typename T> static T lanes(T x) { return simd_max(x); } static constexpr constant float init = -INFINITY; };
struct SumOp { template <typename T> static T lanes(T x) { return simd_sum(x); } static constexpr constant float init = 0; };

template <typename Op>
float reduce(float x, threadgroup float *partial, uint lane, uint group, uint groups) {
  x = Op::lanes(x);
  if (lane == 0) { partial[group] = x; }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  x = Op::lanes(lane < groups ? partial[lane] : Op::init);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return x;
}

kernel void softmax_rows(device float *out [[buffer(0)]], device const float *in [[buffer(1)]], constant int &length [[buffer(2)]],
                         threadgroup float *partial [[threadgroup(0)]],
                         uint row [[threadgroup_position_in_grid]], uint lid [[thread_index_in_threadgroup]],
                         uint size [[threads_per_threadgroup]], uint lane [[thread_index_in_simdgroup]],
                         uint group [[simdgroup_index_in_threadgroup]], uint groups [[simdgroups_per_threadgroup]]) {
  in += row * length;
  out += row * length;
  float top = -INFINITY;
  for (int k = lid; k < length; k += size) { top = max(top, in[k]); }
  top = reduce<MaxOp>(top, partial, lane, group, groups);
  float sum = 0;
  for (int k = lid; k < length; k += size) { const float e = exp(in[k] - top); out[k] = e; sum += e; }
  const float scale = 1 / reduce<SumOp>(sum, partial, lane, group, groups);
  for (int k = lid; k < length; k += size) { out[k] *= scale; }
}
`;

/** Attention of 8 queries a SIMD group over blocks of 8 keys, in the style of MLX: tiles of fragments, online softmax. */
export const steelAttention = `#include <metal_stdlib>
#include <metal_simdgroup>
#include <metal_simdgroup_matrix>
using namespace metal;
#define STEEL_CONST static constant constexpr const
#define STEEL_PRAGMA_UNROLL _Pragma("clang loop unroll(full)")

struct AttnParams { int qL, kL; float scale; };

template <typename T, int kFragRows_, int kFragCols_> struct BaseMMAFrag {
  static_assert(kFragRows_ == 8 && kFragCols_ == 8, "Only 8 x 8 fragments");
};
template <typename T> struct BaseMMAFrag<T, 8, 8> {
  STEEL_CONST int kFragRows = 8;
  STEEL_CONST int kFragCols = 8;
  STEEL_CONST int kElemsPerFrag = (kFragRows * kFragCols) / 32;
  STEEL_CONST int kElemCols = 2;
  typedef metal::simdgroup_matrix<T, kFragRows, kFragCols> mat_type;
  typedef metal::vec<T, kElemsPerFrag> frag_type;

  METAL_FUNC static constexpr short2 get_coord(ushort simd_lane_id [[thread_index_in_simdgroup]]) {
    const short qid = simd_lane_id / 4;
    const short fm = (qid & 4) + ((simd_lane_id / 2) % 4);
    const short fn = (qid & 2) * 2 + (simd_lane_id % 2) * 2;
    return short2{fn, fm};
  }
  template <typename SrcPtrType>
  METAL_FUNC static constexpr void load(thread frag_type &dst, SrcPtrType src, int str_x, int str_y) {
    STEEL_PRAGMA_UNROLL
    for (short j = 0; j < kElemCols; j++) { dst[j] = static_cast<T>(src[j * str_y]); }
    (void)str_x;
  }
  template <typename A, typename B>
  METAL_FUNC static void mma(thread frag_type &D, thread metal::vec<A, 2> &a, thread metal::vec<B, 2> &b, thread frag_type &C) {
    mat_type D_mat;
    simdgroup_matrix<A, 8, 8> A_mat;
    simdgroup_matrix<B, 8, 8> B_mat;
    mat_type C_mat;
    reinterpret_cast<thread metal::vec<A, 2> &>(A_mat.thread_elements()) = a;
    reinterpret_cast<thread metal::vec<B, 2> &>(B_mat.thread_elements()) = b;
    reinterpret_cast<thread frag_type &>(C_mat.thread_elements()) = C;
    simdgroup_multiply_accumulate(D_mat, A_mat, B_mat, C_mat);
    D = reinterpret_cast<thread frag_type &>(D_mat.thread_elements());
  }
  template <typename Op> METAL_FUNC static void row_reduce(thread const frag_type &inp_vals, thread T *reduced_vals) {
    T thr_reduce = Op::apply(inp_vals.x, inp_vals.y);
    T qgr_reduce = simd_shuffle_xor(thr_reduce, ushort(1));
    qgr_reduce = Op::apply(thr_reduce, qgr_reduce);
    T sgr_reduce = simd_shuffle_xor(qgr_reduce, ushort(8));
    reduced_vals[0] = Op::apply(reduced_vals[0], Op::apply(qgr_reduce, sgr_reduce));
  }
};

template <typename T, int kTileRows_, int kTileCols_, class MMAFrag_ = BaseMMAFrag<T, 8, 8>> struct MMATile {
  using MMAFrag_t = MMAFrag_;
  using frag_type = typename MMAFrag_t::frag_type;
  STEEL_CONST int kTileRows = kTileRows_;
  STEEL_CONST int kTileCols = kTileCols_;
  frag_type val_frags[kTileRows_ * kTileCols_];
  METAL_FUNC MMATile() thread {}
  METAL_FUNC constexpr void clear() { STEEL_PRAGMA_UNROLL for (short i = 0; i < kTileRows * kTileCols; ++i) { val_frags[i] = frag_type(0); } }
  METAL_FUNC constexpr thread frag_type &frag_at(const short i, const short j) { return val_frags[i * kTileCols + j]; }
};

struct MaxOp { template <typename T> METAL_FUNC static constexpr T apply(T x, T y) { return metal::max(x, y); } };
struct SumOp { template <typename T> METAL_FUNC static constexpr T apply(T x, T y) { return x + y; } };

// clang-format off
template <typename T, int BD, typename AccumType = float>
[[kernel, max_total_threads_per_threadgroup(128)]] void attention(
    device T *O [[buffer(0)]],
    const device T *Q [[buffer(1)]],
    const device T *K [[buffer(2)]],
    const device T *V [[buffer(3)]],
    const constant AttnParams *params [[buffer(4)]],
    uint simd_lane_id [[thread_index_in_simdgroup]],
    uint simd_group_id [[simdgroup_index_in_threadgroup]],
    uint3 tid [[threadgroup_position_in_grid]]) { // clang-format on
  using Frag = BaseMMAFrag<AccumType, 8, 8>;
  constexpr int TD = BD / 8;
  const short2 simd_coord = Frag::get_coord(ushort(simd_lane_id));
  const short sm = simd_coord.y, sn = simd_coord.x;
  const int q_row = int(tid.x * 4 + simd_group_id) * 8 + sm;
  const bool in_range = q_row < params->qL;
  MMATile<AccumType, 1, TD, Frag> Qtile, Otile;
  MMATile<AccumType, 1, 1, Frag> Stile;
  Otile.clear();
  STEEL_PRAGMA_UNROLL
  for (short d = 0; d < TD; d++) {
    Qtile.frag_at(0, d) = 0;
    if (in_range) { Frag::load(Qtile.frag_at(0, d), &Q[q_row * BD + d * 8 + sn], BD, 1); }
    Qtile.frag_at(0, d) *= params->scale * M_LOG2E_F;
  }
  AccumType max_score[1] = {-INFINITY};
  AccumType sum_score[1] = {0};
  for (int kb = 0; kb < params->kL; kb += 8) {
    Stile.clear();
    STEEL_PRAGMA_UNROLL
    for (short d = 0; d < TD; d++) {
      // K transposed: element (row, column) is K[kb + column][d * 8 + row].
      typename Frag::frag_type k_frag(0);
      for (short j = 0; j < 2; j++) { if (kb + sn + j < params->kL) { k_frag[j] = static_cast<AccumType>(K[(kb + sn + j) * BD + d * 8 + sm]); } }
      Frag::mma(Stile.frag_at(0, 0), Qtile.frag_at(0, d), k_frag, Stile.frag_at(0, 0));
    }
    thread auto &scores = Stile.frag_at(0, 0);
    for (short j = 0; j < 2; j++) { if (kb + sn + j >= params->kL) { scores[j] = -INFINITY; } }
    AccumType new_max[1] = {max_score[0]};
    Frag::template row_reduce<MaxOp>(scores, new_max);
    scores = exp2(scores - new_max[0]);
    const AccumType factor = exp2(max_score[0] - new_max[0]);
    max_score[0] = new_max[0];
    AccumType sum_tmp[1] = {0};
    Frag::template row_reduce<SumOp>(scores, sum_tmp);
    sum_score[0] = sum_score[0] * factor + sum_tmp[0];
    STEEL_PRAGMA_UNROLL
    for (short d = 0; d < TD; d++) {
      typename Frag::frag_type v_frag(0);
      if (kb + sm < params->kL) { Frag::load(v_frag, &V[(kb + sm) * BD + d * 8 + sn], BD, 1); }
      Otile.frag_at(0, d) *= factor;
      Frag::mma(Otile.frag_at(0, d), scores, v_frag, Otile.frag_at(0, d));
    }
  }
  if (in_range) {
    for (short d = 0; d < TD; d++) {
      for (short j = 0; j < 2; j++) { O[q_row * BD + d * 8 + sn + j] = static_cast<T>(Otile.frag_at(0, d)[j] / sum_score[0]); }
    }
  }
}
#define instantiate_attn(tname, dtype, bd) \\
  template [[host_name("attention_" #tname "_bd" #bd)]] [[kernel]] decltype(attention<dtype, bd, float>) attention<dtype, bd, float>;
instantiate_attn(float32, float, 32)
instantiate_attn(bfloat16, bfloat, 16)
`;

/** Product of a matrix in 4-bit blocks with a vector, in the style of ggml. */
export const quantizedRows = `#include <metal_stdlib>
using namespace metal;

#define QK4_0 32
#define N_SIMDWIDTH 32
#define FOR_UNROLL(x) _Pragma("clang loop unroll(full)") for (x)
#define MIN(x, y) ((x) < (y) ? (x) : (y))

typedef struct {
    half    d;             // delta
    uint8_t qs[QK4_0 / 2]; // nibbles
} block_q4_0;
static_assert(sizeof(block_q4_0) == sizeof(half) + QK4_0 / 2, "wrong q4_0 block size/padding");

typedef struct {
    int32_t  ne00;
    int32_t  ne01;
    uint64_t nb01;
} ggml_metal_kargs_mul_mv;

template <typename type4x4>
void dequantize_q4_0(device const block_q4_0 * xb, short il, thread type4x4 & reg) {
    const float d = xb->d;
    for (int i = 0; i < 16; i++) {
        const uint8_t q = il ? xb->qs[i] >> 4 : xb->qs[i] & 0x0F;
        reg[i / 4][i % 4] = d * (q - 8);
    }
}

template <typename T>
void kernel_mul_mv_q4_0_impl(constant ggml_metal_kargs_mul_mv & args, device const char * src0, device const T * src1,
                             device float * dst, uint row, ushort tiisg) {
    device const block_q4_0 * x = (device const block_q4_0 *) (src0 + row * args.nb01);
    float sumf = 0.f;
    for (int ib = tiisg; ib < args.ne00 / QK4_0; ib += N_SIMDWIDTH) {
        FOR_UNROLL (short il = 0; il < 2; ++il) {
            float4x4 reg;
            dequantize_q4_0(x + ib, il, reg);
            device const T * y = src1 + ib * QK4_0 + il * 16;
            FOR_UNROLL (short i = 0; i < 4; ++i) {
                sumf += dot(reg[i], float4(y[4*i + 0], y[4*i + 1], y[4*i + 2], y[4*i + 3]));
            }
        }
    }
    const float tot = simd_sum(sumf);
    if (tiisg == 0) {
        dst[row] = tot;
    }
}

template <typename T>
kernel void kernel_mul_mv_q4_0(
        constant ggml_metal_kargs_mul_mv & args,
        device const char * src0,
        device const char * src1,
        device       char * dst,
        uint3  tgpig[[threadgroup_position_in_grid]],
        ushort tiisg[[thread_index_in_simdgroup]],
        ushort sgitg[[simdgroup_index_in_threadgroup]],
        ushort3 ntg[[threads_per_threadgroup]]) {
    const uint row = tgpig.x * (ntg.x / N_SIMDWIDTH) + sgitg;
    if (row < (uint) MIN(args.ne01, 1 << 20)) {
        kernel_mul_mv_q4_0_impl<T>(args, src0, (device const T *) src1, (device float *) dst, row, tiisg);
    }
}

typedef decltype(kernel_mul_mv_q4_0<half>) kernel_mul_mv_q4_0_t;
template [[host_name("kernel_mul_mv_q4_0_f16")]] kernel kernel_mul_mv_q4_0_t kernel_mul_mv_q4_0<half>;
template [[host_name("kernel_mul_mv_q4_0_f32")]] kernel decltype(kernel_mul_mv_q4_0<float>) kernel_mul_mv_q4_0<float>;
`;

/** Correct code that looks like what is refused: pointers, statics, products, calls through parentheses. */
export const nearMisses = `#include <metal_stdlib>
using namespace metal;
struct alignas(16) Block { float4 v; uint n; };
struct Outer { struct Inner { int a; }; Inner list[2]; enum Kind { kA, kB }; Kind kind; };
typedef uchar4 Pixel;
using Accumulator = float;
constant Block kBlocks[2] = {{float4(1), 2}, {float4(3), 4}};
constant const float kTable[] = {1, 2, 3};
static constant float kOld = 3;
constexpr constant int kBits = 8 * sizeof(uint);
template <typename T> struct Reader { const device T *base; T operator()(uint i) const { return base[i]; } };
template <typename T, int N> struct Row { thread T *data; METAL_FUNC Row(thread T *d) : data(d) {} };
inline float3 rotated(float3 v, float angle) { return float3(v.x * cos(angle), v.y, v.z); }
inline void accumulate(thread float &sum, const thread Block &b, device const Block *others, threadgroup Block &shared, constant Block &c) {
  sum += b.v.x * others->v.x * shared.v.y * c.v.z;
}
static inline float mean(const device float *x, uint n) { float s = 0; for (uint k = 0; k < n; k++) s += x[k]; return s / n; }
template <typename F> float apply(F f, float x) { return f(x); }
template <typename T> struct Box { T v; Box(T x) : v(x) {} Box copied() const { return Box(v); } };
struct Twice { float operator()(float x) const { return x * 2; } };
kernel void tricky(device float *out [[buffer(0)]], device const float *in [[buffer(1)]], constant Block &block [[buffer(2)]],
                   uint3 tpg [[threads_per_threadgroup]], uint3 position [[thread_position_in_grid]], ushort sg [[simdgroup_index_in_threadgroup]]) {
  const uint i = position.x;
  static constant float kLocal[2] = {1, 2};
  threadgroup Block shared; if (i == 0) shared = block;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float sum = 0; Block mine = block; accumulate(sum, mine, (device const Block *)(in + 4), shared, kBlocks[1]);
  float product = sum * out[0]; const float q = (sum) * (product); int a = 3, b = 4; int c = a * b; int d = a & b;
  thread float *p = &sum; thread float &r = *p; r += 1; float x[2] = {q, float(c + d)};
  thread auto &first = x[0]; first = 2; auto *pp = &x[1]; *pp = 5;
  Reader<float> reader{in}; Outer o; o.list[0].a = 3; o.kind = Outer::kB; Outer copy = o;
  const float half_x = 0.5 * reader(1) + mean(in, 2); Pixel px = Pixel(1, 2, 3, 4); px.rg = uchar2(9);
  if (float y = sum; y > 0) { out[i] = y; } else out[i] = half_x;
  for (int k = 0, n = 2; k < n; k++) out[i] += kLocal[k] * kTable[k];
  out[i] += apply(Twice(), x[1]) + copy.list[0].a + px.x + kOld + kBits + rotated(float3(1, 2, 3), 0).x + tpg.x + sg;
  Row<float, 2> row(x); out[i] += row.data[0]; sizeof(Block); (void)(d * c);
  device float4 *vec_out = reinterpret_cast<device float4 *>(out + 4); vec_out[0] = float4(half4(1.0h)); vec_out[0].xy *= 2;
  uint2 grid = uint2(1, 2); grid = grid.yx; out[1] = grid.x ? (i ? 1 : 2) : 3; device float &slot = out[2]; slot = 7;
  Box<float> box(2); auto boxed = box.copied(); out[3] = boxed.v;
  do { out[3] = 8; } while (false); switch (a) { case 3: out[3] += 1; break; }
}
`;
