#include "UnrollPrivate.hpp"

#include "Primitives.hpp"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Transforms/Utils/LoopUtils.h"

using namespace llvm;

namespace lanes {
namespace {

constexpr uint64_t mostUnrolled = 1024;  ///< instructions

/// Arrays of matrices are walked whole, without a gather.
bool isMatrixPart(const Instruction &instruction) {
  const Primitive primitive = primitiveOf(&instruction);
  if (primitive == Primitive::matrixLoad || primitive == Primitive::matrixStore ||
      primitive == Primitive::matrixMultiply)
    return true;
  const auto *store = dyn_cast<StoreInst>(&instruction);
  if (!store && !isa<LoadInst>(instruction)) return false;
  return (store ? store->getValueOperand()->getType() : instruction.getType())->getPrimitiveSizeInBits() > 32;
}

class UnrollPrivate : public PassInfoMixin<UnrollPrivate> {
 public:
  static bool isRequired() { return true; }

  PreservedAnalyses run(Loop &loop, LoopAnalysisManager &, LoopStandardAnalysisResults &results, LPMUpdater &) {
    const uint64_t turns = results.SE.getSmallConstantTripCount(&loop);
    uint64_t size = 0;
    bool isPrivate = false, hasMatrices = false;
    for (const BasicBlock *block : loop.blocks()) {
      for (const Instruction &instruction : *block) {
        ++size;
        const Value *pointer = getLoadStorePointerOperand(&instruction);
        hasMatrices |= isMatrixPart(instruction);
        isPrivate |= pointer && isa<AllocaInst>(getUnderlyingObject(pointer)) && !loop.isLoopInvariant(pointer);
      }
    }
    if (turns > 1 && isPrivate && !hasMatrices && loop.isInnermost() && turns * size <= mostUnrolled)
      addStringMetadataToLoop(&loop, "llvm.loop.unroll.full");
    return PreservedAnalyses::all();
  }
};

}  // namespace

void registerUnrollPrivate(PassBuilder &builder) {
  builder.registerPipelineParsingCallback(
      [](StringRef name, LoopPassManager &passes, ArrayRef<PassBuilder::PipelineElement>) {
        if (name != "softmetal-unroll-private") return false;
        passes.addPass(UnrollPrivate());
        return true;
      });
}

}  // namespace lanes
