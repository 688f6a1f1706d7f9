/// Values of 64 bits a component that are made of two words, as structs of floats are passed: kept as their words, and
/// put together only for who asks for 64 bits.
#include "Widen.hpp"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace lanes {
namespace {

constexpr unsigned wordBits = 32;

bool isWide(const Type *type) {
  const Type *element = type->getScalarType();
  return element->isIntegerTy(2 * wordBits) || element->isDoubleTy();
}

bool areWords(const Type *type) {
  const Type *element = type->getScalarType();
  return element->isIntegerTy(wordBits) || element->isFloatTy();
}

unsigned countOf(const Type *type) {
  const auto *vector = dyn_cast<FixedVectorType>(type);
  return vector ? vector->getNumElements() : 1;
}

/// Whether the words of what is loaded are asked for, alone or of a component.
bool isAskedForWords(const Instruction &value) {
  return value.getType()->getScalarType()->isDoubleTy() || any_of(value.users(), [](const User *user) {
           if (isa<ExtractElementInst>(user)) return isAskedForWords(*cast<Instruction>(user));
           return isa<BitCastInst>(user) &&
                  (areWords(user->getType()) || user->getType()->getScalarType()->isDoubleTy());
         });
}

}  // namespace

/// The words of a value: low and high of each component. Null where it is not made of words.
const Widener::Parts *Widener::knownWords(Value *value) {
  const auto known = words_.find(value);
  if (known != words_.end()) return &known->second;
  auto *constant = dyn_cast<Constant>(value);
  if (!constant || !isWide(value->getType())) return nullptr;
  Parts words;
  for (unsigned i = 0; i < countOf(value->getType()); ++i) {
    Constant *element = value->getType()->isVectorTy() ? constant->getAggregateElement(i) : constant;
    APInt bits;
    if (auto *number = dyn_cast_or_null<ConstantInt>(element))
      bits = number->getValue();
    else if (auto *real = dyn_cast_or_null<ConstantFP>(element))
      bits = real->getValueAPF().bitcastToAPInt();
    else if (element && isa<UndefValue>(element))
      bits = APInt(2 * wordBits, 0);
    else
      return nullptr;
    for (unsigned k = 0; k < 2; ++k) words.push_back(splat(builder_.getInt(bits.extractBits(wordBits, k * wordBits))));
  }
  return &(words_[value] = std::move(words));
}

/// Puts words together.
Widener::Parts Widener::wholeOf(const Parts &words, Type *type) {
  Parts results;
  for (unsigned i = 0; i < words.size(); i += 2) {
    Value *whole = recut({words[i], words[i + 1]}, builder_.getInt64Ty(), 1)[0];
    results.push_back(builder_.CreateBitCast(whole, vectorType(type)));
  }
  return results;
}

void Widener::setWords(Instruction &instruction, Parts words) {
  if (slots_.contains(&instruction)) set(instruction, wholeOf(words, instruction.getType()));
  words_[&instruction] = std::move(words);
}

