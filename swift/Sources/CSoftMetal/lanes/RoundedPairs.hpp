/// Two floats rounded to 16 bits by one instruction of a GPU.
#pragma once

#include "llvm/IR/PassManager.h"

namespace lanes {

/// On NVIDIA floats become bfloats and halves by two, as the halves of a word, as fast as other arithmetic
/// (`cvt.rn.bf16x2.f32`): one alone takes eight times as long. So pairs that lie in one vector are rounded at once.
class RoundPairs : public llvm::PassInfoMixin<RoundPairs> {
 public:
  static bool isRequired() { return true; }
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);
};

}  // namespace lanes
