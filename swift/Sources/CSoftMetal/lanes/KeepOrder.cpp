#include "KeepOrder.hpp"

#include "Nvptx.hpp"
#include <map>
#include <vector>

#include "Elements.hpp"
#include "llvm/Analysis/VectorUtils.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;

namespace lanes {
namespace {

unsigned countOf(const Value *vector) { return cast<FixedVectorType>(vector->getType())->getNumElements(); }

/// An element of a vector, by its place.
using Element = std::pair<Value *, unsigned>;
using Elements = std::vector<Element>;

/// Where an element comes from, before all that only changes places. A null value: nothing is asked of it.
Element originOf(Element element) {
  while (auto *shuffle = dyn_cast_or_null<ShuffleVectorInst>(element.first)) {
    const int place = shuffle->getMaskValue(element.second);
    if (place < 0) return {nullptr, 0};
    const unsigned first = countOf(shuffle->getOperand(0));
    const bool isFirst = unsigned(place) < first;
    element = {shuffle->getOperand(isFirst ? 0 : 1), isFirst ? unsigned(place) : unsigned(place) - first};
  }
  if (isa_and_nonnull<UndefValue>(element.first)) return {nullptr, 0};
  return element;
}

/// Whether it may be computed for elements in another order, some of which nothing is asked of.
bool isOfElements(const Instruction &instruction) { return isElementwise(instruction) && !instruction.isIntDivRem(); }

/// Vectors of elements without a change of places.
class Straight {
 public:
  explicit Straight(Instruction &before) : builder_(&before) {}

  /// The vector of these elements; null where some would have to change places.
  Value *of(const Elements &elements) { return isStraight(elements, 0) ? make(elements) : nullptr; }

 private:
  static constexpr unsigned deepest = 12, mostValues = 48;

  static Elements operandsOf(const Elements &elements, unsigned index) {
    Elements result;
    for (const auto &[value, place] : elements)
      result.push_back(value ? originOf({cast<Instruction>(value)->getOperand(index), place}) : Element());
    return result;
  }

  /// One that is there; each list has one.
  static const Element &known(const Elements &elements) {
    return *find_if(elements, [](const Element &element) { return element.first; });
  }

  /// What all of them are; null where they differ.
  static Value *same(const Elements &elements) {
    Value *value = known(elements).first;
    Value *splat = isa<FixedVectorType>(value->getType()) ? const_cast<Value *>(getSplatValue(value)) : nullptr;
    const bool isSame = splat && all_of(elements, [&](const Element &element) {
                          return !element.first || element.first == value || getSplatValue(element.first) == splat;
                        });
    return isSame ? splat : nullptr;
  }

  /// The whole vectors that the elements are, one after another; none where they are not.
  static SmallVector<Value *, 8> wholes(const Elements &elements) {
    SmallVector<Value *, 8> result;
    for (size_t i = 0; i < elements.size();) {
      Value *vector = elements[i].first;
      if (!vector || !isa<FixedVectorType>(vector->getType())) return {};
      const unsigned count = countOf(vector);
      if (i + count > elements.size() || countOf(result.empty() ? vector : result[0]) != count) return {};
      for (unsigned k = 0; k < count; ++k)
        if (elements[i + k] != Element(vector, k)) return {};
      result.push_back(vector);
      i += count;
    }
    return isPowerOf2_64(result.size()) ? result : SmallVector<Value *, 8>();
  }

  bool isStraight(const Elements &elements, unsigned depth) {
    if (const auto seen = isStraight_.find(elements); seen != isStraight_.end()) return seen->second;
    return isStraight_[elements] = depth <= deepest && isStraight_.size() <= mostValues && find(elements, depth);
  }

  bool find(const Elements &elements, unsigned depth) {
    if (none_of(elements, [](const Element &element) { return element.first; })) return false;
    if (same(elements)) return true;
    const auto *first = dyn_cast<Instruction>(known(elements).first);
    if (!first) return false;
    if (!isOfElements(*first)) return !wholes(elements).empty();
    for (const auto &[value, place] : elements) {
      const auto *other = dyn_cast_or_null<Instruction>(value);
      if (value && (!other || !isOfElements(*other) || !isAlike(*first, *other))) return false;
    }
    for (unsigned i = 0; i < first->getNumOperands(); ++i)
      if (!isStraight(operandsOf(elements, i), depth + 1)) return false;
    return true;
  }

  /// Whether two are one operation on elements of the same types.
  static bool isAlike(const Instruction &a, const Instruction &b) {
    if (a.getOpcode() != b.getOpcode() || a.getType()->getScalarType() != b.getType()->getScalarType()) return false;
    for (unsigned i = 0; i < a.getNumOperands(); ++i)
      if (a.getOperand(i)->getType()->getScalarType() != b.getOperand(i)->getType()->getScalarType()) return false;
    return !isa<CmpInst>(a) || cast<CmpInst>(a).getPredicate() == cast<CmpInst>(b).getPredicate();
  }

  Value *make(const Elements &elements) {
    if (const auto made = made_.find(elements); made != made_.end()) return made->second;
    return made_[elements] = makeNew(elements);
  }

  Value *makeNew(const Elements &elements) {
    const unsigned count = unsigned(elements.size());
    if (Value *value = same(elements)) return builder_.CreateVectorSplat(count, value);
    auto *first = cast<Instruction>(known(elements).first);
    if (!isOfElements(*first)) {
      const SmallVector<Value *, 8> vectors = wholes(elements);
      return vectors.size() == 1 ? vectors[0] : concatenateVectors(builder_, vectors);
    }
    SmallVector<Value *, 3> operands;
    for (unsigned i = 0; i < first->getNumOperands(); ++i) operands.push_back(make(operandsOf(elements, i)));
    Instruction *result = cloneOfCount(*first, count, operands);
    for (const auto &[value, place] : elements)
      if (value) result->andIRFlags(value);
    return builder_.Insert(result);
  }

  IRBuilder<> builder_;
  std::map<Elements, bool> isStraight_;
  std::map<Elements, Value *> made_;
};

/// What an instruction stores, as an operand of it; null where it stores nothing.
Use *storedBy(Instruction &instruction) {
  if (auto *store = dyn_cast<StoreInst>(&instruction)) return &store->getOperandUse(0);
  auto *call = dyn_cast<IntrinsicInst>(&instruction);
  return call && call->getIntrinsicID() == Intrinsic::masked_store ? &call->getArgOperandUse(0) : nullptr;
}

bool straighten(Instruction &store) {
  Use *stored = storedBy(store);
  auto *shuffle = stored ? dyn_cast<ShuffleVectorInst>(stored->get()) : nullptr;
  if (!shuffle || !isa<FixedVectorType>(shuffle->getType()) || countOf(shuffle) > 256) return false;
  Elements elements;
  for (unsigned i = 0; i < countOf(shuffle); ++i) elements.push_back(originOf({shuffle, i}));
  // Not where it is stored, which may be in a loop.
  Straight straight(*shuffle);
  Value *value = straight.of(elements);
  if (!value) return false;
  stored->set(value);
  RecursivelyDeleteTriviallyDeadInstructions(shuffle);
  return true;
}

}  // namespace

PreservedAnalyses KeepOrder::run(Function &function, FunctionAnalysisManager &) {
  if (isNvptx(*function.getParent())) return PreservedAnalyses::all();
  SmallVector<Instruction *, 32> stores;
  for (Instruction &instruction : instructions(function))
    if (storedBy(instruction)) stores.push_back(&instruction);
  bool isChanged = false;
  for (Instruction *store : stores) isChanged |= straighten(*store);
  return isChanged ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

}  // namespace lanes
