#include "Prepare.hpp"

#include "ElementLoads.hpp"
#include "FullLoops.hpp"
#include "Halves.hpp"
#include "Primitives.hpp"
#include "Private.hpp"
#include "Shares.hpp"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;
using namespace PatternMatch;

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

/// Bits cut off below come off in the shift: (x >> 2) & ~7 is (x >> 5) << 3. Of a thread's index only the latter shows
/// that it is the same for a SIMD group.
void shiftOut(Function &function) {
  for (Instruction &instruction : make_early_inc_range(instructions(function))) {
    Value *value = nullptr;
    const APInt *mask = nullptr, *shift = nullptr;
    if (!match(&instruction, m_And(m_Shr(m_Value(value), m_APInt(shift)), m_APInt(mask))) || mask->isZero()) continue;
    const unsigned zeros = mask->countr_zero(), bits = mask->getBitWidth();
    if (zeros == 0 || shift->uge(bits - zeros)) continue;
    IRBuilder<> builder(&instruction);
    const auto opcode = cast<BinaryOperator>(instruction.getOperand(0))->getOpcode();
    Value *high = builder.CreateBinOp(opcode, value, ConstantInt::get(value->getType(), *shift + zeros));
    high = builder.CreateShl(high, zeros);
    // What else the mask clears.
    const APInt left = *mask | APInt::getLowBitsSet(bits, zeros);
    if (!left.isAllOnes()) high = builder.CreateAnd(high, ConstantInt::get(value->getType(), left));
    instruction.replaceAllUsesWith(high);
    instruction.eraseFromParent();
  }
}

/// Joins neighbouring loads and stores. LLVM 19's pass takes two addresses for neighbours whose indices are, whatever
/// the strides: base[lane] in bytes, base[4 * lane + 1] in words. So addresses of one element type share their base.
void joinNeighbours(Function &function, FunctionAnalysisManager &analyses, PassBuilder &builder) {
  DenseMap<const Value *, const Type *> firstTypes;
  DenseMap<std::pair<const Value *, const Type *>, FreezeInst *> bases;
  for (Instruction &instruction : instructions(function)) {
    auto *gep = dyn_cast<GetElementPtrInst>(&instruction);
    if (!gep || gep->hasAllConstantIndices()) continue;
    Value *base = gep->getPointerOperand();
    const Type *type = gep->getSourceElementType();
    if (firstTypes.insert({base, type}).first->second == type) continue;
    FreezeInst *&own = bases[{base, type}];
    if (!own) {
      own = new FreezeInst(base);
      if (auto *definition = dyn_cast<Instruction>(base))
        own->insertBefore(*definition->getParent(), *definition->getInsertionPointAfterDef());
      else
        own->insertBefore(*&function.getEntryBlock(), function.getEntryBlock().getFirstInsertionPt());
    }
    gep->setOperand(0, own);
  }
  parse(builder, "load-store-vectorizer").run(function, analyses);
  for (const auto &[key, own] : bases) {
    own->replaceAllUsesWith(own->getOperand(0));
    own->eraseFromParent();
  }
  analyses.clear(function, function.getName());
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

void simplify(Function &function, FunctionAnalysisManager &analyses, PassBuilder &builder) {
  const auto run = [&](StringRef text) {
    parse(builder, text).run(function, analyses);
    analyses.clear(function, function.getName());
  };
  accessWords(function);
  run("sroa,early-cse,simplifycfg,instcombine<no-verify-fixpoint>");
  takeWholeShares(function);
  run("loop-mssa(loop-rotate<no-header-duplication>),"
      "loop(indvars,softmetal-unroll-private,loop-unroll-full),"
      "sroa,early-cse,instcombine<no-verify-fixpoint>,simplifycfg,sroa");
  packElements(function);
  run("early-cse,instcombine<no-verify-fixpoint>");
  pairHalves(function);
  run("early-cse,instcombine<no-verify-fixpoint>");
  // Components of a vector that were copied one by one.
  joinNeighbours(function, analyses, builder);
  // Single matrices that are read as pairs and as bits.
  run("sroa");
  packElements(function);
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
  shiftOut(function);
  analyses.clear(function, function.getName());
  // Only the version that is to be fast has loops twice, and knows where all lanes are.
  if (!isRegular) return;
  if (joinElementLoads(function)) {
    packElements(function);
    run("early-cse,dce");
  }
  if (!addFullLoops(function, isRegular)) return;
  run("loop-simplify,lcssa");
  separateLatches(function);
  analyses.clear(function, function.getName());
}

}  // namespace lanes
