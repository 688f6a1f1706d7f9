/// Loops over products of matrices, before a function is widened.
#pragma once

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/PassManager.h"

namespace llvm {
class PassBuilder;
}

namespace lanes {

bool hasProducts(const llvm::Loop &loop);

/// Makes two iterations one where each multiplies by the same left matrices, so that neighbours are computed together.
/// Short loops inside are unrolled for it.
void joinProducts(llvm::Function &function, llvm::FunctionAnalysisManager &analyses, llvm::PassBuilder &builder);

}  // namespace lanes
