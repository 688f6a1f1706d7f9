/// The randomised Hadamard transform of a head vector and what depends on the
/// head size alone; shared by encode and decode.
#pragma once

#include <metal_stdlib>

using namespace metal;

/// Signs of the transform: bit j is that of coordinate j, 1 means -1. The 512
/// bits repeat; head sizes up to 256 use the first of them.
constant uint sign_bits[16] = {0xf4913ba7, 0x0e58c26d, 0xd6247fb3, 0x1cea4589, 0x52d8af63, 0x3de10b97,
                               0xfe19c476, 0xdb2c854a, 0x17a84ed3, 0x31e65b9c, 0xf50db972, 0xc76e8a43,
                               0xe1942f58, 0x7c0a3db6, 0x4fd861c5, 0x851e97a3};

/// Bits of the signs from coordinate `first` on, that one lowest; as many as a word of the table has left.
inline uint signs_from(uint first) { return sign_bits[first / 32 % 16] >> (first % 32); }

/// Head sizes known at compile time.
template <uint D>
struct Head {
  /// Coordinates of one transform: the largest power of two that divides D.
  static constant constexpr uint block = D & (~D + 1);
  static constant constexpr uint norms = D <= 256 ? 1 : D / 256;
  /// Lanes that own a head vector together in the kernels without exchange.
  static constant constexpr uint lanes = D <= 64 ? 1 : D <= 128 ? 2 : D <= 256 ? 4 : 8;
};

/// Adds up the runs of LANES lanes, N quads each, with the signs of one lane,
/// neighbours first, and leaves the sum in the first: the butterflies between lanes.
template <int LANES, int N>
inline void join_lanes(thread float4 *terms, uint lane) {
  for (int count = LANES / 2; count > 0; count /= 2) {
    const float4 sign = float4((lane & 1) != 0 ? -1.0f : 1.0f);
    lane /= 2;
    for (int p = 0; p < count; p++) {
      for (int j = 0; j < N; j++) {
        terms[p * N + j] = fma(sign, terms[(2 * p + 1) * N + j], terms[2 * p * N + j]);
      }
    }
  }
}

/// Butterflies of COUNT values at distances from FIRST up to below END.
template <int COUNT, int FIRST, int END>
inline void butterflies(thread float *values) {
  for (int step = FIRST; step < END; step *= 2) {
    for (int i = 0; i < COUNT; i += 2 * step) {
      for (int j = i; j < i + step; j++) {
        const float low = values[j];
        const float high = values[j + step];
        values[j] = low + high;
        values[j + step] = low - high;
      }
    }
  }
}

/// Butterflies of `count` values, a power of two, by all threads of a
/// threadgroup: each takes every thread_count-th pair. The values are ready
/// for all threads when it returns, and need not be when it is called.
inline void transform(threadgroup float *values, uint count, uint thread_index, uint thread_count) {
  for (uint step = 1; step < count; step *= 2) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint pair = thread_index; pair < count / 2; pair += thread_count) {
      const uint i = (pair & ~(step - 1)) * 2 + (pair & (step - 1));
      const float low = values[i];
      const float high = values[i + step];
      values[i] = low + high;
      values[i + step] = low - high;
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
}

/// The slot of position first + token, for token < capacity.
inline uint slot_of(uint first, uint token, uint capacity, bool is_ring) {
  if (!is_ring) {
    return first + token;
  }
  const uint start = first % capacity;
  const uint before_wrap = capacity - start;
  return token < before_wrap ? start + token : token - before_wrap;
}
