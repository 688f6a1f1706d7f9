/// Masked accesses that the processor has no instruction for.
#pragma once

#include "llvm/IR/Module.h"
#include "llvm/IR/PassManager.h"

namespace lanes {

/// Turns them into calls of functions that take one active lane after another. Left to LLVM, each lane of each access
/// becomes a branch: on processors without AVX-512 a kernel came to 60,000 blocks, a minute of compilation and 2 GB.
/// Accesses whose mask is known stay as they are, where LLVM makes no branches.
class CompactMasks : public llvm::PassInfoMixin<CompactMasks> {
 public:
  static bool isRequired() { return true; }
  llvm::PreservedAnalyses run(llvm::Module &module, llvm::ModuleAnalysisManager &analyses);
};

}  // namespace lanes
