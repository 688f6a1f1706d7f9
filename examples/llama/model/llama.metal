/// What a model of the Llama family computes between the calls of the library: embeddings, norms, matrix products,
/// activations, and the choice of the next token. Activations are f32, row-major, a row a token; weights are as the
/// files have them. Nothing here is the software device's: each kernel is in the form that an Apple GPU wants.
#include <metal_stdlib>
#include <metal_simdgroup_matrix>

using namespace metal;

/// The sum over all threads of a threadgroup of `simds` SIMD groups, for each of them. `parts` [32].
inline float sum_of_threadgroup(float value, threadgroup float *parts, uint simd, uint lane, uint simds) {
  value = simd_sum(value);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (lane == 0) {
    parts[simd] = value;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return simd_sum(lane < simds ? parts[lane] : 0.0f);
}

// ---- Rows of a table: embeddings, and those rows of the last layer whose logits are asked for.

struct GatherArgs {
  uint width;
  float scale;
};

/// y [rows, width] = scale * table [*, width] at `ids` [rows]. Grid: width x rows threads.
template <typename W>
[[kernel]] void gather(const device W *table [[buffer(0)]], const device uint *ids [[buffer(1)]],
                       device float *y [[buffer(2)]], constant GatherArgs &args [[buffer(3)]],
                       uint2 at [[thread_position_in_grid]]) {
  y[ulong(at.y) * args.width + at.x] = args.scale * float(table[ulong(ids[at.y]) * args.width + at.x]);
}

// ---- Root mean square norm.

struct NormArgs {
  uint width;
  float eps;
  /// 1 to add the result to y, 0 to write it.
  uint adds;
};

/// y [rows, width] = x / sqrt(mean(x^2) + eps) * weight, or that added to y. x may be y. A threadgroup a row.
[[kernel]] void rms_norm(const device float *x [[buffer(0)]], const device float *weight [[buffer(1)]],
                         device float *y [[buffer(2)]], constant NormArgs &args [[buffer(3)]],
                         uint row [[threadgroup_position_in_grid]], uint thread_index [[thread_index_in_threadgroup]],
                         uint threads [[threads_per_threadgroup]], uint simd [[simdgroup_index_in_threadgroup]],
                         uint lane [[thread_index_in_simdgroup]], uint simds [[simdgroups_per_threadgroup]]) {
  threadgroup float parts[32];
  const device float *from = x + ulong(row) * args.width;
  device float *to = y + ulong(row) * args.width;
  float sum = 0.0f;
  for (uint i = thread_index; i < args.width; i += threads) {
    sum = fma(from[i], from[i], sum);
  }
  sum = sum_of_threadgroup(sum, parts, simd, lane, simds);
  const float factor = rsqrt(sum / float(args.width) + args.eps);
  for (uint i = thread_index; i < args.width; i += threads) {
    const float value = from[i] * factor * weight[i];
    to[i] = args.adds != 0 ? to[i] + value : value;
  }
}

// ---- Matrix products: y [rows, outputs] = x [rows, inputs] * weights [outputs, inputs]^T.
// Each sum has one order, which depends on `inputs` alone: a row has the same bits among others and by itself.

struct MatrixArgs {
  uint inputs;
  uint outputs;
  uint rows;
  /// 1 where `bias` [outputs] is added.
  uint has_bias;
  /// 1 to add the result to y, 0 to write it.
  uint adds;
};

inline void store_product(float value, device float *y, const device float *bias, constant MatrixArgs &args, uint row,
                          uint output) {
  const ulong at = ulong(row) * args.outputs + output;
  value += args.has_bias != 0 ? bias[output] : 0.0f;
  y[at] = args.adds != 0 ? y[at] + value : value;
}

constant constexpr uint kSimdsOfMatvec = 4;

/// For a few rows: one SIMD group an output, which reads the weights once for ROWS rows. `inputs` is a multiple of 4.
/// Grid: outputs / 4 x rows / ROWS threadgroups of 128 threads, rounded up.
template <typename W, typename X, uint ROWS>
[[kernel]] void matvec(const device W *weights [[buffer(0)]], const device X *x [[buffer(1)]],
                       const device float *bias [[buffer(2)]], device float *y [[buffer(3)]],
                       constant MatrixArgs &args [[buffer(4)]], uint2 group [[threadgroup_position_in_grid]],
                       uint simd [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  const uint output = group.x * kSimdsOfMatvec + simd;
  if (output >= args.outputs) {
    return;
  }
  const uint quads = args.inputs / 4;
  const uint first = group.y * ROWS;
  const device vec<W, 4> *w = reinterpret_cast<const device vec<W, 4> *>(weights) + ulong(output) * quads;
  const device vec<X, 4> *v = reinterpret_cast<const device vec<X, 4> *>(x);
  ulong starts[ROWS];
  float4 sums[ROWS];
  for (uint r = 0; r < ROWS; r++) {
    // Rows beyond the last are computed as the last is, and not stored.
    starts[r] = ulong(min(first + r, args.rows - 1)) * quads;
    sums[r] = float4(0.0f);
  }
  for (uint i = lane; i < quads; i += 32) {
    const float4 weight = float4(w[i]);
    for (uint r = 0; r < ROWS; r++) {
      sums[r] = fma(weight, float4(v[starts[r] + i]), sums[r]);
    }
  }
  for (uint r = 0; r < ROWS; r++) {
    const float sum = simd_sum((sums[r].x + sums[r].y) + (sums[r].z + sums[r].w));
    if (lane == 0 && first + r < args.rows) {
      store_product(sum, y, bias, args, first + r, output);
    }
  }
}

constant constexpr ushort kTileRows = 32;
constant constexpr ushort kTileOutputs = 64;
constant constexpr ushort kTileInputs = 32;
/// Floats from a row of a tile to the next: not a multiple of 32, so that columns lie in different banks.
constant constexpr ushort kTileStride = kTileInputs + 4;
constant constexpr ushort kThreadsOfMatmul = 128;

/// Copies a tile [ROWS, kTileInputs] of a matrix of `rows` rows, as floats; what is outside of the matrix is 0.
template <ushort ROWS, typename T>
inline void load_tile(threadgroup float *tile, const device T *matrix, uint first_row, uint rows, uint first_column,
                      uint columns, ushort thread_index) {
  constexpr ushort kQuads = kTileInputs / 4;
  for (ushort i = thread_index; i < ROWS * kQuads; i += kThreadsOfMatmul) {
    const ushort row = i / kQuads;
    const ushort column = (i % kQuads) * 4;
    float4 values = float4(0.0f);
    if (first_row + row < rows && first_column + column < columns) {
      const ulong at = ulong(first_row + row) * columns + first_column + column;
      values = float4(*reinterpret_cast<const device vec<T, 4> *>(matrix + at));
    }
    *reinterpret_cast<threadgroup float4 *>(tile + row * kTileStride + column) = values;
  }
}

/// For the rows of a prompt: a threadgroup of 4 SIMD groups a tile of 32 rows and 64 outputs, each of 16 by 32 of it as
/// 8x8 matrices. `inputs` is a multiple of 4. Grid: outputs / 64 x rows / 32 threadgroups of 128 threads, rounded up.
template <typename W, typename X>
[[kernel]] void matmul(const device W *weights [[buffer(0)]], const device X *x [[buffer(1)]],
                       const device float *bias [[buffer(2)]], device float *y [[buffer(3)]],
                       constant MatrixArgs &args [[buffer(4)]], uint2 group [[threadgroup_position_in_grid]],
                       ushort thread_index [[thread_index_in_threadgroup]],
                       ushort simd [[simdgroup_index_in_threadgroup]]) {
  // The tiles of x and of the weights, then that of the results.
  threadgroup float4 memory[(kTileRows + kTileOutputs) * kTileStride / 4];
  threadgroup float *rows_tile = reinterpret_cast<threadgroup float *>(memory);
  threadgroup float *outputs_tile = rows_tile + kTileRows * kTileStride;
  const uint first_row = group.y * kTileRows;
  const uint first_output = group.x * kTileOutputs;
  const ushort row = (simd / 2) * 16;
  const ushort output = (simd % 2) * 32;
  simdgroup_float8x8 sums[2][4];
  for (ushort i = 0; i < 2; i++) {
    for (ushort j = 0; j < 4; j++) {
      sums[i][j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    }
  }
  for (uint first = 0; first < args.inputs; first += kTileInputs) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    load_tile<kTileRows>(rows_tile, x, first_row, args.rows, first, args.inputs, thread_index);
    load_tile<kTileOutputs>(outputs_tile, weights, first_output, args.outputs, first, args.inputs, thread_index);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (ushort k = 0; k < kTileInputs; k += 8) {
      simdgroup_float8x8 a[2], b[4];
      for (ushort i = 0; i < 2; i++) {
        simdgroup_load(a[i], rows_tile + (row + 8 * i) * kTileStride + k, kTileStride);
      }
      for (ushort j = 0; j < 4; j++) {
        simdgroup_load(b[j], outputs_tile + (output + 8 * j) * kTileStride + k, kTileStride, ulong2(0, 0), true);
      }
      for (ushort i = 0; i < 2; i++) {
        for (ushort j = 0; j < 4; j++) {
          simdgroup_multiply_accumulate(sums[i][j], a[i], b[j], sums[i][j]);
        }
      }
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (ushort i = 0; i < 2; i++) {
    for (ushort j = 0; j < 4; j++) {
      simdgroup_store(sums[i][j], rows_tile + (row + 8 * i) * kTileOutputs + output + 8 * j, kTileOutputs);
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (ushort i = thread_index; i < kTileRows * kTileOutputs; i += kThreadsOfMatmul) {
    const uint to_row = first_row + i / kTileOutputs;
    const uint to_output = first_output + i % kTileOutputs;
    if (to_row < args.rows && to_output < args.outputs) {
      store_product(rows_tile[i], y, bias, args, to_row, to_output);
    }
  }
}

// ---- Elementwise.

/// gate = silu(gate) * up. A thread an element.
[[kernel]] void gated_silu(device float *gate [[buffer(0)]], const device float *up [[buffer(1)]],
                           uint i [[thread_position_in_grid]]) {
  gate[i] = gate[i] / (1.0f + exp(-gate[i])) * up[i];
}

/// gate = gelu(gate) * up, gelu by its approximation with tanh. A thread an element.
[[kernel]] void gated_gelu_tanh(device float *gate [[buffer(0)]], const device float *up [[buffer(1)]],
                                uint i [[thread_position_in_grid]]) {
  const float x = gate[i];
  const float inner = 0.7978845608f * (x + 0.044715f * x * x * x);
  gate[i] = 0.5f * x * (1.0f + precise::tanh(inner)) * up[i];
}

/// x = cap * tanh(x / cap). A thread an element.
[[kernel]] void softcap(device float *x [[buffer(0)]], constant float &cap [[buffer(1)]],
                        uint i [[thread_position_in_grid]]) {
  x[i] = cap * precise::tanh(x[i] / cap);
}

// ---- The next token.

struct SampleArgs {
  uint vocabulary;
};

/// How a row is sampled.
struct SampleRow {
  /// 0 for the most likely token.
  float temperature;
  /// Tokens that make up this part of the probability are kept, the most likely first.
  float top_p;
  /// In [0, 1), a multiple of 2^-23.
  float uniform;
};

constant constexpr uint kThreadsOfSample = 1024;
constant constexpr uint kNoToken = 0xffffffffu;

/// The largest logit of a row and where it first is, for all threads; kNoToken where none is a number above -infinity.
inline void find_largest(const device float *logits, uint vocabulary, threadgroup float *values,
                         threadgroup uint *places, uint thread_index, uint simd, uint lane, thread float &largest,
                         thread uint &place) {
  float own = -INFINITY;
  uint at = kNoToken;
  for (uint i = thread_index; i < vocabulary; i += kThreadsOfSample) {
    if (logits[i] > own) {
      own = logits[i];
      at = i;
    }
  }
  const float of_simd = simd_max(own);
  at = simd_min(own == of_simd ? at : kNoToken);
  if (lane == 0) {
    values[simd] = of_simd;
    places[simd] = at;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  largest = simd_max(values[lane]);
  place = simd_min(values[lane] == largest ? places[lane] : kNoToken);
}

/// token [rows] out of logits [rows, vocabulary]: a threadgroup of 1,024 threads a row. Of weights e^((l - max) / T),
/// the least one that top_p still takes in is found by halving the interval of its bits; then one is drawn of those
/// kept.
[[kernel, max_total_threads_per_threadgroup(1024)]] void sample(
    const device float *all_logits [[buffer(0)]], const device SampleRow *rows [[buffer(1)]],
    device uint *tokens [[buffer(2)]], constant SampleArgs &args [[buffer(3)]],
    uint row [[threadgroup_position_in_grid]], uint thread_index [[thread_index_in_threadgroup]],
    uint simd [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float parts[32];
  threadgroup uint places[32];
  threadgroup float starts[kThreadsOfSample + 1];
  const device float *logits = all_logits + ulong(row) * args.vocabulary;
  const SampleRow how = rows[row];
  float largest;
  uint place;
  find_largest(logits, args.vocabulary, parts, places, thread_index, simd, lane, largest, place);
  if (how.temperature == 0.0f || place == kNoToken) {
    if (thread_index == 0) {
      tokens[row] = place;
    }
    return;
  }
  const float factor = 1.0f / how.temperature;
  float wanted = 0.0f;
  // Bits of the least weight that is kept: at `low` enough are kept, at `high` not. The first round sums up all.
  uint low = 0, high = as_type<uint>(1.0f) + 1;
  for (uint middle = 0; middle != low || wanted == 0.0f; middle = low + (high - low) / 2) {
    float sum = 0.0f;
    for (uint i = thread_index; i < args.vocabulary; i += kThreadsOfSample) {
      const float weight = exp((logits[i] - largest) * factor);
      sum += as_type<uint>(weight) >= middle ? weight : 0.0f;
    }
    sum = sum_of_threadgroup(sum, parts, simd, lane, 32);
    if (wanted == 0.0f) {
      wanted = sum * how.top_p;
    } else if (sum >= wanted) {
      low = middle;
    } else {
      high = middle;
    }
  }
  // A run of tokens a thread.
  const uint run = (args.vocabulary + kThreadsOfSample - 1) / kThreadsOfSample;
  const uint begin = min(thread_index * run, args.vocabulary);
  const uint end = min(begin + run, args.vocabulary);
  float own = 0.0f;
  for (uint i = begin; i < end; i++) {
    const float weight = exp((logits[i] - largest) * factor);
    own += as_type<uint>(weight) >= low ? weight : 0.0f;
  }
  starts[thread_index + 1] = own;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (thread_index == 0) {
    starts[0] = 0.0f;
    for (uint i = 1; i <= kThreadsOfSample; i++) {
      starts[i] += starts[i - 1];
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const float target = how.uniform * starts[kThreadsOfSample];
  if (starts[thread_index] > target || target >= starts[thread_index + 1]) {
    return;
  }
  float before = starts[thread_index];
  uint chosen = kNoToken;
  for (uint i = begin; i < end && before <= target; i++) {
    const float weight = exp((logits[i] - largest) * factor);
    if (as_type<uint>(weight) >= low) {
      before += weight;
      chosen = i;
    }
  }
  tokens[row] = chosen;
}

// ---- Entry points, by the dtype of weights and of x.

#define INSTANTIATE_MATRIX(w, W, x, X)                                                               \
  template [[host_name("matvec1_" #w "_" #x)]] [[kernel]] decltype(matvec<W, X, 1>) matvec<W, X, 1>; \
  template [[host_name("matvec4_" #w "_" #x)]] [[kernel]] decltype(matvec<W, X, 4>) matvec<W, X, 4>; \
  template [[host_name("matmul_" #w "_" #x)]] [[kernel]] decltype(matmul<W, X>) matmul<W, X>;
#define INSTANTIATE(w, W)                                                        \
  template [[host_name("gather_" #w)]] [[kernel]] decltype(gather<W>) gather<W>; \
  INSTANTIATE_MATRIX(w, W, f32, float)                                           \
  INSTANTIATE_MATRIX(w, W, f16, half)                                            \
  INSTANTIATE_MATRIX(w, W, bf16, bfloat)

INSTANTIATE(f32, float)
INSTANTIATE(f16, half)
INSTANTIATE(bf16, bfloat)
