/// Two floats rounded to 16 bits by one instruction of a GPU.
#pragma once

#include "llvm/IR/PassManager.h"

namespace lanes {

/// On NVIDIA floats become bfloats and halves by two, as the halves of a word (`cvt.rn.bf16x2.f32`, F2FP); a bfloat
/// alone goes through the slower unit of conversions (F2F). So two that become a vector, or the halves of a word, are
/// rounded at once.
class RoundPairs : public llvm::PassInfoMixin<RoundPairs> {
 public:
  static bool isRequired() { return true; }
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);
};

}  // namespace lanes
