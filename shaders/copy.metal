/// Bytes from one place to another: between memory that the CPU sees and memory of the device's own, and within each.
///
/// Grid (row, ceil(units / row), 1): a thread moves one unit of 16, 4, 2 or 1 bytes, the largest that divides where
/// both ends begin and what is moved; a row keeps 32-bit positions for more than 2^32 units. Any threadgroup size; no
/// threadgroup memory, no barriers. Bound by memory bandwidth: 32 lanes of 16 bytes touch four whole 128-byte lines.
#include <metal_stdlib>

#include "ShaderTypes.h"
#include "common/instantiate.h"

using namespace metal;

/// Moves a unit of type `Unit`; the two places do not overlap.
template <typename Unit>
[[kernel]] void copy_units(const device Unit *from [[buffer(0)]], device Unit *to [[buffer(1)]],
                           constant CopyParams &params [[buffer(2)]], uint2 position [[thread_position_in_grid]]) {
  const long unit = long(position.y) * params.row + position.x;
  if (unit < params.units) {
    to[unit] = from[unit];
  }
}

instantiate_kernel("copy_16", copy_units, uint4);
instantiate_kernel("copy_4", copy_units, uint);
instantiate_kernel("copy_2", copy_units, ushort);
instantiate_kernel("copy_1", copy_units, uchar);
