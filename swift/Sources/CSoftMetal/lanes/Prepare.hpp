/// What happens to a kernel's code before it is widened.
#pragma once

#include "llvm/IR/PassManager.h"

namespace llvm {
class PassBuilder;
}

namespace lanes {

/// The first optimisations of a function for one thread: few, since the usual ones bring loops into forms that hide
/// what lanes share.
void simplify(llvm::Function &function, llvm::FunctionAnalysisManager &analyses, llvm::PassBuilder &builder);

/// `sm_group` and `sm_simdgroup` become what they stand for.
void replaceArguments(llvm::Function &function);

/// Brings one version of a kernel into the form that `Blocks` and `Widener` expect: one end, loops with a preheader, a
/// latch of their own and exits of their own, no value used outside of its loop but by phis, no copies of memory, and
/// private memory divided. `isRegular`: what `sm_regular` says.
void prepare(llvm::Function &function, llvm::FunctionAnalysisManager &analyses, llvm::PassBuilder &builder,
             bool isRegular);

}  // namespace lanes
