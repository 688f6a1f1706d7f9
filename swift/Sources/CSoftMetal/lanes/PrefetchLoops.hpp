/// Asks ahead for the memory that loops of independent threads go through.
#pragma once

#include "llvm/IR/PassManager.h"

namespace lanes {

/// A processor looks ahead within a page of memory, and among the few hundred instructions that it holds: a loop that
/// does much with each line of memory waits anew at each page. Such loops get LLVM's own pass, which asks ahead across
/// pages. Those that only move memory do not: they are slower with it where they write to several places. How far,
/// clang's options say: -prefetch-distance in operations, and -cache-line-size, without which that pass does nothing.
class PrefetchLoops : public llvm::PassInfoMixin<PrefetchLoops> {
 public:
  static bool isRequired() { return true; }
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);
};

}  // namespace lanes
