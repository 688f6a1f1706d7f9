#include "Halves.hpp"

#include "llvm/ADT/SetVector.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;
using namespace PatternMatch;

namespace lanes {
namespace {

bool areFloats(const Type *type, unsigned count) {
  const auto *vector = dyn_cast<FixedVectorType>(type);
  return vector && vector->getNumElements() == count && vector->getElementType()->isFloatTy();
}

bool isHalf(const Type *type) { return type->isDoubleTy() || type->isIntegerTy(64); }

bool isTwoHalves(const Type *type) {
  const auto *vector = dyn_cast<FixedVectorType>(type);
  return vector && vector->getNumElements() == 2 && isHalf(vector->getElementType());
}

/// Whether `value`, or what it is put into, is looked at as floats and as nothing else.
bool becomesFloats(const Value &value) {
  return !value.use_empty() && all_of(value.users(), [&](const User *user) {
    if (isa<BitCastInst>(user)) return areFloats(user->getType(), 2) || areFloats(user->getType(), 4);
    return isa<InsertElementInst>(user) && isTwoHalves(user->getType()) && becomesFloats(*user);
  });
}

constexpr uint64_t vectorBytes = 16;  ///< of a float4

/// The type of all words of 32 bits that `type` consists of; null where it has others.
Type *wordOf(Type *type) {
  if (type->isFloatTy() || type->isIntegerTy(32)) return type;
  if (type->isArrayTy()) return wordOf(type->getArrayElementType());
  if (auto *vector = dyn_cast<FixedVectorType>(type)) return wordOf(vector->getElementType());
  auto *structure = dyn_cast<StructType>(type);
  Type *word = nullptr;
  for (Type *element : structure ? structure->elements() : ArrayRef<Type *>()) {
    Type *own = wordOf(element);
    if (!own || (word && own != word)) return nullptr;
    word = own;
  }
  return word;
}

/// Loads and stores by `pointer`, and copies of a vector from or to it.
void findAccesses(Instruction &pointer, SmallSetVector<Instruction *, 8> &accesses) {
  for (User *user : pointer.users()) {
    if (auto *gep = dyn_cast<GetElementPtrInst>(user)) {
      findAccesses(*gep, accesses);
      continue;
    }
    auto *load = dyn_cast<LoadInst>(user);
    auto *store = dyn_cast<StoreInst>(user);
    auto *copy = dyn_cast<MemCpyInst>(user);
    const auto *length = copy ? dyn_cast<ConstantInt>(copy->getLength()) : nullptr;
    if ((load && load->isSimple()) || (store && store->isSimple()) ||
        (length && length->equalsInt(vectorBytes) && !copy->isVolatile()))
      accesses.insert(cast<Instruction>(user));
  }
}

/// The same by words.
void accessWords(Instruction &access, Type *word) {
  auto *load = dyn_cast<LoadInst>(&access);
  auto *store = dyn_cast<StoreInst>(&access);
  IRBuilder<> builder(&access);
  if (auto *copy = dyn_cast<MemCpyInst>(&access)) {
    Type *words = FixedVectorType::get(word, 4);
    Value *loaded = builder.CreateAlignedLoad(words, copy->getSource(), copy->getSourceAlign().valueOrOne());
    builder.CreateAlignedStore(loaded, copy->getDest(), copy->getDestAlign().valueOrOne());
  } else {
    Type *type = load ? load->getType() : store->getValueOperand()->getType();
    if (!isHalf(type) && !isTwoHalves(type)) return;
    Type *words = FixedVectorType::get(word, isHalf(type) ? 2 : 4);
    if (load)
      load->replaceAllUsesWith(
          builder.CreateBitCast(builder.CreateAlignedLoad(words, load->getPointerOperand(), load->getAlign()), type));
    else
      builder.CreateAlignedStore(builder.CreateBitCast(store->getValueOperand(), words), store->getPointerOperand(),
                                 store->getAlign());
  }
  access.eraseFromParent();
}

class Halves {
 public:
  explicit Halves(Function &function)
      : function_(function),
        builder_(function.getContext()),
        pair_(FixedVectorType::get(Type::getFloatTy(function.getContext()), 2)) {}

