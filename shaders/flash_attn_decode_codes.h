/// Codes of K and V as elements of 8x8 matrices: no lane needs what another has decoded.
///
/// A lane's two elements are the halves whose sum is a centroid, so that a look-up is an element pair as it stands; the
/// right factor then has each of its rows twice. Of a matrix of K the row is a key and the pair a coordinate, of one of
/// V (transposed) the row is a coordinate and the pair a key. Which coordinate is free, as long as queries and sums
/// agree: a lane reads a run of neighbours, and takes one of them for each matrix.
#pragma once

#include <metal_stdlib>

#include "flash_attn_decode_leaf.h"
#include "hadamard_formats.h"

using namespace metal;

/// A centroid as the sum of two halves, which have 22 bits together.
typedef half2 Centroid;

/// Centroids are as many times as large in tables, so that the smaller half of none is subnormal.
constant constexpr float kCentroidUnit = 1024.0f;

/// A format as function constants have it.
struct CodeFormat {
  uint bits;
  uint width;  ///< bits of a row that a code takes
  bool is_aligned;

  CodeFormat(uint format, bool aligned)
      : bits(bits_of_format(format)), width(width_of_format(format)), is_aligned(aligned) {}
};

/// Fills a part of a table: from `first` on every `step`th 32 centroids. All lanes take part, so that none waits for
/// others behind it; those past the last centroid write one again.
inline void fill_table(threadgroup Centroid *table, CodeFormat format, uint first, uint step, uint lane) {
  for (uint i = first; i < (1u << format.bits); i += step) {
    const uint code = (i + lane) & ((1u << format.bits) - 1);
    const float centroid = centroids_of(format.bits)[code] * kCentroidUnit;
    const half high = half(centroid);
    table[code] = half2(high, half(centroid - float(high)));
  }
}

/// COUNT codes of a row of D, each 8 of them one word, or two where they have more than 4 bits.
template <int D, int COUNT>
struct CodeRun {
  uint words[COUNT / 8];
  uint second[COUNT / 8];

  /// Those from code `first` on.
  void load(const device uchar *rows, CodeFormat format, uint row, uint first) {
    const ulong offset = ulong(row) * (D / 8 * format.width);
    if (format.is_aligned && format.width == 4) {
      // The lane's own part first, which is the same for all rows.
      const device uchar *run = rows + first / 2 + offset;
      if (COUNT == 8) {
        words[0] = *(const device uint *)run;
      }
      constexpr int wide = COUNT % 32 == 0 ? 4 : 2;
#pragma clang loop unroll(full)
      for (int i = 0; i + wide <= COUNT / 8; i += wide) {
        const vec<uint, wide> loaded = *(const device vec<uint, wide> *)(run + i * 4);
#pragma clang loop unroll(full)
        for (int n = 0; n < wide; n++) {
          words[i + n] = loaded[n];
        }
      }
    } else {
#pragma clang loop unroll(full)
      for (uint i = 0; i < COUNT / 8; i++) {
        words[i] = word_at(rows + offset, format, first + 8 * i);
        second[i] = format.width > 4 ? word_at(rows + offset, format, first + 8 * i + 4) : 0;
      }
    }
  }

  /// The centroid of code i.
  Centroid centroid(uint i, CodeFormat format, const threadgroup Centroid *table) const {
    const uint word = format.width > 4 && i % 8 >= 4 ? second[i / 8] : words[i / 8];
    const uint bit = (format.width > 4 ? i % 4 : i % 8) * format.width;
    // One shift makes it the bytes before the centroid.
    const uint offset = (bit < 2 ? word << (2 - bit) : word >> (bit - 2)) & ((4u << format.bits) - 4);
    return *(const threadgroup Centroid *)((const threadgroup uchar *)table + offset);
  }

 private:
  /// 32 bits that begin with code i.
  static uint word_at(const device uchar *row, CodeFormat format, uint i) {
    if (format.is_aligned && format.width == 8) {
      return *(const device uint *)(row + i);
    }
    return word_of_codes<D>(row, format.width, i);
  }
};

