/// Loops that walk private arrays.
#pragma once

#include "llvm/Passes/PassBuilder.h"

namespace lanes {

/// Makes `softmetal-unroll-private` known: a loop pass that has loops over private arrays unrolled wholly where they
/// stay small. Only with known indices does an array become registers; left in memory, an index that differs between
/// lanes gathers. LLVM's own bound is lower, and counts a function of a SIMD group as a call.
void registerUnrollPrivate(llvm::PassBuilder &builder);

}  // namespace lanes
