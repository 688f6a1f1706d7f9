/// Single lanes of vectors, by places known at run time only.
#pragma once

#include "llvm/IR/Module.h"
#include "llvm/IR/PassManager.h"

namespace lanes {

/// Puts vectors into memory once where they are made, for the lanes that loops take from them one by one. Left to
/// LLVM, each such take puts the whole vector there again.
class KeepExtracts : public llvm::PassInfoMixin<KeepExtracts> {
 public:
  static bool isRequired() { return true; }
  llvm::PreservedAnalyses run(llvm::Module &module, llvm::ModuleAnalysisManager &analyses);
};

}  // namespace lanes