  void run() {
    SmallVector<Instruction *, 16> found;
    for (Instruction &instruction : instructions(function_))
      if (isa<PHINode, LoadInst>(instruction) && isHalf(instruction.getType()) && becomesFloats(instruction))
        found.push_back(&instruction);
    for (Instruction *instruction : found) retype(*instruction);
    for (Instruction &instruction : make_early_inc_range(instructions(function_))) {
      auto *cast = dyn_cast<BitCastInst>(&instruction);
      Value *result = cast ? pairsOf(*cast) : nullptr;
      if (!result) continue;
      cast->replaceAllUsesWith(result);
      cast->eraseFromParent();
    }
  }

 private:
  void retype(Instruction &instruction) {
    Instruction *result;
    if (auto *phi = dyn_cast<PHINode>(&instruction)) {
      builder_.SetInsertPoint(phi);
      PHINode *pairs = builder_.CreatePHI(pair_, phi->getNumIncomingValues());
      for (unsigned i = 0; i < phi->getNumIncomingValues(); ++i) {
        BasicBlock *from = phi->getIncomingBlock(i);
        const int known = pairs->getBasicBlockIndex(from);
        builder_.SetInsertPoint(from->getTerminator());
        pairs->addIncoming(known < 0 ? builder_.CreateBitCast(phi->getIncomingValue(i), pair_)
                                     : pairs->getIncomingValue(unsigned(known)),
                           from);
      }
      result = pairs;
      builder_.SetInsertPoint(phi->getParent(), phi->getParent()->getFirstInsertionPt());
    } else {
      auto &load = cast<LoadInst>(instruction);
      if (!load.isSimple()) return;
      builder_.SetInsertPoint(&load);
      result = builder_.CreateAlignedLoad(pair_, load.getPointerOperand(), load.getAlign());
    }
    instruction.replaceAllUsesWith(builder_.CreateBitCast(result, instruction.getType()));
    instruction.eraseFromParent();
  }

  /// The floats of two halves that are put together, or of one that is taken out; null where they are none.
  Value *pairsOf(BitCastInst &cast) {
    builder_.SetInsertPoint(&cast);
    Value *first = nullptr, *second = nullptr, *whole = nullptr;
    if (areFloats(cast.getType(), 4) &&
        match(cast.getOperand(0),
              m_InsertElt(m_InsertElt(m_Undef(), m_Value(first), m_Zero()), m_Value(second), m_One()))) {
      Value *a = builder_.CreateBitCast(first, pair_), *b = builder_.CreateBitCast(second, pair_);
      for (Value **each : {&a, &b})
        if (auto *part = dyn_cast<BitCastInst>(*each))
          if (Value *floats = pairsOf(*part)) *each = floats;
      builder_.SetInsertPoint(&cast);
      return builder_.CreateShuffleVector(a, b, {0, 1, 2, 3});
    }
    uint64_t index = 0;
    if (cast.getType() == pair_ &&
        match(cast.getOperand(0), m_ExtractElt(m_BitCast(m_Value(whole)), m_ConstantInt(index))) &&
        areFloats(whole->getType(), 4) && index < 2)
      return builder_.CreateShuffleVector(whole, {int(2 * index), int(2 * index + 1)});
    if (cast.getType() == pair_)
      if (auto *other = dyn_cast<BitCastInst>(cast.getOperand(0)); other && other->getSrcTy() == pair_)
        return other->getOperand(0);
    return nullptr;
  }

  Function &function_;
  IRBuilder<> builder_;
  Type *pair_;
};

}  // namespace

void pairHalves(Function &function) {
  if (function.getParent()->getDataLayout().isLittleEndian()) Halves(function).run();
}

void accessWords(Function &function) {
  SmallVector<AllocaInst *, 16> variables;
  for (Instruction &instruction : instructions(function))
    if (auto *variable = dyn_cast<AllocaInst>(&instruction)) variables.push_back(variable);
  for (AllocaInst *variable : variables) {
    Type *word = wordOf(variable->getAllocatedType());
    SmallSetVector<Instruction *, 8> accesses;
    if (word) findAccesses(*variable, accesses);
    for (Instruction *access : accesses) accessWords(*access, word);
  }
}

}  // namespace lanes
