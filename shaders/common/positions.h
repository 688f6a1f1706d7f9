/// How far attention counts positions.
#pragma once

#include <metal_stdlib>

/// Positions that a sequence may have, in a ring too: sums with those of a block or a window stay inside of 32 bits.
constant constexpr int kMostPositions = 1 << 30;
