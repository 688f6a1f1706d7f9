/// Bits, bounds and strides of integers of a type.
#pragma once

#include <cstdint>

#include "llvm/IR/Type.h"
#include "llvm/Support/MathExtras.h"

namespace lanes {

constexpr uint64_t noLimit = ~uint64_t(0);

inline unsigned bitsOf(const llvm::Type *type) { return type->isIntegerTy() ? type->getIntegerBitWidth() : 64; }
inline uint64_t largest(unsigned bits) { return bits >= 64 ? noLimit : (uint64_t(1) << bits) - 1; }

/// A stride counts modulo 2^bits.
inline int64_t wrapped(int64_t stride, unsigned bits) {
  return bits >= 64 ? stride : llvm::SignExtend64(uint64_t(stride), bits);
}

}  // namespace lanes
