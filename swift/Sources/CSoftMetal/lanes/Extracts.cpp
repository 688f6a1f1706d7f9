#include "Extracts.hpp"

#include "Primitives.hpp"
#include "llvm/ADT/MapVector.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace lanes {
namespace {

/// Of all lanes, with elements that have addresses.
bool isOfLanes(const Value &vector) {
  const auto *type = dyn_cast<FixedVectorType>(vector.getType());
  return type && type->getNumElements() == width && type->getScalarSizeInBits() % 8 == 0 &&
         type->getScalarSizeInBits() > 0;
}

/// Puts `vector` into memory once, for `extracts` of it.
void keep(Instruction &vector, BasicBlock::iterator after, ArrayRef<ExtractElementInst *> extracts) {
  BasicBlock &entry = vector.getFunction()->getEntryBlock();
  Type *type = vector.getType();
  AllocaInst *box = IRBuilder<>(&entry, entry.getFirstInsertionPt()).CreateAlloca(type, nullptr, "extracts");
  IRBuilder<>(after->getParent(), after).CreateStore(&vector, box);
  for (ExtractElementInst *extract : extracts) {
    IRBuilder<> builder(extract);
    Value *lane = builder.CreateZExtOrTrunc(extract->getIndexOperand(), builder.getInt64Ty());
    Value *place = builder.CreateGEP(type->getScalarType(), box, builder.CreateAnd(lane, width - 1));
    extract->replaceAllUsesWith(builder.CreateLoad(type->getScalarType(), place));
    extract->eraseFromParent();
  }
}

}  // namespace

PreservedAnalyses KeepExtracts::run(Module &module, ModuleAnalysisManager &analyses) {
  auto &functions = analyses.getResult<FunctionAnalysisManagerModuleProxy>(module).getManager();
  bool isChanged = false;
  for (Function &function : module) {
    if (function.isDeclaration()) continue;
    MapVector<Instruction *, SmallVector<ExtractElementInst *, 4>> found;
    for (Instruction &instruction : instructions(function)) {
      auto *extract = dyn_cast<ExtractElementInst>(&instruction);
      auto *vector = extract ? dyn_cast<Instruction>(extract->getVectorOperand()) : nullptr;
      if (vector && !isa<ConstantInt>(extract->getIndexOperand()) && isOfLanes(*vector))
        found[vector].push_back(extract);
    }
    if (found.empty()) continue;
    const LoopInfo &loops = functions.getResult<LoopAnalysis>(function);
    for (auto &[vector, extracts] : found) {
      const unsigned depth = loops.getLoopDepth(vector->getParent());
      const bool isInner =
          any_of(extracts, [&](const auto *each) { return loops.getLoopDepth(each->getParent()) > depth; });
      const auto after = vector->getInsertionPointAfterDef();
      if (!after || (!isInner && extracts.size() < 2)) continue;
      keep(*vector, *after, extracts);
      isChanged = true;
    }
  }
  return isChanged ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

}  // namespace lanes
