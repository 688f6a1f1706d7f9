/// `<simd/simd.h>`: the names that hosts and shaders share for the same vectors and matrices.
#pragma once

#include "metal_matrix"

#define SM_SIMD_NAMES(T, name) \
  typedef T vector_##name;     \
  typedef T simd_##name;       \
  namespace simd {             \
  using ::simd_##name;         \
  typedef ::T name;            \
  }
#define SM_SIMD_VECTORS(T)  \
  SM_SIMD_NAMES(T##2, T##2) \
  SM_SIMD_NAMES(T##3, T##3) \
  SM_SIMD_NAMES(T##4, T##4)
SM_SIMD_VECTORS(char)
SM_SIMD_VECTORS(uchar)
SM_SIMD_VECTORS(short)
SM_SIMD_VECTORS(ushort)
SM_SIMD_VECTORS(int)
SM_SIMD_VECTORS(uint)
SM_SIMD_VECTORS(long)
SM_SIMD_VECTORS(ulong)
SM_SIMD_VECTORS(half)
SM_SIMD_VECTORS(float)
SM_SIMD_VECTORS(bool)
#undef SM_SIMD_VECTORS
#undef SM_SIMD_NAMES

#define SM_SIMD_MATRIX(T, size)            \
  typedef metal::T##size matrix_##T##size; \
  typedef metal::T##size simd_##T##size;   \
  namespace simd {                         \
  using metal::T##size;                    \
  }
#define SM_SIMD_MATRICES(T) \
  SM_SIMD_MATRIX(T, 2x2)    \
  SM_SIMD_MATRIX(T, 2x3)    \
  SM_SIMD_MATRIX(T, 2x4)    \
  SM_SIMD_MATRIX(T, 3x2)    \
  SM_SIMD_MATRIX(T, 3x3)    \
  SM_SIMD_MATRIX(T, 3x4)    \
  SM_SIMD_MATRIX(T, 4x2)    \
  SM_SIMD_MATRIX(T, 4x3)    \
  SM_SIMD_MATRIX(T, 4x4)
SM_SIMD_MATRICES(float)
SM_SIMD_MATRICES(half)
#undef SM_SIMD_MATRICES
#undef SM_SIMD_MATRIX
