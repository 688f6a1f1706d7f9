/// Rows of K and V as decode attention reads them: a SIMD group a row.
///
/// `fetch` gives a lane its bits of a row, which lies as `Lanes<D>` says, and `decode` makes its values
/// of them: apart, so that several rows can be on their way at once. `IS_ALIGNED`: rows begin at 16 bytes
/// and can be read in whole words. `norms` numbers scale a row of codes; a dense row has none.
#pragma once

#include <metal_stdlib>
#include <metal_simdgroup>

#include "common/element.h"
#include "flash_attn_decode_lanes.h"
#include "hadamard_formats.h"

using namespace metal;

/// COUNT words of 32 bits, 1, 2 or 4, from an address that is a multiple of as many.
template <int COUNT>
inline void load_words(const device uchar *from, thread uint *words) {
  if (COUNT == 4) {
    const uint4 four = *(const device uint4 *)from;
    words[0] = four.x;
    words[1] = four.y;
    words[2] = four.z;
    words[3] = four.w;
  } else if (COUNT == 2) {
    const uint2 two = *(const device uint2 *)from;
    words[0] = two.x;
    words[1] = two.y;
  } else {
    words[0] = *(const device uint *)from;
  }
}

/// The same from the address of any element: a tensor begins at any.
template <int COUNT>
inline void load_words_of_halves(const device uchar *from, thread uint *words) {
#pragma clang loop unroll(full)
  for (int i = 0; i < COUNT; i++) {
    const packed_ushort2 halves = *(const device packed_ushort2 *)(from + 4 * i);
    words[i] = uint(halves[0]) | uint(halves[1]) << 16;
  }
}

/// Rows of f32 (format 1), f16 (2) or bf16 (3), STRIDE elements apart.
template <int D, int STRIDE>
struct DenseRows {
  typedef Lanes<D> L;
  static constant constexpr int norms = 0;
  /// As f32 takes them; of 16-bit elements the first half of each chunk is used.
  static constant constexpr int words = L::values;
  const device uchar *rows;
  uint format;

  /// The row's address.
  const device uchar *at(uint row) const { return rows + ulong(row) * row_bytes(); }
  uint row_bytes() const { return format == 1 ? STRIDE * 4 : STRIDE * 2; }

  template <bool IS_ALIGNED>
  void fetch(const device uchar *row, uint lane, thread uint *bits) const {
#pragma clang loop unroll(full)
    for (int c = 0; c < L::chunks; c++) {
      thread uint *chunk = bits + c * L::width;
#pragma clang loop unroll(full)
      for (int i = 0; i < L::width; i++) {
        chunk[i] = 0;
      }
      if (L::holds(c, lane)) {
        if (format != 1) {
          const device uchar *from = row + L::first(c, lane) * 2;
          if (IS_ALIGNED) {
            load_words<L::width / 2>(from, chunk);
          } else {
            load_words_of_halves<L::width / 2>(from, chunk);
          }
        } else {
          const device uchar *from = row + L::first(c, lane) * 4;
          if (IS_ALIGNED) {
            load_words<L::width>(from, chunk);
          } else {
#pragma clang loop unroll(full)
            for (int i = 0; i < L::width; i++) {
              load_words<1>(from + 4 * i, chunk + i);
            }
          }
        }
      }
    }
  }

  void decode(const thread uint *bits, thread float *values) const {
#pragma clang loop unroll(full)
    for (int c = 0; c < L::chunks; c++) {
#pragma clang loop unroll(full)
      for (int i = 0; i < L::width; i++) {
        const uint word = bits[c * L::width + (format == 1 ? i : i / 2)];
        values[c * L::width + i] = format == 1   ? as_type<float>(word)
                                   : format == 2 ? float(as_type<half2>(word)[i % 2])
                                                 : as_type<float>(i % 2 == 0 ? word << 16 : word & 0xffff0000u);
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
  typedef Lanes<D> L;
  static constant constexpr int norms = norms_of(D);
  static constant constexpr int words = L::chunks;
  const device uchar *rows;
  uint width;  ///< bits of a row that a code takes
  uint mask;
  Centroids centroids;

  CodeRows(const device uchar *packed, uint format, uint lane)
      : rows(packed),
        width(format >= 8 ? 8 : format),
        mask(format == 8 ? 255 : (1u << (format & 7)) - 1),
        centroids(format == 8 ? 8 : format & 7, lane) {}

  /// The row's address.
  const device uchar *at(uint row) const { return rows + ulong(row) * row_bytes(); }
  uint row_bytes() const { return D / 8 * width; }

  template <bool IS_ALIGNED>
  void fetch(const device uchar *row, uint lane, thread uint *bits) const {
#pragma clang loop unroll(full)
    for (int c = 0; c < L::chunks; c++) {
      bits[c] = L::holds(c, lane) ? word_at<IS_ALIGNED>(row, uint(L::first(c, lane))) : 0;
    }
  }

  void decode(const thread uint *bits, thread float *values) const {
#pragma clang loop unroll(full)
    for (int c = 0; c < L::chunks; c++) {
#pragma clang loop unroll(full)
      for (int i = 0; i < L::width; i++) {
        // All lanes take part in the look-up; those that hold nothing get some centroid.
        values[c * L::width + i] = centroids.of_code(bits[c] >> (uint(i) * width) & mask);
      }
    }
  }

  /// 32 bits that begin with code i and hold the next ones of the lane. Rows are
  /// whole 16-bit words; the last lanes step back by what a shift makes good.
  template <bool IS_ALIGNED>
  uint word_at(const device uchar *row, uint i) const {
    if (width * L::width == 16) {
      return *(const device ushort *)(row + i * width / 8);
    }
    if (IS_ALIGNED && width * L::width == 32) {
      return *(const device uint *)(row + i * width / 8);
    }
    const uint bit = i * width;
    const uint start = min(bit / 16, D / 16 * width - 2);
    const packed_ushort2 words = *(const device packed_ushort2 *)(row + 2 * start);
    return (uint(words[0]) | uint(words[1]) << 16) >> (bit - 16 * start);
  }
};
