#include "Shapes.hpp"

#include <algorithm>

#include "Primitives.hpp"
#include "ShapeBits.hpp"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/GetElementPtrTypeIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace lanes {
namespace {

/// How far lane 31 is from lane 0, at least 0; no value where the stride is negative.
bool span(const Shape &shape, uint64_t &result) {
  if (shape.stride < 0 || shape.stride > (int64_t(1) << 40)) return false;
  result = uint64_t(shape.stride) * (width - 1);
  return true;
}

/// Whether all lanes have the same bits from bit `bit` on: lane 0's value leaves room for the others below.
bool shareHighBits(const Shape &shape, unsigned bit) {
  uint64_t reach;
  return span(shape, reach) && bit < 64 && reach < uint64_t(1) << std::min(bit, shape.zeros);
}

}  // namespace

Shapes::Shapes(Function &function, Blocks &blocks, bool mayAssume)
    : blocks_(blocks), layout_(function.getParent()->getDataLayout()), mayAssume_(mayAssume) {
  for (bool changed = true; changed;) {
    changed = false;
    for (BasicBlock *block : blocks_.order) {
      for (const Instruction &instruction : *block) update(instruction, changed);
      const auto *branch = dyn_cast<BranchInst>(block->getTerminator());
      if (!branch || !branch->isConditional() || branch->getSuccessor(0) == branch->getSuccessor(1)) continue;
      const Shape condition = of(branch->getCondition());
      if (condition.kind != Shape::unknown && !condition.isUniform()) changed |= blocks_.addDivergentBranch(block);
    }
  }
  findTogether();
}

/// Shapes only go from unknown to strided to varying; what a stride says of bits and bounds only shrinks.
void Shapes::update(const Instruction &instruction, bool &changed) {
  if (instruction.getType()->isVoidTy()) return;
  Shape next = compute(instruction);
  if (next.kind == Shape::unknown) return;
  Shape &known = shapes_[&instruction];
  if (known.kind != Shape::unknown) {
    if (known.kind == Shape::varying || next.kind == Shape::varying || next.stride != known.stride) {
      const bool isSame = next.stride == known.stride;
      next = Shape::inRuns(isSame ? std::min(known.lanesOfRun(), next.lanesOfRun()) : 1, next.stride,
                           next.lanesOfRun() == known.lanesOfRun() ? std::min(next.zeros, known.zeros) : 0,
                           next.limit == known.limit ? next.limit : noLimit);
    }
    if (next.kind == Shape::strided) {
      next.isAssumed |= known.isAssumed;
      next.zeros = std::min(next.zeros, known.zeros);
      if (next.limit != known.limit) next.limit = noLimit;
    }
  }
  if (next == known) return;
  known = next;
  changed = true;
}

Shape Shapes::of(const Value *value) const {
  if (const auto *number = dyn_cast<ConstantInt>(value)) {
    Shape shape = Shape::uniform(number->isZero() ? 63 : std::min(63u, number->getValue().countr_zero()));
    if (number->getBitWidth() <= 64) shape.limit = number->getZExtValue();
    return shape;
  }
  if (const auto *argument = dyn_cast<Argument>(value)) {
    Shape shape = Shape::uniform();
    if (argument->getArgNo() == 1) shape.limit = 1024 / width - 1;  // the SIMD group
    return shape;
  }
  if (!isa<Instruction>(value)) return Shape::uniform();
  return shapes_.lookup(value);
}

Shape Shapes::fromOperands(const Instruction &instruction) const {
  bool differs = false;
  unsigned run = width;
  for (const Value *operand : instruction.operands()) {
    if (isa<BasicBlock>(operand) || isa<Function>(operand)) continue;
    const Shape shape = of(operand);
    if (shape.kind == Shape::unknown) return {};
    differs |= !shape.isUniform();
    run = std::min(run, shape.isUniformInRuns() ? shape.lanesOfRun() : 1);
  }
  return differs ? Shape::inRuns(run, 0) : Shape::uniform();
}

