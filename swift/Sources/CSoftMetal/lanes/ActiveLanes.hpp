/// Which lanes of a warp come to a place together.
#pragma once

#include "llvm/IR/PassManager.h"
#include "llvm/Passes/PassBuilder.h"

namespace lanes {

/// For kernels of NVIDIA GPUs, where `sm_active_lanes` asks the hardware which lanes have come to it, and what follows
/// goes apart by the answer. Each kernel becomes two: one for SIMD groups with all their lanes, in which the question
/// has the answer "all" wherever no branch that lanes may take apart lies before it, and NAME_partial, in which it is
/// asked, for those that may lack some, unless a call of `sm_whole_simdgroups` says that there are none. And what
/// `sm_transposed` transposes twice stays as it is.
class ActiveLanes : public llvm::PassInfoMixin<ActiveLanes> {
 public:
  explicit ActiveLanes(llvm::PassBuilder &builder) : builder_(&builder) {}

  static bool isRequired() { return true; }

  llvm::PreservedAnalyses run(llvm::Module &module, llvm::ModuleAnalysisManager &analyses);

 private:
  llvm::PassBuilder *builder_;
};

}  // namespace lanes
