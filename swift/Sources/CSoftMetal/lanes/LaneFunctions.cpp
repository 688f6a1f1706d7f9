/// Functions of a SIMD group: they act on the active lanes.
#include "Widen.hpp"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace lanes {

void Widener::widenPrimitive(CallBase &call, Primitive primitive) {
  switch (primitive) {
    case Primitive::kernel: {
      Value *lanes = splat(scalar(call.getArgOperand(0)));
      mask_ = builder_.CreateICmpULT(ramp(builder_.getInt32Ty(), 1), lanes);
      if (AllocaInst *mask = states_[blocks_.order[size_t(index_)]].mask) builder_.CreateStore(mask_, mask);
      return;
    }
    case Primitive::independent:
    case Primitive::order:
    case Primitive::turn:
      return;
    case Primitive::lane:
      return set(call, {builder_.getInt32(0)});
    case Primitive::position: {
      Value *a = call.getArgOperand(0), *b = call.getArgOperand(1);
      const bool isScalar = shapes_.of(&call).isScalar();
      return set(call,
                 {isScalar ? builder_.CreateAdd(scalar(a), scalar(b)) : builder_.CreateAdd(vector(a), vector(b))});
    }
    case Primitive::active:
      return set(call, {bits(mask_)});
    case Primitive::ballot:
      return set(call, {bits(both(mask_, vector(call.getArgOperand(0))))});
    case Primitive::all:
      return set(call, {holdsInAll(call.getArgOperand(0))});
    case Primitive::shuffle:
      return set(call, {shuffle(call)});
    case Primitive::reduce:
      return set(call, {reduce(call)});
    case Primitive::prefix:
      return set(call, {prefix(call)});
    case Primitive::barrier:
      return barrier(call);
    case Primitive::matrixLoad:
      return matrixLoad(call);
    case Primitive::matrixStore:
      return matrixStore(call);
    case Primitive::shareLoad:
      return shareLoad(call);
    case Primitive::shareStore:
      return shareStore(call);
    case Primitive::matrixMultiply:
      if (!tiles_->isDeferred(&call)) multiply(*tiles_->groupOf(&call));
      return;
    case Primitive::regular:
    case Primitive::group:
    case Primitive::simdgroup:
    case Primitive::none:
      break;
  }
  throw Declined{"a primitive that is not known"};
}

/// Whether a condition holds in all active lanes. Where a value that grows from lane to lane stays below a bound, lane
/// 31 tells for all.
Value *Widener::holdsInAll(Value *condition) {
  Value *exact = builder_.CreateNot(any(both(mask_, builder_.CreateNot(vector(condition)))));
  auto *compare = dyn_cast<ICmpInst>(condition);
  if (!compare) return exact;
  auto predicate = compare->getPredicate();
  Value *growing = compare->getOperand(0), *bound = compare->getOperand(1);
  if (shapes_.of(growing).isUniform()) {
    std::swap(growing, bound);
    predicate = CmpInst::getSwappedPredicate(predicate);
  }
  const Shape shape = shapes_.of(growing);
  const bool isBelow = predicate == CmpInst::ICMP_ULT || predicate == CmpInst::ICMP_ULE ||
                       predicate == CmpInst::ICMP_SLT || predicate == CmpInst::ICMP_SLE;
  if (!shape.isScalar() || shape.isAssumed || shape.stride <= 0 || !shapes_.of(bound).isUniform() || !isBelow)
    return exact;
  const unsigned bits = growing->getType()->getIntegerBitWidth();
  if (uint64_t(shape.stride) * (width - 1) >= uint64_t(1) << std::min(bits - 1, 40u)) return exact;
  Value *first = scalar(growing);
  Value *last = builder_.CreateAdd(first, ConstantInt::get(first->getType(), uint64_t(shape.stride) * (width - 1)));
  const bool isSigned = CmpInst::isSigned(predicate);
  // If not so, the loop that follows does what is left.
  return builder_.CreateAnd(builder_.CreateICmp(predicate, last, scalar(bound)),
                            isSigned ? builder_.CreateICmpSGE(last, first) : builder_.CreateICmpUGE(last, first));
}

/// What the last active lane has.
Value *Widener::lastActive(Value *value) {
  if (shapes_.of(value).isUniform()) return scalar(value);
  Value *zeros = builder_.CreateBinaryIntrinsic(Intrinsic::ctlz, bits(mask_), builder_.getTrue());
  Value *lane = builder_.CreateXor(zeros, builder_.getInt32(width - 1));
  return builder_.CreateExtractElement(vector(value), lane);
}

