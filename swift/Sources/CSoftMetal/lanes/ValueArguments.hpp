/// Arguments in `constant` memory that kernels of NVIDIA GPUs take by value.
#pragma once

#include "llvm/IR/PassManager.h"

namespace lanes {

/// An argument `constant T &` becomes a part of the kernel's parameter too, which the hardware reads as cheaply as a
/// register. It lies behind the `SmGpuDispatch`, at a multiple of 16 bytes; entries say so by a comment
/// `// sm_value INDEX OFFSET BYTES` (`Execution/Nvidia/ValueArgument.swift`). What may be read of other memory as well,
/// at a place that moves on in a loop or in a function that is not inlined, is read where it was: no kernel writes it.
/// The parameter has 4,096 bytes at most; arguments for which there is no room stay where they are.
class ValueArguments : public llvm::PassInfoMixin<ValueArguments> {
 public:
  static bool isRequired() { return true; }
  llvm::PreservedAnalyses run(llvm::Module &module, llvm::ModuleAnalysisManager &);
};

}  // namespace lanes
