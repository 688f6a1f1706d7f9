/// Codes of scaled coordinates, and the layouts of a row of the cache: code i of
/// b bits takes bits i * b and up, least significant first (4 bits: even i in
/// the low nibble), or a byte of its own.
#pragma once

#include <metal_stdlib>

#include "hadamard_codebooks.h"

using namespace metal;

/// The 2^(bits - 1) - 1 positive boundaries of a width.
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

/// The code of a value of 4 bits: binary search among the 7 positive boundaries.
inline uint code_of_4(float z) {
  const constant float *b = boundaries_of(4);
  const uint magnitude = comparable_magnitude(z);
  const bool upper = magnitude > comparable_magnitude(b[3]);
  const bool middle = magnitude > comparable_magnitude(upper ? b[5] : b[1]);
  const float above = middle ? b[6] : b[4];
  const float below = middle ? b[2] : b[0];
  const bool last = magnitude > comparable_magnitude(upper ? above : below);
  return signed_code(z, (upper ? 4 : 0) | (middle ? 2 : 0) | (last ? 1 : 0), 4);
}

/// Codes of N values of any width: binary search among the 2^(bits - 1) - 1
/// positive boundaries, a step of all values at once.
template <int N>
inline void codes_of(const thread float *z, uint bits, thread uchar *codes) {
  const constant float *table = boundaries_of(bits);
  uint below[N] = {};
  for (uint step = 1u << (bits - 2); step > 0; step /= 2) {
    for (int i = 0; i < N; i++) {
      below[i] += comparable_magnitude(z[i]) > comparable_magnitude(table[below[i] + step - 1]) ? step : 0;
    }
  }
  for (int i = 0; i < N; i++) {
    codes[i] = uchar(signed_code(z[i], below[i], bits));
  }
}

// Packings of codes; the one named `byte` is `hb` in the names of kernels, as in
// mlx-native. `width`: bits of a row that a code takes. `encode`: N values to
// `encoded_size(N)` bytes of codes, of the row already where that needs no width.
// `store`: COUNT values, a multiple of 8, so encoded, to where the first
// belongs. `load`: the centroids of `load_codes` codes, which take `load_bytes(bits)`
// bytes; the codes are below 2^bits whatever the bytes.

/// Copies bytes to a row.
template <int COUNT>
inline void store_bytes(device uchar *row, const thread uchar *bytes) {
  for (int i = 0; i < COUNT; i++) {
    row[i] = bytes[i];
  }
}

/// Two 4-bit codes a byte.
struct NibblePacking {
  static uint width(uint) { return 4; }
  static constexpr int encoded_size(int count) { return count / 2; }
  template <int N>
  static void encode(const thread float *z, uint, thread uchar *encoded) {
    for (int i = 0; i < N / 2; i++) {
      encoded[i] = uchar(code_of_4(z[2 * i]) | code_of_4(z[2 * i + 1]) << 4);
    }
  }
  template <int COUNT>
  static void store(device uchar *row, const thread uchar *encoded, uint) {
    store_bytes<COUNT / 2>(row, encoded);
  }
  static constant constexpr int load_codes = 2;
  static int load_bytes(uint) { return 1; }
  static void load(const device uchar *row, thread float *values, uint) {
    values[0] = centroids_of(4)[*row & 15];
    values[1] = centroids_of(4)[*row >> 4];
  }
};

/// One code of 5, 6 or 8 bits a byte.
struct BytePacking {
  static uint width(uint) { return 8; }
  static constexpr int encoded_size(int count) { return count; }
  template <int N>
  static void encode(const thread float *z, uint bits, thread uchar *encoded) {
    codes_of<N>(z, bits, encoded);
  }
  template <int COUNT>
  static void store(device uchar *row, const thread uchar *encoded, uint) {
    store_bytes<COUNT>(row, encoded);
  }
  static constant constexpr int load_codes = 1;
  static int load_bytes(uint) { return 1; }
  static void load(const device uchar *row, thread float *values, uint bits) {
    values[0] = centroids_of(bits)[*row & ((1u << bits) - 1)];
  }
};

/// Codes of 2, 3, 5 or 6 bits without gaps, 8 of them in `bits` bytes.
struct DensePacking {
  static uint width(uint bits) { return bits; }
  static constexpr int encoded_size(int count) { return count; }
  template <int N>
  static void encode(const thread float *z, uint bits, thread uchar *encoded) {
    codes_of<N>(z, bits, encoded);
  }
  template <int COUNT>
  static void store(device uchar *row, const thread uchar *encoded, uint bits) {
    for (int i = 0; i < COUNT; i += 8) {
      ulong joined = 0;
      for (int j = 0; j < 8; j++) {
        joined |= ulong(encoded[i + j]) << (j * bits);
      }
      device uchar *bytes = row + i / 8 * bits;
      for (int k = 0; k < 6; k++) {
        if (k < int(bits)) {
          bytes[k] = uchar(joined >> (8 * k));
        }
      }
    }
  }
  static constant constexpr int load_codes = 8;
  static int load_bytes(uint bits) { return bits; }
  static void load(const device uchar *row, thread float *values, uint bits) {
    const uint mask = (1u << bits) - 1;
    uint pending = 0;
    uint pending_bits = 0;
    for (uint j = 0; j < 8; j++) {
      if (pending_bits < bits) {
        pending |= uint(*row++) << pending_bits;
        pending_bits += 8;
      }
      values[j] = centroids_of(bits)[pending & mask];
      pending >>= bits;
      pending_bits -= bits;
    }
  }
};
