/// Codes of K and V as elements of 8x8 matrices: no lane needs what another has decoded.
///
/// A lane has two neighbours of a row of a matrix (common/simdgroup_tile.h): row `row`, columns 2 `pair` and the next.
/// They are the two halves whose sum is a centroid, so that a look-up is an element pair as it stands; the right factor
/// then has each of its rows twice. Of a matrix of K the row is a key and the pair a coordinate, of one of V
/// (transposed) the row is a coordinate and the pair a key. Which coordinate is free, as long as queries and sums
/// agree: a lane reads a run of neighbours, and takes one of them for each matrix.
#pragma once

#include <metal_stdlib>
#include <metal_simdgroup>

#include "common/simdgroup_tile.h"
#include "hadamard_formats.h"

using namespace metal;

/// A centroid as the sum of two halves, which have 22 bits together.
typedef half2 Centroid;

/// Centroids are as many times as large in tables, so that the smaller half of none is subnormal.
constant constexpr float kCentroidUnit = 1024.0f;

using HalfMatrix = simdgroup_matrix<half, 8, 8>;

/// The row and the pair of columns of a lane.
struct MatrixLane {
  uint row;
  uint pair;

  explicit MatrixLane(uint lane) {
    const LaneElements elements = elements_of_lane(lane);
    row = uint(elements.row);
    pair = uint(elements.column) / 2;
  }
};

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

/// The rows of the 32 keys of a leaf.
struct LeafRows {
  uint row;  ///< of key `lane`
  uint first;  ///< of key 0
  bool is_run;

  LeafRows(uint row_of_lane, uint lane)
      : row(row_of_lane), first(simd_broadcast_first(row_of_lane)), is_run(simd_all(row_of_lane == first + lane)) {}

  /// Those of four keys, 8 apart from `key` on. Most leaves lie in one piece, where no lane has to ask another.
  void of(uint key, thread uint *rows) const {
    if (is_run) {
#pragma clang loop unroll(full)
      for (uint m = 0; m < 4; m++) {
        rows[m] = first + key + 8 * m;
      }
    } else {
#pragma clang loop unroll(full)
      for (uint m = 0; m < 4; m++) {
        rows[m] = simd_shuffle(row, ushort(key + 8 * m));
      }
    }
  }
};

/// What a lane has of a leaf of K: in matrix m, of which there are four, the key is 8 m + row.
template <int D>
struct LeafOfKeys {
  CodeRun<D, D / 4> codes[4];
  /// Of the two keys whose scores it has: those of matrices 0 and 1, or of 2 and 3 where its columns are the last four.
  float norm_k[2];
  float norm_v[2];

  void load(const device uchar *k, const device float *norms_k, const device float *norms_v, CodeFormat format,
            LeafRows leaf, MatrixLane at) {
    uint rows[4];
    leaf.of(at.row, rows);
#pragma clang loop unroll(full)
    for (int m = 0; m < 4; m++) {
      codes[m].load(k, format, rows[m], at.pair * (D / 4));
    }
#pragma clang loop unroll(full)
    for (int m = 0; m < 2; m++) {
      const uint row = at.pair >= 2 ? rows[m + 2] : rows[m];
      norm_k[m] = norms_k[row];
      norm_v[m] = norms_v[row];
    }
  }

  /// The products with the queries, which lie in rows of 2 D + 8 halves: four of upper halves, four of lower ones, with
  /// each coordinate twice. Tensor cores cut off what they add up, by up to 2^-23 of a sum each time; so sums are
  /// short, 64 coordinates, and joined in float.
  void multiply(CodeFormat format, const threadgroup Centroid *table, const threadgroup half *queries,
                thread Accumulator *products) const {
#pragma clang loop unroll(full)
    for (int t = 0; t < D / 4; t += 16) {
      Accumulator parts[4];
      multiply_part(t, format, table, queries, parts);
#pragma clang loop unroll(full)
      for (int m = 0; m < 4; m++) {
        thread auto &sum = products[m].thread_elements();
        const thread auto &part = parts[m].thread_elements();
        sum[0] = t == 0 ? part[0] : sum[0] + part[0];
        sum[1] = t == 0 ? part[1] : sum[1] + part[1];
      }
    }
  }

 private:
  /// Of 16 matrices of queries from `first` on.
  void multiply_part(int first, CodeFormat format, const threadgroup Centroid *table, const threadgroup half *queries,
                     thread Accumulator *products) const {
#pragma clang loop unroll(full)
    for (int m = 0; m < 4; m++) {
      products[m] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    }
#pragma clang loop unroll(full)
    for (int t = first; t < first + 16; t += 2) {
      HalfMatrix query[2];
      HalfMatrix keys[2][4];
#pragma clang loop unroll(full)
      for (int u = 0; u < 2; u++) {
        simdgroup_load(query[u], queries + 8 * (t + u), 2 * D + 8, ulong2(0, 0), true);
#pragma clang loop unroll(full)
        for (int m = 0; m < 4; m++) {
          keys[u][m].thread_elements() = codes[m].centroid(t + u, format, table);
        }
      }
      // Two matrices with one right factor, and two steps of a sum, one behind the other: a product of 16 rows and 16
      // steps where the hardware has such.
#pragma clang loop unroll(full)
      for (int two = 0; two < 4; two += 2) {
#pragma clang loop unroll(full)
        for (int u = 0; u < 2; u++) {
          simdgroup_multiply_accumulate(products[two], keys[u][two], query[u], products[two]);
          simdgroup_multiply_accumulate(products[two + 1], keys[u][two + 1], query[u], products[two + 1]);
        }
      }
    }
  }
};

/// What a lane has of a leaf of V: in matrices 2 m and 2 m + 1 the keys are 8 m + 2 pair and the next, and the
/// coordinates row * (D / 8) on.
template <int D>
struct LeafOfValues {
  CodeRun<D, D / 8> codes[8];

  void load(const device uchar *v, CodeFormat format, LeafRows leaf, MatrixLane at) {
#pragma clang loop unroll(full)
    for (uint i = 0; i < 2; i++) {
      uint rows[4];
      leaf.of(2 * at.pair + i, rows);
#pragma clang loop unroll(full)
      for (int m = 0; m < 4; m++) {
        codes[2 * m + i].load(v, format, rows[m], at.row * (D / 8));
      }
    }
  }

  /// sums = sums * factors + V^T weights: D / 8 matrices of coordinates, 8 of weights, in each of which the rows of a
  /// key are there twice. The products of the leaf are added up apart, as those of K are.
  void accumulate(CodeFormat format, const threadgroup Centroid *table, const thread HalfMatrix *weights,
                  const thread float *factors, thread Accumulator *sums) const {
#pragma clang loop unroll(full)
    for (int j = 0; j < D / 8; j += 2) {
      Accumulator parts[2];
      parts[0] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
      parts[1] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
#pragma clang loop unroll(full)
      for (int m = 0; m < 8; m++) {
        HalfMatrix values[2];
        values[0].thread_elements() = codes[m].centroid(j, format, table);
        values[1].thread_elements() = codes[m].centroid(j + 1, format, table);
        simdgroup_multiply_accumulate(parts[0], values[0], weights[m], parts[0]);
        simdgroup_multiply_accumulate(parts[1], values[1], weights[m], parts[1]);
      }
#pragma clang loop unroll(full)
      for (int u = 0; u < 2; u++) {
        thread auto &sum = sums[j + u].thread_elements();
        const thread auto &part = parts[u].thread_elements();
        sum[0] = fma(sum[0], factors[0], part[0]);
        sum[1] = fma(sum[1], factors[1], part[1]);
      }
    }
  }
};
