#include "Blocks.hpp"

#include <algorithm>

#include "Primitives.hpp"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace lanes {

bool isInTurn(const LoopInfo &loops, const BasicBlock *from, const BasicBlock *block) {
  const Loop *loop = loops.getLoopFor(from);
  while (loop && !loop->contains(block)) loop = loop->getParentLoop();
  if (!loop) return true;
  DenseSet<const BasicBlock *> seen;
  SmallVector<const BasicBlock *, 16> todo(successors(from));
  while (!todo.empty()) {
    const BasicBlock *next = todo.pop_back_val();
    if (next == block || !seen.insert(next).second) continue;
    if (next == loop->getHeader() || !loop->contains(next)) return false;
    todo.append(succ_begin(next), succ_end(next));
  }
  return true;
}

DenseSet<const BasicBlock *> blocksApart(const BasicBlock *block, const PostDominatorTree &postDominators,
                                         const LoopInfo &loops) {
  const auto *node = postDominators.getNode(block);
  const BasicBlock *meeting = node && node->getIDom() ? node->getIDom()->getBlock() : nullptr;
  if (meeting && !isInTurn(loops, block, meeting)) meeting = nullptr;
  DenseSet<const BasicBlock *> seen;
  SmallVector<const BasicBlock *, 16> todo(successors(block));
  while (!todo.empty()) {
    const BasicBlock *next = todo.pop_back_val();
    if (next != meeting && seen.insert(next).second) todo.append(succ_begin(next), succ_end(next));
  }
  return seen;
}

Blocks::Blocks(Function &function) : dominators(function), postDominators(function), loops(dominators) {
  visit(&function.getEntryBlock());
  std::reverse(order.begin(), order.end());
  // The end comes last: lanes wait there for the others.
  std::stable_partition(order.begin(), order.end(),
                        [](BasicBlock *block) { return !isa<ReturnInst>(block->getTerminator()); });
  for (size_t i = 0; i < order.size(); ++i) index[order[i]] = static_cast<int>(i);
  for (BasicBlock *block : order) {
    for (BasicBlock *next : successors(block)) {
      if (index[next] > index[block]) continue;
      const Loop *loop = loops.getLoopFor(block);
      if (!loop || loop->getHeader() != next || loop->getLoopLatch() != block || succ_size(block) != 1)
        throw Declined{"irreducible control flow"};
    }
  }
}

/// Post-order, from the exits of a loop before its blocks: then a loop's blocks are neighbours.
void Blocks::visit(BasicBlock *block) {
  if (!seen_.insert(block).second) return;
  const Loop *loop = loops.getLoopFor(block);
  if (loop && loop->getHeader() == block) {
    SmallVector<BasicBlock *, 8> exits;
    loop->getExitBlocks(exits);
    for (BasicBlock *exit : exits) visit(exit);
  }
  for (BasicBlock *next : successors(block)) visit(next);
  order.push_back(block);
}

bool Blocks::addDivergentBranch(BasicBlock *block) {
  if (!divergent_.insert(block).second) return false;
  part(block, {succ_begin(block), succ_end(block)}, loops.getLoopFor(block));
  return true;
}

bool Blocks::addJoin(const BasicBlock *block, const BasicBlock *branch) {
  auto &branches = joins_[block];
  if (is_contained(branches, branch)) return false;
  branches.push_back(branch);
  return true;
}

ArrayRef<const BasicBlock *> Blocks::partedBefore(const BasicBlock *block) const {
  const auto place = joins_.find(block);
  if (place == joins_.end() || is_contained(place->second, nullptr)) return {};
  return place->second;
}

/// Lanes that part at `branch`, or have left a loop where it is null, go to `seeds`, in the innermost loop `loop`. Each
/// seed sends its name along the edges; a block that two names come to is a join, and sends its own. Names that leave
/// the loop, or begin it anew, differ where lanes leave it at different times; its exits are then seeds in the loop
/// around it.
bool Blocks::part(const BasicBlock *branch, const std::vector<BasicBlock *> &seeds, Loop *loop) {
  bool changed = false;
  DenseMap<BasicBlock *, BasicBlock *> names;
  DenseSet<BasicBlock *> leaving;
  const auto reach = [&](BasicBlock *block, BasicBlock *name) {
    if (loop && (!loop->contains(block) || block == loop->getHeader())) {
      leaving.insert(name);
      return;
    }
    const auto [place, isNew] = names.try_emplace(block, name);
    if (isNew || place->second == name) return;
    place->second = block;
    changed |= addJoin(block, branch);
  };
  for (BasicBlock *seed : seeds) reach(seed, seed);
  for (BasicBlock *block : order) {
    const auto place = names.find(block);
    if (place == names.end()) continue;
    BasicBlock *name = place->second;
    for (BasicBlock *next : successors(block))
      if (index[next] > index[block])
        reach(next, name);
      else if (loop && next == loop->getHeader())
        leaving.insert(name);
  }
  if (!loop || leaving.size() < 2 || !leftApart_.insert(loop).second) return changed;
  SmallVector<BasicBlock *, 8> exits;
  loop->getUniqueExitBlocks(exits);
  for (BasicBlock *exit : exits) addJoin(exit, nullptr);
  part(nullptr, {exits.begin(), exits.end()}, loop->getParentLoop());
  return true;
}

BasicBlock *Blocks::equivalent(const BasicBlock *block) const {
  const auto *node = dominators.getNode(block);
  if (!node) return nullptr;
  const Loop *loop = loops.getLoopFor(block);
  // Past the loops in front of it.
  while ((node = node->getIDom())) {
    BasicBlock *dominator = node->getBlock();
    const Loop *other = loops.getLoopFor(dominator);
    if (other == loop) {
      const bool isSame = postDominators.dominates(block, dominator) && isInTurn(loops, dominator, block);
      return isSame ? dominator : nullptr;
    }
    if (!other || (loop && !loop->contains(other))) return nullptr;
  }
  return nullptr;
}

}  // namespace lanes
