/// Codes of scaled coordinates, and the layouts of a row of the cache: code i of
/// b bits takes bits i * b and up, least significant first (4 bits: even i in
/// the low nibble), or a byte of its own.
#pragma once

#include <metal_stdlib>

#include "hadamard_codebooks.h"

using namespace metal;

/// The 2^(bits - 1) - 1 positive boundaries of a width, breadth first: node n of a search, the first
/// is 1, lies at n - 1, and those after it are 2n and 2n + 1, so the first five steps read one line of memory each.
inline const constant float *boundaries_of(uint bits) {
  return codebooks + (bits == 8 ? 57 : (1u << (bits - 1)) - bits);
}

/// The 2^bits centroids of a width; 184 boundaries precede all of them.
inline const constant float *centroids_of(uint bits) { return codebooks + 184 + (bits == 8 ? 124 : (1u << bits) - 4); }

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
  const constant float *b = boundaries_of(4);
  const uint magnitude = comparable_magnitude(z);
  const bool upper = magnitude > comparable_magnitude(b[0]);
  const bool middle = magnitude > comparable_magnitude(upper ? b[2] : b[1]);
  const float above = middle ? b[6] : b[5];
  const float below = middle ? b[4] : b[3];
  const bool last = magnitude > comparable_magnitude(upper ? above : below);
  return signed_code(z, (upper ? 4 : 0) | (middle ? 2 : 0) | (last ? 1 : 0), 4);
}

/// The code of a value of any width.
inline uint code_of(float z, uint bits) {
  const constant float *table = boundaries_of(bits);
  const uint magnitude = comparable_magnitude(z);
  const uint half_levels = 1u << (bits - 1);
  uint node = 1;
  while (node < half_levels) {
    node = 2 * node + (magnitude > comparable_magnitude(table[node - 1]) ? 1 : 0);
  }
  return signed_code(z, node - half_levels, bits);
}

/// The codes of 4 values of any width, a step of all at once.
inline uint4 codes_of(float4 z, uint bits) {
  const constant float *table = boundaries_of(bits);
  const uint half_levels = 1u << (bits - 1);
  uint4 node = uint4(1u);
  for (uint level = 1; level < half_levels; level *= 2) {
    for (uint j = 0; j < 4; j++) {
      node[j] = 2 * node[j] + (comparable_magnitude(z[j]) > comparable_magnitude(table[node[j] - 1]) ? 1 : 0);
    }
  }
  uint4 codes;
  for (uint j = 0; j < 4; j++) {
    codes[j] = signed_code(z[j], node[j] - half_levels, bits);
  }
  return codes;
}
