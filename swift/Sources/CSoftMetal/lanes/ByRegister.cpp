#include "ByRegister.hpp"

#include <algorithm>

#include "Elements.hpp"
#include "Primitives.hpp"
#include "llvm/ADT/SetVector.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/Analysis/VectorUtils.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;

namespace lanes {
namespace {

constexpr const char *groupName = "softmetal.lanes";

/// How many elements a vector has that may be as many of each lane, in whatever order; 0 where it is no such vector.
unsigned elementsOfLanes(const Type *type) {
  const auto *vector = dyn_cast<FixedVectorType>(type);
  return vector && vector->getNumElements() % width == 0 ? vector->getNumElements() : 0;
}

/// Whether memory may be a variable of the function, whose accesses LLVM divides as it likes.
bool mayBePrivate(const Value *pointer) {
  SmallVector<const Value *, 4> objects;
  getUnderlyingObjects(pointer, objects, /*LI=*/nullptr, /*MaxLookup=*/0);
  return any_of(objects, [](const Value *object) { return isa<AllocaInst>(object); });
}

/// Loads and stores of neighbouring elements by all lanes; `group` says which are.
bool isAccess(Instruction &instruction, const MDNode *group) {
  if (instruction.getMetadata(LLVMContext::MD_access_group) != group) return false;
  const auto *load = dyn_cast<LoadInst>(&instruction);
  const auto *store = dyn_cast<StoreInst>(&instruction);
  if (!(load && load->isSimple()) && !(store && store->isSimple())) return false;
  const Type *type = getLoadStoreType(&instruction);
  return elementsOfLanes(type) != 0 && (type->isIntOrIntVectorTy() || type->isFPOrFPVectorTy()) &&
         type->getScalarSizeInBits() % 8 == 0 && !mayBePrivate(getLoadStorePointerOperand(&instruction));
}

/// Whether it computes each element of its result of those at the same place in its operands, or the bits of them.
bool isOfEachLane(const Instruction &instruction) {
  const unsigned count = elementsOfLanes(instruction.getType());
  if (count == 0) return false;
  if (isa<BitCastInst>(instruction)) return elementsOfLanes(instruction.getOperand(0)->getType()) != 0;
  const auto *call = dyn_cast<IntrinsicInst>(&instruction);
  if (!call) return isElementwise(instruction);
  return isTriviallyVectorizable(call->getIntrinsicID()) &&
         all_of(call->args(), [&](const Use &operand) { return elementsOfLanes(operand->getType()) == count; });
}

/// Values of all lanes, and the parts of them that the lanes of one register have.
class Parts {
 protected:
  /// Cuts into registers of so many bits, for elements of `elementBits`; false where that leaves one part, or less.
  bool cut(uint64_t registerBits, unsigned elementBits) {
    // A power of two, which sizes of elements need not be: LLVM sums up loops in 33 and 65 bits.
    const unsigned lanes = unsigned(bit_floor(registerBits / elementBits));
    if (lanes == 0 || lanes >= width) return false;
    parts_ = width / lanes;
    return true;
  }

  unsigned widestComputed() const {
    unsigned bits = 0;
    for (const Instruction *each : computed_) bits = std::max(bits, each->getType()->getScalarSizeInBits());
    return bits;
  }

  unsigned elementsOfPart(const Type *type) const { return cast<FixedVectorType>(type)->getNumElements() / parts_; }

  /// The part of a value that the part's lanes have.
  Value *partOf(Value *value, unsigned part, IRBuilder<> &builder) {
    if (Value *known = known_.lookup({value, part})) return known;
    Value *made = makePart(value, part, builder);
    known_[{value, part}] = made;
    return made;
  }

  SetVector<Instruction *> computed_;  ///< what is computed part by part
  unsigned parts_ = 1;
  DenseMap<std::pair<Value *, unsigned>, Value *> known_;  ///< parts of values

