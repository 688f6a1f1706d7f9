/// Slots of a cache.
#pragma once

#include <metal_stdlib>

using namespace metal;

/// The slot of position first + token in a ring, for token < capacity: the slots
/// wrap at most once, so only the first one takes a division.
inline uint ring_slot(uint first, uint token, uint capacity) {
  const uint start = first % capacity;
  const uint before_wrap = capacity - start;
  return token < before_wrap ? start + token : token - before_wrap;
}

/// The slot of position first + token: the position itself where the cache is linear.
inline uint slot_of(uint first, uint token, uint capacity, bool is_ring) {
  return is_ring ? ring_slot(first, token, capacity) : first + token;
}