Shape Shapes::compute(const Instruction &instruction) const {
  if (isa<PHINode>(instruction)) return phi(instruction);
  if (isa<AllocaInst>(instruction)) return Shape::uniform(5);
  if ((instruction.isAtomic() || instruction.isVolatile()) && !isa<FenceInst>(instruction)) {
    const Shape shape = isa<LoadInst>(instruction) ? fromOperands(instruction) : Shape::different();
    return shape.kind == Shape::varying ? Shape::different() : shape;
  }
  if (const auto *operation = dyn_cast<BinaryOperator>(&instruction)) {
    if (instruction.getType()->isIntegerTy() && !instruction.getType()->isIntegerTy(1)) return arithmetic(*operation);
    return fromOperands(instruction);
  }
  if (const auto *cast = dyn_cast<CastInst>(&instruction)) return conversion(*cast);
  if (isa<FreezeInst>(instruction)) {
    const Shape shape = of(instruction.getOperand(0));
    return instruction.getType()->isIntegerTy() || instruction.getType()->isPointerTy() ? shape
                                                                                        : fromOperands(instruction);
  }
  if (isa<GetElementPtrInst>(instruction)) return address(instruction);
  if (const auto *compare = dyn_cast<ICmpInst>(&instruction)) {
    const Shape a = of(compare->getOperand(0)), b = of(compare->getOperand(1));
    if (a.kind == Shape::unknown || b.kind == Shape::unknown) return {};
    const bool exact = !a.isAssumed && !b.isAssumed && a.isScalar() && b.isScalar();
    if (compare->isEquality() && exact && a.stride == b.stride) return Shape::uniform();
    if (compare->isEquality() && a.stride == b.stride && !exact)
      return Shape::inRuns(std::min(a.lanesOfRun(), b.lanesOfRun()), 0);
    return fromOperands(instruction);
  }
  if (isa<SelectInst>(instruction)) {
    const Shape condition = of(instruction.getOperand(0));
    if (condition.kind == Shape::unknown) return {};
    const Shape a = of(instruction.getOperand(1)), b = of(instruction.getOperand(2));
    if (a.kind == Shape::unknown || b.kind == Shape::unknown) return {};
    if (!condition.isUniform() || !a.isScalar() || !b.isScalar() || a.stride != b.stride || a.isAssumed ||
        b.isAssumed || !(instruction.getType()->isIntegerTy() || instruction.getType()->isPointerTy())) {
      if (condition.isUniform() && a.isUniform() && b.isUniform()) return Shape::uniform();
      const unsigned run = std::min(a.lanesOfRun(), b.lanesOfRun());
      return Shape::inRuns(
          condition.isUniformInRuns() && a.stride == b.stride ? std::min(run, condition.lanesOfRun()) : 1, a.stride);
    }
    Shape shape = a;
    shape.zeros = std::min(a.zeros, b.zeros);
    shape.limit = std::max(a.limit, b.limit);
    return shape;
  }
  if (const auto *called = dyn_cast<CallBase>(&instruction)) return call(*called);
  return fromOperands(instruction);
}

/// Below a join a value is that of the edge by which a lane came.
Shape Shapes::phi(const Instruction &instruction) const {
  const auto &phi = cast<PHINode>(instruction);
  Shape result;
  for (const Value *value : phi.incoming_values()) {
    const Shape shape = of(value);
    if (shape.kind == Shape::unknown) continue;
    if (shape.isAssumed || shape.lanesOfRun() < 2) return Shape::different();
    if (result.kind == Shape::unknown) {
      result = shape;
      continue;
    }
    if (result.stride != shape.stride) return Shape::different();
    result.zeros = std::min(result.zeros, shape.zeros);
    result.limit = result.limit == noLimit || shape.limit == noLimit ? noLimit : std::max(result.limit, shape.limit);
    if (result.kind == Shape::varying || shape.kind == Shape::varying)
      result = Shape::inRuns(std::min(result.lanesOfRun(), shape.lanesOfRun()), result.stride, 0, result.limit);
  }
  const bool isInteger = phi.getType()->isIntegerTy() || phi.getType()->isPointerTy();
  if (result.stride != 0 && !isInteger) return Shape::different();
  if (result.kind == Shape::unknown || !blocks_.isJoin(phi.getParent())) return result;
  if (const unsigned run = lanesByOneEdge(phi.getParent()); run > 1)
    return Shape::inRuns(std::min(run, result.lanesOfRun()), result.stride, 0, result.limit);
  // All lanes have the same value still if it is one that none of them computes anew in a loop they leave apart.
  const Value *first = phi.getIncomingValue(0);
  for (const Value *value : phi.incoming_values())
    if (value != first) return Shape::different();
  const auto *source = dyn_cast<Instruction>(first);
  const Loop *loop = source ? blocks_.loops.getLoopFor(source->getParent()) : nullptr;
  return loop && !loop->contains(phi.getParent()) ? Shape::different() : result;
}

