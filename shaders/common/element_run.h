/// Runs of neighbouring elements that a thread loads and stores at once: of one, or of two, so that 32 lanes move 128
/// bytes of a 16-bit dtype.
#pragma once

#include <metal_stdlib>

#include "common/element.h"

using namespace metal;

/// N numbers to compute with, and N whole ones.
template <int N>
struct FloatRun;
template <>
struct FloatRun<1> {
  typedef float Value;
  typedef int Whole;
};
template <>
struct FloatRun<2> {
  typedef float2 Value;
  typedef int2 Whole;
};

/// N elements E. `store` rounds two runs.
template <typename E, int N>
struct ElementRun;

template <typename E>
struct ElementRun<E, 1> {
  typedef typename E::Bits Bits;

  static float decode(Bits bits) { return E::decode(bits); }
  static void store(device Bits *to, device Bits *to_second, float a, float b) {
    *to = E::encode(a);
    *to_second = E::encode(b);
  }
};

template <>
struct ElementRun<Float32, 2> {
  typedef float2 Bits;

  static float2 decode(float2 bits) { return bits; }
  static void store(device float2 *to, device float2 *to_second, float2 a, float2 b) {
    *to = a;
    *to_second = b;
  }
};

template <>
struct ElementRun<Float16, 2> {
  typedef half2 Bits;

  static float2 decode(half2 bits) { return float2(bits); }
  static void store(device half2 *to, device half2 *to_second, float2 a, float2 b) {
    *to = half2(a);
    *to_second = half2(b);
  }
};

/// The first is the lower half of a word.
template <>
struct ElementRun<Bfloat16, 2> {
  typedef uint Bits;

  static float2 decode(uint bits) { return float2(as_type<float>(bits << 16), as_type<float>(bits & 0xffff0000u)); }
  static void store(device uint *to, device uint *to_second, float2 a, float2 b) {
    *to = encode(a);
    *to_second = encode(b);
  }

 private:
  static uint encode(float2 value) { return uint(bfloat_bits(value.x)) | uint(bfloat_bits(value.y)) << 16; }
};

/// Runs as they are: their bits where the dtype stays, any NaN's too.
template <typename From, typename To>
struct KeptRuns {
  static void store(device typename To::Bits *to, device typename To::Bits *to_second, typename From::Bits a,
                    typename From::Bits b) {
    To::store(to, to_second, From::decode(a), From::decode(b));
  }
};
template <typename Same>
struct KeptRuns<Same, Same> {
  static void store(device typename Same::Bits *to, device typename Same::Bits *to_second, typename Same::Bits a,
                    typename Same::Bits b) {
    *to = a;
    *to_second = b;
  }
};
