/// Halves of a float4 that a front end keeps as 64 bits, since that is how such a struct is passed: as pairs of floats.
///
/// What crosses iterations or comes from memory as 64 bits would be put together from two vectors of floats, and taken
/// apart again, in each iteration.
#pragma once

#include "llvm/IR/Function.h"

namespace lanes {

void pairHalves(llvm::Function &function);

/// Private variables that consist of words of 32 bits alone are accessed by vectors of words, of which LLVM makes
/// values, and not by halves of 64 bits.
void accessWords(llvm::Function &function);

}  // namespace lanes
