#include "Prepare.hpp"

#include "FullLoops.hpp"
#include "Primitives.hpp"
#include "Private.hpp"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace lanes {
namespace {

FunctionPassManager parse(PassBuilder &builder, StringRef text) {
  FunctionPassManager passes;
  if (Error error = builder.parsePassPipeline(passes, text)) report_fatal_error(std::move(error));
  return passes;
}

/// Lanes that come to where none can come end there.
void endUnreachable(Function &function) {
  for (BasicBlock &block : function) {
    auto *end = dyn_cast<UnreachableInst>(block.getTerminator());
    if (!end) continue;
    ReturnInst::Create(function.getContext(), nullptr, end->getIterator());
    end->eraseFromParent();
  }
}

/// The edge back to a header gets a block that does nothing else.
void separateLatches(Function &function) {
  const DominatorTree dominators(function);
  const LoopInfo loops(dominators);
  SmallVector<std::pair<BasicBlock *, BasicBlock *>, 8> edges;
  for (const Loop *loop : loops.getLoopsInPreorder()) {
    BasicBlock *latch = loop->getLoopLatch();
    if (!latch) throw Declined{"a loop with several ways back"};
    edges.push_back({latch, loop->getHeader()});
  }
  for (const auto &[from, to] : edges) SplitEdge(from, to);
}

template <typename Replacement>
void replace(Function &function, Primitive primitive, Replacement replacement) {
  for (Instruction &instruction : make_early_inc_range(instructions(function))) {
    if (primitiveOf(&instruction) != primitive) continue;
    instruction.replaceAllUsesWith(replacement(instruction));
    instruction.eraseFromParent();
  }
}

}  // namespace

FunctionPassManager firstPasses(PassBuilder &builder) {
  return parse(builder,
               "sroa,early-cse,simplifycfg,instcombine<no-verify-fixpoint>,"
               "loop-mssa(loop-rotate<no-header-duplication>),"
               "loop(indvars,softmetal-unroll-private,loop-unroll-full),"
               "sroa,early-cse,instcombine<no-verify-fixpoint>,simplifycfg,sroa,"
               // Components of a vector that were copied one by one.
               "load-store-vectorizer");
}

void replaceArguments(Function &function) {
  replace(function, Primitive::group, [&](Instruction &) { return function.getArg(0); });
  replace(function, Primitive::simdgroup, [&](Instruction &) { return function.getArg(1); });
}

void prepare(Function &function, FunctionAnalysisManager &analyses, PassBuilder &builder, bool isRegular) {
  const auto run = [&](StringRef text) {
    parse(builder, text).run(function, analyses);
    analyses.clear(function, function.getName());
  };
  replace(function, Primitive::regular,
          [&](Instruction &call) { return ConstantInt::getBool(call.getType(), isRegular); });
  if (isRegular) replace(function, Primitive::kernel, [](Instruction &call) { return &call; });
  run("simplifycfg,early-cse,instcombine<no-verify-fixpoint>,simplifycfg");
  expandCopies(function);
  dividePrivateMemory(function);
  endUnreachable(function);
  run("early-cse,mergereturn,lower-switch,fix-irreducible,loop-simplify,lcssa");
  separateLatches(function);
  analyses.clear(function, function.getName());
  // Only the version that is to be fast has loops twice.
  if (!isRegular || !addFullLoops(function, isRegular)) return;
  run("loop-simplify,lcssa");
  separateLatches(function);
  analyses.clear(function, function.getName());
}

}  // namespace lanes
