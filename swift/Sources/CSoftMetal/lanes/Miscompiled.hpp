/// Forms that LLVM 19 generates wrong code for.
#pragma once

#include "llvm/IR/Module.h"
#include "llvm/IR/PassManager.h"

namespace lanes {

/// Writes them in others that mean the same:
/// - A shuffle of a mask with constants. Where AVX-512 has mask registers, upper lanes are cleared by the move of a
///   shorter mask (KMOVW), which the register allocator takes for a plain copy when it spills the result: the lanes
///   come back as they were before.
/// - `(x << a) * b` of constant vectors. Lanes where b is 0 lose their shift first; the product b << a of the constants
///   is then undefined there, in place of 0.
class AvoidMiscompiled : public llvm::PassInfoMixin<AvoidMiscompiled> {
 public:
  static bool isRequired() { return true; }
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);
};

}  // namespace lanes
