/// Functions become part of the kernels that call them.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/IR/PassManager.h"

namespace lanes {

/// Marks what functions call, and what that calls, to be inlined whatever its source says of it. True where any is.
bool markCallees(llvm::ArrayRef<llvm::Function *> functions);

/// For NVIDIA GPUs, whose code generator of LLVM 19 knows no function with a vector of bool, called or not. Those with
/// a meaning to ActiveLanes stay until then.
class IntoKernels : public llvm::PassInfoMixin<IntoKernels> {
 public:
  static bool isRequired() { return true; }

  llvm::PreservedAnalyses run(llvm::Module &module, llvm::ModuleAnalysisManager &analyses);
};

}  // namespace lanes
