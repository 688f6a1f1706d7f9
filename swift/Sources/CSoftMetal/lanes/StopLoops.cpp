#include "StopLoops.hpp"

#include "Nvptx.hpp"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace lanes {
namespace {

/// Whether a loop that goes on while `condition` is `isTrue` ends by a comparison of a number that grows by the same
/// each turn with one that stays. `depth`: how many parts within each other are looked at.
bool counts(Value *condition, bool isTrue, const Loop &loop, ScalarEvolution &evolution, unsigned depth = 6) {
  auto *instruction = dyn_cast<Instruction>(condition);
  if (!instruction || !loop.contains(instruction) || depth == 0) return false;
  const auto countsBy = [&](Value *part, bool isPartTrue) {
    return counts(part, isPartTrue, loop, evolution, depth - 1);
  };
  Value *a, *b;
  if (match(instruction, m_Freeze(m_Value(a)))) return countsBy(a, isTrue);
  if (match(instruction, m_Not(m_Value(a)))) return countsBy(a, !isTrue);
  const bool isAnd = match(instruction, m_LogicalAnd(m_Value(a), m_Value(b)));
  if (isAnd || match(instruction, m_LogicalOr(m_Value(a), m_Value(b)))) {
    // Either part ends the loop, or both have to.
    return isAnd == isTrue ? countsBy(a, isTrue) || countsBy(b, isTrue) : countsBy(a, isTrue) && countsBy(b, isTrue);
  }
  if (!isa<ICmpInst>(instruction) || !evolution.isSCEVable(instruction->getOperand(0)->getType())) return false;
  const SCEV *left = evolution.getSCEV(instruction->getOperand(0)),
             *right = evolution.getSCEV(instruction->getOperand(1));
  const auto grows = [&](const SCEV *side) {
    const auto *counter = dyn_cast<SCEVAddRecExpr>(side);
    return counter && counter->getLoop() == &loop && counter->isAffine();
  };
  const auto stays = [&](const SCEV *side) { return evolution.isLoopInvariant(side, &loop); };
  return (grows(left) && stays(right)) || (grows(right) && stays(left));
}

/// Whether a loop counts: LLVM knows a bound for its turns, or would if no sum went over.
bool isCounted(const Loop &loop, ScalarEvolution &evolution) {
  if (!isa<SCEVCouldNotCompute>(evolution.getConstantMaxBackedgeTakenCount(&loop))) return true;
  SmallVector<BasicBlock *, 4> exiting;
  loop.getExitingBlocks(exiting);
  return any_of(exiting, [&](const BasicBlock *block) {
    const auto *branch = dyn_cast<BranchInst>(block->getTerminator());
    return branch && branch->isConditional() &&
           counts(branch->getCondition(), loop.contains(branch->getSuccessor(0)), loop, evolution);
  });
}

/// Whether the loop has matrices multiplied, as prefill's over tiles: there a look would hold up a whole SIMD group's
/// products.
bool multiplies(const Loop &loop) {
  return any_of(loop.blocks(), [](const BasicBlock *block) {
    return any_of(*block, [](const Instruction &instruction) {
      const auto *call = dyn_cast<CallBase>(&instruction);
      if (!call) return false;
      if (const auto *code = dyn_cast<InlineAsm>(call->getCalledOperand()))
        return StringRef(code->getAsmString()).contains("mma.");
      const Function *callee = call->getCalledFunction();
      return callee && callee->getName().starts_with("llvm.nvvm.mma");
    });
  });
}

/// The first instructions of loops that may go on for ever, one a turn.
SmallVector<Instruction *, 4> endless(Function &function, FunctionAnalysisManager &analyses) {
  auto &evolution = analyses.getResult<ScalarEvolutionAnalysis>(function);
  SmallVector<Instruction *, 4> places;
  for (const Loop *loop : analyses.getResult<LoopAnalysis>(function).getLoopsInPreorder())
    if (!isCounted(*loop, evolution) && !multiplies(*loop))
      places.push_back(&*loop->getHeader()->getFirstInsertionPt());
  return places;
}

/// The thread ends before `place` if the word at `address`, an integer, is not 0.
void endThread(Instruction *place, Value *address) {
  BasicBlock *head = place->getParent(), *rest = head->splitBasicBlock(place->getIterator());
  LLVMContext &context = head->getContext();
  IRBuilder<> look(head->getTerminator());
  Value *word = look.CreateIntToPtr(address, PointerType::get(context, globalMemory));
  Value *goesOn = look.CreateIsNull(look.CreateLoad(look.getInt32Ty(), word, /*isVolatile=*/true));
  BasicBlock *end = BasicBlock::Create(context, "stopped", head->getParent());
  look.CreateCondBr(goesOn, rest, end);
  head->getTerminator()->eraseFromParent();
  IRBuilder<> builder(end);
  builder.CreateCall(InlineAsm::get(FunctionType::get(builder.getVoidTy(), false), "exit;", "", /*sideEffects=*/true));
  builder.CreateUnreachable();
}

/// The word's address, at the beginning of the function: in an entry its parameter's, else what shared memory has.
Value *wordOf(Function &function, GlobalVariable *shared) {
  IRBuilder<> builder(&*function.getEntryBlock().getFirstNonPHIOrDbgOrAlloca());
  Value *from = isEntry(function) ? static_cast<Value *>(function.getArg(0)) : shared;
  return builder.CreateLoad(builder.getInt64Ty(), from);
}

}  // namespace

PreservedAnalyses StopLoops::run(Module &module, ModuleAnalysisManager &analyses) {
  if (!isNvptx(module)) return PreservedAnalyses::all();
  auto &functions = analyses.getResult<FunctionAnalysisManagerModuleProxy>(module).getManager();
  GlobalVariable *shared = nullptr;
  bool isChanged = false;
  for (Function &function : module) {
    if (function.isDeclaration()) continue;
    const auto places = endless(function, functions);
    if (places.empty()) continue;
    if (!isEntry(function) && !shared) {
      Type *type = Type::getInt64Ty(module.getContext());
      shared = new GlobalVariable(module, type, /*isConstant=*/false, GlobalValue::InternalLinkage,
                                  UndefValue::get(type), "sm_stop", nullptr, GlobalValue::NotThreadLocal, sharedMemory);
    }
    Value *address = wordOf(function, shared);
    for (Instruction *place : places) endThread(place, address);
    functions.invalidate(function, PreservedAnalyses::none());
    isChanged = true;
  }
  // Every thread writes what all write, so that none has to wait for another.
  for (Function &function : module) {
    if (!shared || !isEntry(function)) continue;
    auto *address = cast<Instruction>(wordOf(function, shared));
    new StoreInst(address, shared, /*isVolatile=*/true, address->getNextNode()->getIterator());
  }
  return isChanged ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

}  // namespace lanes
