/// Codes of scaled coordinates, and the layouts of a row of the cache: code i of
/// b bits takes bits i * b and up, least significant first (4 bits: even i in
/// the low nibble), or a byte of its own.
#pragma once

#include <metal_stdlib>

#include "hadamard_codebooks.h"

using namespace metal;

/// The 2^bits centroids of a width.
inline const constant float *centroids_of(uint bits) {
  return codebook_centroids + (bits == 8 ? 124 : (1u << bits) - 4);
}

/// Of a format as kernels have it, the bits of a code, plus 8 where 5 or 6 of them have a byte of their own: those
/// bits, and how many of a row a code takes.
inline uint bits_of_format(uint format) { return format == 8 ? 8 : format & 7; }
inline uint width_of_format(uint format) { return format >= 8 ? 8 : format; }

/// 32 bits of a row of D codes that begin with code i. Rows are whole words of 16 bits; near the end of one it steps
/// back by what a shift makes good.
template <int D>
inline uint word_of_codes(const device uchar *row, uint width, uint i) {
  const uint bit = i * width;
  const uint start = min(bit / 16, D / 16 * width - 2);
  const packed_ushort2 words = *(const device packed_ushort2 *)(row + 2 * start);
  return (uint(words[0]) | uint(words[1]) << 16) >> (bit - 16 * start);
}

/// The magnitude's bits, which compare as integers like the magnitude itself,
/// and the sign below them: a value on a boundary belongs to the lower code.
inline uint comparable_magnitude(float z) { return rotate(as_type<uint>(z), 1u); }

/// The code of a value whose magnitude has `below` boundaries below it. A NaN
/// has all of them below and is not positive: code 0.
inline uint signed_code(float z, uint below, uint bits) {
  const uint half_levels = 1u << (bits - 1);
  return below ^ (z > 0.0f ? half_levels : half_levels - 1);
}

/// The code of a value of 4 bits.
inline uint code_of_4(float z) {
  const constant float *b = codebook_boundaries_4;
  const uint magnitude = comparable_magnitude(z);
  const bool upper = magnitude > comparable_magnitude(b[3]);
  const bool middle = magnitude > comparable_magnitude(upper ? b[5] : b[1]);
  const float above = middle ? b[6] : b[4];
  const float below = middle ? b[2] : b[0];
  const bool last = magnitude > comparable_magnitude(upper ? above : below);
  return signed_code(z, (upper ? 4 : 0) | (middle ? 2 : 0) | (last ? 1 : 0), 4);
}

/// Finds codes of a width: a magnitude's cell by its first bits, and its side of the one boundary there.
struct CodeSearch {
  const constant CodebookCell *cells;
  float cells_per_unit;
  uint beyond;  ///< the start of the last cell, to compare
  uint bits;

  uint code(float z) const {
    const uint magnitude = comparable_magnitude(z);
    const CodebookCell cell = cells[uint(as_type<float>(min(magnitude, beyond) >> 1) * cells_per_unit)];
    return signed_code(z, cell.below + (magnitude > cell.boundary ? 1 : 0), bits);
  }
};

inline CodeSearch code_search_of(uint bits) {
  const uint first = codebook_first_cells[bits];
  const float cells_per_unit = float(1u << (bits - 2));
  const float beyond = float(codebook_first_cells[bits + 1] - first - 1) / cells_per_unit;
  return {codebook_cells + first, cells_per_unit, comparable_magnitude(beyond), bits};
}

/// The codes of 4 values of any width.
inline uint4 codes_of(float4 z, uint bits) {
  const CodeSearch search = code_search_of(bits);
  return uint4(search.code(z.x), search.code(z.y), search.code(z.z), search.code(z.w));
}
