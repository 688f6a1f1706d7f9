/// Copies of new K or V rows into a cache: linear or ring, one token or many,
/// one stream or K and V together, with an optional change of element type.
///
/// A cache holds `capacity` slots. Position p of the sequence lives in slot
/// p mod capacity. A dispatch writes at most `capacity` consecutive positions,
/// so its slots wrap at most once: they follow from the first one by a compare
/// instead of a division per token.
///
/// Grid: one thread moves w consecutive elements of a row, w = 4 when `use_vec4`
/// (rows a multiple of 4 elements, first elements aligned to 4 elements), else 1.
///   kv_cache_copy*            (rowSize / w, nNew,   1)
///   kv_cache_copy_batch*      (headDim / w, nHeads, 1)
///   kv_cache_copy_seq*        (headDim / w, nHeads, nTokens)
/// Any threadgroup size; no threadgroup memory, no barriers.
/// Work: reads sizeof(source) and writes sizeof(destination) bytes an element;
/// bound by memory bandwidth. 32 lanes with w = 4 touch whole 128-byte lines.
///
/// bf16 travels as its 16 bits (`ushort`), and so does f16 where only bits move.
#include <metal_stdlib>

#include "ShaderTypes.h"

using namespace metal;

/// Each thread moves 4 elements instead of 1.
constant bool use_vec4 [[function_constant(0)]];
/// Element offsets need 64 bits: source or cache has 2^32 elements or more.
constant bool wide_index [[function_constant(1)]];

// Conversions: `apply` takes and returns one element or a vector of 4.

/// `Element` on both sides: its bits move, as values of type `Bits`.
template <typename Element, typename Bits>
struct Move {
  typedef Bits Source;
  typedef Bits Destination;
  static Bits apply(Bits bits) { return bits; }
  static vec<Bits, 4> apply(vec<Bits, 4> bits) { return bits; }
};

/// f32 to f16, to nearest even.
struct FloatToHalf {
  typedef float Source;
  typedef half Destination;
  static half apply(float value) { return half(value); }
  static half4 apply(float4 value) { return half4(value); }
};

/// bf16 to f32, exact: bf16 is the upper half of f32.
struct BfloatToFloat {
  typedef ushort Source;
  typedef float Destination;
  static float apply(ushort bits) { return as_type<float>(uint(bits) << 16); }
  static float4 apply(ushort4 bits) { return as_type<float4>(uint4(bits) << 16); }
};

/// The upper 16 bits of f32 bits, rounded to nearest even; NaN stays a (quiet)
/// NaN. U is uint or uint4.
template <typename U>
inline U round_to_bfloat(U bits) {
  const U rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
  const U quiet = bits | 0x400000u;
  return select(rounded, quiet, (bits & 0x7fffffffu) > 0x7f800000u) >> 16;
}

/// f32 to bf16, to nearest even.
struct FloatToBfloat {
  typedef float Source;
  typedef ushort Destination;
  static ushort apply(float value) { return ushort(round_to_bfloat(as_type<uint>(value))); }
  static ushort4 apply(float4 value) { return ushort4(round_to_bfloat(as_type<uint4>(value))); }
};

/// Moves the w elements that `column` numbers within a row.
template <typename C>
inline void copy_elements(const device typename C::Source *source_row, device typename C::Destination *cache_row,
                          uint column) {
  if (use_vec4) {
    const device vec<typename C::Source, 4> *from =
        reinterpret_cast<const device vec<typename C::Source, 4> *>(source_row);
    device vec<typename C::Destination, 4> *to =
        reinterpret_cast<device vec<typename C::Destination, 4> *>(cache_row);
    to[column] = C::apply(from[column]);
  } else {
    cache_row[column] = C::apply(source_row[column]);
  }
}

/// The slot of position first + token, for token < capacity.
inline uint ring_slot(uint first_position, uint token, uint capacity) {
  const uint first = first_position % capacity;
  const uint before_wrap = capacity - first;
  return token < before_wrap ? first + token : token - before_wrap;
}

/// Where a row starts, in elements, in the source and in the cache.
template <typename Index>
struct RowOffsets {
  Index source;
  Index cache;
};

