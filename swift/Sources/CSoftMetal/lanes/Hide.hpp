/// Values that LLVM is to leave as they are.
#pragma once

#include "llvm/IR/IRBuilder.h"

namespace lanes {

/// The same value, of which LLVM does not see what it is. No instruction at all: the result is in the register of the
/// argument.
llvm::Value *hide(llvm::IRBuilder<> &builder, llvm::Value *value);

}  // namespace lanes
