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

/// Words of a table beside dense rows: 64 centroids of 6 bits 32 times, or 256 of 8 bits 8 times.
constant constexpr int kTableBesideRows = 2048;

/// A format as function constants have it.
struct CodeFormat {
  uint bits;
  uint width;  ///< bits of a row that a code takes
  bool is_aligned;
  /// How far a code goes up to be the offset of its centroid in a table, in bytes.
  uint shift;

  /// - `other`: the format of V beside K, or of K beside V; 0 where that is dense.
  CodeFormat(uint format, uint other, bool aligned)
      : bits(bits_of_format(format)), width(width_of_format(format)), is_aligned(aligned) {
    shift = bits == 8 ? (other == 0 ? 5 : 6) : bits == 6 && bits_of_format(other) != 8 ? 7 : 2;
  }

  uint copies() const { return 1u << (shift - 2); }
  uint words_of_table() const { return copies() << bits; }
};

/// Centroids in threadgroup memory. Those of few bits lie in as many banks. Of 8 bits 32 lanes would meet in a bank by
/// threes and fours: 16 copies lie side by side, so that two lanes share a bank's copy, or 8 where dense rows need the
/// room. Of 6 bits, which meet by twos, each lane has its own, where no table of 8 bits takes the room.
struct CentroidTable {
  const threadgroup uchar *first;
  uint of_lane;  ///< offset of the lane's copy in those of a centroid

  CentroidTable(const threadgroup uint *words, CodeFormat format, uint lane)
      : first((const threadgroup uchar *)words), of_lane(lane % format.copies() * 4) {}

  Centroid at(uint offset) const { return *(const threadgroup Centroid *)(first + (offset | of_lane)); }
};

/// A centroid as a table has it.
inline uint word_of_centroid(uint code, CodeFormat format) {
  const float centroid = centroids_of(format.bits)[code] * kCentroidUnit;
  const half high = half(centroid);
  return as_type<uint>(half2(high, half(centroid - float(high))));
}

/// Fills a part of a table, lane `index` of `THREADS`. All lanes take part, so that none waits for others behind it;
/// those past the last centroid write one again.
template <uint THREADS>
inline void fill_table(threadgroup uint *words, CodeFormat format, uint index) {
  if (format.copies() == 1) {
    const uint code = index & ((1u << format.bits) - 1);
    words[code] = word_of_centroid(code, format);
    return;
  }
  // Four copies at once.
#pragma clang loop unroll(full)
  for (uint i = 0; i < 1024; i += THREADS) {
    if (i < format.words_of_table() / 4) {
      ((threadgroup uint4 *)words)[i + index] = uint4(word_of_centroid((i + index) / (format.copies() / 4), format));
    }
  }
}

/// 32 bits from bit `shift` on, which is less than 32, of two words.
inline uint bits_of_words(uint first, uint second, uint shift) { return uint((ulong(second) << 32 | first) >> shift); }

/// COUNT codes of a row of D, each 8 of them one word, or two where they have more than 4 bits.
template <int D, int COUNT, bool IS_WIDE>
struct CodeRun {
  uint words[COUNT / 8];
  uint second[COUNT / 8];

  /// Those of run `part` of a row.
  void load(const device uchar *rows, CodeFormat format, uint row, uint part) {
    // The lane's own part of an address before the row's is the same for all rows, where there are registers for it.
    const device uchar *first = IS_WIDE ? rows + ulong(row) * (D / 8 * format.width) : rows;
    const uint next = IS_WIDE ? 0 : row;
    switch (format.is_aligned ? format.width : 0) {
      case 2:
        return load_words<2>(first, next, part);
      case 3:
        return load_words<3>(first, next, part);
      case 4:
        return load_words<4>(first, next, part);
      case 5:
        return load_words<5>(first, next, part);
      case 6:
        return load_words<6>(first, next, part);
      case 8:
        return load_words<8>(first, next, part);
    }
    first += ulong(next) * (D / 8 * format.width);
#pragma clang loop unroll(full)
    for (uint i = 0; i < COUNT / 8; i++) {
      words[i] = word_of_codes<D>(first, format.width, part * COUNT + 8 * i);
      second[i] = format.width > 4 ? word_of_codes<D>(first, format.width, part * COUNT + 8 * i + 4) : 0;
    }
  }

  /// The centroid of code i.
  Centroid centroid(uint i, CodeFormat format, CentroidTable table) const {
    const uint word = format.width > 4 && i % 8 >= 4 ? second[i / 8] : words[i / 8];
    const uint bit = (format.width > 4 ? i % 4 : i % 8) * format.width;
    const uint shift = format.shift;
    // One shift makes it an offset.
    const uint shifted = bit < shift ? word << (shift - bit) : word >> (bit - shift);
    return table.at(shifted & (((1u << format.bits) - 1) << shift));
  }

