/// Barriers of threadgroups.
#include "Widen.hpp"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace lanes {

/// Lanes that wait elsewhere and may yet come to a barrier would wait at another one.
void Widener::barrier(CallBase &call) {
  Value *wait = scalar(call.getArgOperand(0)), *diverged = scalar(call.getArgOperand(1));
  Value *group = scalar(call.getArgOperand(2));
  FunctionType *type = FunctionType::get(builder_.getVoidTy(), {group->getType()}, false);
  Value *elsewhere = nullptr;
  for (const int pending : steps_[index_].pending) {
    BasicBlock *block = blocks_.order[size_t(pending)];
    if (!ways_.reach(*block)) continue;
    Value *lanes = onTheirWay(block);
    elsewhere = elsewhere ? builder_.CreateOr(elsewhere, lanes) : lanes;
  }
  if (elsewhere) {
    LLVMContext &context = source_.getContext();
    BasicBlock *error = BasicBlock::Create(context, "diverged", &target_);
    BasicBlock *together = BasicBlock::Create(context, "together", &target_);
    builder_.CreateCondBr(any(elsewhere), error, together);
    builder_.SetInsertPoint(error);
    builder_.CreateCall(type, diverged, {group});
    builder_.CreateBr(together);
    builder_.SetInsertPoint(together);
  }
  builder_.CreateCall(type, wait, {group});
}

/// The lanes that wait in front of a block and may come from there to a barrier.
Value *Widener::onTheirWay(BasicBlock *block) {
  const Block &there = states_[block];
  if (!there.isAwaited) {
    // All that set out with the equivalent block come there: those not here are on their way.
    Value *all = builder_.CreateLoad(mask_->getType(), states_[there.equivalent].mask);
    return builder_.CreateAnd(all, builder_.CreateNot(mask_));
  }
  Value *lanes = builder_.CreateLoad(mask_->getType(), there.arriving);
  for (const auto &[value, apart] : ways_.flags(*block)) {
    const Shape shape = shapes_.of(value);
    const auto place = slots_.find(value);
    if (place == slots_.end() || isMatrix(value) || (shape.isScalar() && !shape.isUniform())) continue;
    AllocaInst *slot = place->second.front();
    Value *flag = builder_.CreateLoad(slot->getAllocatedType(), slot);
    flag = builder_.CreateFreeze(flag->getType()->isVectorTy() ? flag : splat(flag));
    for (const ConstantInt *each : apart) {
      Constant *all = ConstantVector::getSplat(ElementCount::getFixed(width), const_cast<ConstantInt *>(each));
      lanes = builder_.CreateAnd(lanes, builder_.CreateICmpNE(flag, all));
    }
  }
  return lanes;
}

}  // namespace lanes
