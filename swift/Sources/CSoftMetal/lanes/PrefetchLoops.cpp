#include "PrefetchLoops.hpp"

#include "ByRegister.hpp"
#include "llvm/ADT/MapVector.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Scalar/LoopDataPrefetch.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;

namespace lanes {
namespace {

/// Instructions for each line of memory from which on a loop asks ahead: a processor holds a few hundred at a time, and
/// where they are as many as this has the loads of few lines among them.
constexpr size_t fewestForLine = 32;

}  // namespace

PreservedAnalyses PrefetchLoops::run(Function &function, FunctionAnalysisManager &analyses) {
  if (!function.hasFnAttribute(independent)) return PreservedAnalyses::all();
  const PreservedAnalyses preserved = LoopDataPrefetchPass().run(function, analyses);
  const auto &loops = analyses.getResult<LoopAnalysis>(function);
  MapVector<const Loop *, SmallVector<IntrinsicInst *, 8>> requests;
  for (Instruction &instruction : instructions(function)) {
    auto *call = dyn_cast<IntrinsicInst>(&instruction);
    if (!call || call->getIntrinsicID() != Intrinsic::prefetch) continue;
    if (const Loop *loop = loops.getLoopFor(call->getParent())) requests[loop].push_back(call);
  }
  for (auto &[loop, calls] : requests) {
    size_t size = 0;
    for (const BasicBlock *block : loop->blocks()) size += block->size();
    if (size >= calls.size() * fewestForLine) continue;
    for (IntrinsicInst *call : calls) {
      Value *place = call->getArgOperand(0);
      call->eraseFromParent();
      RecursivelyDeleteTriviallyDeadInstructions(place);
    }
  }
  return preserved;
}

}  // namespace lanes
