#include "IntoKernels.hpp"

#include "ActiveLanes.hpp"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/IPO/AlwaysInliner.h"

using namespace llvm;

namespace lanes {

bool markCallees(ArrayRef<Function *> functions) {
  SmallVector<Function *, 16> todo(functions.begin(), functions.end());
  SmallPtrSet<Function *, 16> marked;
  while (!todo.empty()) {
    for (Instruction &instruction : instructions(*todo.pop_back_val())) {
      auto *call = dyn_cast<CallBase>(&instruction);
      Function *callee = call ? call->getCalledFunction() : nullptr;
      if (!callee || callee->isDeclaration() || isKnown(*callee)) continue;
      call->removeFnAttr(Attribute::NoInline);
      if (!marked.insert(callee).second) continue;
      callee->removeFnAttr(Attribute::NoInline);
      callee->removeFnAttr(Attribute::OptimizeNone);
      callee->addFnAttr(Attribute::AlwaysInline);
      todo.push_back(callee);
    }
  }
  return !marked.empty();
}

PreservedAnalyses IntoKernels::run(Module &module, ModuleAnalysisManager &analyses) {
  SmallVector<Function *, 4> kernels, others;
  for (Function &function : module)
    if (!function.isDeclaration() && !isKnown(function)) (isEntry(function) ? kernels : others).push_back(&function);
  if (kernels.empty()) return PreservedAnalyses::all();
  for (Function *function : others) {
    function->setComdat(nullptr);
    function->setLinkage(GlobalValue::InternalLinkage);
  }
  if (markCallees(kernels)) AlwaysInlinerPass(/*InsertLifetime=*/false).run(module, analyses);
  return PreservedAnalyses::none();
}

}  // namespace lanes
