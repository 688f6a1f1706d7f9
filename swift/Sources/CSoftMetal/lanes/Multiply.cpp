/// Products of 8x8 matrices.
#include "Widen.hpp"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace lanes {

/// Memory for a left matrix. It is read by an address of which LLVM does not know what it is, lest it see through that
/// and permute registers instead.
Widener::Factors Widener::makeFactors() {
  AllocaInst *place = slot(FixedVectorType::get(builder_.getFloatTy(), elements), "factors");
  place->setAlignment(Align(64));
  IRBuilder<> start(entry_);
  if (Instruction *end = entry_->getTerminator()) start.SetInsertPoint(end);
  auto *same = InlineAsm::get(FunctionType::get(start.getPtrTy(), {start.getPtrTy()}, false), "", "=r,0",
                              /*hasSideEffects=*/false);
  return {place, start.CreateCall(same, {place})};
}

/// A left matrix from another block, as from before a loop, goes to memory there: what has just been stored is read at
/// a lower rate than what lies in the cache.
void Widener::keepFactors() {
  for (const BasicBlock *block : blocks_.order) {
    for (const Instruction &instruction : *block) {
      if (primitiveOf(&instruction) != Primitive::matrixMultiply) continue;
      const auto *left = dyn_cast<Instruction>(instruction.getOperand(0));
      if (left && left->getParent() != block && !isa<PHINode>(left) && isMatrix(left) && !tiles_->groupOf(left) &&
          slots_.contains(left) && !kept_.contains(left))
        kept_[left] = makeFactors();
    }
  }
}

/// Products of one left matrix: its elements, each for a whole row, times rows of the right ones. The left matrix goes
/// through memory, from where a processor spreads an element for nothing.
void Widener::multiply(const Tiles::Group &group) {
  SmallVector<Value *, 2> right, sums;
  for (Instruction *product : group) {
    right.push_back(product->getOperand(1));
    sums.push_back(product->getOperand(2));
  }
  Value *left = group.front()->getOperand(0);
  Factors factors = kept_.lookup(left);
  if (!factors.place) {
    if (!factors_.place) factors_ = makeFactors();
    factors = factors_;
    builder_.CreateAlignedStore(matrix(left), factors.place, Align(64));
  }
  const Parts columns = rows(right);
  Parts result = rows(sums);
  Type *element = builder_.getFloatTy();
  const unsigned count = unsigned(side * group.size());
  for (int k = 0; k < side; ++k) {
    for (int i = 0; i < side; ++i) {
      Value *place = builder_.CreateConstGEP1_32(element, factors.hidden, unsigned(i * side + k));
      Value *factor = builder_.CreateVectorSplat(count, builder_.CreateLoad(element, place));
      result[i] = builder_.CreateIntrinsic(Intrinsic::fma, {factor->getType()}, {factor, columns[k], result[i]});
    }
  }
  set(*group.front(), std::move(result));
}

}  // namespace lanes
