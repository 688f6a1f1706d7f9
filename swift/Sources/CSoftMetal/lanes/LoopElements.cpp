#include "LoopElements.hpp"

#include "Primitives.hpp"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/TargetParser/Triple.h"
#include "llvm/Transforms/Scalar/Scalarizer.h"
#include "llvm/Transforms/Utils/Local.h"
#include "llvm/Transforms/Utils/LoopUtils.h"

using namespace llvm;
using namespace PatternMatch;

namespace lanes {
namespace {

/// A piece that a wide word is only read for: its bits from `first` on.
struct Piece {
  Instruction *value;
  uint64_t first;
};

bool isWord(const Type *type) { return type->isDoubleTy() || type->isIntegerTy(64); }

/// The pieces of `word`, or of its bits as another type: false where it is read otherwise.
bool findPieces(Instruction &word, SmallVectorImpl<Piece> &pieces) {
  return all_of(word.users(), [&](User *user) {
    auto *instruction = cast<Instruction>(user);
    const APInt *shift = nullptr;
    uint64_t index = 0;
    if (isa<BitCastInst>(instruction)) return findPieces(*instruction, pieces);
    if (match(instruction, m_ExtractElt(m_Specific(&word), m_ConstantInt(index)))) {
      pieces.push_back({instruction, index * word.getType()->getScalarSizeInBits()});
      return true;
    }
    if (isa<TruncInst>(instruction)) {
      pieces.push_back({instruction, 0});
      return true;
    }
    return match(instruction, m_LShr(m_Specific(&word), m_APInt(shift))) &&
           all_of(instruction->users(), [&](User *shifted) {
             pieces.push_back({cast<Instruction>(shifted), shift->getZExtValue()});
             return isa<TruncInst>(shifted);
           });
  });
}

/// Loads the pieces of a word of 64 bits apart, which a struct of floats was passed as.
void loadPieces(LoadInst &load) {
  SmallVector<Piece, 4> pieces;
  if (!load.isSimple() || !isWord(load.getType()) || load.use_empty() || !findPieces(load, pieces)) return;
  const auto isWhole = [](const Piece &piece) {
    const unsigned bits = piece.value->getType()->getPrimitiveSizeInBits();
    return !piece.value->getType()->isVectorTy() && (bits == 16 || bits == 32) && piece.first % bits == 0;
  };
  if (!all_of(pieces, isWhole)) return;
  IRBuilder<> builder(&load);
  for (const Piece &piece : pieces) {
    const uint64_t offset = piece.first / 8;
    Value *place = builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), load.getPointerOperand(), offset);
    LoadInst *own = builder.CreateAlignedLoad(piece.value->getType(), place, commonAlignment(load.getAlign(), offset));
    own->copyMetadata(load, {LLVMContext::MD_access_group});
    piece.value->replaceAllUsesWith(own);
  }
  for (const Piece &piece : pieces) RecursivelyDeleteTriviallyDeadInstructions(piece.value);
}

bool accessesVectors(BasicBlock &block) {
  return any_of(block, [](Instruction &instruction) {
    return isa<LoadInst, StoreInst>(instruction) && getLoadStoreType(&instruction)->isVectorTy();
  });
}

}  // namespace

PreservedAnalyses LoopElements::run(Function &function, FunctionAnalysisManager &analyses) {
  if (Triple(function.getParent()->getTargetTriple()).isNVPTX() || hasVectorsOfLanes(function))
    return PreservedAnalyses::all();
  SmallVector<BasicBlock *, 4> bodies;
  for (const Loop *loop : analyses.getResult<LoopAnalysis>(function).getLoopsInPreorder())
    if (loop->getNumBlocks() == 1 && getBooleanLoopAttribute(loop, "llvm.loop.vectorize.enable"))
      bodies.push_back(loop->getHeader());
  if (bodies.empty()) return PreservedAnalyses::all();
  if (any_of(bodies, [](BasicBlock *body) { return accessesVectors(*body); })) {
    ScalarizerPassOptions options;
    options.ScalarizeLoadStore = true;
    ScalarizerPass(options).run(function, analyses);
  }
  SmallVector<LoadInst *, 16> loads;
  for (BasicBlock *body : bodies)
    for (Instruction &instruction : *body)
      if (auto *load = dyn_cast<LoadInst>(&instruction)) loads.push_back(load);
  for (LoadInst *load : loads) loadPieces(*load);
  return PreservedAnalyses::none();
}

bool hasVectorsOfLanes(const Function &function) {
  return any_of(instructions(function), [](const Instruction &instruction) {
    const auto *type = dyn_cast<FixedVectorType>(instruction.getType());
    return type && type->getNumElements() >= width;
  });
}

}  // namespace lanes
