#include "BfloatBits.hpp"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/TargetParser/Triple.h"

using namespace llvm;

namespace lanes {

PreservedAnalyses HideBfloatBits::run(Module &module, ModuleAnalysisManager &) {
  if (!Triple(module.getTargetTriple()).isX86()) return PreservedAnalyses::all();
  Type *word = Type::getInt16Ty(module.getContext());
  // No instruction at all: the result is in the register of the argument.
  auto *nothing = InlineAsm::get(FunctionType::get(word, {word}, false), "", "=r,0", /*hasSideEffects=*/false);
  SmallVector<BitCastInst *, 16> found;
  for (Function &function : module) {
    for (Instruction &instruction : instructions(function)) {
      auto *cast = dyn_cast<BitCastInst>(&instruction);
      if (!cast || !cast->getSrcTy()->isBFloatTy() || cast->getType() != word) continue;
      // What is stored is stored whole.
      if (!all_of(cast->users(), [](const User *user) { return isa<StoreInst>(user); })) found.push_back(cast);
    }
  }
  for (BitCastInst *cast : found) {
    CallInst *hidden = IRBuilder<>(cast->getNextNode()).CreateCall(nothing, {cast});
    cast->replaceUsesWithIf(hidden, [=](const Use &use) { return use.getUser() != hidden; });
  }
  return found.empty() ? PreservedAnalyses::all() : PreservedAnalyses::none();
}

}  // namespace lanes
