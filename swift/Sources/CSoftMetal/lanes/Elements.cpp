#include "Elements.hpp"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace lanes {

bool isElementwise(const Instruction &instruction) {
  const auto *type = dyn_cast<FixedVectorType>(instruction.getType());
  return type && isa<BinaryOperator, UnaryOperator, CastInst, CmpInst, SelectInst>(instruction) &&
         all_of(instruction.operands(), [&](const Use &operand) {
           const auto *of = dyn_cast<FixedVectorType>(operand->getType());
           return of && of->getNumElements() == type->getNumElements();
         });
}

Instruction *cloneOfCount(const Instruction &instruction, unsigned count, ArrayRef<Value *> operands) {
  Instruction *result = instruction.clone();
  result->mutateType(FixedVectorType::get(instruction.getType()->getScalarType(), count));
  for (unsigned i = 0; i < operands.size(); ++i) result->setOperand(i, operands[i]);
  return result;
}

}  // namespace lanes