Shape Shapes::arithmetic(const BinaryOperator &operation) const {
  const Shape a = of(operation.getOperand(0)), b = of(operation.getOperand(1));
  if (a.kind == Shape::unknown || b.kind == Shape::unknown) return {};
  if (!a.isScalar() || !b.isScalar()) return arithmeticInRuns(operation);
  const unsigned bits = bitsOf(operation.getType());
  const auto *constant = dyn_cast<ConstantInt>(operation.getOperand(1));
  Shape result = Shape::uniform();
  result.isAssumed = a.isAssumed || b.isAssumed;
  const auto bound = [&](bool overflow, uint64_t value) {
    result.limit = overflow || a.limit == noLimit || b.limit == noLimit || value > largest(bits) ? noLimit : value;
  };
  uint64_t value;
  switch (operation.getOpcode()) {
    case Instruction::Or:
      if (!cast<PossiblyDisjointInst>(operation).isDisjoint()) break;
      [[fallthrough]];
    case Instruction::Add:
      result.stride = wrapped(a.stride + b.stride, bits);
      result.zeros = std::min(a.zeros, b.zeros);
      bound(__builtin_add_overflow(a.limit, b.limit, &value), value);
      return result;
    case Instruction::Sub:
      result.stride = wrapped(a.stride - b.stride, bits);
      result.zeros = std::min(a.zeros, b.zeros);
      return result;
    case Instruction::Mul:
      if (a.stride == 0 && b.stride == 0) {
        result.zeros = std::min(63u, a.zeros + b.zeros);
        bound(__builtin_mul_overflow(a.limit, b.limit, &value), value);
        return result;
      }
      if (!constant || constant->getBitWidth() > 64) break;
      result.stride = wrapped(int64_t(uint64_t(a.stride) * constant->getZExtValue()), bits);
      result.zeros = std::min(63u, a.zeros + b.zeros);
      bound(__builtin_mul_overflow(a.limit, b.limit, &value), value);
      return result;
    case Instruction::Shl:
      if (!constant || constant->getValue().uge(bits)) break;
      result.stride = wrapped(int64_t(uint64_t(a.stride) << constant->getZExtValue()), bits);
      result.zeros = std::min(63u, a.zeros + unsigned(constant->getZExtValue()));
      bound(__builtin_mul_overflow(a.limit, uint64_t(1) << constant->getZExtValue(), &value), value);
      if (a.limit == noLimit) result.limit = noLimit;
      return result;
    case Instruction::And:
      if (!constant || a.isAssumed || constant->getBitWidth() > 64) break;
      if (isMask_64(constant->getZExtValue()) && shareHighBits(a, countr_one(constant->getZExtValue()))) {
        result.stride = a.stride;
        result.zeros = a.zeros;
        result.limit = constant->getZExtValue();
        return result;
      }
      // Clearing low bits that no other lane reaches into leaves the same value.
      if (isMask_64(~constant->getZExtValue() & largest(bits)) &&
          shareHighBits(a, countr_zero(constant->getZExtValue()))) {
        result.zeros = countr_zero(constant->getZExtValue());
        result.limit = a.limit;
        return result;
      }
      break;
    case Instruction::LShr:
    case Instruction::AShr:
      if (constant && constant->getValue().ult(bits) && !a.isAssumed &&
          shareHighBits(a, unsigned(constant->getZExtValue()))) {
        result.zeros = a.zeros > constant->getZExtValue() ? a.zeros - unsigned(constant->getZExtValue()) : 0;
        if (a.limit != noLimit && a.limit <= largest(bits - 1)) result.limit = a.limit >> constant->getZExtValue();
        return result;
      }
      break;
    case Instruction::UDiv:
    case Instruction::URem:
    default:
      break;
  }
  if (a.isUniform() && b.isUniform()) {
    result = Shape::uniform();
    const auto opcode = operation.getOpcode();
    if (opcode == Instruction::And) result.limit = std::min(a.limit, b.limit);
    if (opcode == Instruction::UDiv || opcode == Instruction::URem || opcode == Instruction::LShr)
      result.limit = a.limit;
    return result;
  }
  return arithmeticInRuns(operation);
}

