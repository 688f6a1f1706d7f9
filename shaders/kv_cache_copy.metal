/// Copies of new K or V rows into a cache: linear or ring, one token or many,
/// one stream or K and V together, with an optional change of element type.
///
/// A cache holds `capacity` slots. Position p of the sequence lives in slot
/// p mod capacity. A dispatch writes at most `capacity` consecutive positions,
/// so its slots wrap at most once: they follow from the first one by a compare
/// instead of a division per token.
///
/// Grid: one thread moves w consecutive elements of a row, w = 4 when
/// `four_elements` (the row length is a multiple of 4), else 1, of 4 tokens that
/// follow on each other, so that enough loads are under way at once.
///   kv_cache_copy*            (rowSize / w, ceil(nNew / 4), 1)
///   kv_cache_copy_batch*      (headDim / w, nHeads, 1), of its one token
///   kv_cache_copy_seq*        (headDim / w, B * nHeads, ceil(nTokens / 4))
/// Any threadgroup size; no threadgroup memory, no barriers.
/// Work: reads sizeof(source) and writes sizeof(destination) bytes an element;
/// bound by memory bandwidth. 32 lanes with w = 4 touch whole 128-byte lines.
///
/// bf16 travels as its 16 bits (`ushort`), and so does f16 where only bits move.
#include <metal_stdlib>

#include "ShaderTypes.h"
#include "common/element.h"
#include "common/instantiate.h"
#include "common/ring.h"

using namespace metal;

/// Each thread moves 4 elements instead of 1.
constant bool four_elements [[function_constant(0)]];
/// Element offsets need 64 bits: source or cache has 2^32 elements or more.
constant bool wide_index [[function_constant(1)]];

// Conversions of one element.

/// `Element` on both sides: its bits move, as values of type `Bits`.
template <typename Element, typename Bits>
struct Move {
  typedef Bits Source;
  typedef Bits Destination;
  static Bits apply(Bits bits) { return bits; }
};

/// Between elements of `common/element.h`, by way of float.
template <typename From, typename To>
struct Convert {
  typedef typename From::Bits Source;
  typedef typename To::Bits Destination;
  static Destination apply(Source bits) { return To::encode(From::decode(bits)); }
};

/// W elements side by side.
template <typename T, uint W>
struct Run {
  typedef vec<T, W> type;
};
template <typename T>
struct Run<T, 1> {
  typedef T type;
};

template <typename C>
inline typename C::Destination convert(typename C::Source element) {
  return C::apply(element);
}
template <typename C>
inline vec<typename C::Destination, 4> convert(vec<typename C::Source, 4> run) {
  return vec<typename C::Destination, 4>(C::apply(run.x), C::apply(run.y), C::apply(run.z), C::apply(run.w));
}

/// Where a row starts, in elements, in the source and in the cache.
template <typename Index>
struct RowOffsets {
  Index source;
  Index cache;
};

/// Tokens of a thread.
constant constexpr uint kTokens = 4;

/// The first token of a thread, and how many there are.
struct Tokens {
  uint first;
  uint end;
};

inline Tokens tokens_of(constant KvCacheCopyParams &params, uint3 position) {
  return {position.y * kTokens, params.nNew};
}
inline Tokens tokens_of(constant KvCacheCopyBatchParams &, uint3) { return {0, 1}; }
inline Tokens tokens_of(constant KvCacheCopySeqParams &params, uint3 position) {
  return {position.z * kTokens, params.nTokens};
}
inline Tokens tokens_of(constant KvCacheCopyHeadMajorParams &params, uint3 position) {
  return {position.z * kTokens, params.nTokens};
}

/// source [nNew, rowSize], cache [cacheCap, rowSize].
template <typename Index>
inline RowOffsets<Index> row_offsets(constant KvCacheCopyParams &params, uint3, uint token) {
  const uint slot = slot_of(params.writePos, token, params.cacheCap, params.isSliding != 0);
  return {Index(token) * params.rowSize, Index(slot) * params.rowSize};
}

/// source [nHeads, headDim], cache [nHeads, capacity, headDim]; y of the position is the head.
template <typename Index>
inline RowOffsets<Index> row_offsets(constant KvCacheCopyBatchParams &params, uint3 position, uint) {
  const Index head = position.y;
  return {head * params.headDim, (head * params.capacity + params.seqPos) * params.headDim};
}

/// source [B, nSrcTokens, nHeads, headDim], cache [B, nHeads, capacity, headDim];
/// y of the position is batch * nHeads + head.
template <typename Index>
inline RowOffsets<Index> row_offsets(constant KvCacheCopySeqParams &params, uint3 position, uint token) {
  const Index cache_head = position.y;
  const Index batch = position.y / params.nHeads;
  const Index head = position.y % params.nHeads;
  const Index source_token = batch * params.nSrcTokens + params.srcTokOffset + token;
  const uint slot = ring_slot(params.seqPosStart, token, params.capacity);
  return {(source_token * params.nHeads + head) * params.headDim,
          (cache_head * params.capacity + slot) * params.headDim};
}

