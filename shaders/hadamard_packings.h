/// Packings of codes in a row of the quantized cache, read and written by the lanes that own a head vector.
#pragma once

#include "hadamard_formats.h"
#include "hadamard_lanes.h"

/// Codes of `width` bits, the first lowest.
inline uint join_codes(uint4 codes, uint width) {
  return codes.x | codes.y << width | codes.z << (2 * width) | codes.w << (3 * width);
}

// Packings of codes; the one named `byte` is `hb` in the names of kernels, as in
// mlx-native. `width`: bits of a row that a code takes. `codes`: those of a quad, joined. `store`: such codes
// of quad number i of a lane, of LANES that own the row (hadamard_lanes.h), all of which call it. `load`: the centroids
// of quad q of a row; codes are below 2^bits whatever the bytes.

/// Two 4-bit codes a byte.
struct NibblePacking {
  static uint width(uint) { return 4; }
  static uint codes(float4 z, uint) {
    return join_codes(uint4(code_of_4(z.x), code_of_4(z.y), code_of_4(z.z), code_of_4(z.w)), 4);
  }
  template <uint LANES>
  static void store(device uchar *row, uint i, uint simd_lane, uint codes, uint) {
    store_word<ushort>(row + 2 * (i * LANES + simd_lane % LANES), ushort(codes));
  }
  static float4 load(const device uchar *row, uint q, uint) {
    const constant float *table = centroids_of(4);
    const uint codes = load_word<ushort>(row + 2 * q);
    return float4(table[codes & 15], table[codes >> 4 & 15], table[codes >> 8 & 15], table[codes >> 12]);
  }
};

/// The centroids of 4 joined codes of `width` bits.
inline float4 centroids_at(uint codes, uint bits, uint width) {
  const constant float *table = centroids_of(bits);
  const uint mask = (1u << bits) - 1;
  return float4(table[codes & mask], table[codes >> width & mask], table[codes >> (2 * width) & mask],
                table[codes >> (3 * width) & mask]);
}

/// One code of 5, 6 or 8 bits a byte.
struct BytePacking {
  static uint width(uint) { return 8; }
  static uint codes(float4 z, uint bits) { return join_codes(codes_of(z, bits), 8); }
  template <uint LANES>
  static void store(device uchar *row, uint i, uint simd_lane, uint codes, uint) {
    store_word<uint>(row + 4 * (i * LANES + simd_lane % LANES), codes);
  }
  static float4 load(const device uchar *row, uint q, uint bits) {
    return centroids_at(load_word<uint>(row + 4 * q), bits, 8);
  }
};

/// Codes of 2, 3, 5 or 6 bits without gaps.
struct DensePacking {
  static uint width(uint bits) { return bits; }
  static uint codes(float4 z, uint bits) { return join_codes(codes_of(z, bits), bits); }
  /// The codes of 8 quads are `bits` words of 32 bits, of 4 quads words of 16. Each of as many lanes gathers one
  /// of them (of 4 lanes some a second) from the up to 4 lanes that have bits of it.
  template <uint LANES>
  static void store(device uchar *row, uint i, uint simd_lane, uint codes, uint bits) {
    constexpr uint lanes = LANES < 8 ? LANES : 8;
    typedef typename LaneWord<lanes>::type Word;
    const uint lane = simd_lane % lanes;
    device uchar *words = row + (i * LANES + simd_lane % LANES - lane) * bits / 2;
#pragma clang loop unroll(full)
    for (uint turn = 0; turn < 8 / lanes; turn++) {
      const uint w = turn * lanes + lane;
      const uint first = w * lanes / bits;
      uint word = 0;
#pragma clang loop unroll(full)
      for (uint k = 0; k < 4; k++) {
        const uint from = min(first + k, lanes - 1);
        const uint part = simd_shuffle(codes, ushort(simd_lane - lane + from));
        const int shift = int(4 * bits * (first + k)) - int(4 * lanes * w);
        if (first + k < lanes && shift < int(4 * lanes)) {
          word |= shift < 0 ? part >> -shift : part << shift;
        }
      }
      if (w < bits) {
        store_word<Word>(words + w * sizeof(Word), Word(word));
      }
    }
  }
  static float4 load(const device uchar *row, uint q, uint bits) {
    const device uchar *bytes = row + q * bits / 2;
    uint codes = bytes[0];
    if (bits > 2) {
      codes |= uint(bytes[1]) << 8;
    }
    if (bits > 3) {
      codes |= uint(bytes[2]) << 16;
    }
    return centroids_at(codes >> (q * bits % 2 * 4), bits, bits);
  }
};