 private:
  /// From rows of which the first begins at a multiple of 16 bytes, by loads as large as the place of a run allows.
  template <uint WIDTH>
  void load_words(const device uchar *rows, uint row, uint part) {
    constexpr uint bits = COUNT * WIDTH;
    // Runs begin at multiples of so many bits.
    constexpr uint step = bits & -bits;
    constexpr uint most = step < 32 ? 32 - step + bits : bits;
    constexpr uint count = (most + 31) / 32;
    constexpr uint wide = step % 128 == 0 ? 4 : step % 64 == 0 ? 2 : 1;
    // The last word of the last run of 24 bits is the row's.
    constexpr bool is_beyond = count > (bits + 31) / 32;
    const uint start = part * bits / 32;
    const uint shift = step < 32 ? part * bits % 32 : 0;
    const device uint *from = (const device uint *)rows + start + ulong(row) * (D * WIDTH / 32);
    uint loaded[count + 1] = {};
#pragma clang loop unroll(full)
    for (uint i = 0; i < count; i += wide) {
      if (wide == 4) {
        const uint4 four = *(const device uint4 *)(from + i);
        loaded[i] = four.x;
        loaded[i + 1] = four.y;
        loaded[i + 2] = four.z;
        loaded[i + 3] = four.w;
      } else if (wide == 2) {
        const uint2 two = *(const device uint2 *)(from + i);
        loaded[i] = two.x;
        loaded[i + 1] = two.y;
      } else {
        loaded[i] = from[is_beyond ? min(i, D * WIDTH / 32 - 1 - start) : i];
      }
    }
    if (step < 32) {
#pragma clang loop unroll(full)
      for (uint i = 0; i < count; i++) {
        loaded[i] = bits_of_words(loaded[i], loaded[i + 1], shift);
      }
    }
#pragma clang loop unroll(full)
    for (uint i = 0; i < COUNT / 8; i++) {
      const uint bit = 8 * WIDTH * i;
      words[i] = bits_of_words(loaded[bit / 32], loaded[bit / 32 + 1], bit % 32);
      const uint next = bit + 4 * WIDTH;
      second[i] = WIDTH > 4 ? bits_of_words(loaded[next / 32], loaded[next / 32 + 1], next % 32) : 0;
    }
  }
};

/// What a lane has of a leaf of K: in matrix m, of which there are four, the key is 8 m + row. IS_WIDE where codes of K
/// or V may have more than 4 bits.
template <int D, bool IS_WIDE>
struct CodedKeys {
  typedef half Element;

  static constant constexpr bool is_coded = true;
  /// The limit of a threadgroup, of which 128 are used: it leaves a thread 128 registers of an NVIDIA GPU, or 168 where
  /// a leaf has twice the words.
  static constant constexpr int most_threads = IS_WIDE && D > 64 ? 384 : 512;
  /// Words of the tables of K and V: of as many bits they are one.
  static constant constexpr int table_words = IS_WIDE ? 16 * 256 + 64 : 32;
  /// A leaf is multiplied as it is read.
  static constant constexpr int parts = 1;
  static constant constexpr int staged_bytes = 0;
  /// Columns that a coordinate has in matrices.
  static constant constexpr int columns = 2;
  /// Halves from one query to the next.
  static constant constexpr int query_row = D * columns + 8;

  CodeFormat format;
  CentroidTable table;
  CodeRun<D, D / 4, IS_WIDE> codes[4];

  CodedKeys(uint own, uint other, bool is_aligned, const threadgroup uint *centroids, uint lane, threadgroup uint4 *)
      : format(own, other, is_aligned), table(centroids, format, lane) {}

  /// Where a query has coordinate d, `columns` times: p * (D / 4) + t in matrix t, at columns 2 p and 2 p + 1.
  static uint place(uint d) { return d % (D / 4) * 8 + d / (D / 4) * 2; }

  void load(const device uchar *k, LeafRows leaf, MatrixLane at) {
    uint rows[4];
    leaf.of<8>(at.row, rows);
#pragma clang loop unroll(full)
    for (int m = 0; m < 4; m++) {
      codes[m].load(k, format, rows[m], at.pair);
    }
  }

  void stage(uint, MatrixLane) const {}

  void load_matrix(thread Matrix<half> &matrix, uint m, uint t) const {
    set_elements(matrix, codes[m].centroid(t, format, table));
  }
};

/// What a lane has of a leaf of V: in matrix m the key is 4 m + pair, so that what lanes read at once lies together,
/// and the coordinates are row * (D / 8) on.
template <int D, bool IS_WIDE>
struct CodedValues {
  typedef half Element;

  static constant constexpr bool is_coded = true;
  static constant constexpr int matrices = 8;
  static constant constexpr int parts = 1;
  static constant constexpr int staged_bytes = 0;

  CodeFormat format;
  CentroidTable table;
  CodeRun<D, D / 8, IS_WIDE> codes[8];

  CodedValues(uint own, uint other, bool is_aligned, const threadgroup uint *centroids, uint lane, threadgroup uint4 *)
      : format(own, other, is_aligned), table(centroids, format, lane) {}

  /// The coordinate of a row of matrix j of the sums.
  static uint coordinate(uint row, uint j) { return row * (D / 8) + j; }

  void load(const device uchar *v, LeafRows leaf, MatrixLane at) {
#pragma clang loop unroll(full)
    for (uint i = 0; i < 2; i++) {
      uint rows[4];
      leaf.of<8>(4 * i + at.pair, rows);
#pragma clang loop unroll(full)
      for (int m = 0; m < 4; m++) {
        codes[2 * m + i].load(v, format, rows[m], at.row);
      }
    }
  }

  void stage(uint, MatrixLane) const {}

  void load_matrix(thread Matrix<half> &matrix, uint m, uint j) const {
    set_elements(matrix, codes[m].centroid(j, format, table));
  }

  /// Weights of the keys whose scores the lane has, as matrices with the rows of a key there twice.
  static void spread(const thread float2 *of_keys, MatrixLane at, thread Matrix<half> *weights) {
    Matrix<half> of_leaf[4];
    weights_of_leaf<half>(of_keys, at, of_leaf);
#pragma clang loop unroll(full)
    for (int m = 0; m < 8; m++) {
      const uint pair = as_type<uint>(elements_of(of_leaf[m / 2]));
      const uint weight = simd_shuffle(pair, at.lane_of_row(m % 2 * 4 + at.row / 2));
      set_elements(weights[m], as_type<half2>(weight));
    }
  }
};
