/// Rows of K and V as decode attention reads them: a SIMD group a row.
///
/// `load<D, VALUES>` gives a lane its values of a row, laid out as `Lanes<D>`
/// says; of the first VALUES coordinates where that is fewer. `norms` of them
/// scale a row of codes; a dense row has none.
#pragma once

#include <metal_stdlib>
#include <metal_simdgroup>

#include "common/element.h"
#include "flash_attn_decode_lanes.h"
#include "hadamard_formats.h"

using namespace metal;

/// The vector that a lane reads at once. A tensor begins at any element, where a packed vector may; most begin where a
/// whole vector does, and are then read as whole words.
template <typename T, int N, bool ALIGNED>
struct Row {
  typedef vec<T, N> type;
};
template <>
struct Row<float, 2, false> {
  typedef packed_float2 type;
};
template <>
struct Row<float, 4, false> {
  typedef packed_float4 type;
};
template <>
struct Row<half, 2, false> {
  typedef packed_half2 type;
};
template <>
struct Row<half, 4, false> {
  typedef packed_half4 type;
};
template <>
struct Row<ushort, 2, false> {
  typedef packed_ushort2 type;
};
template <>
struct Row<ushort, 4, false> {
  typedef packed_ushort4 type;
};

/// Rows of elements E, STRIDE of them apart; ALIGNED where the first begins at a multiple of what a lane reads at once.
template <typename E, int D, int STRIDE, bool ALIGNED>
struct DenseRows {
  static constant constexpr int norms = 0;
  const device uchar *rows;

  void load(uint row, uint lane, thread float *values) const {
    typedef Lanes<D> L;
    typedef typename E::Bits Bits;
    using Vector = typename Row<Bits, L::width, ALIGNED>::type;
    const device Bits *first = (const device Bits *)rows + ulong(row) * STRIDE;
#pragma clang loop unroll(full)
    for (int c = 0; c < L::chunks; c++) {
      if (L::holds(c, lane)) {
        const Vector vector = *(const device Vector *)(first + L::first(c, lane));
#pragma clang loop unroll(full)
        for (int i = 0; i < L::width; i++) {
          values[c * L::width + i] = E::decode(Bits(vector[i]));
        }
      } else {
#pragma clang loop unroll(full)
        for (int i = 0; i < L::width; i++) {
          values[c * L::width + i] = 0.0f;
        }
      }
    }
  }
};

/// The centroids of a width. Up to 32 of them lie in the lanes' registers, where
/// a shuffle finds one: on a GPU that is one instruction without memory, while
/// lanes that read a table at 32 addresses take turns. The 64 of 6 bits are 32
/// and their negatives; 8 bits read the table.
struct Centroids {
  uint bits;
  float of_lane;

  Centroids(uint width, uint lane) : bits(width) {
    const constant float *table = centroids_of(width);
    of_lane = width == 6 ? table[32 + lane] : width == 8 ? 0.0f : table[lane & ((1u << width) - 1)];
  }

  float of_code(uint code) const {
    if (bits == 8) {
      return centroids_of(8)[code];
    }
    if (bits == 6) {
      const bool is_positive = code >= 32;
      const float magnitude = simd_shuffle(of_lane, ushort(is_positive ? code - 32 : 31 - code));
      return is_positive ? magnitude : -magnitude;
    }
    return simd_shuffle(of_lane, ushort(code));
  }
};

/// Rows of codes. `format` is their bits, plus 8 where 5 or 6 of them have a byte of their own.
template <int D>
struct CodeRows {
  static constant constexpr int norms = norms_of(D);
  const device uchar *rows;
  uint width;  ///< bits of a row that a code takes
  uint mask;
  Centroids centroids;

  CodeRows(const device uchar *packed, uint format, uint lane)
      : rows(packed),
        width(format >= 8 ? 8 : format),
        mask(format == 8 ? 255 : (1u << (format & 7)) - 1),
        centroids(format == 8 ? 8 : format & 7, lane) {}

  void load(uint row, uint lane, thread float *values) const {
    typedef Lanes<D> L;
    const device uchar *first = rows + ulong(row) * (D / 8 * width);
#pragma clang loop unroll(full)
    for (int c = 0; c < L::chunks; c++) {
      const uint word = L::holds(c, lane) ? word_at(first, uint(L::first(c, lane))) : 0;
#pragma clang loop unroll(full)
      for (int i = 0; i < L::width; i++) {
        // All lanes take part in the look-up; those that hold nothing get some centroid.
        values[c * L::width + i] = centroids.of_code(word >> (uint(i) * width) & mask);
      }
    }
  }

  /// 32 bits that begin with code i and hold the next ones of the lane. Rows are
  /// whole 16-bit words; the last lanes step back by what a shift makes good.
  uint word_at(const device uchar *row, uint i) const {
    if (width * Lanes<D>::width == 16) {
      return *(const device ushort *)(row + i * width / 8);
    }
    const uint bit = i * width;
    const uint start = min(bit / 16, D / 16 * width - 2);
    const packed_ushort2 words = *(const device packed_ushort2 *)(row + 2 * start);
    return (uint(words[0]) | uint(words[1]) << 16) >> (bit - 16 * start);
  }
};
