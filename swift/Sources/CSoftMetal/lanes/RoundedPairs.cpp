#include "RoundedPairs.hpp"

#include "Nvptx.hpp"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;
using namespace PatternMatch;

namespace lanes {
namespace {

/// A float rounded to 16 bits.
FPTruncInst *roundedOf(Value *value) {
  auto *rounded = dyn_cast<FPTruncInst>(value);
  return rounded && rounded->getSrcTy()->isFloatTy() ? rounded : nullptr;
}

/// Two floats as a vector of 16-bit elements.
Value *createPair(IRBuilder<> &builder, Type *element, Value *lower, Value *upper) {
  const auto id = element->isBFloatTy() ? Intrinsic::nvvm_ff2bf16x2_rn : Intrinsic::nvvm_ff2f16x2_rn;
  // The upper half comes first.
  return builder.CreateIntrinsic(id, {}, {upper, lower});
}

/// Rounds a vector of two floats; null where it is something else.
Value *roundVector(FPTruncInst &rounded) {
  const auto *type = dyn_cast<FixedVectorType>(rounded.getType());
  if (!type || type->getNumElements() != 2 || !rounded.getSrcTy()->getScalarType()->isFloatTy()) return nullptr;
  IRBuilder<> builder(&rounded);
  Value *floats = rounded.getOperand(0);
  return createPair(builder, type->getElementType(), builder.CreateExtractElement(floats, uint64_t(0)),
                    builder.CreateExtractElement(floats, uint64_t(1)));
}

/// Where both floats are known and what was rounded alone is not needed yet; null where that is nowhere.
Instruction *placeOf(FPTruncInst &lower, FPTruncInst &upper, const DominatorTree &dominators) {
  auto *number = dyn_cast<ExtractElementInst>(upper.getOperand(0));
  if (number && !dominators.dominates(number, &lower) && dominators.dominates(number->getVectorOperand(), &lower) &&
      dominators.dominates(number->getIndexOperand(), &lower))
    number->moveBefore(&lower);
  if (dominators.dominates(upper.getOperand(0), &lower)) return &lower;
  const auto isLater = [&](const User *user) { return dominators.dominates(&upper, cast<Instruction>(user)); };
  return all_of(lower.users(), isLater) ? &upper : nullptr;
}

/// Rounds both floats at once, to a word, and takes what was rounded alone from there.
Value *roundPair(FPTruncInst &lower, FPTruncInst &upper, Instruction &place) {
  IRBuilder<> builder(&place);
  Value *pair = createPair(builder, lower.getType(), lower.getOperand(0), upper.getOperand(0));
  lower.replaceAllUsesWith(builder.CreateExtractElement(pair, uint64_t(0)));
  upper.replaceAllUsesWith(builder.CreateExtractElement(pair, uint64_t(1)));
  return builder.CreateBitCast(pair, builder.getInt32Ty());
}

}  // namespace

PreservedAnalyses RoundPairs::run(Function &function, FunctionAnalysisManager &analyses) {
  if (!isNvptx(*function.getParent())) return PreservedAnalyses::all();
  const DominatorTree &dominators = analyses.getResult<DominatorTreeAnalysis>(function);
  SmallVector<WeakTrackingVH, 16> rest;
  for (Instruction &instruction : instructions(function)) {
    if (auto *rounded = dyn_cast<FPTruncInst>(&instruction)) {
      if (Value *pair = roundVector(*rounded)) {
        rounded->replaceAllUsesWith(pair);
        rest.push_back(rounded);
      }
      continue;
    }
    Value *first = nullptr, *second = nullptr;
    if (!match(&instruction, m_c_Or(m_Shl(m_ZExt(m_BitCast(m_Value(second))), m_SpecificInt(16)),
                                    m_ZExt(m_BitCast(m_Value(first))))) ||
        !instruction.getType()->isIntegerTy(32))
      continue;
    FPTruncInst *lower = roundedOf(first), *upper = roundedOf(second);
    if (!lower || !upper || lower == upper || lower->getType() != upper->getType() ||
        !dominators.dominates(lower, upper))
      continue;
    Instruction *place = placeOf(*lower, *upper, dominators);
    if (!place) continue;
    instruction.replaceAllUsesWith(roundPair(*lower, *upper, *place));
    rest.append({&instruction, lower, upper});
  }
  if (rest.empty()) return PreservedAnalyses::all();
  RecursivelyDeleteTriviallyDeadInstructionsPermissive(rest);
  return PreservedAnalyses::none();
}

}  // namespace lanes
