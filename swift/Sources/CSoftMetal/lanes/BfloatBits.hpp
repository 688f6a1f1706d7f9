/// The bits of a bfloat.
#pragma once

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PassManager.h"

namespace lanes {

/// The bits of the nearest bfloats, ties to even; a NaN stays one, and quiet.
llvm::Value *bfloatBits(llvm::IRBuilderBase &builder, llvm::Value *value);

/// Rounds floats to bfloat by integers, as the routine that clang would call does: LLVM's loops over independent
/// threads become vectors then.
class RoundToBfloat : public llvm::PassInfoMixin<RoundToBfloat> {
 public:
  static bool isRequired() { return true; }
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);
};

/// Hides from LLVM 19 that a number of 16 bits is a bfloat's. Where nothing but its highest bit is asked of such a
/// number, code for x86 reads the highest bit of the float whose low half the register holds, which is 0.
class HideBfloatBits : public llvm::PassInfoMixin<HideBfloatBits> {
 public:
  static bool isRequired() { return true; }
  llvm::PreservedAnalyses run(llvm::Module &module, llvm::ModuleAnalysisManager &analyses);
};

/// For NVIDIA GPUs: where a function has halves in memory too, bfloats come and go as words. LLVM 19 makes one access
/// of a bfloat and a half side by side, and has no code for what takes that apart.
class AccessBfloatBits : public llvm::PassInfoMixin<AccessBfloatBits> {
 public:
  static bool isRequired() { return true; }
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);
};

}  // namespace lanes