/// source [nNew, rowSize], cache [cacheCap, rowSize]; position (column, token, 0).
template <typename Index>
inline RowOffsets<Index> row_offsets(constant KvCacheCopyParams &params, uint3 position) {
  const uint token = position.y;
  const uint slot =
      params.isSliding != 0 ? ring_slot(params.writePos, token, params.cacheCap) : params.writePos + token;
  return {Index(token) * params.rowSize, Index(slot) * params.rowSize};
}

/// source [nHeads, headDim], cache [nHeads, capacity, headDim]; position (column, head, 0).
template <typename Index>
inline RowOffsets<Index> row_offsets(constant KvCacheCopyBatchParams &params, uint3 position) {
  const Index head = position.y;
  return {head * params.headDim, (head * params.capacity + params.seqPos) * params.headDim};
}

/// source [nSrcTokens, nHeads, headDim], cache [nHeads, capacity, headDim];
/// position (column, head, token).
template <typename Index>
inline RowOffsets<Index> row_offsets(constant KvCacheCopySeqParams &params, uint3 position) {
  const Index head = position.y;
  const Index source_token = Index(params.srcTokOffset) + position.z;
  const uint slot = ring_slot(params.seqPosStart, position.z, params.capacity);
  return {(source_token * params.nHeads + head) * params.headDim, (head * params.capacity + slot) * params.headDim};
}

/// source [nHeads, srcSeqLen, headDim], cache [nHeads, capacity, headDim];
/// position (column, head, token).
template <typename Index>
inline RowOffsets<Index> row_offsets(constant KvCacheCopyHeadMajorParams &params, uint3 position) {
  const Index head = position.y;
  const Index source_token = Index(params.srcTokOffset) + position.z;
  const uint slot = ring_slot(params.seqPosStart, position.z, params.capacity);
  return {(head * params.srcSeqLen + source_token) * params.headDim, (head * params.capacity + slot) * params.headDim};
}

// Kernels. `C` is the conversion, `Params` names the layouts.

/// One stream: K or V.
template <typename C, typename Params>
[[kernel]] void copy(const device typename C::Source *source [[buffer(0)]],
                     device typename C::Destination *cache [[buffer(1)]], constant Params &params [[buffer(2)]],
                     uint3 position [[thread_position_in_grid]]) {
  if (wide_index) {
    const RowOffsets<ulong> row = row_offsets<ulong>(params, position);
    copy_elements<C>(source + row.source, cache + row.cache, position.x);
  } else {
    const RowOffsets<uint> row = row_offsets<uint>(params, position);
    copy_elements<C>(source + row.source, cache + row.cache, position.x);
  }
}

/// K and V, which share every parameter.
template <typename C, typename Params>
[[kernel]] void copy_dual(const device typename C::Source *source_k [[buffer(0)]],
                          const device typename C::Source *source_v [[buffer(1)]],
                          device typename C::Destination *cache_k [[buffer(2)]],
                          device typename C::Destination *cache_v [[buffer(3)]],
                          constant Params &params [[buffer(4)]], uint3 position [[thread_position_in_grid]]) {
  if (wide_index) {
    const RowOffsets<ulong> row = row_offsets<ulong>(params, position);
    copy_elements<C>(source_k + row.source, cache_k + row.cache, position.x);
    copy_elements<C>(source_v + row.source, cache_v + row.cache, position.x);
  } else {
    const RowOffsets<uint> row = row_offsets<uint>(params, position);
    copy_elements<C>(source_k + row.source, cache_k + row.cache, position.x);
    copy_elements<C>(source_v + row.source, cache_v + row.cache, position.x);
  }
}

// Entry points.

typedef Move<float, float> MoveFloat;
typedef Move<half, ushort> MoveHalf;
typedef Move<bfloat, ushort> MoveBfloat;

template [[host_name("kv_cache_copy")]] [[kernel]]
decltype(copy<MoveBfloat, KvCacheCopyParams>) copy<MoveBfloat, KvCacheCopyParams>;
template [[host_name("kv_cache_copy_f32")]] [[kernel]]
decltype(copy<MoveFloat, KvCacheCopyParams>) copy<MoveFloat, KvCacheCopyParams>;
template [[host_name("kv_cache_copy_f16")]] [[kernel]]
decltype(copy<MoveHalf, KvCacheCopyParams>) copy<MoveHalf, KvCacheCopyParams>;

