/// Copies of new K or V rows into a cache: linear or ring, one token or many,
/// one stream or K and V together, with an optional change of element type.
///
/// A cache holds `capacity` slots. Position p of the sequence lives in slot
/// p mod capacity. A dispatch writes at most `capacity` consecutive positions,
/// so its slots wrap at most once: they follow from the first one by a compare
/// instead of a division per token.
///
/// Grid: one thread moves w consecutive elements of a row: those of 16 bytes, by
/// the larger of the two dtypes, when `are_vectors`, else 1.
///   kv_cache_copy*            (rowSize / w, nNew,   1)
///   kv_cache_copy_batch*      (headDim / w, nHeads, 1)
///   kv_cache_copy_seq*        (headDim / w, B * nHeads, nTokens)
/// Any threadgroup size; no threadgroup memory, no barriers. Registers: 18 to 22 (nvptx64, sm_90).
/// Work: reads sizeof(source) and writes sizeof(destination) bytes an element;
/// bound by memory bandwidth. 32 lanes touch whole 128-byte lines.
///
/// bf16 travels as its 16 bits (`ushort`), and so does f16 where only bits move.
#include <metal_stdlib>

#include "ShaderTypes.h"
#include "common/arithmetic.h"
#include "common/element.h"
#include "common/instantiate.h"
#include "common/ring.h"

using namespace metal;

/// Each thread moves a vector instead of one element: rows are whole vectors, which begin at multiples of their size.
constant bool are_vectors [[function_constant(0)]];
/// Element offsets need 64 bits: source or cache has 2^32 elements or more.
constant bool wide_index [[function_constant(1)]];

// Conversions: of one element, and of a vector.

/// `Element` on both sides: its bits move, as values of type `Bits`, or as those of 16 bytes.
template <typename Element, typename Bits>
struct Move {
  typedef Bits Source;
  typedef Bits Destination;
  typedef uint4 SourceVector;
  typedef uint4 DestinationVector;
  static Bits apply(Bits bits) { return bits; }
  static uint4 apply(uint4 bits) { return bits; }
};

/// Between elements of `common/element.h`, by way of float.
template <typename From, typename To>
struct Convert {
  typedef typename From::Bits Source;
  typedef typename To::Bits Destination;
  typedef vec<Source, 4> SourceVector;
  typedef vec<Destination, 4> DestinationVector;
  static Destination apply(Source bits) { return To::encode(From::decode(bits)); }
  static DestinationVector apply(SourceVector bits) {
    return DestinationVector(apply(bits.x), apply(bits.y), apply(bits.z), apply(bits.w));
  }
};

/// Moves the elements of thread `thread_in_row`.
template <typename C>
inline void copy_part_of_row(const device typename C::Source *source_row, device typename C::Destination *cache_row,
                             uint thread_in_row) {
  if (are_vectors) {
    const device typename C::SourceVector *from = (const device typename C::SourceVector *)source_row;
    ((device typename C::DestinationVector *)cache_row)[thread_in_row] = C::apply(from[thread_in_row]);
  } else {
    cache_row[thread_in_row] = C::apply(source_row[thread_in_row]);
  }
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
  const uint slot = slot_of(params.writePos, token, params.cacheCap, params.isSliding != 0);
  return {Index(token) * params.rowSize, Index(slot) * params.rowSize};
}

/// source [nHeads, headDim], cache [nHeads, capacity, headDim]; position (column, head, 0).
template <typename Index>
inline RowOffsets<Index> row_offsets(constant KvCacheCopyBatchParams &params, uint3 position) {
  const Index head = position.y;
  return {head * params.headDim, (head * params.capacity + params.seqPos) * params.headDim};
}

/// source [B, nSrcTokens, nHeads, headDim], cache [B, nHeads, capacity, headDim];
/// position (column, batch * nHeads + head, token).
template <typename Index>
inline RowOffsets<Index> row_offsets(constant KvCacheCopySeqParams &params, uint3 position) {
  const Index cache_head = position.y;
  const Index batch = position.y / params.nHeads;
  const Index head = position.y % params.nHeads;
  const Index source_token = batch * params.nSrcTokens + params.srcTokOffset + position.z;
  const uint slot = ring_slot(params.seqPosStart, position.z, params.capacity);
  return {(source_token * params.nHeads + head) * params.headDim,
          (cache_head * params.capacity + slot) * params.headDim};
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

/// The same with offsets of the width that this dispatch needs.
template <typename Params>
inline RowOffsets<ulong> offsets_of_row(constant Params &params, uint3 position) {
  if (wide_index) {
    return row_offsets<ulong>(params, position);
  }
  const RowOffsets<uint> row = row_offsets<uint>(params, position);
  return {row.source, row.cache};
}

// Kernels. `C` is the conversion, `Params` names the layouts.

/// One stream: K or V.
template <typename C, typename Params>
[[kernel]] void copy(const device typename C::Source *source [[buffer(0)]],
                     device typename C::Destination *cache [[buffer(1)]], constant Params &params [[buffer(2)]],
                     uint3 position [[thread_position_in_grid]]) {
  const RowOffsets<ulong> row = offsets_of_row(params, position);
  copy_part_of_row<C>(source + row.source, cache + row.cache, position.x);
}

/// K and V, which share every parameter.
template <typename C, typename Params>
[[kernel]] void copy_dual(const device typename C::Source *source_k [[buffer(0)]],
                          const device typename C::Source *source_v [[buffer(1)]],
                          device typename C::Destination *cache_k [[buffer(2)]],
                          device typename C::Destination *cache_v [[buffer(3)]], constant Params &params [[buffer(4)]],
                          uint3 position [[thread_position_in_grid]]) {
  const RowOffsets<ulong> row = offsets_of_row(params, position);
  copy_part_of_row<C>(source_k + row.source, cache_k + row.cache, position.x);
  copy_part_of_row<C>(source_v + row.source, cache_v + row.cache, position.x);
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
