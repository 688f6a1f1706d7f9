/// What neighbouring lanes have in common where all 32 do not.
#include <algorithm>

#include "ShapeBits.hpp"
#include "Shapes.hpp"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace lanes {

/// Runs stay together through branches whose conditions each run shares.
void Shapes::findTogether() {
  for (const BasicBlock *block : blocks_.order) together_[block] = width;
  together_[blocks_.order[0]] = mayAssume_ ? width : 1;
  for (bool changed = true; changed;) {
    changed = false;
    for (const BasicBlock *block : blocks_.order) {
      unsigned lanes = together_[block];
      if (const BasicBlock *equivalent = blocks_.equivalent(block)) {
        lanes = together_[equivalent];
      } else {
        for (const BasicBlock *from : predecessors(block)) {
          lanes = std::min(lanes, together_.lookup(from));
          if (!blocks_.isDivergent(from)) continue;
          const Shape condition = of(cast<BranchInst>(from->getTerminator())->getCondition());
          lanes = std::min(lanes, condition.isUniformInRuns() ? condition.lanesOfRun() : 1);
        }
      }
      changed |= lanes != together_[block];
      together_[block] = lanes;
    }
  }
}

/// Lanes of each run that come to `join` by the same edge: as many as share each choice between its edges. 1 where they
/// may come by different ones, or some of them may not be there.
unsigned Shapes::lanesByOneEdge(const BasicBlock *join) const {
  const auto parted = blocks_.partedBefore(join);
  if (!mayAssume_ || parted.empty()) return 1;
  unsigned run = width;
  for (const BasicBlock *from : parted) {
    const Shape condition = of(cast<BranchInst>(from->getTerminator())->getCondition());
    run = std::min(run, condition.isUniformInRuns() ? condition.lanesOfRun() : 1);
  }
  return run;
}

/// What holds of an operation within each run of lanes, the longest for which it does.
Shape Shapes::arithmeticInRuns(const BinaryOperator &operation) const {
  const Shape a = of(operation.getOperand(0)), b = of(operation.getOperand(1));
  const unsigned bits = bitsOf(operation.getType());
  const auto *constant = dyn_cast<ConstantInt>(operation.getOperand(1));
  const uint64_t number = constant && bits <= 64 ? constant->getZExtValue() : 0;
  const auto bound = [&](bool overflow, uint64_t value) {
    return overflow || a.limit == noLimit || b.limit == noLimit || value > largest(bits) ? noLimit : value;
  };
  // Zeros of the first lane of each run.
  const auto zerosIn = [](const Shape &shape, unsigned run) {
    if (shape.stride == 0 || (shape.kind == Shape::varying && run == shape.run)) return shape.zeros;
    return std::min(shape.zeros, unsigned(countr_zero(uint64_t(shape.stride) * run)));
  };
  uint64_t value = 0;
  for (unsigned run = std::min({a.lanesOfRun(), b.lanesOfRun(), width}); run >= 4; run /= 2) {
    const unsigned zeros = zerosIn(a, run), both = std::min(zeros, zerosIn(b, run));
    // Low bits that are 0 in all lanes.
    const unsigned alike = a.stride == 0 ? zeros : std::min(zeros, unsigned(countr_zero(uint64_t(a.stride))));
    const auto shareHighBits = [&](unsigned bit) {
      return a.stride >= 0 && a.stride < int64_t(1) << 40 && bit < 64 &&
             uint64_t(a.stride) * (run - 1) < uint64_t(1) << std::min(bit, zeros);
    };
    switch (operation.getOpcode()) {
      case Instruction::Or:
        if (!cast<PossiblyDisjointInst>(operation).isDisjoint()) break;
        [[fallthrough]];
      case Instruction::Add: {
        const bool overflow = __builtin_add_overflow(a.limit, b.limit, &value);
        return Shape::inRuns(run, wrapped(a.stride + b.stride, bits), both, bound(overflow, value));
      }
      case Instruction::Sub:
        return Shape::inRuns(run, wrapped(a.stride - b.stride, bits), both);
      case Instruction::Mul: {
        const bool overflow = __builtin_mul_overflow(a.limit, b.limit, &value);
        if (a.stride == 0 && b.stride == 0) return Shape::inRuns(run, 0, 0, bound(overflow, value));
        if (!constant || bits > 64) break;
        return Shape::inRuns(run, wrapped(int64_t(uint64_t(a.stride) * number), bits), zeros, bound(overflow, value));
      }
      case Instruction::Shl:
        if (!constant || bits > 64 || number >= bits) break;
        return Shape::inRuns(run, wrapped(int64_t(uint64_t(a.stride) << number), bits),
                             std::min(63u, zeros + unsigned(number)),
                             a.limit == noLimit || a.limit > largest(bits) >> number ? noLimit : a.limit << number);
      case Instruction::And: {
        // The bits in which a run's lanes differ stay, or go. What is 0 in all of them stays so.
        const uint64_t kept = number | ((uint64_t(1) << alike) - 1);
        if (constant && bits <= 64 && shareHighBits(unsigned(countr_one(kept))))
          return Shape::inRuns(run, a.stride, zeros, number);
        if (constant && bits <= 64 && shareHighBits(unsigned(countr_zero(number))))
          return Shape::inRuns(run, 0, 0, number);
        break;
      }
      case Instruction::Xor:
        if (constant && bits <= 64 && shareHighBits(unsigned(countr_zero(number))))
          return Shape::inRuns(run, a.stride, std::min(zeros, unsigned(countr_zero(number))),
                               a.limit == noLimit ? noLimit : largest(unsigned(bit_width(a.limit | number))));
        break;
      case Instruction::LShr:
      case Instruction::AShr:
        if (!constant || bits > 64 || number >= bits) break;
        if (shareHighBits(unsigned(number))) return Shape::inRuns(run, 0);
        // What goes is 0 in all lanes, of numbers that are positive and do not overflow on the way from lane to lane.
        if (a.stride > 0 && alike >= number && a.limit <= largest(bits) >> 1)
          return Shape::inRuns(run, a.stride >> number, zeros - unsigned(number), a.limit >> number);
        break;
      default:
        break;
    }
    if (a.stride == 0 && b.stride == 0) return Shape::inRuns(run, 0);
  }
  return Shape::different();
}

}  // namespace lanes