 private:
  Value *makePart(Value *value, unsigned part, IRBuilder<> &builder) {
    const unsigned count = elementsOfPart(value->getType());
    if (Value *splat = getSplatValue(value)) return builder.CreateVectorSplat(count, splat);
    auto *instruction = dyn_cast<Instruction>(value);
    if (!instruction || !computed_.contains(instruction))
      return builder.CreateShuffleVector(value, createSequentialMask(part * count, count, 0));
    if (auto *shuffle = dyn_cast<ShuffleVectorInst>(instruction)) {
      Value *first = partOf(shuffle->getOperand(0), part, builder);
      Value *second = partOf(shuffle->getOperand(1), part, builder);
      const unsigned whole = cast<FixedVectorType>(shuffle->getOperand(0)->getType())->getNumElements();
      const unsigned from = whole / parts_;
      SmallVector<int, 32> places;
      for (const int place : shuffle->getShuffleMask().slice(part * count, count))
        places.push_back(place < 0 ? place : int(unsigned(place) / whole * from + unsigned(place) % from));
      return builder.CreateShuffleVector(first, second, places);
    }
    auto *call = dyn_cast<IntrinsicInst>(instruction);
    SmallVector<Value *, 3> operands;
    for (Value *operand : call ? call->args() : instruction->operands())
      operands.push_back(partOf(operand, part, builder));
    if (!call) return builder.Insert(cloneOfCount(*instruction, count, operands));
    auto *type = FixedVectorType::get(value->getType()->getScalarType(), count);
    CallInst *result = builder.CreateIntrinsic(type, call->getIntrinsicID(), operands);
    result->copyIRFlags(call);
    return result;
  }
};

/// Neighbouring accesses of a block, and what they have between them.
class AccessRun : Parts {
 public:
  void add(Instruction &access) { accesses_.push_back(&access); }

  /// Does all that with the lanes of one register after another; where little is computed, one access after another, a
  /// register at a time. What was computed of all lanes before is added to `rest`.
  bool split(uint64_t registerBits, SmallVectorImpl<WeakTrackingVH> &rest) {
    if (accesses_.size() < 2 || !collect() || !cut(registerBits, widestElement())) return false;
    if (!all_of(computed_, [&](const Instruction *each) { return keepsParts(*each); })) return false;
    IRBuilder<> builder(accesses_.back());
    if (computed_.size() < fewest) {
      for (Instruction *access : accesses_)
        for (unsigned part = 0; part < parts_; ++part) emit(*access, part, builder);
    } else {
      for (unsigned part = 0; part < parts_; ++part)
        for (Instruction *access : accesses_) emit(*access, part, builder);
    }
    for (Instruction *access : accesses_) {
      auto *store = dyn_cast<StoreInst>(access);
      if (!store) continue;
      rest.push_back(store->getValueOperand());
      store->eraseFromParent();
    }
    return true;
  }

 private:
  /// Instructions between; with fewer, registers hold the values of all lanes, and accesses stay together.
  static constexpr unsigned fewest = 8;

  /// Finds what is computed from loads to stores; false where something else asks for any of it.
  bool collect() {
    const BasicBlock *block = accesses_.front()->getParent();
    SetVector<Instruction *> todo;
    for (Instruction *access : accesses_)
      if (auto *store = dyn_cast<StoreInst>(access))
        if (auto *value = dyn_cast<Instruction>(store->getValueOperand())) todo.insert(value);
    for (unsigned i = 0; i < todo.size(); ++i) {
      Instruction *each = todo[i];
      if (each->getParent() != block || getSplatValue(each)) continue;
      if (!isOfEachLane(*each) && !isa<ShuffleVectorInst>(each)) continue;
      computed_.insert(each);
      for (Value *operand : each->operands())
        if (auto *value = dyn_cast<Instruction>(operand)) todo.insert(value);
    }
    const auto isOfRun = [&](const User *user) {
      auto *instruction = const_cast<Instruction *>(cast<Instruction>(user));
      return computed_.contains(instruction) || is_contained(accesses_, instruction);
    };
    return all_of(computed_, [&](const Instruction *each) { return all_of(each->users(), isOfRun); }) &&
           all_of(accesses_, [&](const Instruction *each) {
             return isa<StoreInst>(each) || (!each->use_empty() && all_of(each->users(), isOfRun));
           });
  }

  unsigned widestElement() const {
    unsigned bits = widestComputed();
    for (Instruction *access : accesses_) bits = std::max(bits, getLoadStoreType(access)->getScalarSizeInBits());
    return bits;
  }

  /// Whether no element leaves its part.
  bool keepsParts(const Instruction &instruction) const {
    const auto *shuffle = dyn_cast<ShuffleVectorInst>(&instruction);
    if (!shuffle) return true;
    const Type *from = shuffle->getOperand(0)->getType();
    if (elementsOfLanes(from) == 0 || elementsOfLanes(shuffle->getType()) == 0) return false;
    const unsigned count = cast<FixedVectorType>(from)->getNumElements();
    const ArrayRef<int> places = shuffle->getShuffleMask();
    for (unsigned i = 0; i < places.size(); ++i)
      if (places[i] >= 0 &&
          unsigned(places[i]) % count / elementsOfPart(from) != i / elementsOfPart(shuffle->getType()))
        return false;
    return true;
  }

