/// Instructions that lanes carry out each for itself.
#include "BfloatBits.hpp"
#include "Widen.hpp"
#include "llvm/Analysis/VectorUtils.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;
using namespace PatternMatch;

namespace lanes {
namespace {

bool isNarrow(const Type *type) {
  const Type *element = type->getScalarType();
  return element->isHalfTy() || element->isBFloatTy();
}

bool isIgnored(Intrinsic::ID id) {
  return id == Intrinsic::lifetime_start || id == Intrinsic::lifetime_end || id == Intrinsic::assume ||
         id == Intrinsic::experimental_noalias_scope_decl || id == Intrinsic::sideeffect ||
         id == Intrinsic::dbg_declare || id == Intrinsic::dbg_value || id == Intrinsic::dbg_label;
}

/// What `cast` takes the upper halves of, where it cuts `value` down so: (x >> 16) as 16 bits of 32.
Value *wholeOfUpperHalf(const CastInst &cast, Value *value) {
  const unsigned bits = cast.getDestTy()->getScalarSizeInBits();
  Value *whole = nullptr;
  const bool isUpper = cast.getOpcode() == Instruction::Trunc && bits % 8 == 0 &&
                       cast.getSrcTy()->getScalarSizeInBits() == 2 * bits &&
                       match(value, m_Shr(m_Value(whole), m_SpecificInt(bits)));
  return isUpper ? whole : nullptr;
}

/// Elements 1, 3, 5 and so on of a vector: one permutation, where a shift and a narrowing of each are several.
Value *oddElements(IRBuilder<> &builder, Value *vector) {
  SmallVector<int, 128> places;
  for (unsigned i = 1; i < cast<FixedVectorType>(vector->getType())->getNumElements(); i += 2) places.push_back(int(i));
  return builder.CreateShuffleVector(vector, places);
}

}  // namespace

void Widener::widen(Instruction &instruction) {
  if (isLazy(&instruction)) return;
  if (widenWords(instruction)) return;
  if (auto *call = dyn_cast<CallBase>(&instruction)) return widenCall(*call);
  if (isa<FenceInst>(instruction)) {
    builder_.Insert(instruction.clone());
    return;
  }
  if (auto *store = dyn_cast<StoreInst>(&instruction)) return widenStore(*store);
  if (widenScalar(instruction)) return;
  if (auto *load = dyn_cast<LoadInst>(&instruction)) return widenLoad(*load);
  if (isa<AtomicRMWInst>(instruction) || isa<AtomicCmpXchgInst>(instruction)) return serial(instruction);
  if (isa<ExtractValueInst>(instruction)) {
    auto &extract = cast<ExtractValueInst>(instruction);
    if (extract.getNumIndices() != 1) throw Declined{"a structure in a structure"};
    return set(instruction, {parts(extract.getAggregateOperand())[extract.getIndices()[0]]});
  }
  if (auto *gep = dyn_cast<GetElementPtrInst>(&instruction)) {
    SmallVector<Value *, 4> indices;
    for (const Use &index : gep->indices())
      indices.push_back(shapes_.of(index.get()).isUniform() ? scalar(index.get()) : vector(index.get()));
    Value *base = gep->getPointerOperand();
    base = shapes_.of(base).isUniform() ? scalar(base) : vector(base);
    return set(instruction, {builder_.CreateGEP(gep->getSourceElementType(), base, indices)});
  }
  if (isa<BitCastInst>(instruction)) return widenBitcast(instruction);
  if (isa<ExtractElementInst>(instruction) || isa<InsertElementInst>(instruction) ||
      isa<ShuffleVectorInst>(instruction))
    return widenShuffle(instruction);
  if (isMatrix(&instruction)) {
    SmallVector<Value *, 3> operands;
    for (Value *operand : instruction.operands()) operands.push_back(matrix(operand));
    return set(instruction, {element(instruction, operands, nullptr)});
  }
  const auto *type = dyn_cast<FixedVectorType>(instruction.getType());
  Parts results;
  for (unsigned i = 0; i < (type ? type->getNumElements() : 1); ++i) {
    SmallVector<Value *, 3> operands;
    for (Value *operand : instruction.operands()) {
      // A select may have one condition for a whole vector of the language.
      const bool isOne = type && !operand->getType()->isVectorTy();
      operands.push_back(shapes_.of(operand).isUniform() && isOne ? scalar(operand) : vector(operand, isOne ? 0 : i));
    }
    results.push_back(element(instruction, operands, mask_));
  }
  set(instruction, std::move(results));
}

/// What is the same in all lanes, or in strides, is computed once.
bool Widener::widenScalar(Instruction &instruction) {
  const Shape shape = shapes_.of(&instruction);
  if (!shape.isScalar()) return false;
  if (isa<AllocaInst>(instruction)) {
    IRBuilder<> start(entry_, entry_->begin());
    current_[&instruction] = {start.Insert(instruction.clone())};
    const auto place = slots_.find(&instruction);
    if (place != slots_.end()) builder_.CreateStore(current_[&instruction][0], place->second[0]);
    return true;
  }
  // Bits that lanes do not share may overlap in lane 0, which need not be there.
  if (instruction.getOpcode() == Instruction::Or && shape.stride != 0) {
    set(instruction, {builder_.CreateAdd(scalar(instruction.getOperand(0)), scalar(instruction.getOperand(1)))});
    return true;
  }
  // A comparison of values in equal strides is one of lane 0's.
  Instruction *copy = instruction.clone();
  for (unsigned i = 0; i < copy->getNumOperands(); ++i) copy->setOperand(i, scalar(instruction.getOperand(i)));
  bool isExact = shape.isUniform();
  for (const Value *operand : instruction.operands())
    if (!isa<BasicBlock>(operand)) isExact &= shapes_.of(operand).isUniform();
  if (!isExact) copy->dropPoisonGeneratingFlags();
  if (copy->mayReadOrWriteMemory()) copy->dropUnknownNonDebugMetadata();
  builder_.Insert(copy);
  set(instruction, {copy});
  return true;
}

void Widener::widenCall(CallBase &call) {
  if (const Primitive primitive = primitiveOf(&call); primitive != Primitive::none)
    return widenPrimitive(call, primitive);
  Function *callee = call.getCalledFunction();
  if (!callee) throw Declined{"a call through a pointer"};
  const Intrinsic::ID id = callee->getIntrinsicID();
  if (isIgnored(id)) return;
  if (isa<MemIntrinsic>(call)) {
    for (unsigned i = 0; i < 3; ++i)
      if (!shapes_.of(call.getArgOperand(i)).isUniform()) throw Declined{"a copy of memory of unknown size"};
    Instruction *copy = call.clone();
    for (unsigned i = 0; i < 3; ++i) copy->setOperand(i, scalar(call.getArgOperand(i)));
    builder_.Insert(copy);
    return;
  }
  if (widenScalar(call)) return;
  if (id == Intrinsic::not_intrinsic) {
    if (!callee->isDeclaration()) throw Declined{("a call of " + callee->getName()).str()};
    return serial(call);
  }
  if (!isTriviallyVectorizable(id)) {
    if (call.getType()->isVectorTy() || call.getType()->isStructTy())
      throw Declined{("a call of " + callee->getName()).str()};
    return serial(call);
  }
  const auto *type = dyn_cast<FixedVectorType>(call.getType());
  Parts results;
  for (unsigned i = 0; i < (type ? type->getNumElements() : 1); ++i) {
    SmallVector<Value *, 4> operands;
    SmallVector<Type *, 2> types;
    const bool isPromoted = isNarrow(call.getType());
    Type *resultType = isPromoted ? FixedVectorType::get(builder_.getFloatTy(), width) : vectorType(call.getType());
    if (isVectorIntrinsicWithOverloadTypeAtArg(id, -1)) types.push_back(resultType);
    for (unsigned k = 0; k < call.arg_size(); ++k) {
      Value *operand = call.getArgOperand(k);
      if (isVectorIntrinsicWithScalarOpAtArg(id, k)) {
        if (!shapes_.of(operand).isUniform()) return serial(call);
        operands.push_back(scalar(operand));
      } else {
        operands.push_back(widerFloat(vector(operand, i), operand->getType()));
      }
      if (isVectorIntrinsicWithOverloadTypeAtArg(id, int(k))) types.push_back(operands.back()->getType());
    }
    auto *wide = builder_.CreateCall(Intrinsic::getDeclaration(source_.getParent(), id, types), operands);
    if (isa<FPMathOperator>(wide)) wide->copyFastMathFlags(&call);
    results.push_back(isPromoted ? narrowFloat(wide, call.getType()) : wide);
  }
  set(call, std::move(results));
}

/// One instruction on vectors, of lanes or of a matrix's elements. `mask`: lanes that are there.
Value *Widener::element(Instruction &instruction, ArrayRef<Value *> operands, Value *mask) {
  Type *type = instruction.getType();
  const auto count = cast<FixedVectorType>(operands.back()->getType())->getNumElements();
  Value *result = nullptr;
  if (auto *operation = dyn_cast<BinaryOperator>(&instruction)) {
    Value *a = widerFloat(operands[0], type), *b = widerFloat(operands[1], type);
    if (operation->isIntDivRem() && mask && !isa<Constant>(b))
      b = builder_.CreateSelect(mask, b, ConstantInt::get(b->getType(), 1));
    if (Value *quotient = mask && operation->isIntDivRem() ? divideInRuns(instruction, a, b) : nullptr) return quotient;
    result = builder_.CreateBinOp(operation->getOpcode(), a, b);
  } else if (auto *unary = dyn_cast<UnaryOperator>(&instruction)) {
    result = builder_.CreateUnOp(unary->getOpcode(), widerFloat(operands[0], type));
  } else if (auto *compare = dyn_cast<CmpInst>(&instruction)) {
    Type *compared = compare->getOperand(0)->getType();
    result = builder_.CreateCmp(compare->getPredicate(), widerFloat(operands[0], compared),
                                widerFloat(operands[1], compared));
  } else if (isa<SelectInst>(instruction)) {
    return builder_.CreateSelect(operands[0], operands[1], operands[2]);
  } else if (isa<FreezeInst>(instruction)) {
    return builder_.CreateFreeze(operands[0]);
  } else if (auto *cast = dyn_cast<CastInst>(&instruction)) {
    Type *from = cast->getSrcTy();
    Value *value = widerFloat(operands[0], from);
    Type *to = isNarrow(type) ? FixedVectorType::get(builder_.getFloatTy(), count) : vectorType(type, count);
    if (value->getType() == to) {
      result = value;
    } else if (to->getScalarType()->isFloatingPointTy() && value->getType()->getScalarType()->isFloatingPointTy()) {
      result = builder_.CreateFPCast(value, to);
    } else if (Value *whole = wholeOfUpperHalf(*cast, value)) {
      result =
          oddElements(builder_, builder_.CreateBitCast(whole, FixedVectorType::get(to->getScalarType(), 2 * count)));
    } else {
      result = builder_.CreateCast(cast->getOpcode(), value, to);
    }
  } else {
    throw Declined{std::string("an instruction: ") + instruction.getOpcodeName()};
  }
  if (auto *made = dyn_cast<Instruction>(result); made && made->getOpcode() == instruction.getOpcode())
    made->copyIRFlags(&instruction);
  return isNarrow(type) && !isa<CmpInst>(instruction) ? narrowFloat(result, type) : result;
}

/// half and bfloat are computed in float and rounded after each step; other types stay.
Value *Widener::widerFloat(Value *value, Type *type) {
  if (!isNarrow(type)) return value;
  Type *wide = builder_.getFloatTy();
  if (auto *vector = dyn_cast<FixedVectorType>(value->getType()))
    wide = FixedVectorType::get(wide, vector->getNumElements());
  if (type->getScalarType()->isHalfTy()) return builder_.CreateFPExt(value, wide);
  Value *bits = builder_.CreateZExt(value, wide->getWithNewType(builder_.getInt32Ty()));
  return builder_.CreateBitCast(builder_.CreateShl(bits, 16), wide);
}

/// Rounds to nearest even.
Value *Widener::narrowFloat(Value *value, Type *type) {
  if (!isNarrow(type)) return value;
  Type *wide = value->getType();
  if (type->getScalarType()->isHalfTy())
    return builder_.CreateFPTrunc(value, wide->getWithNewType(builder_.getHalfTy()));
  return bfloatBits(builder_, value);
}

/// Between types of one size. A vector of the language lies in its lane's bits component after component.
void Widener::widenBitcast(Instruction &cast) {
  Value *from = cast.getOperand(0);
  Type *to = cast.getType();
  const auto *source = dyn_cast<FixedVectorType>(from->getType()), *target = dyn_cast<FixedVectorType>(to);
  if (isMatrix(&cast))
    return set(cast, {builder_.CreateBitCast(matrix(from), FixedVectorType::get(elementType(to), 64))});
  const unsigned fromCount = source ? source->getNumElements() : 1, toCount = target ? target->getNumElements() : 1;
  Parts results;
  if (fromCount == toCount) {
    for (unsigned i = 0; i < toCount; ++i) results.push_back(builder_.CreateBitCast(vector(from, i), vectorType(to)));
    return set(cast, std::move(results));
  }
  // All lanes' components, lane after lane; then the same bits cut anew.
  const unsigned size = from->getType()->getPrimitiveSizeInBits();
  if (laneType(from->getType())->isIntegerTy(1) || laneType(to)->isIntegerTy(1)) {
    Value *whole = Constant::getNullValue(FixedVectorType::get(builder_.getIntNTy(size), width));
    for (unsigned i = 0; i < fromCount; ++i) {
      Type *own = FixedVectorType::get(builder_.getIntNTy(size / fromCount), width);
      // A component may be poison where nobody reads it, which must not reach those beside it.
      Value *component = builder_.CreateFreeze(builder_.CreateBitCast(vector(from, i), own));
      Value *part = builder_.CreateZExt(component, whole->getType());
      whole = builder_.CreateOr(whole, builder_.CreateShl(part, i * (size / fromCount)));
    }
    for (unsigned i = 0; i < toCount; ++i) {
      Type *own = FixedVectorType::get(builder_.getIntNTy(size / toCount), width);
      Value *part = builder_.CreateTrunc(builder_.CreateLShr(whole, i * (size / toCount)), own);
      results.push_back(builder_.CreateBitCast(part, vectorType(to)));
    }
    return set(cast, std::move(results));
  }
  Parts components;
  for (unsigned i = 0; i < fromCount; ++i) components.push_back(vector(from, i));
  Value *all = fromCount == 1 ? components[0] : concatenateVectors(builder_, components);
  SmallVector<int, 128> places;
  for (unsigned lane = 0; lane < width; ++lane)
    for (unsigned i = 0; i < fromCount; ++i) places.push_back(int(i * width + lane));
  if (fromCount > 1) all = builder_.CreateShuffleVector(all, places);
  all = builder_.CreateBitCast(all, vectorType(to, width * toCount));
  for (unsigned i = 0; i < toCount; ++i) {
    places.clear();
    for (unsigned lane = 0; lane < width; ++lane) places.push_back(int(lane * toCount + i));
    results.push_back(builder_.CreateShuffleVector(all, places));
  }
  set(cast, std::move(results));
}

/// Components of the language's vectors change places: no lane's value moves.
void Widener::widenShuffle(Instruction &instruction) {
  Parts results;
  if (auto *extract = dyn_cast<ExtractElementInst>(&instruction)) {
    Value *from = extract->getVectorOperand(), *index = extract->getIndexOperand();
    if (const auto *known = dyn_cast<ConstantInt>(index))
      return set(instruction, {vector(from, unsigned(known->getZExtValue()))});
    const unsigned count = cast<FixedVectorType>(from->getType())->getNumElements();
    Value *place = vector(index), *result = vector(from, 0);
    for (unsigned i = 1; i < count; ++i)
      result = builder_.CreateSelect(builder_.CreateICmpEQ(place, ConstantInt::get(place->getType(), i)),
                                     vector(from, i), result);
    return set(instruction, {result});
  }
  const unsigned count = cast<FixedVectorType>(instruction.getType())->getNumElements();
  if (auto *insert = dyn_cast<InsertElementInst>(&instruction)) {
    Value *index = insert->getOperand(2);
    const auto *known = dyn_cast<ConstantInt>(index);
    Value *value = vector(insert->getOperand(1));
    for (unsigned i = 0; i < count; ++i) {
      if (known) {
        results.push_back(known->getZExtValue() == i ? value : vector(insert->getOperand(0), i));
        continue;
      }
      Value *place = vector(index);
      results.push_back(builder_.CreateSelect(builder_.CreateICmpEQ(place, ConstantInt::get(place->getType(), i)),
                                              value, vector(insert->getOperand(0), i)));
    }
    return set(instruction, std::move(results));
  }
  auto &shuffle = cast<ShuffleVectorInst>(instruction);
  const int first = int(cast<FixedVectorType>(shuffle.getOperand(0)->getType())->getNumElements());
  for (const int place : shuffle.getShuffleMask()) {
    if (place < 0)
      results.push_back(PoisonValue::get(vectorType(shuffle.getType())));
    else
      results.push_back(place < first ? vector(shuffle.getOperand(0), unsigned(place))
                                      : vector(shuffle.getOperand(1), unsigned(place - first)));
  }
  set(instruction, std::move(results));
}

}  // namespace lanes
