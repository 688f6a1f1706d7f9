#include "VectorCopies.hpp"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace lanes {

void copyByWords(Function &function) {
  SmallVector<MemCpyInst *, 16> copies;
  for (Instruction &instruction : instructions(function)) {
    auto *copy = dyn_cast<MemCpyInst>(&instruction);
    const auto *length = copy ? dyn_cast<ConstantInt>(copy->getLength()) : nullptr;
    if (!length || length->getZExtValue() != 16 || copy->isVolatile()) continue;
    const auto isPrivate = [](const Value *pointer) { return isa<AllocaInst>(getUnderlyingObject(pointer)); };
    if (isPrivate(copy->getDest()) || isPrivate(copy->getSource())) copies.push_back(copy);
  }
  for (MemCpyInst *copy : copies) {
    IRBuilder<> builder(copy);
    Type *words = FixedVectorType::get(builder.getInt32Ty(), 4);
    Value *value = builder.CreateAlignedLoad(words, copy->getSource(), copy->getSourceAlign().valueOrOne());
    builder.CreateAlignedStore(value, copy->getDest(), copy->getDestAlign().valueOrOne());
    copy->eraseFromParent();
  }
}

}  // namespace lanes