/// What lanes that are not active have is undefined: all bits set, a NaN, so that whoever uses it finds out.
Value *Widener::shuffle(CallBase &call) {
  Value *value = call.getArgOperand(0), *lane = call.getArgOperand(1);
  if (shapes_.of(value).isUniform()) return scalar(value);
  if (!shapes_.of(lane).isUniform()) {
    if (Value *ofRuns = shuffleToRuns(call)) return ofRuns;
    const Loop *loop = blocks_.loops.getLoopFor(call.getParent());
    return exchange(vector(value), lane, loop && loop->isLoopInvariant(value));
  }
  Value *from = vector(value);
  from = builder_.CreateSelect(mask_, from, Constant::getAllOnesValue(from->getType()));
  return builder_.CreateExtractElement(from, builder_.CreateAnd(scalar(lane), width - 1));
}

/// The lanes of a run ask for one lane's value: that is read once, and kept for who wants what the run has.
Value *Widener::shuffleToRuns(CallBase &call) {
  Value *lane = call.getArgOperand(1);
  const Shape shape = shapes_.of(lane);
  const unsigned run = std::min(shape.lanesOfRun(), shapes_.lanesTogether(blocks_.order[size_t(index_)]));
  constexpr unsigned fewest = 8;
  if (!shape.isUniformInRuns() || run < fewest || run == width || isa<Constant>(vector(lane))) return nullptr;
  Value *from = vector(call.getArgOperand(0));
  from = builder_.CreateSelect(mask_, from, Constant::getAllOnesValue(from->getType()));
  Parts runs;
  for (unsigned first = 0; first < width; first += run) {
    // That of lanes that are not there may be anything.
    Value *source = builder_.CreateAnd(builder_.CreateFreeze(inLane(lane, first)), width - 1);
    Value *value = builder_.CreateExtractElement(from, source);
    inLane_[{&call, first}] = value;
    runs.push_back(builder_.CreateVectorSplat(run, value));
  }
  return concatenateVectors(builder_, runs);
}

/// Whether each lane gets what a lane of its own run has, of which all are there if it is.
bool Widener::staysInRun(ArrayRef<int> places) const {
  const unsigned together = shapes_.lanesTogether(blocks_.order[size_t(index_)]);
  for (unsigned i = 0; i < width; ++i)
    if (unsigned(places[i]) / together != i / together) return false;
  return together > 1;
}

/// What the lanes have whose numbers are `lane`'s.
Value *Widener::exchange(Value *values, Value *lane, bool isTable) {
  Value *from = builder_.CreateSelect(mask_, values, Constant::getAllOnesValue(values->getType()));
  Value *indices = builder_.CreateAnd(vector(lane), ConstantInt::get(vectorType(lane->getType()), width - 1));
  // A permutation known at compile time.
  if (auto *known = dyn_cast<ConstantDataVector>(indices)) {
    SmallVector<int, width> places;
    for (unsigned i = 0; i < width; ++i) places.push_back(int(known->getElementAsInteger(i)));
    return builder_.CreateShuffleVector(staysInRun(places) ? values : from, places);
  }
  // Lane l asks for lane l ^ m, with one m for all: exchanges by one bit of m after another.
  if (auto *exchange = dyn_cast<BinaryOperator>(lane); exchange && exchange->getOpcode() == Instruction::Xor) {
    for (unsigned i = 0; i < 2; ++i) {
      Value *own = exchange->getOperand(i), *distance = exchange->getOperand(1 - i);
      const Shape lanes = shapes_.of(own);
      if (!lanes.isScalar() || lanes.stride != 1 || lanes.limit != width - 1 || !shapes_.of(distance).isUniform())
        continue;
      for (unsigned bit = 1; bit < width; bit *= 2) {
        SmallVector<int, width> places;
        for (unsigned l = 0; l < width; ++l) places.push_back(int(l ^ bit));
        Value *isSet = builder_.CreateICmpNE(builder_.CreateAnd(scalar(distance), bit), builder_.getInt32(0));
        from = builder_.CreateSelect(isSet, builder_.CreateShuffleVector(from, places), from);
      }
      return from;
    }
  }
  return permute(from, indices, isTable);
}

/// One step of a reduction, on vectors or scalars of the lanes' type. `type` is the language's.
Value *Widener::combine(StringRef operation, const Reduction &reduction, Type *type, Value *a, Value *b) {
  const bool isFloat = type->isFloatingPointTy();
  if (operation == "min" || operation == "max") {
    const bool isMinimum = operation == "min";
    if (!isFloat) {
      const auto predicate = reduction.isSigned() ? (isMinimum ? CmpInst::ICMP_SLT : CmpInst::ICMP_SGT)
                                                  : (isMinimum ? CmpInst::ICMP_ULT : CmpInst::ICMP_UGT);
      return builder_.CreateSelect(builder_.CreateICmp(predicate, b, a), b, a);
    }
    Value *x = widerFloat(a, type), *y = widerFloat(b, type);
    Value *isBetter = isMinimum ? builder_.CreateFCmpOLT(y, x) : builder_.CreateFCmpOGT(y, x);
    return builder_.CreateSelect(builder_.CreateOr(isBetter, builder_.CreateFCmpUNO(x, x)), b, a);
  }
  if (isFloat) {
    Value *x = widerFloat(a, type), *y = widerFloat(b, type);
    return narrowFloat(operation == "add" ? builder_.CreateFAdd(x, y) : builder_.CreateFMul(x, y), type);
  }
  if (operation == "add") return builder_.CreateAdd(a, b);
  if (operation == "mul") return builder_.CreateMul(a, b);
  if (operation == "and") return builder_.CreateAnd(a, b);
  if (operation == "or") return builder_.CreateOr(a, b);
  if (operation == "xor") return builder_.CreateXor(a, b);
  throw Declined{("a reduction: " + operation).str()};
}

