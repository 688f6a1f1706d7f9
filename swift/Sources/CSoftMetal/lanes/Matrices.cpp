/// 8x8 matrices: 64 elements, row by row, in one vector.
///
/// A lane's share of a matrix is one value for the front end. Here the shares of all lanes are the matrix, and they
/// become lanes' values only where something looks at elements.
#include "Widen.hpp"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace lanes {
namespace {

constexpr int side = 8, elements = side * side;

int placeOf(unsigned lane, unsigned component) {
  return int((lane / 4 & 4) + lane / 2 % 4) * side + int((lane / 4 & 2) * 2 + lane % 2 * 2 + component);
}

bool isShare(const Type *type) {
  const auto *vector = dyn_cast<FixedVectorType>(type);
  return type->isDoubleTy() || type->isFloatTy() || (vector && vector->getNumElements() == 2);
}

bool isCarrier(const Type *type) { return type->isDoubleTy() || type->isFloatTy(); }

bool isMatrixUse(const User *user) {
  const Primitive primitive = primitiveOf(user);
  return primitive == Primitive::matrixMultiply || primitive == Primitive::matrixStore;
}

}  // namespace

/// Whether the kind of an instruction allows its value to be held as a matrix.
bool Widener::mayBeMatrix(const Instruction &instruction) const {
  if (!isShare(instruction.getType()) || shapes_.of(&instruction).kind != Shape::varying) return false;
  const Primitive primitive = primitiveOf(&instruction);
  if (primitive == Primitive::matrixLoad || primitive == Primitive::matrixMultiply) return true;
  if (const auto *cast = dyn_cast<BitCastInst>(&instruction)) {
    if (!isShare(cast->getSrcTy())) return false;
    if (isCarrier(cast->getDestTy()) && cast->getSrcTy()->isVectorTy())
      return any_of(cast->users(), [](const User *user) { return isMatrixUse(user) || isa<PHINode>(user); });
    return true;
  }
  if (isa<PHINode>(instruction)) return !blocks_.isJoin(instruction.getParent());
  if (!instruction.getType()->isVectorTy()) return false;
  if (isa<FreezeInst>(instruction)) return true;
  if (isa<CastInst>(instruction)) return isShare(instruction.getOperand(0)->getType());
  return isa<BinaryOperator>(instruction) || isa<UnaryOperator>(instruction);
}

/// What is made of matrices is one: from all that may be, those are dropped whose operands are not.
void Widener::findMatrices() {
  for (BasicBlock *block : blocks_.order)
    for (Instruction &instruction : *block)
      if (mayBeMatrix(instruction)) matrices_.insert(&instruction);
  for (bool changed = true; changed;) {
    changed = false;
    for (BasicBlock *block : blocks_.order) {
      for (Instruction &instruction : *block) {
        if (!isMatrix(&instruction) || primitiveOf(&instruction) != Primitive::none) continue;
        if (isa<BitCastInst>(instruction) && isCarrier(instruction.getType()) &&
            instruction.getOperand(0)->getType()->isVectorTy())
          continue;
        bool some = false, all = true;
        for (const Value *operand : instruction.operands()) {
          if (isMatrix(operand))
            some = true;
          else if (isa<PHINode>(instruction))
            all &= isa<Constant>(operand);
          else
            all &= isa<BinaryOperator>(instruction);
        }
        if (some && all) continue;
        matrices_.erase(&instruction);
        changed = true;
      }
    }
  }
}

Value *Widener::fromMatrix(Value *matrix, unsigned component) {
  SmallVector<int, width> places;
  for (unsigned lane = 0; lane < width; ++lane) places.push_back(placeOf(lane, component));
  return builder_.CreateShuffleVector(matrix, places);
}

/// The bits of the lanes' shares: each lane's two elements side by side.
Value *Widener::carrier(Value *value) {
  Value *even = fromMatrix(matrix(value), 0), *odd = fromMatrix(matrix(value), 1);
  SmallVector<int, elements> places;
  for (unsigned lane = 0; lane < width; ++lane) {
    places.push_back(int(lane));
    places.push_back(int(width + lane));
  }
  return builder_.CreateBitCast(builder_.CreateShuffleVector(even, odd, places), vectorType(value->getType()));
}

Value *Widener::toMatrix(Value *even, Value *odd) {
  int places[elements] = {};
  for (unsigned lane = 0; lane < width; ++lane)
    for (unsigned component = 0; component < 2; ++component)
      places[placeOf(lane, component)] = int(lane + component * width);
  return builder_.CreateShuffleVector(even, odd, places);
}

