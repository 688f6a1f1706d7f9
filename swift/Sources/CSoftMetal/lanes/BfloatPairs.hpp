/// Two bfloats a word.
#pragma once

#include "llvm/IR/PassManager.h"

namespace lanes {

/// Where vectors of floats are rounded to bfloat and two of them become the halves of words, as pairs of numbers are
/// stored, both are rounded at once by arithmetic of 16 bits: 11 instructions of x86 in place of 16. Only results of
/// arithmetic, whose NaN are quiet: such a NaN stays one by that alone that its bits don't overflow.
class RoundBfloatPairs : public llvm::PassInfoMixin<RoundBfloatPairs> {
 public:
  static bool isRequired() { return true; }
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);
};

}  // namespace lanes
