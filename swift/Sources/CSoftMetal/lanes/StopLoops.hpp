/// Lets the host end kernels on a GPU.
#pragma once

#include "llvm/IR/PassManager.h"

namespace lanes {

/// Nothing but the end of its process ends a kernel on an NVIDIA GPU that goes on for ever. So a loop whose turns
/// nothing bounds looks each time at a word of the device's memory, which the host sets at the time limit, and its
/// thread ends. The word's address is the first member of `SmGpuDispatch`, the parameter of entries; functions that are
/// not inlined have it from shared memory, where each thread has put it. Loops that count, and those that multiply
/// matrices, are left as they are: the library's kernels have no others, and a look takes some 200 cycles.
class StopLoops : public llvm::PassInfoMixin<StopLoops> {
 public:
  static bool isRequired() { return true; }
  llvm::PreservedAnalyses run(llvm::Module &module, llvm::ModuleAnalysisManager &analyses);
};

}  // namespace lanes
