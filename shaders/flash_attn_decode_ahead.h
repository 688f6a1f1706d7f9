/// Rows of K or V on their way before they are used.
#pragma once

#include <metal_stdlib>
#include <metal_simdgroup>

#include "flash_attn_decode_keys.h"

using namespace metal;

/// Rows of a leaf for a lane, in their order: as they are used, or of dense rows, where IS_AHEAD says so, a
/// group of rows before. A GPU has more bytes on their way so; a processor asks ahead by itself and has no
/// registers for it. Not a bit depends on it. PER_STEP: keys of a step; ROOM: words that a lane has for a group.
template <int PER_STEP, int ROOM, bool IS_AHEAD>
struct RowsAhead {
  uint bits[ROOM];
  uint next[ROOM];

  /// Rows of a group: as many of a step as there is room for, a power of two.
  template <typename Rows>
  static constexpr int group() {
    int rows = PER_STEP;
    while (rows > 1 && rows * Rows::words > ROOM) {
      rows /= 2;
    }
    return rows;
  }

  template <typename Rows>
  static constexpr bool is_on() {
    return IS_AHEAD && Rows::words > 0 && Rows::words <= ROOM;
  }

  /// Asks for the group that begins with key `first` of the leaf. Lane l has the row of key l in `row`.
  template <typename Rows>
  void ask(Rows rows, uint row, int first, uint lane) thread {
    if (is_on<Rows>()) {
#pragma clang loop unroll(full)
      for (int k = 0; k < group<Rows>(); k++) {
        rows.fetch(simd_shuffle(row, ushort(first + k)), lane, next + k * Rows::words);
      }
    }
  }

  /// The row of key k of step `step`. `ask` was called for the first group.
  template <typename Rows>
  void load(Rows rows, uint row, int step, int k, uint lane, thread float *values) thread {
    const int key = step * PER_STEP + k;
    if (!is_on<Rows>()) {
      rows.load(simd_shuffle(row, ushort(key)), lane, values);
      return;
    }
    if (k % group<Rows>() == 0) {
#pragma clang loop unroll(full)
      for (int i = 0; i < group<Rows>() * Rows::words; i++) {
        bits[i] = next[i];
      }
      if (key + group<Rows>() < kLeafKeys) {
        ask(rows, row, key + group<Rows>(), lane);
      }
    }
    rows.decode(bits + k % group<Rows>() * Rows::words, values);
  }
};