/// What a lane has of a leaf of K: in matrix m, of which there are four, the key is 8 m + row.
template <int D>
struct CodedKeys {
  static constant constexpr bool is_coded = true;
  /// The limit of a threadgroup, of which 128 are used: it leaves a thread 128 registers of an NVIDIA GPU.
  static constant constexpr int most_threads = 512;
  /// Whether there are registers for the next leaf while one is worked on.
  static constant constexpr bool is_ahead = true;
  /// A leaf is multiplied as it is read.
  static constant constexpr int parts = 1;
  static constant constexpr int staged_bytes = 0;
  /// Columns that a coordinate has in matrices.
  static constant constexpr int columns = 2;
  /// Halves from one query to the next.
  static constant constexpr int query_row = D * columns + 8;

  CodeFormat format;
  const threadgroup Centroid *table;
  CodeRun<D, D / 4> codes[4];

  CodedKeys(uint constant_of_format, bool is_aligned, const threadgroup Centroid *centroids, threadgroup uint4 *)
      : format(constant_of_format, is_aligned), table(centroids) {}

  /// Where a query has coordinate d, `columns` times: p * (D / 4) + t in matrix t, at columns 2 p and 2 p + 1.
  static uint place(uint d) { return d % (D / 4) * 8 + d / (D / 4) * 2; }

  void load(const device uchar *k, LeafRows leaf, MatrixLane at) {
    uint rows[4];
    leaf.of<8>(at.row, rows);
#pragma clang loop unroll(full)
    for (int m = 0; m < 4; m++) {
      codes[m].load(k, format, rows[m], at.pair * (D / 4));
    }
  }

  void stage(uint, MatrixLane) const {}

  void load_matrix(thread HalfMatrix &matrix, uint m, uint t) const {
    matrix.thread_elements() = codes[m].centroid(t, format, table);
  }
};

/// What a lane has of a leaf of V: in matrix m the key is 4 m + pair, so that what lanes read at once lies together,
/// and the coordinates are row * (D / 8) on.
template <int D>
struct CodedValues {
  static constant constexpr bool is_coded = true;
  static constant constexpr int matrices = 8;
  static constant constexpr int parts = 1;

  CodeFormat format;
  const threadgroup Centroid *table;
  CodeRun<D, D / 8> codes[8];

  CodedValues(uint constant_of_format, bool is_aligned, const threadgroup Centroid *centroids, threadgroup uint4 *)
      : format(constant_of_format, is_aligned), table(centroids) {}

  /// The coordinate of a row of matrix j of the sums.
  static uint coordinate(uint row, uint j) { return row * (D / 8) + j; }

  void load(const device uchar *v, LeafRows leaf, MatrixLane at) {
#pragma clang loop unroll(full)
    for (uint i = 0; i < 2; i++) {
      uint rows[4];
      leaf.of<8>(4 * i + at.pair, rows);
#pragma clang loop unroll(full)
      for (int m = 0; m < 4; m++) {
        codes[2 * m + i].load(v, format, rows[m], at.row * (D / 8));
      }
    }
  }

  void stage(uint, MatrixLane) const {}

  void load_matrix(thread HalfMatrix &matrix, uint m, uint j) const {
    matrix.thread_elements() = codes[m].centroid(j, format, table);
  }

  /// Weights of the keys whose scores the lane has, of which `high` and `low` are the halves, as matrices with the rows
  /// of a key there twice: upper halves in columns 0 to 3, lower ones in the others.
  static void spread(const thread half2 *high, const thread half2 *low, MatrixLane at, thread HalfMatrix *weights) {
    half2 of_leaf[4];
    weights_of_leaf(high, low, at, of_leaf);
#pragma clang loop unroll(full)
    for (int m = 0; m < 8; m++) {
      const uint weight = simd_shuffle(as_type<uint>(of_leaf[m / 2]), at.lane_of_row(m % 2 * 4 + at.row / 2));
      weights[m].thread_elements() = as_type<half2>(weight);
    }
  }
};
