/// Vectors of the language in loops over independent threads.
#pragma once

#include "llvm/IR/PassManager.h"

namespace lanes {

/// Takes the vectors of a loop over threads apart: LLVM makes vectors of threads only of what a thread does element by
/// element, and finds itself that the elements of neighbours lie one after another. What is private stays so: a loop
/// that writes variables of its threads, which are one variable for all its turns, runs them one after another.
class LoopElements : public llvm::PassInfoMixin<LoopElements> {
 public:
  static bool isRequired() { return true; }
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);
};

/// Whether the function has vectors of lanes, as no user's has.
bool hasVectorsOfLanes(const llvm::Function &function);

}  // namespace lanes
