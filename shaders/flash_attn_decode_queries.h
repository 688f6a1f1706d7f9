/// Queries as they lie over the lanes of a SIMD group.
#pragma once

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "common/element.h"
#include "flash_attn_decode_lanes.h"

using namespace metal;

/// The lane's values of `count` queries from `first` on, of elements E; zeros of the others. All loads are under way at
/// once: a SIMD group has few keys, and would wait for each query as long as for several of them.
template <typename E, int D, int QUERIES>
inline void load_queries(const device uchar *queries, uint first, uint count, uint lane, thread float *values) {
  typedef Lanes<D> L;
#pragma clang loop unroll(full)
  for (int n = 0; n < QUERIES; n++) {
#pragma clang loop unroll(full)
    for (int c = 0; c < L::chunks; c++) {
      const bool is_there = uint(n) < count && L::holds(c, lane);
#pragma clang loop unroll(full)
      for (int i = 0; i < L::width; i++) {
        const ulong element = ulong(first + uint(n)) * D + uint(L::first(c, lane) + i);
        values[n * L::values + c * L::width + i] = is_there ? load_element<E>(queries, element) : 0.0f;
      }
    }
  }
}

/// The same of elements of `params.q_dtype`.
template <int D, int QUERIES>
inline void load_queries(constant FlashAttnDecodeParams &params, const device uchar *queries, uint first, uint count,
                         uint lane, thread float *values) {
  if (params.q_dtype == 1) {
    load_queries<Float32, D, QUERIES>(queries, first, count, lane, values);
  } else if (params.q_dtype == 2) {
    load_queries<Float16, D, QUERIES>(queries, first, count, lane, values);
  } else {
    load_queries<Bfloat16, D, QUERIES>(queries, first, count, lane, values);
  }
}
