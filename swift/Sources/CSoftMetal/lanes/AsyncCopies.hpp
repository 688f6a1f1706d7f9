/// Copies to threadgroup memory that an NVIDIA GPU does by itself.
#pragma once

#include "llvm/IR/PassManager.h"

namespace lanes {

/// A load of 16 bytes of device memory that goes to threadgroup memory as it is becomes `cp.async`: it takes no
/// register, and its thread goes on. To LLVM it is a copy that is done at once; `AwaitCopies` makes that true.
class AsyncCopies : public llvm::PassInfoMixin<AsyncCopies> {
 public:
  static bool isRequired() { return true; }
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &);
};

/// Waits for what `AsyncCopies` has made, no sooner than needed, and in groups, the oldest first, as the hardware does.
///
/// A thread waits before an access of its own to a variable that is on its way, and at a barrier behind which a thread
/// may have one before the next barrier. So copies to other variables go on past barriers: a tile comes while the
/// tile before it is multiplied, where each has a variable. Whatever else a thread may tell others by, a store to
/// device memory or a fence, counts as an access to all.
class AwaitCopies : public llvm::PassInfoMixin<AwaitCopies> {
 public:
  static bool isRequired() { return true; }
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &);
};

}  // namespace lanes
