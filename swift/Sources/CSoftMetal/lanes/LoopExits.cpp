#include "LoopExits.hpp"

#include "Primitives.hpp"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;

namespace lanes {
namespace {

CallBase *firstMark(Function &function) {
  for (Instruction &instruction : instructions(function))
    if (primitiveOf(&instruction) == Primitive::leave) return cast<CallBase>(&instruction);
  return nullptr;
}

/// Whether the condition of a loop has a number.
bool isNumbered(const Loop &loop, const Value *number) {
  return any_of(loop.blocks(), [&](const BasicBlock *block) {
    return any_of(*block, [&](const Instruction &instruction) {
      return primitiveOf(&instruction) == Primitive::turn && cast<CallBase>(instruction).getArgOperand(0) == number;
    });
  });
}

/// The loop of a number that lanes leave on their way to `block`, or null.
Loop *leftLoop(const BasicBlock *block, const Value *number, const DominatorTree &dominators, const LoopInfo &loops) {
  for (const auto *node = dominators.getNode(block); node; node = node->getIDom()) {
    Loop *loop = loops.getLoopFor(node->getBlock());
    // The innermost first.
    for (; loop && !loop->contains(block); loop = loop->getParentLoop())
      if (isNumbered(*loop, number)) return loop;
  }
  return nullptr;
}

/// Values that are used where they are not known any more go by memory, until it becomes values again.
void keepKnown(Function &function) {
  const DominatorTree dominators(function);
  SmallVector<Instruction *, 16> lost;
  for (Instruction &instruction : instructions(function))
    if (any_of(instruction.uses(), [&](const Use &use) { return !dominators.dominates(&instruction, use); }))
      lost.push_back(&instruction);
  for (Instruction *instruction : lost) DemoteRegToStack(*instruction);
}

void join(CallBase &mark) {
  BasicBlock *exit = mark.getParent();
  Function &function = *exit->getParent();
  const Value *number = mark.getArgOperand(0);
  BasicBlock *rest = SplitBlock(exit, mark.getNextNode());
  mark.eraseFromParent();
  const DominatorTree dominators(function);
  const LoopInfo loops(dominators);
  const Loop *loop = leftLoop(exit, number, dominators, loops);
  if (!loop || isa<PHINode>(loop->getHeader()->front())) return;
  BasicBlock *header = loop->getHeader();
  SmallVector<BasicBlock *, 4> latches;
  loop->getLoopLatches(latches);

  LLVMContext &context = function.getContext();
  IRBuilder<> builder(&*function.getEntryBlock().getFirstInsertionPt());
  Value *hasLeft = builder.CreateAlloca(builder.getInt1Ty());
  builder.CreateStore(builder.getFalse(), hasLeft);
  BasicBlock *turn = BasicBlock::Create(context, "", &function, rest),
             *out = BasicBlock::Create(context, "", &function, rest);
  for (BasicBlock *latch : latches) latch->getTerminator()->replaceSuccessorWith(header, turn);
  exit->getTerminator()->eraseFromParent();
  builder.SetInsertPoint(exit);
  // True, which LLVM is not to know: it would go to `rest` at once.
  auto *left = cast<Function>(function.getParent()->getOrInsertFunction("sm_left", builder.getInt1Ty()).getCallee());
  left->setDoesNotThrow();
  left->setDoesNotAccessMemory();
  builder.CreateStore(builder.CreateCall(left), hasLeft);
  builder.CreateBr(turn);
  builder.SetInsertPoint(turn);
  builder.CreateCondBr(builder.CreateLoad(builder.getInt1Ty(), hasLeft), out, header);
  builder.SetInsertPoint(out);
  builder.CreateStore(builder.getFalse(), hasLeft);
  builder.CreateBr(rest);
  for (PHINode &phi : rest->phis()) phi.replaceIncomingBlockWith(exit, out);
  keepKnown(function);
}

}  // namespace

void joinLoopExits(Function &function) {
  while (CallBase *mark = firstMark(function)) join(*mark);
  for (Instruction &instruction : make_early_inc_range(instructions(function))) {
    if (primitiveOf(&instruction) != Primitive::turn) continue;
    instruction.replaceAllUsesWith(ConstantInt::getTrue(function.getContext()));
    instruction.eraseFromParent();
  }
}

}  // namespace lanes