template [[host_name("kv_cache_copy_batch_f32")]] [[kernel]]
decltype(copy<MoveFloat, KvCacheCopyBatchParams>) copy<MoveFloat, KvCacheCopyBatchParams>;
template [[host_name("kv_cache_copy_batch_f32_kv_dual")]] [[kernel]]
decltype(copy_dual<MoveFloat, KvCacheCopyBatchParams>) copy_dual<MoveFloat, KvCacheCopyBatchParams>;
template [[host_name("kv_cache_copy_batch_f32_to_f16")]] [[kernel]]
decltype(copy<FloatToHalf, KvCacheCopyBatchParams>) copy<FloatToHalf, KvCacheCopyBatchParams>;
template [[host_name("kv_cache_copy_batch_f32_to_f16_kv_dual")]] [[kernel]]
decltype(copy_dual<FloatToHalf, KvCacheCopyBatchParams>) copy_dual<FloatToHalf, KvCacheCopyBatchParams>;

template [[host_name("kv_cache_copy_seq_f32")]] [[kernel]]
decltype(copy<MoveFloat, KvCacheCopySeqParams>) copy<MoveFloat, KvCacheCopySeqParams>;
template [[host_name("kv_cache_copy_seq_f32_kv_dual")]] [[kernel]]
decltype(copy_dual<MoveFloat, KvCacheCopySeqParams>) copy_dual<MoveFloat, KvCacheCopySeqParams>;
template [[host_name("kv_cache_copy_seq_f32_to_f16")]] [[kernel]]
decltype(copy<FloatToHalf, KvCacheCopySeqParams>) copy<FloatToHalf, KvCacheCopySeqParams>;
template [[host_name("kv_cache_copy_seq_f32_to_f16_kv_dual")]] [[kernel]]
decltype(copy_dual<FloatToHalf, KvCacheCopySeqParams>) copy_dual<FloatToHalf, KvCacheCopySeqParams>;
template [[host_name("kv_cache_copy_seq_f32_to_bf16")]] [[kernel]]
decltype(copy<FloatToBfloat, KvCacheCopySeqParams>) copy<FloatToBfloat, KvCacheCopySeqParams>;
template [[host_name("kv_cache_copy_seq_f32_to_bf16_kv_dual")]] [[kernel]]
decltype(copy_dual<FloatToBfloat, KvCacheCopySeqParams>) copy_dual<FloatToBfloat, KvCacheCopySeqParams>;
template [[host_name("kv_cache_copy_seq_bf16")]] [[kernel]]
decltype(copy<BfloatToFloat, KvCacheCopySeqParams>) copy<BfloatToFloat, KvCacheCopySeqParams>;
template [[host_name("kv_cache_copy_seq_bf16_kv_dual")]] [[kernel]]
decltype(copy_dual<BfloatToFloat, KvCacheCopySeqParams>) copy_dual<BfloatToFloat, KvCacheCopySeqParams>;
template [[host_name("kv_cache_copy_seq_bf16_to_bf16")]] [[kernel]]
decltype(copy<MoveBfloat, KvCacheCopySeqParams>) copy<MoveBfloat, KvCacheCopySeqParams>;
template [[host_name("kv_cache_copy_seq_bf16_to_bf16_kv_dual")]] [[kernel]]
decltype(copy_dual<MoveBfloat, KvCacheCopySeqParams>) copy_dual<MoveBfloat, KvCacheCopySeqParams>;
template [[host_name("kv_cache_copy_seq_f16_to_f16")]] [[kernel]]
decltype(copy<MoveHalf, KvCacheCopySeqParams>) copy<MoveHalf, KvCacheCopySeqParams>;
template [[host_name("kv_cache_copy_seq_f16_to_f16_kv_dual")]] [[kernel]]
decltype(copy_dual<MoveHalf, KvCacheCopySeqParams>) copy_dual<MoveHalf, KvCacheCopySeqParams>;

template [[host_name("kv_cache_copy_seq_bf16_to_bf16_head_major")]] [[kernel]]
decltype(copy<MoveBfloat, KvCacheCopyHeadMajorParams>) copy<MoveBfloat, KvCacheCopyHeadMajorParams>;
