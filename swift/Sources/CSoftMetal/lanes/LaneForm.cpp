#include "LaneForm.hpp"

#include "llvm/IR/Constants.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/GetElementPtrTypeIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Operator.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace lanes {
namespace {

constexpr unsigned deepestSum = 24;  ///< operations of an address

uint64_t cut(uint64_t value, unsigned bits) { return bits >= 64 ? value : value & ((uint64_t(1) << bits) - 1); }

LaneForm::Counts times(const LaneForm::Counts &a, const LaneForm::Counts &b) {
  LaneForm::Counts result;
  for (unsigned lane = 0; lane < width; ++lane) result[lane] = int64_t(uint64_t(a[lane]) * uint64_t(b[lane]));
  return result;
}

LaneForm::Counts times(const LaneForm::Counts &a, uint64_t b) {
  LaneForm::Counts result;
  for (unsigned lane = 0; lane < width; ++lane) result[lane] = int64_t(uint64_t(a[lane]) * b);
  return result;
}

void addTo(LaneForm::Counts &sum, const LaneForm::Counts &more) {
  for (unsigned lane = 0; lane < width; ++lane) sum[lane] = int64_t(uint64_t(sum[lane]) + uint64_t(more[lane]));
}

bool operate(Instruction::BinaryOps opcode, uint64_t a, uint64_t b, unsigned bits, uint64_t &result) {
  switch (opcode) {
    case Instruction::Add:
      result = a + b;
      break;
    case Instruction::Sub:
      result = a - b;
      break;
    case Instruction::Mul:
      result = a * b;
      break;
    case Instruction::And:
      result = a & b;
      break;
    case Instruction::Or:
      result = a | b;
      break;
    case Instruction::Xor:
      result = a ^ b;
      break;
    case Instruction::Shl:
      if (b >= bits) return false;
      result = a << b;
      break;
    case Instruction::LShr:
      if (b >= bits) return false;
      result = a >> b;
      break;
    case Instruction::UDiv:
      if (b == 0) return false;
      result = a / b;
      break;
    case Instruction::URem:
      if (b == 0) return false;
      result = a % b;
      break;
    default:
      return false;
  }
  result = cut(result, bits);
  return true;
}

}  // namespace

bool knownInLanes(Value *value, LaneForm::Counts &numbers, unsigned depth) {
  if (!value->getType()->isIntegerTy() || value->getType()->getIntegerBitWidth() > 64 || depth > deepestSum)
    return false;
  const unsigned bits = value->getType()->getIntegerBitWidth();
  if (const auto *constant = dyn_cast<ConstantInt>(value)) {
    numbers.fill(int64_t(constant->getZExtValue()));
    return true;
  }
  if (primitiveOf(value) == Primitive::lane) {
    for (unsigned lane = 0; lane < width; ++lane) numbers[lane] = lane;
    return true;
  }
  if (auto *operation = dyn_cast<BinaryOperator>(value)) {
    LaneForm::Counts a, b;
    if (!knownInLanes(operation->getOperand(0), a, depth + 1) || !knownInLanes(operation->getOperand(1), b, depth + 1))
      return false;
    for (unsigned lane = 0; lane < width; ++lane) {
      uint64_t result;
      if (!operate(operation->getOpcode(), uint64_t(a[lane]), uint64_t(b[lane]), bits, result)) return false;
      numbers[lane] = int64_t(result);
    }
    return true;
  }
  if (!isa<ZExtInst, SExtInst, TruncInst>(value)) return false;
  Value *from = cast<CastInst>(value)->getOperand(0);
  if (!knownInLanes(from, numbers, depth + 1)) return false;
  const unsigned fromBits = from->getType()->getIntegerBitWidth();
  for (int64_t &number : numbers)
    number = int64_t(
        cut(isa<SExtInst>(value) ? uint64_t(SignExtend64(uint64_t(number), fromBits)) : uint64_t(number), bits));
  return true;
}

bool LaneForm::of(Value *value, const Shapes &shapes, const DataLayout &layout, LaneForm &form) {
  form.shapes_ = &shapes;
  form.layout_ = &layout;
  Counts once;
  once.fill(1);
  return form.add(value, once, Wraps::may, 0);
}

