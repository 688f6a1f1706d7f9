/// The randomised Hadamard transform of a head vector and what depends on the
/// head size alone; shared by encode and decode.
#pragma once

#include <metal_stdlib>

using namespace metal;

// Signs of eight coordinates: bit j of the byte is that of the j-th, 1 means -1.
#define SIGN(byte, bit) ((byte) >> (bit) & 1 ? -1.0f : 1.0f)
#define SIGNS(byte) \
  SIGN(byte, 0), SIGN(byte, 1), SIGN(byte, 2), SIGN(byte, 3), SIGN(byte, 4), SIGN(byte, 5), SIGN(byte, 6), SIGN(byte, 7)

/// Signs of the transform by coordinate, which repeat above 512.
constant float signs[512] = {
    SIGNS(0xa7), SIGNS(0x3b), SIGNS(0x91), SIGNS(0xf4), SIGNS(0x6d), SIGNS(0xc2), SIGNS(0x58), SIGNS(0x0e),
    SIGNS(0xb3), SIGNS(0x7f), SIGNS(0x24), SIGNS(0xd6), SIGNS(0x89), SIGNS(0x45), SIGNS(0xea), SIGNS(0x1c),
    SIGNS(0x63), SIGNS(0xaf), SIGNS(0xd8), SIGNS(0x52), SIGNS(0x97), SIGNS(0x0b), SIGNS(0xe1), SIGNS(0x3d),
    SIGNS(0x76), SIGNS(0xc4), SIGNS(0x19), SIGNS(0xfe), SIGNS(0x4a), SIGNS(0x85), SIGNS(0x2c), SIGNS(0xdb),
    SIGNS(0xd3), SIGNS(0x4e), SIGNS(0xa8), SIGNS(0x17), SIGNS(0x9c), SIGNS(0x5b), SIGNS(0xe6), SIGNS(0x31),
    SIGNS(0x72), SIGNS(0xb9), SIGNS(0x0d), SIGNS(0xf5), SIGNS(0x43), SIGNS(0x8a), SIGNS(0x6e), SIGNS(0xc7),
    SIGNS(0x58), SIGNS(0x2f), SIGNS(0x94), SIGNS(0xe1), SIGNS(0xb6), SIGNS(0x3d), SIGNS(0x0a), SIGNS(0x7c),
    SIGNS(0xc5), SIGNS(0x61), SIGNS(0xd8), SIGNS(0x4f), SIGNS(0xa3), SIGNS(0x97), SIGNS(0x1e), SIGNS(0x85)};

/// Norms of a head vector.
inline constexpr uint norms_of(uint head_dim) { return head_dim <= 256 ? 1 : head_dim / 256; }

/// Head sizes known at compile time.
template <uint D>
struct Head {
  /// Coordinates of one transform: the largest power of two that divides D.
  static constant constexpr uint block = D & (~D + 1);
  static constant constexpr uint norms = norms_of(D);
  /// Lanes that own a head vector together in the kernels without exchange.
  static constant constexpr uint lanes = D <= 64 ? 1 : D <= 128 ? 2 : D <= 256 ? 4 : 8;
};

/// A lane's part of a head vector of D values: runs of consecutive ones, at most LIMIT each.
template <uint D, uint LIMIT>
struct LanePart {
  static constant constexpr uint run =
      Head<D>::block / Head<D>::lanes < LIMIT ? Head<D>::block / Head<D>::lanes : LIMIT;
  static constant constexpr uint values = D / Head<D>::lanes;
  /// Values of a group with a norm of its own.
  static constant constexpr uint group = values / Head<D>::norms;
  /// Values of a transform, without the halves that are combined on loading.
  static constant constexpr uint span = Head<D>::block / Head<D>::lanes / Head<D>::norms;
};

/// Adds up the runs of LANES lanes, N values each, with the signs of one lane,
/// neighbours first, and leaves the sum in the first: the butterflies between lanes.
template <int LANES, int N, typename Value>
inline void join_lanes(thread Value *terms, uint lane) {
  for (int count = LANES / 2; count > 0; count /= 2) {
    const Value sign = Value((lane & 1) != 0 ? -1.0f : 1.0f);
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

/// Entry points for each head size that has kernels of its own: `name`64 and so on, of function<D, ...>.
#define instantiate_head_sizes(name, function, ...)           \
  instantiate_kernel(name "64", function, 64, __VA_ARGS__);   \
  instantiate_kernel(name "80", function, 80, __VA_ARGS__);   \
  instantiate_kernel(name "96", function, 96, __VA_ARGS__);   \
  instantiate_kernel(name "112", function, 112, __VA_ARGS__); \
  instantiate_kernel(name "128", function, 128, __VA_ARGS__); \
  instantiate_kernel(name "192", function, 192, __VA_ARGS__); \
  instantiate_kernel(name "256", function, 256, __VA_ARGS__); \
  instantiate_kernel(name "512", function, 512, __VA_ARGS__)
