/// How values are held: as a scalar, as a vector of lanes for each component, or as a whole matrix.
#include "Widen.hpp"
#include "llvm/IR/Constants.h"
#include "llvm/IR/GetElementPtrTypeIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace lanes {

/// bfloat travels as its bits: few processors have vectors of it.
Type *Widener::laneType(Type *type) const {
  Type *element = type->getScalarType();
  if (element->isBFloatTy()) return Type::getInt16Ty(type->getContext());
  if (!VectorType::isValidElementType(element)) throw Declined{"a value that is a structure"};
  return element;
}

Type *Widener::vectorType(Type *type, unsigned count) const { return FixedVectorType::get(laneType(type), count); }

/// Of the matrix whose share has this type: the bits of two elements, or a vector of them.
Type *Widener::elementType(Type *share) const {
  if (share->isDoubleTy()) return Type::getFloatTy(share->getContext());
  return share->isFloatTy() ? Type::getInt16Ty(share->getContext()) : laneType(share);
}

SmallVector<Type *, 4> Widener::slotTypes(const Instruction &instruction) const {
  Type *type = instruction.getType();
  if (shapes_.of(&instruction).isScalar()) return {type};
  if (const Tiles::Group *group = tiles_->groupOf(&instruction)) {
    Type *row = FixedVectorType::get(Type::getFloatTy(type->getContext()), unsigned(8 * group->size()));
    return SmallVector<Type *, 4>(8, row);
  }
  if (isMatrix(&instruction)) return {FixedVectorType::get(elementType(type), 64)};
  SmallVector<Type *, 4> result;
  if (auto *structure = dyn_cast<StructType>(type)) {
    for (Type *element : structure->elements()) result.push_back(vectorType(element));
    return result;
  }
  const auto *fixed = dyn_cast<FixedVectorType>(type);
  result.assign(fixed ? fixed->getNumElements() : 1, vectorType(type));
  return result;
}

void Widener::set(Instruction &instruction, Parts parts) {
  const auto place = slots_.find(&instruction);
  if (place != slots_.end())
    for (unsigned i = 0; i < parts.size(); ++i) builder_.CreateStore(parts[i], place->second[i]);
  if (const auto kept = kept_.find(&instruction); kept != kept_.end())
    builder_.CreateAlignedStore(parts[0], kept->second.place, Align(64));
  current_[&instruction] = std::move(parts);
}

const Widener::Parts &Widener::parts(Value *value) {
  const auto known = current_.find(value);
  if (known != current_.end()) return known->second;
  if (const auto words = words_.find(value); words != words_.end())
    return current_[value] = wholeOf(Parts(words->second), value->getType());
  const auto place = slots_.find(value);
  if (place == slots_.end()) throw Declined{"a value that is not at hand"};
  Parts loaded;
  for (AllocaInst *each : place->second) loaded.push_back(builder_.CreateLoad(each->getAllocatedType(), each));
  return current_[value] = std::move(loaded);
}

/// Whether the block under way can ask for a value.
bool Widener::isAtHand(const Value *value) const {
  const auto *instruction = dyn_cast<Instruction>(value);
  return !instruction || instruction->getParent() == blocks_.order[size_t(index_)] || slots_.contains(value);
}

/// The value that all lanes have, or lane 0's of those in strides.
Value *Widener::scalar(Value *value) {
  if (isa<Constant>(value)) return value;
  return parts(value)[0];
}

Constant *Widener::ramp(Type *type, int64_t stride) const {
  SmallVector<Constant *, width> values;
  for (unsigned i = 0; i < width; ++i) values.push_back(ConstantInt::get(type, uint64_t(stride) * i, false));
  return ConstantVector::get(values);
}

Value *Widener::splat(Value *value, unsigned count) {
  if (value->getType()->isBFloatTy()) value = builder_.CreateBitCast(value, builder_.getInt16Ty());
  return builder_.CreateVectorSplat(count, value);
}

/// The values of all lanes of a component.
Value *Widener::vector(Value *value, unsigned component) {
  const Shape shape = shapes_.of(value);
  if (shape.kind == Shape::varying) {
    if (isMatrix(value) && value->getType()->isVectorTy()) return fromMatrix(matrix(value), component);
    if (isMatrix(value)) return carrier(value);
    const Parts &known = parts(value);
    if (component >= known.size()) throw Declined{"a component that is not there"};
    return known[component];
  }
  if (shape.isAssumed) return exact(*cast<Instruction>(value));
  Value *first = scalar(value);
  if (first->getType()->isVectorTy()) first = builder_.CreateExtractElement(first, component);
  if (shape.stride == 0) return splat(first);
  if (first->getType()->isPointerTy())
    return builder_.CreateGEP(builder_.getInt8Ty(), first, ramp(builder_.getInt64Ty(), shape.stride));
  return builder_.CreateAdd(splat(first), ramp(first->getType(), shape.stride));
}

