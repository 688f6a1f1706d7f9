/// Ways out of a loop that are part of its turn.
#pragma once

#include "llvm/IR/Function.h"

namespace lanes {

/// What lanes do between a loop and `sm_leave`, they do in the turn in which they leave it: the way joins the loop,
/// whose last block decides by a flag whether a lane has left. To be called before anything looks at loops.
void joinLoopExits(llvm::Function &function);

}  // namespace lanes