  void emit(Instruction &access, unsigned part, IRBuilder<> &builder) {
    const DataLayout &layout = access.getModule()->getDataLayout();
    Type *whole = getLoadStoreType(&access);
    Type *type = FixedVectorType::get(whole->getScalarType(), elementsOfPart(whole));
    const uint64_t offset = part * layout.getTypeStoreSize(type).getFixedValue();
    Value *place = builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), getLoadStorePointerOperand(&access), offset);
    const Align align = commonAlignment(getLoadStoreAlignment(&access), offset);
    if (auto *store = dyn_cast<StoreInst>(&access))
      builder.CreateAlignedStore(partOf(store->getValueOperand(), part, builder), place, align);
    else
      known_[{&access, part}] = builder.CreateAlignedLoad(type, place, align);
  }

  SmallVector<Instruction *, 8> accesses_;
};

/// What a block computes of each lane for other blocks.
class LongComputation : Parts {
 public:
  /// Computes it for the lanes of one register after another; false where it is short, or the block needs it itself.
  bool split(BasicBlock &block, uint64_t registerBits, SmallVectorImpl<WeakTrackingVH> &rest) {
    for (Instruction &each : block)
      if (isOfEachLane(each) && !getSplatValue(&each)) computed_.insert(&each);
    SmallVector<Instruction *, 8> results;
    for (Instruction *each : computed_) {
      const auto isHere = [&](const User *user) { return cast<Instruction>(user)->getParent() == &block; };
      const auto isComputed = [&](const User *user) {
        return computed_.contains(const_cast<Instruction *>(cast<Instruction>(user)));
      };
      if (any_of(each->users(), [&](const User *user) { return isHere(user) && !isComputed(user); })) return false;
      if (!all_of(each->users(), isComputed)) results.push_back(each);
    }
    if (computed_.size() < fewest || !cut(registerBits, widestComputed())) return false;
    IRBuilder<> builder(block.getTerminator());
    // In their order, which has chains side by side where the source has.
    for (unsigned part = 0; part < parts_; ++part)
      for (Instruction *each : computed_) partOf(each, part, builder);
    for (Instruction *result : results) {
      SmallVector<Value *, 8> parts;
      for (unsigned part = 0; part < parts_; ++part) parts.push_back(partOf(result, part, builder));
      result->replaceAllUsesWith(concatenateVectors(builder, parts));
      rest.push_back(result);
    }
    return true;
  }

 private:
  /// Instructions of a computation whose values under way fill the registers, all lanes together.
  static constexpr unsigned fewest = 32;
};

}  // namespace

void markLaneAfterLane(Instruction &access) {
  NamedMDNode *groups = access.getModule()->getOrInsertNamedMetadata(groupName);
  if (groups->getNumOperands() == 0) groups->addOperand(MDNode::getDistinct(access.getContext(), {}));
  access.setMetadata(LLVMContext::MD_access_group, groups->getOperand(0));
}

PreservedAnalyses ByRegister::run(Function &function, FunctionAnalysisManager &analyses) {
  const NamedMDNode *groups = function.getParent()->getNamedMetadata(groupName);
  if (!groups || !function.hasFnAttribute(independent)) return PreservedAnalyses::all();
  const uint64_t registerBits = analyses.getResult<TargetIRAnalysis>(function)
                                    .getRegisterBitWidth(TargetTransformInfo::RGK_FixedWidthVector)
                                    .getFixedValue();
  SmallVector<AccessRun, 16> runs;
  for (BasicBlock &block : function) {
    runs.emplace_back();
    for (Instruction &instruction : block) {
      if (isAccess(instruction, groups->getOperand(0)))
        runs.back().add(instruction);
      else if (instruction.mayReadOrWriteMemory())
        runs.emplace_back();
    }
  }
  bool isChanged = false;
  SmallVector<WeakTrackingVH, 16> rest;
  for (AccessRun &run : runs) isChanged |= run.split(registerBits, rest);
  // Not before all are split, which may have some of it in common.
  RecursivelyDeleteTriviallyDeadInstructionsPermissive(rest);
  rest.clear();
  for (BasicBlock &block : function) isChanged |= LongComputation().split(block, registerBits, rest);
  RecursivelyDeleteTriviallyDeadInstructionsPermissive(rest);
  return isChanged ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

}  // namespace lanes