/// Whether `instruction` could be done on words.
bool Widener::widenWords(Instruction &instruction) {
  Type *type = instruction.getType();
  if (!layout_.isLittleEndian() || shapes_.of(&instruction).isScalar() || isMatrix(&instruction)) return false;
  Type *words = vectorType(builder_.getInt32Ty());
  if (auto *load = dyn_cast<LoadInst>(&instruction)) {
    if (!isWide(type) || !load->isSimple() || !isAskedForWords(*load)) return false;
    Type *pieces = FixedVectorType::get(builder_.getInt32Ty(), 2 * countOf(type));
    setWords(instruction, loadParts(load->getPointerOperand(), pieces, load->getAlign()));
    return true;
  }
  if (instruction.getNumOperands() == 0 || isMatrix(instruction.getOperand(0))) return false;
  Value *from = instruction.getOperand(0);
  if (isa<BitCastInst>(instruction)) {
    if (areWords(from->getType()) && isWide(type)) {
      Parts parts;
      for (unsigned i = 0; i < countOf(from->getType()); ++i)
        parts.push_back(builder_.CreateBitCast(vector(from, i), words));
      setWords(instruction, std::move(parts));
      return true;
    }
    const Parts *known = isa<Constant>(from) ? nullptr : knownWords(from);
    if (!known) return false;
    if (isWide(type)) {
      setWords(instruction, Parts(*known));
      return true;
    }
    if (!areWords(type)) return false;
    Parts parts;
    for (Value *word : Parts(*known)) parts.push_back(builder_.CreateBitCast(word, vectorType(type)));
    set(instruction, std::move(parts));
    return true;
  }
  if (auto *extract = dyn_cast<ExtractElementInst>(&instruction)) {
    const auto *index = dyn_cast<ConstantInt>(extract->getIndexOperand());
    const Parts *known = knownWords(from);
    if (!index || !known || 2 * index->getZExtValue() >= known->size()) return false;
    const size_t first = 2 * size_t(index->getZExtValue());
    setWords(instruction, {(*known)[first], (*known)[first + 1]});
    return true;
  }
  if (auto *insert = dyn_cast<InsertElementInst>(&instruction)) {
    const auto *index = dyn_cast<ConstantInt>(insert->getOperand(2));
    const Parts *known = knownWords(from), *value = known ? knownWords(insert->getOperand(1)) : nullptr;
    if (!index || !value) return false;
    Parts parts = *knownWords(from);
    const size_t first = 2 * size_t(index->getZExtValue());
    if (first >= parts.size()) return false;
    for (size_t k = 0; k < 2; ++k) parts[first + k] = (*value)[k];
    setWords(instruction, std::move(parts));
    return true;
  }
  if (primitiveOf(&instruction) == Primitive::shuffle) {
    const Parts *known = isa<Constant>(from) ? nullptr : knownWords(from);
    if (!known || shapes_.of(instruction.getOperand(1)).isUniform()) return false;
    Parts parts;
    for (Value *word : Parts(*known)) parts.push_back(exchange(word, instruction.getOperand(1)));
    setWords(instruction, std::move(parts));
    return true;
  }
  const auto opcode = instruction.getOpcode();
  if (opcode == Instruction::Trunc) {
    const Parts *known = isa<Constant>(from) || type->isVectorTy() ? nullptr : knownWords(from);
    const unsigned bits = type->getScalarSizeInBits();
    if (!known || bits > wordBits || bits == 1) return false;
    set(instruction, {builder_.CreateTrunc((*known)[0], vectorType(type))});
    return true;
  }
  if (!isWide(type) || type->isVectorTy() != from->getType()->isVectorTy()) return false;
  if (opcode == Instruction::LShr) {
    const auto *shift = dyn_cast<ConstantInt>(instruction.getOperand(1));
    const Parts *known = isa<Constant>(from) ? nullptr : knownWords(from);
    if (!known || !shift || shift->getValue().uge(2 * wordBits)) return false;
    const uint64_t count = shift->getZExtValue();
    Value *low = (*known)[0], *high = (*known)[1], *none = Constant::getNullValue(words);
    Parts parts{low, high};
    if (count >= wordBits)
      parts = {builder_.CreateLShr(high, count - wordBits), none};
    else if (count > 0)
      parts = {builder_.CreateOr(builder_.CreateLShr(low, count), builder_.CreateShl(high, wordBits - count)),
               builder_.CreateLShr(high, count)};
    setWords(instruction, std::move(parts));
    return true;
  }
  if (opcode == Instruction::And || opcode == Instruction::Or || opcode == Instruction::Xor) {
    Value *other = instruction.getOperand(1);
    if (!words_.contains(from) && !words_.contains(other)) return false;
    if (!knownWords(from) || !knownWords(other)) return false;
    const Parts a = *knownWords(from), b = *knownWords(other);
    Parts parts;
    for (unsigned i = 0; i < a.size(); ++i)
      parts.push_back(builder_.CreateBinOp(Instruction::BinaryOps(opcode), a[i], b[i]));
    setWords(instruction, std::move(parts));
    return true;
  }
  return false;
}

}  // namespace lanes
