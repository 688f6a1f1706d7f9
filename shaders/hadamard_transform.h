/// The randomised Hadamard transform of a head vector and what depends on the
/// head size alone; shared by encode and decode.
#pragma once

#include <metal_stdlib>

using namespace metal;

/// Signs of the transform, which repeat above 512 coordinates: 32 a word, bit j is the j-th's, 1 means -1.
constant uint sign_words[16] = {0xf4913ba7, 0x0e58c26d, 0xd6247fb3, 0x1cea4589, 0x52d8af63, 0x3de10b97,
                                0xfe19c476, 0xdb2c854a, 0x17a84ed3, 0x31e65b9c, 0xf50db972, 0xc76e8a43,
                                0xe1942f58, 0x7c0a3db6, 0x4fd861c5, 0x851e97a3};

/// The sign of coordinate i, 1 or -1.
inline float sign_of(uint i) { return sign_words[i / 32 % 16] >> i % 32 & 1 ? -1.0f : 1.0f; }

/// Norms of a head vector.
inline constexpr uint norms_of(uint head_dim) { return head_dim <= 256 ? 1 : head_dim / 256; }

/// Head sizes known at compile time.
template <uint D>
struct Head {
  /// Coordinates of one transform: the largest power of two that divides D.
  static constant constexpr uint block = D & (~D + 1);
  static constant constexpr uint norms = norms_of(D);
};

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
