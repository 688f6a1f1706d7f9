/// Instructions on vectors that go element by element.
#pragma once

#include "llvm/IR/Instruction.h"

namespace lanes {

/// Whether an operator, cast, comparison or choice computes each element of its vector of those at the same place in
/// its operands.
bool isElementwise(const llvm::Instruction &instruction);

/// The same on vectors of `count` elements; not inserted anywhere.
llvm::Instruction *cloneOfCount(const llvm::Instruction &instruction, unsigned count,
                                llvm::ArrayRef<llvm::Value *> operands);

}  // namespace lanes
