#include "Products.hpp"

#include "Primitives.hpp"
#include "llvm/Analysis/AliasAnalysis.h"
#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/OptimizationRemarkEmitter.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Transforms/Utils/UnrollLoop.h"

using namespace llvm;

namespace lanes {
namespace {

bool multiplies(const Instruction &instruction) { return primitiveOf(&instruction) == Primitive::matrixMultiply; }

/// Whether a value is the same in every iteration: casts of what the loop does not compute.
bool isInvariant(const Value *value, const Loop &loop) {
  while (const auto *cast = dyn_cast<CastInst>(value)) value = cast->getOperand(0);
  return loop.isLoopInvariant(value);
}

bool multipliesByTheSame(const Loop &loop) {
  return any_of(loop.blocks(), [&](const BasicBlock *block) {
    return any_of(*block, [&](const Instruction &instruction) {
      return multiplies(instruction) && isInvariant(instruction.getOperand(0), loop);
    });
  });
}

/// Moves stores to private memory down as far as nothing else looks there: what is stored may then wait.
void sinkStores(BasicBlock &block, AAResults &aliases) {
  SmallVector<StoreInst *, 16> stores;
  for (Instruction &instruction : block)
    if (auto *store = dyn_cast<StoreInst>(&instruction);
        store && store->isSimple() && isa<AllocaInst>(getUnderlyingObject(store->getPointerOperand())))
      stores.push_back(store);
  for (StoreInst *store : reverse(stores)) {
    const MemoryLocation place = MemoryLocation::get(store);
    Instruction *next = store->getNextNode();
    while (!next->isTerminator() && !isModOrRefSet(aliases.getModRefInfo(next, place))) next = next->getNextNode();
    store->moveBefore(next);
  }
}

/// The turns of a loop inside another that are few: all of them. None otherwise.
unsigned turnsOfShortLoop(const Loop &loop, ScalarEvolution &evolution) {
  constexpr unsigned few = 4;
  const unsigned turns = evolution.getSmallConstantTripCount(&loop, loop.getExitingBlock());
  return loop.getParentLoop() && hasProducts(loop) && turns <= few + 1 ? turns : 0;
}

/// Two turns of a loop that has products of one left matrix.
unsigned turnsTogether(const Loop &loop, ScalarEvolution &evolution) {
  return multipliesByTheSame(loop) && evolution.getSmallConstantTripCount(&loop, loop.getExitingBlock()) >= 3 ? 2 : 0;
}

/// Unrolls innermost loops, those inside first, by the count that `turns` gives, and says whether any was.
bool unroll(Function &function, FunctionAnalysisManager &analyses,
            function_ref<unsigned(const Loop &, ScalarEvolution &)> turns) {
  auto &loops = analyses.getResult<LoopAnalysis>(function);
  auto &dominators = analyses.getResult<DominatorTreeAnalysis>(function);
  auto &evolution = analyses.getResult<ScalarEvolutionAnalysis>(function);
  auto &assumptions = analyses.getResult<AssumptionAnalysis>(function);
  const auto &target = analyses.getResult<TargetIRAnalysis>(function);
  OptimizationRemarkEmitter remarks(&function);
  bool changed = false;
  const auto inPreorder = loops.getLoopsInPreorder();
  for (Loop *loop : reverse(inPreorder)) {
    if (!loop->isInnermost() || !loop->isLoopSimplifyForm() || !loop->getExitingBlock()) continue;
    UnrollLoopOptions options{};
    options.Count = turns(*loop, evolution);
    if (options.Count > 1)
      changed |= UnrollLoop(loop, options, &loops, &evolution, &dominators, &assumptions, &target, &remarks,
                            /*PreserveLCSSA=*/true) != LoopUnrollResult::Unmodified;
  }
  analyses.clear(function, function.getName());
  return changed;
}

}  // namespace

bool hasProducts(const Loop &loop) {
  return any_of(loop.blocks(), [](const BasicBlock *block) { return any_of(*block, multiplies); });
}

void joinProducts(Function &function, FunctionAnalysisManager &analyses, PassBuilder &builder) {
  if (none_of(instructions(function), multiplies)) return;
  const auto run = [&](StringRef text) {
    FunctionPassManager passes;
    if (Error error = builder.parsePassPipeline(passes, text)) report_fatal_error(std::move(error));
    passes.run(function, analyses);
    analyses.clear(function, function.getName());
  };
  run("loop-simplify,lcssa");
  // What is multiplied comes out of a loop once the loops inside are gone.
  if (unroll(function, analyses, turnsOfShortLoop))
    run("simplifycfg,early-cse<memssa>,instcombine<no-verify-fixpoint>,loop-mssa(licm),loop-simplify,lcssa");
  if (!unroll(function, analyses, turnsTogether)) return;
  run("simplifycfg,early-cse<memssa>,instcombine<no-verify-fixpoint>,early-cse<memssa>,dse");
  auto &aliases = analyses.getResult<AAManager>(function);
  for (BasicBlock &block : function)
    if (any_of(block, multiplies)) sinkStores(block, aliases);
  analyses.clear(function, function.getName());
}

}  // namespace lanes
