#include "LoopElements.hpp"

#include "Nvptx.hpp"
#include "Primitives.hpp"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/PatternMatch.h"
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
    return !piece.value->getType()->isVectorTy() && (bits == 16 || bits == 32) && piece.first % bits == 0 &&
           piece.first + bits <= 64;
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

/// Where an instruction reads, and where it writes.
struct Places {
  SmallVector<const Value *, 2> read, written;
};

Places placesOf(const Instruction &instruction) {
  if (const auto *load = dyn_cast<LoadInst>(&instruction)) return {{load->getPointerOperand()}, {}};
  if (const auto *store = dyn_cast<StoreInst>(&instruction)) return {{}, {store->getPointerOperand()}};
  if (const auto *copy = dyn_cast<MemTransferInst>(&instruction)) return {{copy->getSource()}, {copy->getDest()}};
  Places places;
  if (const auto *call = dyn_cast<CallBase>(&instruction))
    for (const Use &argument : call->args())
      if (argument->getType()->isPointerTy()) places.written.push_back(argument.get());
  return places;
}

/// The private variables that a pointer may lead to.
SmallVector<const AllocaInst *, 4> variablesAt(const Value *pointer) {
  SmallVector<const Value *, 4> objects;
  getUnderlyingObjects(pointer, objects, /*LI=*/nullptr, /*MaxLookup=*/0);
  SmallVector<const AllocaInst *, 4> result;
  for (const Value *object : objects)
    if (const auto *variable = dyn_cast<AllocaInst>(object)) result.push_back(variable);
  return result;
}

/// Takes from accesses of private variables that a loop over threads writes the promise that they are of one thread:
/// the turns of the loop share the variable. One that LLVM has made registers of is none by now. True where there are
/// some.
bool keepPrivate(Loop &loop) {
  SmallPtrSet<const AllocaInst *, 8> written;
  for (BasicBlock *block : loop.blocks())
    for (Instruction &instruction : *block)
      for (const Value *place : placesOf(instruction).written)
        for (const AllocaInst *variable : variablesAt(place)) written.insert(variable);
  if (written.empty()) return false;
  for (BasicBlock *block : loop.blocks())
    for (Instruction &instruction : *block) {
      const Places places = placesOf(instruction);
      for (const Value *place : concat<const Value *const>(places.read, places.written))
        if (any_of(variablesAt(place), [&](const AllocaInst *variable) { return written.contains(variable); }))
          instruction.setMetadata(LLVMContext::MD_access_group, nullptr);
    }
  return true;
}

bool accessesVectors(BasicBlock &block) {
  return any_of(block, [](Instruction &instruction) {
    return isa<LoadInst, StoreInst>(instruction) && getLoadStoreType(&instruction)->isVectorTy();
  });
}

}  // namespace

PreservedAnalyses LoopElements::run(Function &function, FunctionAnalysisManager &analyses) {
  if (isNvptx(*function.getParent()) || hasVectorsOfLanes(function)) return PreservedAnalyses::all();
  SmallVector<BasicBlock *, 4> bodies;
  for (Loop *loop : analyses.getResult<LoopAnalysis>(function).getLoopsInPreorder())
    if (getBooleanLoopAttribute(loop, "llvm.loop.vectorize.enable") && !keepPrivate(*loop) && loop->getNumBlocks() == 1)
      bodies.push_back(loop->getHeader());
  if (bodies.empty()) return PreservedAnalyses::none();
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