/// A tree. Sums and the like combine halves; minimum and maximum neighbours, which keeps the order of lanes, and with
/// it which of two equal zeros wins.
Value *Widener::reduce(CallBase &call) {
  const Reduction reduction = reductionOf(call);
  Type *type = call.getType();
  Value *values = vector(call.getArgOperand(0));
  Type *element = values->getType()->getScalarType();
  const bool isExtreme = reduction.operation == "min" || reduction.operation == "max";
  Value *neutral;
  if (isExtreme) {
    // The first active lane's value changes no result.
    Value *first = builder_.CreateBinaryIntrinsic(Intrinsic::cttz, bits(mask_), builder_.getTrue());
    neutral = builder_.CreateExtractElement(values, first);
  } else if (reduction.operation == "and") {
    neutral = Constant::getAllOnesValue(element);
  } else {
    neutral = startOf(reduction, type);
  }
  values = builder_.CreateSelect(mask_, values, builder_.CreateVectorSplat(width, neutral));
  for (unsigned half = width / 2; half > 0; half /= 2) {
    SmallVector<int, width / 2> left, right;
    for (unsigned i = 0; i < half; ++i) {
      left.push_back(int(isExtreme ? 2 * i : i));
      right.push_back(int(isExtreme ? 2 * i + 1 : i + half));
    }
    Value *a = builder_.CreateShuffleVector(values, left), *b = builder_.CreateShuffleVector(values, right);
    values = combine(reduction.operation, reduction, type, a, b);
  }
  Value *result = builder_.CreateExtractElement(values, uint64_t(0));
  return element == type ? result : builder_.CreateBitCast(result, type);
}

/// The neutral element of a sum or product, in the type that lanes hold.
Constant *Widener::startOf(const Reduction &reduction, Type *type) {
  Type *element = laneType(type);
  if (reduction.operation != "mul") return Constant::getNullValue(element);
  if (!type->isFloatingPointTy()) return ConstantInt::get(type, 1);
  Constant *one = ConstantFP::get(type, 1.0);
  return element == type ? one : ConstantInt::get(element, cast<ConstantFP>(one)->getValueAPF().bitcastToAPInt());
}

/// Lane after lane, as the language's order is for prefixes: a function of its own, since it is long.
Value *Widener::prefix(CallBase &call) {
  const Reduction reduction = reductionOf(call);
  Type *type = call.getType();
  Value *values = vector(call.getArgOperand(0)), *isInclusive = scalar(call.getArgOperand(1));
  const std::string name = ("lanes.prefix." + reduction.operation + "." + reduction.type).str();
  Module *module = source_.getParent();
  Function *function = module->getFunction(name);
  if (!function) {
    auto *signature =
        FunctionType::get(values->getType(), {values->getType(), mask_->getType(), isInclusive->getType()}, false);
    function = Function::Create(signature, GlobalValue::InternalLinkage, name, module);
    function->copyAttributesFrom(&target_);
    function->setAttributes(AttributeList().addFnAttributes(
        module->getContext(), AttrBuilder(module->getContext(), target_.getAttributes().getFnAttrs())));
    function->addFnAttr(Attribute::NoInline);
    const IRBuilder<>::InsertPointGuard guard(builder_);
    builder_.SetInsertPoint(BasicBlock::Create(module->getContext(), "", function));
    Value *sum = startOf(reduction, type), *result = PoisonValue::get(values->getType());
    for (unsigned lane = 0; lane < width; ++lane) {
      Value *next = combine(reduction.operation, reduction, type, sum,
                            builder_.CreateExtractElement(function->getArg(0), uint64_t(lane)));
      next = builder_.CreateSelect(builder_.CreateExtractElement(function->getArg(1), uint64_t(lane)), next, sum);
      Value *own = builder_.CreateSelect(function->getArg(2), next, sum);
      result = builder_.CreateInsertElement(result, own, uint64_t(lane));
      sum = next;
    }
    builder_.CreateRet(result);
  }
  return builder_.CreateCall(function, {values, mask_, isInclusive});
}

}  // namespace lanes
