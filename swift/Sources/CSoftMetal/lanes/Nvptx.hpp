/// Kernels of NVIDIA GPUs as the front end makes them.
#pragma once

#include "llvm/IR/Function.h"
#include "llvm/IR/Module.h"
#include "llvm/TargetParser/Triple.h"

namespace lanes {

/// Address spaces of LLVM's NVPTX.
constexpr unsigned globalMemory = 1, sharedMemory = 3;

/// Whether the module's code is for such a GPU.
inline bool isNvptx(const llvm::Module &module) { return llvm::Triple(module.getTargetTriple()).isNVPTX(); }

/// Whether the host launches it; its parameter is an `SmGpuDispatch`.
inline bool isEntry(const llvm::Function &function) {
  return !function.isDeclaration() && function.getName().starts_with("sm_entry_");
}

}  // namespace lanes
