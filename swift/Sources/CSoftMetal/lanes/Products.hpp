/// Loops over products of matrices, before a function is widened.
#pragma once

#include "llvm/IR/PassManager.h"

namespace llvm {
class PassBuilder;
}

namespace lanes {

/// Makes two iterations one where each multiplies by the same left matrices, so that neighbours are computed together.
void joinProducts(llvm::Function &function, llvm::FunctionAnalysisManager &analyses, llvm::PassBuilder &builder);

}  // namespace lanes
