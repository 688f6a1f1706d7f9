/// 8x8 matrices: 64 elements, row by row, in one vector.
///
/// A lane's share of a matrix is one value for the front end. Here the shares of all lanes are the matrix, and they
/// become lanes' values only where something looks at elements.
#include "Widen.hpp"
#include "llvm/Analysis/VectorUtils.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace lanes {
namespace {

int placeOf(unsigned lane, unsigned component) {
  return int((lane / 4 & 4) + lane / 2 % 4) * side + int((lane / 4 & 2) * 2 + lane % 2 * 2 + component);
}

bool isShare(const Type *type) {
  const auto *vector = dyn_cast<FixedVectorType>(type);
  return type->isDoubleTy() || type->isFloatTy() || (vector && vector->getNumElements() == 2);
}

bool isCarrier(const Type *type) { return type->isDoubleTy() || type->isFloatTy(); }

/// Whether a load says that it turns rows into columns; where that is not known, its rows have been chosen already.
bool isTransposed(const Value *load) {
  if (primitiveOf(load) != Primitive::matrixLoad) return false;
  const auto *transposed = dyn_cast<ConstantInt>(cast<CallBase>(load)->getArgOperand(2));
  return transposed && transposed->isOne();
}

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
  if (primitive == Primitive::shareLoad) return shapes_.of(instruction.getOperand(0)).isUniform();
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

/// Whether a matrix is computed where it is asked for: a cast of one, in the block of the cast.
bool Widener::isLazy(const Value *value) const {
  return isa<CastInst>(value) && isMatrix(value) && (tiles_->groupOf(value) || !slots_.contains(value));
}

/// The value as 64 elements, whatever it is held as.
Value *Widener::matrix(Value *value) {
  Type *type = value->getType();
  if (isMatrix(value)) {
    if (tiles_->groupOf(value)) return joined(rows({value}));
    if (current_.contains(value)) return current_[value][0];
    Value *result;
    if (const auto loaded = loadedRows_.find(value); loaded != loadedRows_.end()) {
      result = joined(loaded->second);
      if (isTransposed(value)) result = transpose(result);
    } else if (isLazy(value)) {
      auto *cast = llvm::cast<CastInst>(value);
      result = castOf(*cast, matrix(cast->getOperand(0)));
    } else {
      return parts(value)[0];
    }
    current_[value] = {result};
    return result;
  }
  if (!isCarrier(type)) return toMatrix(vector(value, 0), vector(value, 1));
  // The bits of a share: two elements.
  Value *both = builder_.CreateBitCast(vector(value), FixedVectorType::get(elementType(type), elements));
  SmallVector<int, width> even, odd;
  for (unsigned lane = 0; lane < width; ++lane) {
    even.push_back(int(2 * lane));
    odd.push_back(int(2 * lane + 1));
  }
  return toMatrix(builder_.CreateShuffleVector(both, even), builder_.CreateShuffleVector(both, odd));
}

/// A cast of some of a matrix's elements.
Value *Widener::castOf(CastInst &conversion, Value *from) {
  if (!isa<BitCastInst>(conversion)) return element(conversion, {from}, nullptr);
  const unsigned count = cast<FixedVectorType>(from->getType())->getNumElements();
  return builder_.CreateBitCast(from, FixedVectorType::get(elementType(conversion.getType()), count));
}

/// The rows of one matrix, or of two side by side.
Widener::Parts Widener::rows(ArrayRef<Value *> tiles) {
  const auto all = [&](const auto &holds) { return all_of(tiles, holds); };
  if (const Tiles::Group *group = tiles_->groupOf(tiles[0])) {
    const Parts &known = parts(group->front());
    if (std::equal(tiles.begin(), tiles.end(), group->begin(), group->end(),
                   [](const Value *tile, const Value *sum) { return Tiles::sumOf(tile) == sum; }))
      return known;
    if (tiles.size() == 1) {
      SmallVector<int, side> places;
      for (int i = 0; i < side; ++i) places.push_back(Tiles::sumOf(tiles[0]) == (*group)[0] ? i : side + i);
      Parts half;
      for (Value *row : known) half.push_back(builder_.CreateShuffleVector(row, places));
      return half;
    }
  } else if (auto *cast = dyn_cast<CastInst>(tiles[0]); cast && all([&](Value *tile) {
                                                          const auto *other = dyn_cast<CastInst>(tile);
                                                          return other && isLazy(tile) && !tiles_->groupOf(tile) &&
                                                                 other->getParent() == blocks_.order[size_t(index_)] &&
                                                                 other->getOpcode() == cast->getOpcode() &&
                                                                 other->getType() == cast->getType() &&
                                                                 other->getSrcTy() == cast->getSrcTy();
                                                        })) {
    SmallVector<Value *, 2> sources;
    for (Value *tile : tiles) sources.push_back(llvm::cast<CastInst>(tile)->getOperand(0));
    if (Parts columns = widenedColumns(*cast, sources); !columns.empty()) return columns;
    Parts result = rows(sources);
    for (Value *&row : result) row = castOf(*cast, row);
    return result;
  } else if (all([&](Value *tile) {
               return loadedRows_.contains(tile) && isTransposed(tile) == isTransposed(tiles[0]);
             })) {
    Parts result = loadedRows_[tiles[0]];
    if (tiles.size() == 2) result = sideBySide(result, loadedRows_[tiles[1]]);
    return isTransposed(tiles[0]) ? transposedRows(std::move(result)) : result;
  }
  return tiles.size() == 1 ? rowsOf(matrix(tiles[0])) : sideBySide(rows(tiles[0]), rows(tiles[1]));
}

/// Columns of matrices of bfloats as rows of floats, by turning pairs of elements as words: half the permutations, and
/// a float is then one half of a word. Nothing where `conversion` is another, or the matrices lie in rows.
Widener::Parts Widener::widenedColumns(const CastInst &conversion, ArrayRef<Value *> tiles) {
  if (!isa<FPExtInst>(conversion) || !conversion.getSrcTy()->getScalarType()->isBFloatTy() ||
      !conversion.getDestTy()->getScalarType()->isFloatTy() || !layout_.isLittleEndian())
    return {};
  Parts words;
  for (Value *tile : tiles) {
    while (const auto *bits = dyn_cast<BitCastInst>(tile)) tile = bits->getOperand(0);
    if (!isTransposed(tile) || !loadedRows_.contains(tile)) return {};
    for (Value *row : loadedRows_[tile])
      words.push_back(builder_.CreateBitCast(row, FixedVectorType::get(builder_.getInt32Ty(), side / 2)));
  }
  // Four vectors of every fourth row; the four words at one place in four neighbouring rows come together in two steps.
  constexpr int quad = 4;
  const int count = int(words.size());
  Parts four;
  for (int i = 0; i < quad; ++i) {
    Parts each;
    for (int k = i; k < count; k += quad) each.push_back(words[size_t(k)]);
    four.push_back(concatenateVectors(builder_, each));
  }
  const auto interleaved = [&](Value *a, Value *b, int width, bool isUpper) {
    SmallVector<int, 2 * side> places;
    for (int i = 0; i < count; ++i) {
      const int part = i % quad / width, from = i / quad * quad + (isUpper ? quad / 2 : 0);
      places.push_back(from + part / 2 * width + i % width + (part % 2 == 0 ? 0 : count));
    }
    return builder_.CreateShuffleVector(a, b, places);
  };
  Parts result;
  Type *floats = FixedVectorType::get(builder_.getFloatTy(), unsigned(count));
  for (const bool isUpper : {false, true}) {
    Value *even = interleaved(four[0], four[1], 1, isUpper), *odd = interleaved(four[2], four[3], 1, isUpper);
    for (const bool isSecond : {false, true}) {
      Value *pairs = interleaved(even, odd, 2, isSecond);
      result.push_back(builder_.CreateBitCast(builder_.CreateShl(pairs, 16), floats));
      result.push_back(builder_.CreateBitCast(builder_.CreateAnd(pairs, 0xFFFF0000), floats));
    }
  }
  return result;
}

Widener::Parts Widener::rowsOf(Value *matrix) {
  Parts result;
  for (int i = 0; i < side; ++i) {
    SmallVector<int, side> places;
    for (int k = 0; k < side; ++k) places.push_back(i * side + k);
    result.push_back(builder_.CreateShuffleVector(matrix, places));
  }
  return result;
}

Widener::Parts Widener::sideBySide(const Parts &left, const Parts &right) {
  Parts result;
  for (int i = 0; i < side; ++i) result.push_back(concatenateVectors(builder_, {left[i], right[i]}));
  return result;
}

Value *Widener::joined(Parts rows) { return concatenateVectors(builder_, rows); }

/// Interleaves rows i and i + 4 three times, which exchanges the bits of row and column. Matrices side by side stay so.
Widener::Parts Widener::transposedRows(Parts rows) {
  const int count = int(cast<FixedVectorType>(rows[0]->getType())->getNumElements());
  for (int step = 0; step < 3; ++step) {
    Parts next;
    for (int i = 0; i < side; ++i) {
      SmallVector<int, 2 * side> places;
      for (int k = 0; k < count; ++k) {
        const int from = k / side * side + i % 2 * side / 2 + k % side / 2;
        places.push_back(k % 2 == 0 ? from : count + from);
      }
      next.push_back(builder_.CreateShuffleVector(rows[i / 2], rows[i / 2 + side / 2], places));
    }
    rows = std::move(next);
  }
  return rows;
}

Value *Widener::transpose(Value *matrix) {
  int places[elements];
  for (int i = 0; i < elements; ++i) places[i] = i % side * side + i / side;
  return builder_.CreateShuffleVector(matrix, places);
}

/// Rows of eight elements, `stride` elements apart.
void Widener::matrixLoad(CallBase &call) {
  Type *element = elementType(call.getType());
  const Align align(element->getPrimitiveSizeInBits() / 8);
  Value *pointer = lastActive(call.getArgOperand(0)), *stride = lastActive(call.getArgOperand(1));
  Parts rows;
  for (int i = 0; i < side; ++i) {
    Value *row = builder_.CreateGEP(element, pointer, builder_.CreateMul(stride, builder_.getInt64(i)));
    rows.push_back(builder_.CreateAlignedLoad(FixedVectorType::get(element, side), row, align));
  }
  if (!isa<Constant>(call.getArgOperand(2))) {
    Value *whole = joined(rows);
    rows = rowsOf(builder_.CreateSelect(lastActive(call.getArgOperand(2)), transpose(whole), whole));
  }
  loadedRows_[&call] = rows;
  if (slots_.contains(&call)) set(call, {matrix(&call)});
}

void Widener::matrixStore(CallBase &call) {
  Value *value = call.getArgOperand(0), *isTransposed = call.getArgOperand(3);
  Type *element = elementType(value->getType());
  const Align align(element->getPrimitiveSizeInBits() / 8);
  Value *pointer = lastActive(call.getArgOperand(1)), *stride = lastActive(call.getArgOperand(2));
  Parts stored;
  if (const auto *known = dyn_cast<Constant>(isTransposed); known && known->isNullValue()) {
    stored = rows(value);
  } else {
    Value *whole = matrix(value);
    stored = rowsOf(builder_.CreateSelect(lastActive(isTransposed), transpose(whole), whole));
  }
  for (int i = 0; i < side; ++i) {
    Value *row = builder_.CreateGEP(element, pointer, builder_.CreateMul(stride, builder_.getInt64(i)));
    builder_.CreateAlignedStore(stored[i], row, align);
  }
}

/// Where the lanes' elements of matrices in private memory are.
Value *Widener::sharePlaces(Value *matrices, unsigned component) {
  SmallVector<Constant *, width> offsets;
  for (unsigned lane = 0; lane < width; ++lane) {
    const unsigned place = unsigned(placeOf(lane, component));
    offsets.push_back(builder_.getInt64(place / side * privateRowBytes + place % side * 4));
  }
  return builder_.CreateGEP(builder_.getInt8Ty(), matrices, ConstantVector::get(offsets));
}

void Widener::shareLoad(CallBase &call) {
  Value *pointer = call.getArgOperand(0);
  Type *element = builder_.getFloatTy();
  Parts result;
  if (!shapes_.of(pointer).isUniform()) {
    Type *type = FixedVectorType::get(element, width);
    for (unsigned i = 0; i < 2; ++i)
      result.push_back(
          builder_.CreateMaskedGather(type, sharePlaces(vector(pointer), i), Align(4), mask_, PoisonValue::get(type)));
    return set(call, std::move(result));
  }
  for (unsigned i = 0; i < side; ++i) {
    Value *row = builder_.CreateConstGEP1_32(builder_.getInt8Ty(), scalar(pointer), i * privateRowBytes);
    result.push_back(builder_.CreateAlignedLoad(FixedVectorType::get(element, side), row, Align(side * 4)));
  }
  loadedRows_[&call] = std::move(result);
  if (slots_.contains(&call)) set(call, {matrix(&call)});
}

/// The elements of lanes that are not there stay.
void Widener::shareStore(CallBase &call) {
  Value *value = call.getArgOperand(0), *pointer = call.getArgOperand(1);
  if (!shapes_.of(pointer).isUniform()) {
    for (unsigned i = 0; i < 2; ++i)
      builder_.CreateMaskedScatter(vector(value, i), sharePlaces(vector(pointer), i), Align(4), mask_);
    return;
  }
  const Parts stored = rows(value), masks = rowsOf(toMatrix(mask_, mask_));
  const Align align(side * 4);
  for (unsigned i = 0; i < side; ++i) {
    Value *row = builder_.CreateConstGEP1_32(builder_.getInt8Ty(), scalar(pointer), i * privateRowBytes);
    Value *before = builder_.CreateAlignedLoad(stored[i]->getType(), row, align);
    builder_.CreateAlignedStore(builder_.CreateSelect(masks[i], stored[i], before), row, align);
  }
}

}  // namespace lanes
