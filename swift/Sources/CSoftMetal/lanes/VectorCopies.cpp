#include "VectorCopies.hpp"

#include "Nvptx.hpp"
#include "LoopElements.hpp"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace lanes {
namespace {

bool isPrivate(const Value *pointer) { return isa<AllocaInst>(getUnderlyingObject(pointer)); }

/// The copies of a known number of bytes.
SmallVector<MemCpyInst *, 16> copiesOf(Function &function) {
  SmallVector<MemCpyInst *, 16> result;
  for (Instruction &instruction : instructions(function)) {
    auto *copy = dyn_cast<MemCpyInst>(&instruction);
    if (copy && isa<ConstantInt>(copy->getLength()) && !copy->isVolatile()) result.push_back(copy);
  }
  return result;
}

/// Copies a value of a type in place of its bytes.
void copyAs(MemCpyInst &copy, Type *type) {
  IRBuilder<> builder(&copy);
  LoadInst *value = builder.CreateAlignedLoad(type, copy.getSource(), copy.getSourceAlign().valueOrOne());
  StoreInst *store = builder.CreateAlignedStore(value, copy.getDest(), copy.getDestAlign().valueOrOne());
  for (Instruction *access : {static_cast<Instruction *>(value), static_cast<Instruction *>(store)})
    access->copyMetadata(copy, {LLVMContext::MD_access_group});
  copy.eraseFromParent();
}

/// The vector of a size that a type begins with, null where there is none: a vector of the language is a struct of one.
Type *vectorIn(Type *type, uint64_t size, const DataLayout &layout) {
  while (type) {
    if (type->isVectorTy()) return layout.getTypeStoreSize(type) == size ? type : nullptr;
    if (auto *structure = dyn_cast<StructType>(type))
      type = structure->isOpaque() || structure->getNumElements() == 0 ? nullptr : structure->getElementType(0);
    else if (auto *array = dyn_cast<ArrayType>(type))
      type = array->getElementType();
    else
      type = nullptr;
  }
  return nullptr;
}

/// The vector of a size that a pointer leads to, by how it is made: an element at index 0 says its type too.
Type *vectorAt(const Value *pointer, uint64_t size, const DataLayout &layout) {
  if (const auto *variable = dyn_cast<AllocaInst>(pointer)) return vectorIn(variable->getAllocatedType(), size, layout);
  const auto *element = dyn_cast<GEPOperator>(pointer);
  if (!element) return nullptr;
  Type *type = vectorIn(element->getResultElementType(), size, layout);
  return type || !element->hasAllZeroIndices() ? type : vectorAt(element->getPointerOperand(), size, layout);
}

/// Two to four words, null for another size. Bytes that go from memory to memory have no type.
Type *wordsOf(const MemCpyInst &copy, uint64_t size) {
  constexpr uint64_t word = 4;
  const Align align = std::min(copy.getSourceAlign().valueOrOne(), copy.getDestAlign().valueOrOne());
  if (size % word != 0 || size / word < 2 || size / word > 4 || align < Align(word)) return nullptr;
  return FixedVectorType::get(Type::getInt32Ty(copy.getContext()), unsigned(size / word));
}

}  // namespace

void copyByWords(Function &function) {
  constexpr uint64_t bytes = 16;
  Type *words = FixedVectorType::get(Type::getInt32Ty(function.getContext()), 4);
  for (MemCpyInst *copy : copiesOf(function))
    if (cast<ConstantInt>(copy->getLength())->equalsInt(bytes) &&
        (isPrivate(copy->getDest()) || isPrivate(copy->getSource())))
      copyAs(*copy, words);
}

void copyAsVectors(Function &function, bool isPrivateToo) {
  const DataLayout &layout = function.getParent()->getDataLayout();
  for (MemCpyInst *copy : copiesOf(function)) {
    const uint64_t size = cast<ConstantInt>(copy->getLength())->getZExtValue();
    const bool isOwn = isPrivate(copy->getDest()) || isPrivate(copy->getSource());
    if (!isPrivateToo && isOwn) continue;
    Type *type = vectorAt(copy->getDest(), size, layout);
    if (!type) type = vectorAt(copy->getSource(), size, layout);
    if (!type && !isOwn) type = wordsOf(*copy, size);
    if (type) copyAs(*copy, type);
  }
}

PreservedAnalyses CopyVectors::run(Function &function, FunctionAnalysisManager &) {
  if (isNvptx(*function.getParent()) || hasVectorsOfLanes(function)) return PreservedAnalyses::all();
  copyAsVectors(function, /*isPrivateToo=*/true);
  return PreservedAnalyses::none();
}

}  // namespace lanes