/// `factor` times `value`, which counts as 64 bits: where it has fewer, as they are extended by `wraps`.
bool LaneForm::add(Value *value, const Counts &factor, Wraps wraps, unsigned depth) {
  if (depth > deepestSum) return false;
  if (Counts known; knownInLanes(value, known)) {
    const unsigned bits = value->getType()->getIntegerBitWidth();
    if (wraps == Wraps::notSigned || bits == 64)
      for (int64_t &number : known) number = SignExtend64(uint64_t(number), bits);
    addTo(numbers, times(known, factor));
    return true;
  }
  if (auto *gep = dyn_cast<GetElementPtrInst>(value)) return addAddress(*gep, factor, depth);
  const auto holds = [wraps](const OverflowingBinaryOperator &operation) {
    return wraps == Wraps::may ||
           (wraps == Wraps::notUnsigned ? operation.hasNoUnsignedWrap() : operation.hasNoSignedWrap());
  };
  if (auto *operation = dyn_cast<BinaryOperator>(value)) {
    Value *a = operation->getOperand(0), *b = operation->getOperand(1);
    const auto *overflowing = dyn_cast<OverflowingBinaryOperator>(operation);
    const auto opcode = operation->getOpcode();
    const auto *either = dyn_cast<PossiblyDisjointInst>(operation);
    if ((either && either->isDisjoint()) || (opcode == Instruction::Add && holds(*overflowing)))
      return add(a, factor, wraps, depth + 1) && add(b, factor, wraps, depth + 1);
    if (opcode == Instruction::Sub && wraps == Wraps::may)
      return add(a, factor, wraps, depth + 1) && add(b, times(factor, ~uint64_t(0)), wraps, depth + 1);
    if ((opcode == Instruction::Mul || opcode == Instruction::Shl) && holds(*overflowing)) {
      Counts known;
      if (opcode == Instruction::Mul && knownInLanes(a, known)) std::swap(a, b);
      const unsigned bits = value->getType()->getIntegerBitWidth();
      if (knownInLanes(b, known)) {
        if (opcode == Instruction::Shl)
          for (int64_t &number : known) {
            if (uint64_t(number) >= bits) return false;
            number = int64_t(uint64_t(1) << number);
          }
        else if (wraps == Wraps::notSigned || bits == 64)
          for (int64_t &number : known) number = SignExtend64(uint64_t(number), bits);
        return add(a, times(factor, known), wraps, depth + 1);
      }
    }
  }
  if (wraps == Wraps::may && isa<ZExtInst>(value))
    if (LaneForm copy = *this; copy.add(cast<CastInst>(value)->getOperand(0), factor, Wraps::notUnsigned, depth + 1)) {
      *this = std::move(copy);
      return true;
    }
  if (wraps == Wraps::may && isa<SExtInst>(value))
    if (LaneForm copy = *this; copy.add(cast<CastInst>(value)->getOperand(0), factor, Wraps::notSigned, depth + 1)) {
      *this = std::move(copy);
      return true;
    }
  return addLeaf(value, factor, wraps);
}

bool LaneForm::addLeaf(Value *value, const Counts &factor, Wraps wraps) {
  if (!shapes_->of(value).isUniform()) return false;
  const Extension extension = wraps == Wraps::may           ? Extension::none
                              : wraps == Wraps::notUnsigned ? Extension::zero
                                                            : Extension::sign;
  if (extension == Extension::none && value->getType()->isIntegerTy() && !value->getType()->isIntegerTy(64))
    return false;
  addTo(terms.insert({{value, unsigned(extension)}, Counts{}}).first->second, factor);
  return true;
}

bool LaneForm::addAddress(GetElementPtrInst &gep, const Counts &factor, unsigned depth) {
  for (auto step = gep_type_begin(gep); step != gep_type_end(gep); ++step) {
    if (auto *structure = step.getStructTypeOrNull()) {
      const auto field = cast<ConstantInt>(step.getOperand())->getZExtValue();
      addTo(numbers, times(factor, layout_->getStructLayout(structure)->getElementOffset(unsigned(field))));
      continue;
    }
    Value *index = step.getOperand();
    const uint64_t stride = step.getSequentialElementStride(*layout_).getFixedValue();
    if (const auto *constant = dyn_cast<ConstantInt>(index)) {
      addTo(numbers, times(factor, stride * uint64_t(constant->getSExtValue())));
      continue;
    }
    // An index of fewer bits is extended by its sign.
    const Wraps wraps = index->getType()->isIntegerTy(64) ? Wraps::may : Wraps::notSigned;
    if (!add(index, times(factor, stride), wraps, depth + 1)) return false;
  }
  return add(gep.getPointerOperand(), factor, Wraps::may, depth + 1);
}

LaneForm LaneForm::minus(const LaneForm &other) const {
  LaneForm result = *this;
  addTo(result.numbers, times(other.numbers, ~uint64_t(0)));
  for (const auto &[term, counts] : other.terms)
    addTo(result.terms.insert({term, Counts{}}).first->second, times(counts, ~uint64_t(0)));
  return result;
}

bool LaneForm::isSame() const {
  const auto same = [](const Counts &counts) {
    return std::all_of(counts.begin(), counts.end(), [&](int64_t count) { return count == counts[0]; });
  };
  return same(numbers) && std::all_of(terms.begin(), terms.end(), [&](const auto &term) { return same(term.second); });
}

}  // namespace lanes
