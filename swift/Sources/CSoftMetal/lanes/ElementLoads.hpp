/// Loads of a lane's two elements of a matrix, as loads of the matrix.
///
/// Published kernels fill matrices through `thread_elements()`: each lane loads the two elements that it holds. Where
/// all lanes are there, and their addresses are those of a matrix that lies in memory by rows or by columns, that is
/// what `sm_matrix_load` does.
#pragma once

#include "llvm/IR/Function.h"

namespace lanes {

/// For the version in which all lanes begin; its loops have one latch each. True where something changed.
bool joinElementLoads(llvm::Function &function);

}  // namespace lanes
