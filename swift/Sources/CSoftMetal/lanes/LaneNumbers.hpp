/// Numbers of lanes that a GPU's shuffle is given.
#pragma once

#include "llvm/IR/PassManager.h"

namespace lanes {

/// For kernels of NVIDIA GPUs, whose shuffle looks at the five lowest bits of a lane's number only (PTX ISA,
/// shfl.sync): what clears the others, as Metal wants it, goes.
class LaneNumbers : public llvm::PassInfoMixin<LaneNumbers> {
 public:
  static bool isRequired() { return true; }

  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);
};

}  // namespace lanes
