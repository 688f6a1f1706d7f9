#include "BfloatBits.hpp"

#include "Hide.hpp"
#include "Nvptx.hpp"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/TargetParser/Triple.h"

using namespace llvm;

namespace lanes {

Value *bfloatBits(IRBuilderBase &builder, Value *value) {
  Type *word = value->getType()->getWithNewType(builder.getInt32Ty());
  Value *bits = builder.CreateBitCast(value, word);
  Value *rounding =
      builder.CreateAdd(builder.CreateAnd(builder.CreateLShr(bits, 16), 1), ConstantInt::get(word, 0x7fff));
  Value *rounded = builder.CreateAdd(bits, rounding);
  Value *quiet = builder.CreateOr(bits, ConstantInt::get(word, 0x400000));
  Value *result = builder.CreateSelect(builder.CreateFCmpUNO(value, value), quiet, rounded);
  // Shifted last: where the number goes into the upper half of a word, the shifts there and back become one mask.
  return builder.CreateTrunc(builder.CreateLShr(result, 16), word->getWithNewType(builder.getInt16Ty()));
}

PreservedAnalyses RoundToBfloat::run(Function &function, FunctionAnalysisManager &) {
  if (!Triple(function.getParent()->getTargetTriple()).isX86()) return PreservedAnalyses::all();
  SmallVector<FPTruncInst *, 16> found;
  for (Instruction &instruction : instructions(function)) {
    auto *rounding = dyn_cast<FPTruncInst>(&instruction);
    if (rounding && rounding->getType()->getScalarType()->isBFloatTy() &&
        rounding->getSrcTy()->getScalarType()->isFloatTy())
      found.push_back(rounding);
  }
  for (FPTruncInst *rounding : found) {
    IRBuilder<> builder(rounding);
    Value *bits = bfloatBits(builder, rounding->getOperand(0));
    for (User *user : make_early_inc_range(rounding->users())) {
      if (auto *cast = dyn_cast<BitCastInst>(user); cast && cast->getType() == bits->getType()) {
        cast->replaceAllUsesWith(bits);
        cast->eraseFromParent();
      } else if (auto *store = dyn_cast<StoreInst>(user)) {
        // A loop does not know how to store several bfloats apart.
        store->setOperand(0, bits);
      }
    }
    if (!rounding->use_empty()) rounding->replaceAllUsesWith(builder.CreateBitCast(bits, rounding->getType()));
    rounding->eraseFromParent();
  }
  return found.empty() ? PreservedAnalyses::all() : PreservedAnalyses::none();
}

PreservedAnalyses AccessBfloatBits::run(Function &function, FunctionAnalysisManager &) {
  if (!isNvptx(*function.getParent())) return PreservedAnalyses::all();
  bool hasHalves = false;
  SmallVector<Instruction *, 16> found;
  for (Instruction &instruction : instructions(function)) {
    if (!isa<LoadInst>(instruction) && !isa<StoreInst>(instruction)) continue;
    hasHalves |= getLoadStoreType(&instruction)->isHalfTy();
    if (getLoadStoreType(&instruction)->isBFloatTy()) found.push_back(&instruction);
  }
  if (!hasHalves || found.empty()) return PreservedAnalyses::all();
  for (Instruction *access : found) {
    IRBuilder<> builder(access);
    Type *word = builder.getInt16Ty();
    Instruction *other;
    if (auto *load = dyn_cast<LoadInst>(access)) {
      other = builder.CreateAlignedLoad(word, load->getPointerOperand(), load->getAlign(), load->isVolatile());
      load->replaceAllUsesWith(builder.CreateBitCast(other, load->getType()));
    } else {
      auto *store = cast<StoreInst>(access);
      Value *bits = builder.CreateBitCast(store->getValueOperand(), word);
      other = builder.CreateAlignedStore(bits, store->getPointerOperand(), store->getAlign(), store->isVolatile());
    }
    other->copyMetadata(*access);
    access->eraseFromParent();
  }
  return PreservedAnalyses::none();
}

PreservedAnalyses HideBfloatBits::run(Module &module, ModuleAnalysisManager &) {
  if (!Triple(module.getTargetTriple()).isX86()) return PreservedAnalyses::all();
  Type *word = Type::getInt16Ty(module.getContext());
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
    IRBuilder<> builder(cast->getNextNode());
    Value *hidden = hide(builder, cast);
    cast->replaceUsesWithIf(hidden, [=](const Use &use) { return use.getUser() != hidden; });
  }
  return found.empty() ? PreservedAnalyses::all() : PreservedAnalyses::none();
}

}  // namespace lanes
