/// Halves of a float4 that a front end keeps as 64 bits, since that is how such a struct is passed: as pairs of floats.
///
/// What crosses iterations or comes from memory as 64 bits would be put together from two vectors of floats, and taken
/// apart again, in each iteration.
#pragma once

#include "llvm/IR/Function.h"

namespace lanes {

void pairHalves(llvm::Function &function);

}  // namespace lanes
