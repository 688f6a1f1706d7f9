/// What lanes do one after another: atomic operations, functions of the C library.
#include "Widen.hpp"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace lanes {

/// A loop over the active lanes. Operands and results lie in memory, an element a lane.
void Widener::serial(Instruction &instruction) {
  if (instruction.getType()->isVectorTy()) throw Declined{"a vector accessed in order"};
  LLVMContext &context = source_.getContext();
  // A box for each operand that differs.
  SmallVector<AllocaInst *, 4> boxes;
  SmallVector<Value *, 4> same;
  for (Value *operand : instruction.operands()) {
    boxes.push_back(nullptr);
    same.push_back(nullptr);
    if (isa<Function>(operand)) {
      same.back() = operand;
      continue;
    }
    if (operand->getType()->isVectorTy()) throw Declined{"a vector accessed in order"};
    if (shapes_.of(operand).isUniform()) {
      same.back() = scalar(operand);
      continue;
    }
    Value *values = vector(operand);
    if (values->getType()->getScalarType()->isIntegerTy(1))
      values = builder_.CreateZExt(values, vectorType(builder_.getInt8Ty()));
    boxes.back() = slot(values->getType(), "operand");
    builder_.CreateStore(values, boxes.back());
  }
  SmallVector<Type *, 2> resultTypes;
  if (auto *structure = dyn_cast<StructType>(instruction.getType())) {
    for (Type *type : structure->elements()) resultTypes.push_back(type);
  } else if (!instruction.getType()->isVoidTy()) {
    resultTypes.push_back(instruction.getType());
  }
  const auto boxed = [&](Type *type) { return type->isIntegerTy(1) ? builder_.getInt8Ty() : type; };
  SmallVector<AllocaInst *, 2> results;
  for (Type *type : resultTypes) results.push_back(slot(vectorType(boxed(type)), "result"));

  Value *lanes = bits(mask_);
  BasicBlock *before = builder_.GetInsertBlock();
  BasicBlock *loop = BasicBlock::Create(context, "each", &target_),
             *after = BasicBlock::Create(context, "all", &target_);
  builder_.CreateBr(loop);
  builder_.SetInsertPoint(loop);
  PHINode *left = builder_.CreatePHI(lanes->getType(), 2);
  left->addIncoming(lanes, before);
  Value *lane = builder_.CreateBinaryIntrinsic(Intrinsic::cttz, left, builder_.getTrue());
  Value *place = builder_.CreateZExt(lane, builder_.getInt64Ty());
  Instruction *copy = instruction.clone();
  for (unsigned i = 0; i < boxes.size(); ++i) {
    Value *value = same[i];
    if (boxes[i]) {
      Type *element = boxes[i]->getAllocatedType()->getScalarType();
      value = builder_.CreateLoad(element, builder_.CreateGEP(element, boxes[i], place));
      Type *wanted = instruction.getOperand(i)->getType();
      if (wanted->isIntegerTy(1))
        value = builder_.CreateTrunc(value, wanted);
      else if (wanted != element)
        value = builder_.CreateBitCast(value, wanted);
    }
    copy->setOperand(i, value);
  }
  copy->dropUnknownNonDebugMetadata();
  builder_.Insert(copy);
  for (unsigned i = 0; i < results.size(); ++i) {
    Value *value = instruction.getType()->isStructTy() ? builder_.CreateExtractValue(copy, i) : copy;
    Type *element = results[i]->getAllocatedType()->getScalarType();
    if (value->getType()->isIntegerTy(1))
      value = builder_.CreateZExt(value, element);
    else if (value->getType() != element)
      value = builder_.CreateBitCast(value, element);
    builder_.CreateStore(value, builder_.CreateGEP(element, results[i], place));
  }
  Value *rest = builder_.CreateAnd(left, builder_.CreateSub(left, ConstantInt::get(left->getType(), 1)));
  left->addIncoming(rest, loop);
  builder_.CreateCondBr(builder_.CreateICmpNE(rest, ConstantInt::get(rest->getType(), 0)), loop, after);
  builder_.SetInsertPoint(after);
  if (results.empty()) return;
  Parts values;
  for (unsigned i = 0; i < results.size(); ++i) {
    Value *value = builder_.CreateLoad(results[i]->getAllocatedType(), results[i]);
    if (resultTypes[i]->isIntegerTy(1)) value = builder_.CreateTrunc(value, vectorType(resultTypes[i]));
    values.push_back(value);
  }
  set(instruction, std::move(values));
}

}  // namespace lanes
