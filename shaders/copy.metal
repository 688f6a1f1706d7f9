/// Bytes from one place to another: between memory that the CPU sees and memory of the device's own, and within each.
///
/// Grid (ceil(row / 128) * 32, ceil(units / row), 1): 32 threads move 128 consecutive units of 8, 4, 2 or 1 bytes, the
/// largest that divides where both ends begin and what is moved; each of them four, of which all loads come before the
/// stores, so that enough of them are under way. A row keeps 32-bit positions for more than 2^32 units. Any threadgroup
/// size; no threadgroup memory, no barriers. Registers: 26 (nvptx64, sm_90). Reads and writes each byte once; bound by
/// memory bandwidth: 32 lanes of 8 bytes touch two whole 128-byte lines.
#include <metal_stdlib>

#include "ShaderTypes.h"
#include "common/arithmetic.h"
#include "common/instantiate.h"

using namespace metal;

constant constexpr uint units_per_thread = 4;
constant constexpr uint lanes = 32;

/// Moves units of type `Unit`; the two places do not overlap.
template <typename Unit>
[[kernel]] void copy_units(const device Unit *from [[buffer(0)]], device Unit *to [[buffer(1)]],
                           constant CopyParams &params [[buffer(2)]], uint2 position [[thread_position_in_grid]]) {
  const uint column = position.x / lanes * (lanes * units_per_thread) + position.x % lanes;
  const long first = long(position.y) * params.row + column;
  Unit units[units_per_thread];
#pragma clang loop unroll(full)
  for (uint i = 0; i < units_per_thread; i++) {
    if (first + i * lanes < params.units) {
      units[i] = from[first + i * lanes];
    }
  }
#pragma clang loop unroll(full)
  for (uint i = 0; i < units_per_thread; i++) {
    if (first + i * lanes < params.units) {
      to[first + i * lanes] = units[i];
    }
  }
}

instantiate_kernel("copy_8", copy_units, ulong);
instantiate_kernel("copy_4", copy_units, uint);
instantiate_kernel("copy_2", copy_units, ushort);
instantiate_kernel("copy_1", copy_units, uchar);
