/// Memory of a thread's own, made into that of 32.
#pragma once

#include "llvm/IR/Function.h"

namespace lanes {

/// Writes out copies and fills of memory as loads and stores.
void expandCopies(llvm::Function &function);

/// Gives every lane a part of each private array. Where all accesses are of one
/// size the lanes' elements lie side by side, so that lanes that ask for the
/// same element read one vector; else each lane's copy lies by itself.
void dividePrivateMemory(llvm::Function &function);

}  // namespace lanes