Shape Shapes::conversion(const CastInst &cast) const {
  const Shape from = of(cast.getOperand(0));
  if (from.kind == Shape::unknown || from.lanesOfRun() == 1) {
    if (from.kind != Shape::strided) return from;
  }
  const Type *source = cast.getSrcTy(), *target = cast.getDestTy();
  const bool isInteger = source->isIntegerTy() && !source->isIntegerTy(1);
  switch (cast.getOpcode()) {
    case Instruction::AddrSpaceCast:
      return from;
    case Instruction::PtrToInt:
    case Instruction::IntToPtr:
      return bitsOf(source) == 64 && bitsOf(target) == 64 ? from : fromOperands(cast);
    case Instruction::Trunc: {
      if (!isInteger || target->isIntegerTy(1)) return fromOperands(cast);
      Shape result = from;
      result.stride = wrapped(from.stride, bitsOf(target));
      if (from.limit > largest(bitsOf(target))) result.limit = noLimit;
      return result;
    }
    case Instruction::ZExt:
    case Instruction::SExt: {
      if (!isInteger) return fromOperands(cast);
      Shape result = from;
      const unsigned bits = bitsOf(source);
      const bool isSigned = cast.getOpcode() == Instruction::SExt;
      const bool isProven = from.limit <= (isSigned ? largest(bits - 1) : largest(bits)) && from.limit != noLimit;
      if (from.stride == 0) {
        if (!isSigned && result.limit == noLimit && !from.isAssumed) result.limit = largest(bits);
        if (isSigned && !isProven) result.limit = noLimit;
        return result;
      }
      if (isProven) return result;
      if (!mayAssume_ || from.kind == Shape::varying) return Shape::different();
      result.isAssumed = true;
      result.limit = noLimit;
      return result;
    }
    default:
      return fromOperands(cast);
  }
}

Shape Shapes::address(const Instruction &instruction) const {
  const auto &gep = cast<GetElementPtrInst>(instruction);
  if (gep.getType()->isVectorTy()) throw Declined{"a vector of addresses"};
  Shape result = of(gep.getPointerOperand());
  if (result.kind == Shape::unknown) return result;
  unsigned run = result.lanesOfRun();
  bool isVarying = result.kind == Shape::varying;
  result.limit = noLimit;
  for (auto step = gep_type_begin(gep); step != gep_type_end(gep); ++step) {
    Shape index = of(step.getOperand());
    if (index.kind == Shape::unknown) return index;
    if (step.isStruct()) continue;
    isVarying |= index.kind == Shape::varying;
    run = std::min(run, index.lanesOfRun());
    const uint64_t size = step.getSequentialElementStride(layout_).getFixedValue();
    // An index of fewer than 64 bits is widened, as a cast would.
    if (bitsOf(step.getOperand()->getType()) < 64 && index.stride != 0 && index.limit == noLimit) {
      if (!mayAssume_) return Shape::different();
      index.isAssumed = true;
      run = 1;
    }
    result.stride += index.stride * int64_t(size);
    result.isAssumed |= index.isAssumed;
    result.zeros = std::min(result.zeros, std::min(63u, index.zeros + unsigned(countr_zero(size ? size : 1))));
  }
  return isVarying ? Shape::inRuns(run, result.stride) : result;
}

Shape Shapes::call(const CallBase &call) const {
  Shape result = Shape::uniform();
  switch (primitiveOf(&call)) {
    case Primitive::lane:
      return {Shape::strided, false, 1, 63, width - 1};
    case Primitive::position: {
      const Shape a = of(call.getArgOperand(0)), b = of(call.getArgOperand(1));
      if (a.kind == Shape::unknown || b.kind == Shape::unknown) return {};
      if (!a.isUniform() || !b.isScalar() || b.isAssumed) return Shape::different();
      const unsigned zeros = mayAssume_ ? std::max(a.zeros, unsigned(Log2_32(width))) : a.zeros;
      return {Shape::strided, false, b.stride, std::min(zeros, b.zeros), largest(32)};
    }
    case Primitive::kernel:
    case Primitive::independent:
    case Primitive::regular:
    case Primitive::group:
    case Primitive::simdgroup:
    case Primitive::active:
    case Primitive::ballot:
    case Primitive::all:
    case Primitive::reduce:
    case Primitive::barrier:
    case Primitive::order:
    case Primitive::turn:
    case Primitive::matrixStore:
    case Primitive::shareStore:
      return result;
    case Primitive::prefix:
    case Primitive::matrixLoad:
    case Primitive::matrixMultiply:
    case Primitive::shareLoad:
      return Shape::different();
    case Primitive::shuffle: {
      const Shape value = of(call.getArgOperand(0)), lane = of(call.getArgOperand(1));
      if (value.kind == Shape::unknown || lane.kind == Shape::unknown) return {};
      if (value.isUniform() || lane.isUniform()) return result;
      return Shape::inRuns(lane.isUniformInRuns() ? lane.lanesOfRun() : 1, 0);
    }
    case Primitive::none:
      break;
  }
  const Function *callee = call.getCalledFunction();
  if (callee && callee->isIntrinsic() && call.getType()->isVoidTy()) return result;
  const bool isPure = call.doesNotAccessMemory() || call.onlyReadsMemory();
  const Shape operands = fromOperands(call);
  return operands.kind != Shape::unknown && !isPure ? Shape::different() : operands;
}

}  // namespace lanes
