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

}  // namespace

void joinProducts(Function &function, FunctionAnalysisManager &analyses, PassBuilder &builder) {
  if (none_of(instructions(function), multiplies)) return;
  const auto run = [&](StringRef text) {
    FunctionPassManager passes;
    if (Error error = builder.parsePassPipeline(passes, text)) report_fatal_error(std::move(error));
    passes.run(function, analyses);
    analyses.clear(function, function.getName());
  };
  run("loop-simplify,lcssa");
  auto &loops = analyses.getResult<LoopAnalysis>(function);
  auto &dominators = analyses.getResult<DominatorTreeAnalysis>(function);
  auto &evolution = analyses.getResult<ScalarEvolutionAnalysis>(function);
  auto &assumptions = analyses.getResult<AssumptionAnalysis>(function);
  const auto &target = analyses.getResult<TargetIRAnalysis>(function);
  OptimizationRemarkEmitter remarks(&function);
  bool changed = false;
  for (Loop *loop : loops.getLoopsInPreorder()) {
    BasicBlock *exiting = loop->getExitingBlock();
    if (!loop->isInnermost() || !loop->isLoopSimplifyForm() || !exiting || !multipliesByTheSame(*loop) ||
        evolution.getSmallConstantTripCount(loop, exiting) < 3)
      continue;
    UnrollLoopOptions options{};
    options.Count = 2;
    changed |= UnrollLoop(loop, options, &loops, &evolution, &dominators, &assumptions, &target, &remarks,
                          /*PreserveLCSSA=*/true) != LoopUnrollResult::Unmodified;
  }
  analyses.clear(function, function.getName());
  if (!changed) return;
  run("simplifycfg,early-cse,instcombine<no-verify-fixpoint>,dse");
  auto &aliases = analyses.getResult<AAManager>(function);
  for (BasicBlock &block : function)
    if (any_of(block, multiplies)) sinkStores(block, aliases);
  analyses.clear(function, function.getName());
}

}  // namespace lanes
