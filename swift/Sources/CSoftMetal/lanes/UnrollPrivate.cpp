#include "UnrollPrivate.hpp"

#include "Primitives.hpp"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/LoopUtils.h"

using namespace llvm;

namespace lanes {
namespace {

constexpr uint64_t mostUnrolled = 2048;  ///< instructions; the last turn only leaves

/// Arrays of matrices are walked whole, without a gather. A share of one is not larger than an element of the array.
bool isMatrixPart(const Instruction &instruction, const DataLayout &layout) {
  const Primitive primitive = primitiveOf(&instruction);
  if (primitive == Primitive::matrixLoad || primitive == Primitive::matrixStore ||
      primitive == Primitive::matrixMultiply)
    return true;
  const Value *pointer = getLoadStorePointerOperand(&instruction);
  const auto *array = pointer ? dyn_cast<AllocaInst>(getUnderlyingObject(pointer)) : nullptr;
  if (!array || !array->getAllocatedType()->isArrayTy()) return false;
  const auto *store = dyn_cast<StoreInst>(&instruction);
  const Type *type = store ? store->getValueOperand()->getType() : instruction.getType();
  if (type->getPrimitiveSizeInBits() <= 32) return false;
  Type *element = array->getAllocatedType();
  while (element->isArrayTy()) element = element->getArrayElementType();
  return !element->isIntegerTy() && layout.getTypeAllocSize(element).getFixedValue() <= shareBytes;
}

/// Whether the loops inside have to be unrolled after it, since their numbers of turns depend on its.
bool isOutermostKnown(const Loop &loop, ScalarEvolution &evolution) {
  return all_of(loop.getSubLoops(), [&](const Loop *inner) { return evolution.getSmallConstantTripCount(inner) == 0; });
}

class UnrollPrivate : public PassInfoMixin<UnrollPrivate> {
 public:
  static bool isRequired() { return true; }

  PreservedAnalyses run(Loop &loop, LoopAnalysisManager &, LoopStandardAnalysisResults &results, LPMUpdater &) {
    const uint64_t turns = results.SE.getSmallConstantTripCount(&loop);
    const DataLayout &layout = loop.getHeader()->getModule()->getDataLayout();
    uint64_t size = 0;
    bool isPrivate = false, hasMatrices = false;
    for (const BasicBlock *block : loop.blocks()) {
      for (const Instruction &instruction : *block) {
        ++size;
        const Value *pointer = getLoadStorePointerOperand(&instruction);
        hasMatrices |= isMatrixPart(instruction, layout);
        isPrivate |= pointer && isa<AllocaInst>(getUnderlyingObject(pointer)) && !loop.isLoopInvariant(pointer);
      }
    }
    if (turns > 1 && isPrivate && !hasMatrices && isOutermostKnown(loop, results.SE) &&
        (turns - 1) * size <= mostUnrolled)
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
