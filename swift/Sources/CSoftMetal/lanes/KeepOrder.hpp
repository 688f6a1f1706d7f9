/// Elements that change places on the way from memory to memory, and back again.
#pragma once

#include "llvm/IR/PassManager.h"

namespace lanes {

/// What is loaded as vectors of the language, computed element by element and stored likewise: vectors of threads take
/// the elements apart by component and put them together again. Where all the places they go through amount to none,
/// the same is computed in the order of memory. (LLVM 19 does so of values with one use, and of a few operations.)
class KeepOrder : public llvm::PassInfoMixin<KeepOrder> {
 public:
  static bool isRequired() { return true; }
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);
};

}  // namespace lanes