/// The values of an assumed value, whatever wraps: computed from those of its operands.
Value *Widener::exact(Instruction &instruction) {
  if (auto *gep = dyn_cast<GetElementPtrInst>(&instruction)) {
    SmallVector<Value *, 4> indices;
    for (const Use &index : gep->indices())
      indices.push_back(isa<ConstantInt>(index) ? index.get() : vector(index.get()));
    return builder_.CreateGEP(gep->getSourceElementType(), vector(gep->getPointerOperand()), indices);
  }
  if (auto *conversion = dyn_cast<CastInst>(&instruction))
    return builder_.CreateCast(conversion->getOpcode(), vector(conversion->getOperand(0)),
                               vectorType(conversion->getType()));
  if (auto *operation = dyn_cast<BinaryOperator>(&instruction)) {
    const auto opcode = operation->getOpcode() == Instruction::Or ? Instruction::Add : operation->getOpcode();
    return builder_.CreateBinOp(opcode, vector(operation->getOperand(0)), vector(operation->getOperand(1)));
  }
  if (isa<FreezeInst>(instruction)) return vector(instruction.getOperand(0));
  throw Declined{"an assumed value of another kind"};
}

/// Whether what `value` assumes holds, and its stride with it.
Value *Widener::check(Value *value) {
  auto *instruction = dyn_cast<Instruction>(value);
  if (!instruction || !shapes_.of(value).isAssumed) return builder_.getTrue();
  Value *result = builder_.getTrue();
  const auto doesNotWrap = [&](Value *from, bool isSigned) {
    const Shape shape = shapes_.of(from);
    if (shape.stride == 0) return;
    Value *first = scalar(from);
    Type *type = first->getType();
    Value *last = builder_.CreateAdd(first, ConstantInt::get(type, uint64_t(shape.stride) * (width - 1), false));
    const auto grows = isSigned ? CmpInst::ICMP_SGE : CmpInst::ICMP_UGE,
               shrinks = isSigned ? CmpInst::ICMP_SLE : CmpInst::ICMP_ULE;
    // One step too long to be seen wrapping once counts as wrapping.
    const unsigned bits = type->getIntegerBitWidth();
    const uint64_t size = uint64_t(shape.stride < 0 ? -shape.stride : shape.stride);
    if (bits < 64 && size * (width - 1) >= (uint64_t(1) << (bits - 1))) {
      result = builder_.getFalse();
      return;
    }
    result = builder_.CreateAnd(result, builder_.CreateICmp(shape.stride > 0 ? grows : shrinks, last, first));
  };
  if (auto *gep = dyn_cast<GetElementPtrInst>(instruction)) {
    result = builder_.CreateAnd(result, check(gep->getPointerOperand()));
    for (const Use &index : gep->indices()) {
      result = builder_.CreateAnd(result, check(index.get()));
      if (index->getType()->getIntegerBitWidth() < 64 && shapes_.of(index.get()).limit == ~uint64_t(0))
        doesNotWrap(index.get(), true);
    }
    return result;
  }
  for (Value *operand : instruction->operands()) result = builder_.CreateAnd(result, check(operand));
  if (isa<ZExtInst>(instruction) || isa<SExtInst>(instruction))
    doesNotWrap(instruction->getOperand(0), isa<SExtInst>(instruction));
  return result;
}

/// `count` elements from `first` on.
Value *Widener::partOf(Value *vector, unsigned first, unsigned count) {
  SmallVector<int, width> places;
  for (unsigned i = 0; i < count; ++i) places.push_back(int(first + i));
  return builder_.CreateShuffleVector(vector, places);
}

Value *Widener::bits(Value *mask) { return builder_.CreateBitCast(mask, builder_.getIntNTy(width)); }
Value *Widener::any(Value *mask) { return builder_.CreateICmpNE(bits(mask), builder_.getInt32(0)); }

/// Not `and`: what lanes that are not there have for a condition may be poison.
Value *Widener::both(Value *mask, Value *condition) {
  return builder_.CreateSelect(mask, condition, Constant::getNullValue(mask->getType()));
}

}  // namespace lanes
