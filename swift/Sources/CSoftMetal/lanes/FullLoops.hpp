/// Loops that lanes leave at different times, once more for as long as none leaves.
#pragma once

#include "llvm/IR/Function.h"

namespace lanes {

/// `while (c) body` becomes `while (all lanes: c) body; while (c) body`. The first runs with the lanes that came, often
/// all: its accesses need no mask, and its counters are the same for all. Done for innermost loops whose header
/// decides, before the function is widened. True where any was.
bool addFullLoops(llvm::Function &function, bool mayAssume);

}  // namespace lanes
