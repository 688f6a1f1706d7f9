/// Products of a tensor core, made of those of 8x8 matrices.
#pragma once

#include "llvm/IR/Function.h"

namespace lanes {

/// For kernels of NVIDIA GPUs, where the header (`msl/softmetal_nvptx_matrix`) has a function for each product of 8x8
/// matrices, and half of what the instruction multiplies is empty. Two products of a block with one right factor become
/// one of 16 rows, and two that follow on each other in a sum one of 16 steps, where the instruction has as many.
/// Matrices in shared memory come transposed from there, where rows begin at multiples of 16 bytes.
///
/// What is joined depends on nothing but the products of the block, so that kernels with the same loops give the same
/// bits.
void joinTensorProducts(llvm::Function &function);

}  // namespace lanes
