/// Elements of a tensor whose dtype is known at run time: MA_DTYPE_F32 (1), F16 (2) or BF16 (3).
#pragma once

#include <metal_stdlib>

#include "common/bfloat.h"

using namespace metal;

/// Element i.
inline float load_element(const device uchar *tensor, ulong i, uint dtype) {
  if (dtype == 1) {
    return ((const device float *)tensor)[i];
  }
  if (dtype == 2) {
    return float(((const device half *)tensor)[i]);
  }
  return float_of_bfloat(((const device ushort *)tensor)[i]);
}

/// Stores N values from element `first` on, rounded to nearest even.
template <int N>
inline void store_run(device uchar *tensor, ulong first, const thread float *values, uint dtype) {
  if (dtype == 1) {
    device float *to = (device float *)tensor + first;
    for (int j = 0; j < N; j++) {
      to[j] = values[j];
    }
  } else if (dtype == 2) {
    device half *to = (device half *)tensor + first;
    for (int j = 0; j < N; j++) {
      to[j] = half(values[j]);
    }
  } else {
    device ushort *to = (device ushort *)tensor + first;
    for (int j = 0; j < N; j++) {
      to[j] = bfloat_bits(values[j]);
    }
  }
}
