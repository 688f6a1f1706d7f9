/// A lane's two elements of a matrix: one value for the pass, two for a front end that looks at components.
#pragma once

#include "llvm/IR/Function.h"

namespace lanes {

/// Accesses to an element of a share in private memory become accesses to the share, where products are kept.
void takeWholeShares(llvm::Function &function);
/// What is done with both elements of a pair alike is done with the pair.
void packElements(llvm::Function &function);

}  // namespace lanes
