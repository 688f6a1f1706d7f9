#include "LaneNumbers.hpp"

#include "Primitives.hpp"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace lanes {
namespace {

constexpr unsigned lowBits = 5;

bool hasLowBits(const Type *type) { return type->isIntegerTy() && type->getIntegerBitWidth() >= lowBits; }

/// A value of 32 bits that has the same lowest bits, the furthest back.
Value *sameLowBits(Value *value) {
  Value *result = value;
  while (true) {
    Value *from;
    const APInt *kept;
    if (match(value, m_And(m_Value(from), m_APInt(kept))) && kept->countr_one() >= lowBits)
      value = from;
    else if (match(value, m_ZExtOrSExtOrSelf(m_Value(from))) && from != value && hasLowBits(from->getType()))
      value = from;
    else if (match(value, m_Trunc(m_Value(from))) && hasLowBits(value->getType()))
      value = from;
    else
      return result;
    if (value->getType()->isIntegerTy(32)) result = value;
  }
}

}  // namespace

PreservedAnalyses LaneNumbers::run(Function &function, FunctionAnalysisManager &) {
  bool changed = false;
  SmallVector<WeakTrackingVH, 16> unused;
  for (Instruction &instruction : instructions(function)) {
    auto *call = dyn_cast<IntrinsicInst>(&instruction);
    if (!call || call->getIntrinsicID() != Intrinsic::nvvm_shfl_sync_idx_i32) continue;
    // Among all lanes.
    if (!match(call->getArgOperand(3), m_SpecificInt(width - 1))) continue;
    Value *lane = call->getArgOperand(2), *plain = sameLowBits(lane);
    if (plain == lane) continue;
    call->setArgOperand(2, plain);
    unused.push_back(lane);
    changed = true;
  }
  RecursivelyDeleteTriviallyDeadInstructionsPermissive(unused);
  return changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

}  // namespace lanes
