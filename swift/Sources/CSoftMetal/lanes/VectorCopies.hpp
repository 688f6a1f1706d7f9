/// Vectors that are copied as so many bytes.
#pragma once

#include "llvm/IR/Function.h"
#include "llvm/IR/PassManager.h"

namespace lanes {

/// For kernels of NVIDIA GPUs: a copy of 16 bytes into a private variable, or out of one, becomes a load and a store of
/// four words. LLVM takes a variable that is only copied for memory, where each thread's is far away.
void copyByWords(llvm::Function &function);

/// For processors: a copy of the bytes of a vector becomes a load and a store of the vector, so that its elements have
/// their type and are together; another one of 8 to 16 bytes from memory to memory becomes that of words.
/// `isPrivateToo`: also into private variables and out of them.
void copyAsVectors(llvm::Function &function, bool isPrivateToo);

/// copyAsVectors where a function is for one thread.
class CopyVectors : public llvm::PassInfoMixin<CopyVectors> {
 public:
  static bool isRequired() { return true; }
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);
};

}  // namespace lanes