/// The value as 64 elements, whatever it is held as.
Value *Widener::matrix(Value *value) {
  if (isMatrix(value)) return parts(value)[0];
  Type *type = value->getType();
  if (!isCarrier(type)) return toMatrix(vector(value, 0), vector(value, 1));
  // The bits of a share: two elements.
  Type *element = type->isDoubleTy() ? builder_.getFloatTy() : static_cast<Type *>(builder_.getInt16Ty());
  Value *both = builder_.CreateBitCast(vector(value), FixedVectorType::get(element, elements));
  SmallVector<int, width> even, odd;
  for (unsigned lane = 0; lane < width; ++lane) {
    even.push_back(int(2 * lane));
    odd.push_back(int(2 * lane + 1));
  }
  return toMatrix(builder_.CreateShuffleVector(both, even), builder_.CreateShuffleVector(both, odd));
}

Value *Widener::transpose(Value *matrix) {
  int places[elements];
  for (int i = 0; i < elements; ++i) places[i] = i % side * side + i / side;
  return builder_.CreateShuffleVector(matrix, places);
}

/// Rows of eight elements, `stride` elements apart.
Value *Widener::matrixLoad(CallBase &call) {
  Type *element = call.getType()->isDoubleTy() ? builder_.getFloatTy() : static_cast<Type *>(builder_.getInt16Ty());
  const Align align(element->getPrimitiveSizeInBits() / 8);
  Value *pointer = lastActive(call.getArgOperand(0)), *stride = lastActive(call.getArgOperand(1));
  Value *transposed = lastActive(call.getArgOperand(2));
  SmallVector<Value *, side> rows;
  for (int i = 0; i < side; ++i) {
    Value *row = builder_.CreateGEP(element, pointer, builder_.CreateMul(stride, builder_.getInt64(i)));
    rows.push_back(builder_.CreateAlignedLoad(FixedVectorType::get(element, side), row, align));
  }
  for (unsigned count = side; count > 1; count /= 2) {
    const unsigned size = elements / count;
    SmallVector<int, elements> places;
    for (unsigned i = 0; i < 2 * size; ++i) places.push_back(int(i));
    for (unsigned i = 0; i < count / 2; ++i)
      rows[i] = builder_.CreateShuffleVector(rows[2 * i], rows[2 * i + 1], places);
  }
  return builder_.CreateSelect(transposed, transpose(rows[0]), rows[0]);
}

void Widener::matrixStore(CallBase &call) {
  Value *value = matrix(call.getArgOperand(0));
  Type *element = value->getType()->getScalarType();
  const Align align(element->getPrimitiveSizeInBits() / 8);
  Value *pointer = lastActive(call.getArgOperand(1)), *stride = lastActive(call.getArgOperand(2));
  value = builder_.CreateSelect(lastActive(call.getArgOperand(3)), transpose(value), value);
  for (int i = 0; i < side; ++i) {
    SmallVector<int, side> places;
    for (int k = 0; k < side; ++k) places.push_back(i * side + k);
    Value *row = builder_.CreateGEP(element, pointer, builder_.CreateMul(stride, builder_.getInt64(i)));
    builder_.CreateAlignedStore(builder_.CreateShuffleVector(value, places), row, align);
  }
}

/// a * b + c, two rows of the result in a vector of 16: for each k, the two rows' factors of `a`, each spread over
/// eight places, times row k of `b` twice.
Value *Widener::multiply(Value *a, Value *b, Value *c) {
  constexpr int pair = 2 * side;
  SmallVector<Value *, side> rows;
  for (int k = 0; k < side; ++k) {
    SmallVector<int, pair> places;
    for (int i = 0; i < pair; ++i) places.push_back(k * side + i % side);
    rows.push_back(builder_.CreateShuffleVector(b, places));
  }
  SmallVector<Value *, 4> sums;
  for (int first = 0; first < elements; first += pair) {
    SmallVector<int, pair> places;
    for (int i = 0; i < pair; ++i) places.push_back(first + i);
    Value *sum = builder_.CreateShuffleVector(c, places);
    for (int k = 0; k < side; ++k) {
      SmallVector<int, pair> factors;
      for (int i = 0; i < pair; ++i) factors.push_back(first + i / side * side + k);
      sum = builder_.CreateIntrinsic(Intrinsic::fma, {sum->getType()},
                                     {builder_.CreateShuffleVector(a, factors), rows[k], sum});
    }
    sums.push_back(sum);
  }
  SmallVector<int, elements> places;
  for (int i = 0; i < elements; ++i) places.push_back(i);
  const ArrayRef<int> all(places);
  Value *upper = builder_.CreateShuffleVector(sums[0], sums[1], all.take_front(2 * pair));
  Value *lower = builder_.CreateShuffleVector(sums[2], sums[3], all.take_front(2 * pair));
  return builder_.CreateShuffleVector(upper, lower, all);
}

}  // namespace lanes
