/// Elements of tensors, computed with as float: by their type, or by a dtype known at run time.
#pragma once

#include <metal_stdlib>

#include "common/bfloat.h"

using namespace metal;

struct Float32 {
  typedef float Bits;
  static float decode(Bits bits) { return bits; }
  static Bits encode(float value) { return value; }
};

/// Rounds to nearest even.
struct Float16 {
  typedef half Bits;
  static float decode(Bits bits) { return float(bits); }
  static Bits encode(float value) { return half(value); }
};

/// Rounds to nearest even; NaN stays a (quiet) NaN.
struct Bfloat16 {
  typedef ushort Bits;
  static float decode(Bits bits) { return float_of_bfloat(bits); }
  static Bits encode(float value) { return bfloat_bits(value); }
};

/// Element i of a tensor of elements E.
template <typename E>
inline float load_element(const device uchar *tensor, ulong i) {
  return E::decode(((const device typename E::Bits *)tensor)[i]);
}

/// Element i of a tensor in MA_DTYPE_F32 (1), F16 (2) or BF16 (3).
inline float load_element(const device uchar *tensor, ulong i, uint dtype) {
  return dtype == 1   ? load_element<Float32>(tensor, i)
         : dtype == 2 ? load_element<Float16>(tensor, i)
                      : load_element<Bfloat16>(tensor, i);
}

/// Stores N values from element `first` on.
template <typename E, int N>
inline void store_run(device uchar *tensor, ulong first, const thread float *values) {
  device typename E::Bits *to = (device typename E::Bits *)tensor + first;
  for (int i = 0; i < N; i++) {
    to[i] = E::encode(values[i]);
  }
}

/// The same in a dtype as load_element takes it.
template <int N>
inline void store_run(device uchar *tensor, ulong first, const thread float *values, uint dtype) {
  if (dtype == 1) {
    store_run<Float32, N>(tensor, first, values);
  } else if (dtype == 2) {
    store_run<Float16, N>(tensor, first, values);
  } else {
    store_run<Bfloat16, N>(tensor, first, values);
  }
}
