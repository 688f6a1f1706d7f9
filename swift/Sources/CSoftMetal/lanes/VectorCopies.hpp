/// Vectors of 16 bytes on their way through private memory.
#pragma once

#include "llvm/IR/Function.h"

namespace lanes {

/// For kernels of NVIDIA GPUs: a copy of 16 bytes into a private variable, or out of one, becomes a load and a store of
/// four words. LLVM takes a variable that is only copied for memory, where each thread's is far away.
void copyByWords(llvm::Function &function);

}  // namespace lanes
