#include "BfloatPairs.hpp"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/TargetParser/Triple.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;
using namespace PatternMatch;

namespace lanes {
namespace {

/// Whether a NaN among its elements is a quiet one.
bool isOfArithmetic(const Value *number) {
  if (const auto *call = dyn_cast<IntrinsicInst>(number))
    return call->getIntrinsicID() == Intrinsic::fma || call->getIntrinsicID() == Intrinsic::sqrt;
  const auto *operation = dyn_cast<BinaryOperator>(number);
  return operation && operation->getType()->isFPOrFPVectorTy();
}

/// The bits of the floats that `bfloatBits` has rounded here, in the upper halves of words; null where it is not that.
Value *bitsOfRounded(Value *rounded) {
  CmpInst::Predicate predicate;
  Value *number = nullptr, *other = nullptr, *bits = nullptr, *a = nullptr, *b = nullptr, *c = nullptr;
  if (!rounded->hasOneUse() || !match(rounded, m_Select(m_FCmp(predicate, m_Value(number), m_Value(other)),
                                                        m_Or(m_Value(bits), m_SpecificInt(0x400000)),
                                                        m_c_Add(m_Add(m_Value(a), m_Value(b)), m_Value(c)))))
    return nullptr;
  const bool asksOneNumber = other == number || match(other, m_AnyZeroFP());
  if (predicate != CmpInst::FCMP_UNO || !asksOneNumber || !match(bits, m_BitCast(m_Specific(number))) ||
      !isOfArithmetic(number))
    return nullptr;
  const auto isLast = m_And(m_LShr(m_Specific(bits), m_SpecificInt(16)), m_SpecificInt(1));
  bool hasBits = false, hasLast = false, hasHalf = false;
  for (Value *part : {a, b, c}) {
    hasBits |= part == bits;
    hasLast |= match(part, isLast);
    hasHalf |= match(part, m_SpecificInt(0x7fff));
  }
  return hasBits && hasLast && hasHalf ? bits : nullptr;
}

/// Two numbers of 32 bits a word of the result, the first in its lower half, rounded to their upper halves.
Value *roundPairs(IRBuilder<> &builder, Value *first, Value *second) {
  const auto constant = [](Value *like, uint64_t value) { return ConstantInt::get(like->getType(), value); };
  auto *words = cast<FixedVectorType>(first->getType());
  Type *halves = FixedVectorType::get(builder.getInt16Ty(), words->getNumElements() * 2);
  Value *upper = builder.CreateOr(builder.CreateLShr(first, constant(first, 16)),
                                  builder.CreateAnd(second, constant(second, 0xffff0000)));
  Value *lower = builder.CreateOr(builder.CreateAnd(first, constant(first, 0xffff)),
                                  builder.CreateShl(second, constant(second, 16)));
  upper = builder.CreateBitCast(upper, halves);
  lower = builder.CreateBitCast(lower, halves);
  // 1 where the upper half goes up by one: the carry of lower + 0x7fff + upper % 2, by their mean, rounded up.
  Value *half = builder.CreateOr(builder.CreateAnd(upper, constant(upper, 1)), constant(upper, 0x7ffe));
  Value *mean = builder.CreateSub(builder.CreateOr(lower, half),
                                  builder.CreateLShr(builder.CreateXor(lower, half), constant(lower, 1)));
  Value *carry = builder.CreateLShr(mean, constant(mean, 15));
  Value *sum = builder.CreateBinaryIntrinsic(Intrinsic::uadd_sat, upper, carry);
  Value *largest = builder.CreateOr(upper, constant(upper, 0x7fff));
  return builder.CreateBitCast(builder.CreateBinaryIntrinsic(Intrinsic::umin, sum, largest), words);
}

}  // namespace

PreservedAnalyses RoundBfloatPairs::run(Function &function, FunctionAnalysisManager &) {
  if (!Triple(function.getParent()->getTargetTriple()).isX86()) return PreservedAnalyses::all();
  SmallVector<WeakTrackingVH, 16> rest;
  for (Instruction &instruction : instructions(function)) {
    Value *first = nullptr, *second = nullptr;
    if (!isa<FixedVectorType>(instruction.getType()) || !instruction.getType()->getScalarType()->isIntegerTy(32) ||
        !match(&instruction,
               m_c_Or(m_And(m_Value(second), m_SpecificInt(0xffff0000)), m_LShr(m_Value(first), m_SpecificInt(16)))))
      continue;
    Value *firstBits = bitsOfRounded(first), *secondBits = bitsOfRounded(second);
    if (!firstBits || !secondBits) continue;
    IRBuilder<> builder(&instruction);
    instruction.replaceAllUsesWith(roundPairs(builder, firstBits, secondBits));
    rest.push_back(&instruction);
  }
  if (rest.empty()) return PreservedAnalyses::all();
  RecursivelyDeleteTriviallyDeadInstructionsPermissive(rest);
  return PreservedAnalyses::none();
}

}  // namespace lanes
