/// Rows of K and V as the lanes of a SIMD group read them.
///
/// `load` gives a lane its values of a row, laid out as `Layout` says. `norms` of them scale a row of codes; a dense
/// row has none.
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

/// Rows of elements E, STRIDE of them apart; ALIGNED where the first begins at a multiple of 16 bytes.
template <typename E, int D, int STRIDE, bool ALIGNED>
struct DenseRows {
  static constant constexpr int norms = 0;
  typedef RowLanes<D, false> Layout;
  const device uchar *rows;

  void load(uint row, uint lane, thread float *values) const {
    typedef Layout L;
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
/// and their negatives. Of 8 bits there is a table, which TABLE points into: of
/// threadgroup memory, which lanes read at 32 addresses in a few turns, or of
/// constants, which a kernel of few rows need not copy there.
template <typename TABLE>
struct Centroids {
  uint bits;
  float of_lane;
  TABLE of_8_bits;

  Centroids(uint width, uint lane, TABLE all_of_8_bits) : bits(width), of_8_bits(all_of_8_bits) {
    const constant float *table = centroids_of(width);
    of_lane = width == 6 ? table[32 + lane] : width == 8 ? 0.0f : table[lane & ((1u << width) - 1)];
  }

  /// Those of the first COUNT codes of 8 bits in a word.
  template <uint COUNT>
  void of_bytes(uint word, thread float *values) const {
#pragma clang loop unroll(full)
    for (uint i = 0; i < COUNT; i++) {
      values[i] = of_8_bits[word >> 8 * i & 255];
    }
  }

  /// That of the code of fewer bits in the lowest of `codes`.
  float of(uint codes) const {
    if (bits == 6) {
      const bool is_positive = (codes & 32) != 0;
      const float magnitude = simd_shuffle(of_lane, ushort((is_positive ? codes : ~codes) & 31));
      return is_positive ? magnitude : -magnitude;
    }
    // Those of fewer bits repeat, so that it does not matter what else is there.
    return simd_shuffle(of_lane, ushort(codes & 31));
  }
};

/// Rows of codes, laid out as LAYOUT says. `format` is their bits, plus 8 where 5 or 6 of them have a byte of their
/// own. ALIGNED where the first row begins at a multiple of 16 bytes.
template <int D, typename LAYOUT, bool ALIGNED, typename TABLE>
struct CodeRows {
  static constant constexpr int norms = norms_of(D);
  typedef LAYOUT Layout;
  const device uchar *rows;
  uint width;  ///< bits of a row that a code takes
  Centroids<TABLE> centroids;

  CodeRows(const device uchar *packed, uint format, uint lane, TABLE centroids_of_8_bits)
      : rows(packed), width(width_of_format(format)), centroids(bits_of_format(format), lane, centroids_of_8_bits) {}

  void load(uint row, uint lane, thread float *values) const {
    typedef Layout L;
    const device uchar *first = rows + ulong(row) * (D / 8 * width);
    // Eight codes of up to 4 bits are one word, of more bits two.
    const bool has_two = L::width == 8 && width > 4;
#pragma clang loop unroll(full)
    for (int c = 0; c < L::chunks; c++) {
      const uint2 words = L::holds(c, lane) ? words_at(first, uint(L::first(c, lane)), has_two) : uint2(0);
      if (centroids.bits == 8) {
        constexpr uint in_first = L::width < 4 ? L::width : 4;
        centroids.template of_bytes<in_first>(words.x, values + c * L::width);
        centroids.template of_bytes<L::width - in_first>(words.y, values + c * L::width + in_first);
        continue;
      }
#pragma clang loop unroll(full)
      for (uint k = 0; k < uint(L::width); k++) {
        const uint codes = has_two && k >= 4 ? words.y >> (k - 4) * width : words.x >> k * width;
        // All lanes take part in the look-up; those that hold nothing get some centroid.
        values[c * L::width + k] = centroids.of(codes);
      }
    }
  }

  /// The codes of a lane from code i on: of four or eight in the first word, or of four in each.
  uint2 words_at(const device uchar *row, uint i, bool has_two) const {
    // Found by the lane's index, which tells that lanes read side by side.
    const uint bits_of_lane = width * Layout::width;
    if (bits_of_lane == 16) {
      return uint2(((const device ushort *)row)[i / Layout::width], 0);
    }
    // Rows of such codes are whole words too.
    if (ALIGNED && bits_of_lane == 32) {
      return uint2(((const device uint *)row)[i / Layout::width], 0);
    }
    if (ALIGNED && bits_of_lane == 64) {
      return ((const device uint2 *)row)[i / Layout::width];
    }
    return uint2(word_of_codes<D>(row, width, i), has_two ? word_of_codes<D>(row, width, i + 4) : 0);
  }
};