/// source [nHeads, srcSeqLen, headDim], cache [nHeads, capacity, headDim]; y of the position is the head.
template <typename Index>
inline RowOffsets<Index> row_offsets(constant KvCacheCopyHeadMajorParams &params, uint3 position, uint token) {
  const Index head = position.y;
  const Index source_token = Index(params.srcTokOffset) + token;
  const uint slot = ring_slot(params.seqPosStart, token, params.capacity);
  return {(head * params.srcSeqLen + source_token) * params.headDim, (head * params.capacity + slot) * params.headDim};
}

/// The same with offsets of the width that this dispatch needs.
template <typename Params>
inline RowOffsets<ulong> offsets_of_row(constant Params &params, uint3 position, uint token) {
  if (wide_index) {
    return row_offsets<ulong>(params, position, token);
  }
  const RowOffsets<uint> row = row_offsets<uint>(params, position, token);
  return {row.source, row.cache};
}

/// Moves W elements of each of a thread's tokens. All loads come before the stores, so that they are under way
/// together.
template <typename C, uint W, typename Params>
inline void copy_elements(const device typename C::Source *source, device typename C::Destination *cache,
                          constant Params &params, uint3 position) {
  const Tokens tokens = tokens_of(params, position);
  typedef typename Run<typename C::Source, W>::type From;
  typedef typename Run<typename C::Destination, W>::type To;
  From runs[kTokens];
#pragma clang loop unroll(full)
  for (uint t = 0; t < kTokens; t++) {
    if (tokens.first + t < tokens.end) {
      const device typename C::Source *row = source + offsets_of_row(params, position, tokens.first + t).source;
      runs[t] = reinterpret_cast<const device From *>(row)[position.x];
    }
  }
#pragma clang loop unroll(full)
  for (uint t = 0; t < kTokens; t++) {
    if (tokens.first + t < tokens.end) {
      device typename C::Destination *row = cache + offsets_of_row(params, position, tokens.first + t).cache;
      reinterpret_cast<device To *>(row)[position.x] = convert<C>(runs[t]);
    }
  }
}

/// Moves the elements of a thread.
template <typename C, typename Params>
inline void copy_part(const device typename C::Source *source, device typename C::Destination *cache,
                      constant Params &params, uint3 position) {
  if (four_elements) {
    copy_elements<C, 4>(source, cache, params, position);
  } else {
    copy_elements<C, 1>(source, cache, params, position);
  }
}

// Kernels. `C` is the conversion, `Params` names the layouts.

/// One stream: K or V.
template <typename C, typename Params>
[[kernel]] void copy(const device typename C::Source *source [[buffer(0)]],
                     device typename C::Destination *cache [[buffer(1)]], constant Params &params [[buffer(2)]],
                     uint3 position [[thread_position_in_grid]]) {
  copy_part<C>(source, cache, params, position);
}

/// K and V, which share every parameter.
template <typename C, typename Params>
[[kernel]] void copy_dual(const device typename C::Source *source_k [[buffer(0)]],
                          const device typename C::Source *source_v [[buffer(1)]],
                          device typename C::Destination *cache_k [[buffer(2)]],
                          device typename C::Destination *cache_v [[buffer(3)]], constant Params &params [[buffer(4)]],
                          uint3 position [[thread_position_in_grid]]) {
  copy_part<C>(source_k, cache_k, params, position);
  copy_part<C>(source_v, cache_v, params, position);
}

// Entry points.

typedef Move<float, float> MoveFloat;
typedef Move<half, ushort> MoveHalf;
typedef Move<bfloat, ushort> MoveBfloat;
typedef Convert<Float32, Float16> FloatToHalf;
typedef Convert<Float32, Bfloat16> FloatToBfloat;
typedef Convert<Bfloat16, Float32> BfloatToFloat;

/// One stream, and two.
#define instantiate_copy(name, C, Params)    \
  instantiate_kernel(name, copy, C, Params); \
  instantiate_kernel(name "_kv_dual", copy_dual, C, Params)

/// Every pair of dtypes.
#define instantiate_head_copies(name, Params)                   \
  instantiate_copy(name "_f32", MoveFloat, Params);             \
  instantiate_copy(name "_f32_to_f16", FloatToHalf, Params);    \
  instantiate_copy(name "_f32_to_bf16", FloatToBfloat, Params); \
  instantiate_copy(name "_bf16", BfloatToFloat, Params);        \
  instantiate_copy(name "_bf16_to_bf16", MoveBfloat, Params);   \
  instantiate_copy(name "_f16_to_f16", MoveHalf, Params)

instantiate_kernel("kv_cache_copy", copy, MoveBfloat, KvCacheCopyParams);
instantiate_kernel("kv_cache_copy_f32", copy, MoveFloat, KvCacheCopyParams);
instantiate_kernel("kv_cache_copy_f16", copy, MoveHalf, KvCacheCopyParams);

instantiate_head_copies("kv_cache_copy_batch", KvCacheCopyBatchParams);
instantiate_head_copies("kv_cache_copy_seq", KvCacheCopySeqParams);
instantiate_kernel("kv_cache_copy_seq_bf16_to_bf16_head_major", copy, MoveBfloat, KvCacheCopyHeadMajorParams);
