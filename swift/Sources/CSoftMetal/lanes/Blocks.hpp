/// The blocks of a kernel in the order that `linearize` asks for, and where lanes diverge and reconverge.
#pragma once

#include <vector>

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/PostDominators.h"
#include "llvm/IR/Dominators.h"

namespace lanes {

/// Whether lanes that go from `from` to `block`, which post-dominates it, come there in the same turn of the loops that
/// both are in: the way to it may also be out of the loop and in again, in another turn of the loop around.
bool isInTurn(const llvm::LoopInfo &loops, const llvm::BasicBlock *from, const llvm::BasicBlock *block);

/// The blocks that lanes which part at the end of `block` come to apart: up to where all ways meet again in the same
/// turn, which may be nowhere.
llvm::DenseSet<const llvm::BasicBlock *> blocksApart(const llvm::BasicBlock *block,
                                                     const llvm::PostDominatorTree &postDominators,
                                                     const llvm::LoopInfo &loops);

class Blocks {
 public:
  explicit Blocks(llvm::Function &function);

  llvm::DominatorTree dominators;
  llvm::PostDominatorTree postDominators;
  llvm::LoopInfo loops;
  std::vector<llvm::BasicBlock *> order;
  llvm::DenseMap<const llvm::BasicBlock *, int> index;

  /// Lanes may choose differently at the end of `block`. True where that is news.
  bool addDivergentBranch(llvm::BasicBlock *block);
  bool isDivergent(const llvm::BasicBlock *block) const { return divergent_.contains(block); }
  /// Lanes may come to `block` by different edges, or leave a loop to it at different times.
  bool isJoin(const llvm::BasicBlock *block) const { return joins_.contains(block); }
  /// The blocks at whose ends lanes part that come to `block` by different edges; none where they may also have left a
  /// loop at different times.
  llvm::ArrayRef<const llvm::BasicBlock *> partedBefore(const llvm::BasicBlock *block) const;
  /// Lanes may leave the loop at different times.
  bool isLeftApart(const llvm::Loop *loop) const { return leftApart_.contains(loop); }
  /// The block that has the same lanes, always: it dominates `block`, which post-dominates it, in the same turn of the
  /// same loop.
  llvm::BasicBlock *equivalent(const llvm::BasicBlock *block) const;

 private:
  void visit(llvm::BasicBlock *block);
  bool part(const llvm::BasicBlock *branch, const std::vector<llvm::BasicBlock *> &seeds, llvm::Loop *loop);
  bool addJoin(const llvm::BasicBlock *block, const llvm::BasicBlock *branch);

  llvm::DenseSet<const llvm::BasicBlock *> seen_, divergent_;
  /// Where lanes part that come to a block by different edges; null: they left a loop at different times.
  llvm::DenseMap<const llvm::BasicBlock *, llvm::SmallVector<const llvm::BasicBlock *, 2>> joins_;
  llvm::DenseSet<const llvm::Loop *> leftApart_;
};

}  // namespace lanes
