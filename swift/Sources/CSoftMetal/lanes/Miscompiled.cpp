#include "Miscompiled.hpp"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/ConstantFolding.h"
#include "llvm/Analysis/VectorUtils.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace lanes {
namespace {

/// A shuffle of a mask with constants.
struct KnownLanes {
  Value *mask = nullptr;
  SmallVector<int, 64> places;  ///< in `mask`; of the lanes that are known, their own where it has one
  SmallVector<bool, 64> isOpen, isSet;
};

/// What is known of the shuffle's lanes; false where none is, or where two masks come in.
bool areKnown(const ShuffleVectorInst &shuffle, KnownLanes &lanes) {
  if (!isa<FixedVectorType>(shuffle.getType()) || !shuffle.getType()->getElementType()->isIntegerTy(1)) return false;
  const unsigned second = cast<FixedVectorType>(shuffle.getOperand(0)->getType())->getNumElements();
  bool hasKnown = false;
  for (const auto [lane, place] : enumerate(shuffle.getShuffleMask())) {
    const bool isSecond = place >= static_cast<int>(second);
    Value *source = place < 0 ? nullptr : shuffle.getOperand(isSecond);
    const int element = isSecond ? place - static_cast<int>(second) : place;
    auto *constant = dyn_cast_or_null<Constant>(source);
    if (source && !constant) {
      if (lanes.mask && lanes.mask != source) return false;
      lanes.mask = source;
    }
    const Constant *known = constant ? constant->getAggregateElement(element) : nullptr;
    const bool isKnown = known && isa<ConstantInt>(known);
    hasKnown |= isKnown;
    lanes.places.push_back(source && !constant ? element : lane < second ? static_cast<int>(lane) : -1);
    lanes.isOpen.push_back(!isKnown);
    lanes.isSet.push_back(isKnown && known->isOneValue());
  }
  return lanes.mask && hasKnown;
}

Constant *constantOf(LLVMContext &context, ArrayRef<bool> lanes) {
  SmallVector<Constant *, 64> values;
  for (const bool lane : lanes) values.push_back(ConstantInt::getBool(context, lane));
  return ConstantVector::get(values);
}

Value *withKnown(ShuffleVectorInst &shuffle, const KnownLanes &lanes) {
  IRBuilder<> builder(&shuffle);
  Constant *open = constantOf(shuffle.getContext(), lanes.isOpen);
  Constant *set = constantOf(shuffle.getContext(), lanes.isSet);
  if (Value *same = getSplatValue(lanes.mask)) {
    Constant *either = ConstantExpr::getXor(open, set);
    return builder.CreateSelect(same, either, set);
  }
  Value *placed = lanes.mask;
  if (placed->getType() != shuffle.getType() || !ShuffleVectorInst::isIdentityMask(lanes.places, lanes.places.size()))
    placed = builder.CreateShuffleVector(placed, lanes.places);
  // Lanes that are known may come from nowhere.
  return builder.CreateOr(builder.CreateAnd(builder.CreateFreeze(placed), open), set);
}

bool rewriteShuffles(Function &function) {
  SmallVector<std::pair<ShuffleVectorInst *, KnownLanes>, 8> found;
  for (Instruction &instruction : instructions(function)) {
    auto *shuffle = dyn_cast<ShuffleVectorInst>(&instruction);
    KnownLanes lanes;
    if (shuffle && areKnown(*shuffle, lanes)) found.emplace_back(shuffle, std::move(lanes));
  }
  for (auto &[shuffle, lanes] : found) {
    Value *result = withKnown(*shuffle, lanes);
    shuffle->replaceAllUsesWith(result);
    // One may shuffle what another was.
    for (auto &other : found) {
      if (other.second.mask == shuffle) other.second.mask = result;
    }
    shuffle->eraseFromParent();
  }
  return !found.empty();
}

bool rewriteProducts(Function &function) {
  bool isChanged = false;
  for (Instruction &instruction : instructions(function)) {
    Value *value;
    Constant *shift, *factor;
    if (!instruction.getType()->isVectorTy() ||
        !match(&instruction, m_c_Mul(m_Shl(m_Value(value), m_Constant(shift)), m_Constant(factor))))
      continue;
    Constant *both =
        ConstantFoldBinaryOpOperands(Instruction::Shl, factor, shift, function.getParent()->getDataLayout());
    if (!both) continue;
    instruction.setOperand(0, value);
    instruction.setOperand(1, both);
    instruction.dropPoisonGeneratingFlags();
    isChanged = true;
  }
  return isChanged;
}

}  // namespace

PreservedAnalyses AvoidMiscompiled::run(Function &function, FunctionAnalysisManager &) {
  const bool hasShuffles = rewriteShuffles(function), hasProducts = rewriteProducts(function);
  return hasShuffles || hasProducts ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

}  // namespace lanes
