/// Which lanes may come to a barrier, by the ways of a kernel and by what is known of the flags that choose among them:
/// lanes that return from within a loop wait where its turn ends, and go on past the barriers of its next turn.
#pragma once

#include <map>

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"

namespace lanes {

class BarrierWays {
 public:
  BarrierWays(const llvm::Function &function, const llvm::DominatorTree &dominators);

  /// An integer that is known in front of a block, and its values with which no barrier is reached from there.
  struct Flag {
    const llvm::Instruction *value;
    llvm::SmallVector<const llvm::ConstantInt *, 4> apart;
  };
  /// Those that the ways from a block on depend on. None where no barrier is reached with any value.
  llvm::SmallVector<Flag, 2> flags(const llvm::BasicBlock &block) const;

  /// Whether lanes that come to `block` may come to a barrier there or behind it.
  bool reach(const llvm::BasicBlock &block) const { return reach(block, {}); }

 private:
  using Known = std::map<const llvm::Value *, const llvm::ConstantInt *>;
  using ValueSet = llvm::SmallSetVector<const llvm::Instruction *, 4>;
  bool reach(const llvm::BasicBlock &from, const Known &known) const;
  void findKnown(const llvm::Value *condition, const llvm::BasicBlock &block, ValueSet &found,
                 unsigned depth = 0) const;

  const llvm::DominatorTree &dominators_;
  llvm::DenseSet<const llvm::BasicBlock *> barriers_;
};

}  // namespace lanes
