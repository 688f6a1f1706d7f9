#include "FullLoops.hpp"

#include <algorithm>

#include "Primitives.hpp"
#include "Shapes.hpp"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace llvm;

namespace lanes {
namespace {

constexpr unsigned mostInstructions = 400;

/// Loops worth it, by their headers: small, without another loop in them, left apart by their header's condition alone.
std::vector<BasicBlock *> candidates(Function &function, bool mayAssume) {
  Blocks blocks(function);
  const Shapes shapes(function, blocks, mayAssume);
  std::vector<BasicBlock *> result;
  for (Loop *loop : blocks.loops.getLoopsInPreorder()) {
    if (!loop->isInnermost() || !blocks.isLeftApart(loop) || !loop->getLoopPreheader()) continue;
    BasicBlock *header = loop->getHeader();
    const auto *branch = dyn_cast<BranchInst>(header->getTerminator());
    if (!branch || !branch->isConditional() || loop->getExitingBlock() != header) continue;
    // The second loop begins with the header that the first has left by.
    if (any_of(*header, [](const Instruction &instruction) { return instruction.mayHaveSideEffects(); })) continue;
    size_t size = 0;
    bool hasBarrier = false;
    for (const BasicBlock *block : loop->blocks()) {
      size += block->size();
      for (const Instruction &instruction : *block) hasBarrier |= primitiveOf(&instruction) == Primitive::barrier;
    }
    if (size <= mostInstructions && !hasBarrier) result.push_back(header);
  }
  return result;
}

void addFullLoop(Function &function, BasicBlock *header) {
  DominatorTree dominators(function);
  LoopInfo loops(dominators);
  Loop *loop = loops.getLoopFor(header);
  BasicBlock *exit = loop->getExitBlock(), *before = loop->getLoopPreheader();
  BasicBlock *between = SplitBlock(before, before->getTerminator(), &dominators, &loops);
  ValueToValueMapTy map;
  SmallVector<BasicBlock *, 8> copies;
  cloneLoopWithPreheader(between, before, loop, map, ".full", &loops, &dominators, copies);
  remapInstructionsInBlocks(copies, map);
  before->getTerminator()->replaceSuccessorWith(between, cast<BasicBlock>(map[between]));
  auto *branch = cast<BranchInst>(cast<BasicBlock>(map[header])->getTerminator());
  const bool leavesFirst = branch->getSuccessor(0) == exit;
  branch->replaceSuccessorWith(exit, between);
  for (PHINode &phi : header->phis()) phi.setIncomingValueForBlock(between, map[&phi]);
  // The exit's phis know the loop itself only; what comes from the copy goes through it.
  IRBuilder<> builder(branch);
  FunctionCallee all = function.getParent()->getOrInsertFunction("sm_all", builder.getInt1Ty(), builder.getInt1Ty());
  cast<Function>(all.getCallee())->addFnAttr(Attribute::Convergent);
  cast<Function>(all.getCallee())->setMemoryEffects(MemoryEffects::none());
  Value *stays = branch->getCondition();
  if (leavesFirst) stays = builder.CreateNot(stays);
  Value *allStay = builder.CreateCall(all, {stays});
  branch->setCondition(leavesFirst ? builder.CreateNot(allStay) : allStay);
}

}  // namespace

bool addFullLoops(Function &function, bool mayAssume) {
  const std::vector<BasicBlock *> headers = candidates(function, mayAssume);
  for (BasicBlock *header : headers) addFullLoop(function, header);
  return !headers.empty();
}

}  // namespace lanes
