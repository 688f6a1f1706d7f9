#include "ElementLoads.hpp"

#include "Blocks.hpp"
#include "LaneForm.hpp"
#include "Shapes.hpp"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;
using namespace PatternMatch;

namespace lanes {
namespace {

constexpr unsigned mostUsers = 64;

int64_t rowOf(unsigned lane) { return (lane / 4 & 4) + lane / 2 % 4; }
int64_t columnOf(unsigned lane) { return (lane / 4 & 2) * 2 + lane % 2 * 2; }

/// Blocks that lanes come to together or not at all: those that no branch on which lanes differ leads into.
DenseSet<const BasicBlock *> blocksOfAll(const Blocks &blocks) {
  DenseSet<const BasicBlock *> result(blocks.order.begin(), blocks.order.end());
  for (const BasicBlock *block : blocks.order) {
    if (!blocks.isDivergent(block)) continue;
    for (const BasicBlock *apart : blocksApart(block, blocks.postDominators, blocks.loops)) result.erase(apart);
  }
  return result;
}

/// Whether a product is made of the value, after arithmetic or none.
bool becomesFactor(const Instruction &value) {
  SmallVector<const Instruction *, 16> todo{&value};
  SmallPtrSet<const Instruction *, 16> seen;
  while (!todo.empty() && seen.size() < mostUsers) {
    const Instruction *next = todo.pop_back_val();
    if (!seen.insert(next).second) continue;
    for (const User *user : next->users()) {
      if (primitiveOf(user) == Primitive::matrixMultiply) return true;
      if (isa<CastInst, BinaryOperator, UnaryOperator, InsertElementInst, ExtractElementInst>(user))
        todo.push_back(cast<Instruction>(user));
    }
  }
  return false;
}

bool isElement(const Type *type) { return type->isFloatTy() || type->isHalfTy() || type->isBFloatTy(); }

class Joiner {
 public:
  explicit Joiner(Function &function)
      : function_(function),
        layout_(function.getParent()->getDataLayout()),
        blocks_(function),
        shapes_(function, blocks_, /*mayAssume=*/true),
        ofAll_(blocksOfAll(blocks_)),
        builder_(function.getContext()) {}

  bool run() {
    bool changed = false;
    for (BasicBlock *block : blocks_.order) {
      if (!ofAll_.contains(block)) continue;
      for (Instruction &instruction : make_early_inc_range(*block)) changed |= visit(instruction);
    }
    for (LoadInst *load : replaced_)
      if (load->use_empty()) load->eraseFromParent();
    return changed;
  }

 private:
  bool visit(Instruction &instruction) {
    if (auto *load = dyn_cast<LoadInst>(&instruction)) {
      const auto *pair = dyn_cast<FixedVectorType>(load->getType());
      return pair && pair->getNumElements() == 2 && isElement(pair->getElementType()) && load->isSimple() &&
             becomesFactor(*load) && join(*load, *load);
    }
    Value *first = nullptr, *second = nullptr;
    if (!match(&instruction, m_InsertElt(m_InsertElt(m_Undef(), m_Value(first), m_Zero()), m_Value(second), m_One())) ||
        cast<FixedVectorType>(instruction.getType())->getNumElements() != 2)
      return false;
    while (isa<CastInst>(first) && isa<CastInst>(second) && first->getType() == second->getType() &&
           cast<CastInst>(first)->getOpcode() == cast<CastInst>(second)->getOpcode()) {
      first = cast<CastInst>(first)->getOperand(0);
      second = cast<CastInst>(second)->getOperand(0);
    }
    auto *a = dyn_cast<LoadInst>(first), *b = dyn_cast<LoadInst>(second);
    return a && b && a != b && a->getType() == b->getType() && isElement(a->getType()) && a->isSimple() &&
           b->isSimple() && becomesFactor(*a) && areTogether(*a, *b) && join(*a, *b);
  }

  /// Whether nothing is written between the two, of which the first comes first.
  static bool areTogether(const LoadInst &a, const LoadInst &b) {
    if (a.getParent() != b.getParent() || !a.comesBefore(&b)) return false;
    for (const Instruction *next = a.getNextNode(); next != &b; next = next->getNextNode())
      if (next->mayWriteToMemory()) return false;
    return true;
  }

  /// `second` is `first` where one load has both elements.
  bool join(LoadInst &first, LoadInst &second) {
    Type *element = first.getType()->getScalarType();
    const int64_t size = int64_t(layout_.getTypeStoreSize(element).getFixedValue());
    LaneForm a, b;
    if (!LaneForm::of(first.getPointerOperand(), shapes_, layout_, a)) return false;
    LaneForm further;
    if (&first == &second) {
      further.numbers.fill(size);
    } else {
      if (!LaneForm::of(second.getPointerOperand(), shapes_, layout_, b)) return false;
      further = b.minus(a);
      if (!further.isSame()) return false;
    }
    builder_.SetInsertPoint(&first);
    for (const bool isTransposed : {false, true}) {
      Value *stride = strideOf(a, further, size, isTransposed);
      if (!stride) continue;
      replace(first, second, stride, isTransposed);
      return true;
    }
    return false;
  }

  /// Elements from row to row, or from column to column; null where the lanes' elements do not lie so.
  Value *strideOf(const LaneForm &address, const LaneForm &further, int64_t size, bool isTransposed) {
    const auto isNone = [](const auto &term) { return term.second[0] == 0; };
    if (!isTransposed && (further.numbers[0] != size || !all_of(further.terms, isNone))) return nullptr;
    // Bytes of one step of what the stride goes with.
    const auto fits = [&](const LaneForm::Counts &counts, int64_t step, int64_t fixed) {
      for (unsigned lane = 0; lane < width; ++lane) {
        const int64_t strided = isTransposed ? columnOf(lane) : rowOf(lane);
        const int64_t packed = isTransposed ? rowOf(lane) : columnOf(lane);
        if (uint64_t(counts[lane]) - uint64_t(counts[0]) !=
            uint64_t(strided) * uint64_t(step) + uint64_t(packed * fixed))
          return false;
      }
      return step % size == 0;
    };
    const unsigned another = 2;  // the lane of row 1, column 0
    const auto stepOf = [&](const LaneForm::Counts &counts, int64_t whereTransposed) {
      return isTransposed ? whereTransposed : int64_t(uint64_t(counts[another]) - uint64_t(counts[0]));
    };
    const int64_t step = stepOf(address.numbers, further.numbers[0]);
    if (!fits(address.numbers, step, size)) return nullptr;
    SmallVector<std::pair<LaneForm::Term, int64_t>, 4> sum;
    if (isTransposed)
      for (const auto &[term, counts] : further.terms)
        if (counts[0] != 0 && !address.terms.contains(term)) return nullptr;
    for (const auto &[term, counts] : address.terms) {
      const auto place = further.terms.find(term);
      const int64_t each = stepOf(counts, place == further.terms.end() ? 0 : place->second[0]);
      if (!fits(counts, each, 0)) return nullptr;
      if (each != 0) sum.push_back({term, each / size});
    }
    Value *stride = builder_.getInt64(uint64_t(step / size));
    for (const auto &[term, count] : sum) {
      if (!term.first->getType()->isIntegerTy()) return nullptr;
      Value *value = term.second == unsigned(LaneForm::Extension::sign)
                         ? builder_.CreateSExt(term.first, builder_.getInt64Ty())
                         : builder_.CreateZExt(term.first, builder_.getInt64Ty());
      stride = builder_.CreateAdd(stride, builder_.CreateMul(value, builder_.getInt64(uint64_t(count))));
    }
    return stride;
  }

  void replace(LoadInst &first, LoadInst &second, Value *stride, bool isTransposed) {
    Type *element = first.getType()->getScalarType();
    const bool isFloat = element->isFloatTy();
    Type *share = isFloat ? builder_.getDoubleTy() : builder_.getFloatTy();
    Type *arguments[] = {builder_.getPtrTy(), builder_.getInt64Ty(), builder_.getInt1Ty()};
    FunctionCallee callee = function_.getParent()->getOrInsertFunction(
        isFloat ? "sm_matrix_load_32" : "sm_matrix_load_16", FunctionType::get(share, arguments, false));
    auto *declared = cast<Function>(callee.getCallee());
    declared->setDoesNotThrow();
    declared->addFnAttr(Attribute::Convergent);
    Value *base = inFirstLane(first.getPointerOperand());
    Value *bits = builder_.CreateCall(callee, {base, stride, builder_.getInt1(isTransposed)});
    Value *pair = builder_.CreateBitCast(bits, FixedVectorType::get(element, 2));
    if (&first == &second) {
      first.replaceAllUsesWith(pair);
    } else {
      first.replaceAllUsesWith(builder_.CreateExtractElement(pair, uint64_t(0)));
      second.replaceAllUsesWith(builder_.CreateExtractElement(pair, uint64_t(1)));
      replaced_.insert(&second);
    }
    replaced_.insert(&first);
  }

  /// What a value of a form is in lane 0.
  Value *inFirstLane(Value *value) {
    LaneForm::Counts known;
    if (knownInLanes(value, known)) return ConstantInt::get(value->getType(), uint64_t(known[0]));
    auto *instruction = dyn_cast<Instruction>(value);
    if (!instruction || shapes_.of(value).isUniform() || isa<PHINode, LoadInst, CallBase>(instruction)) return value;
    Instruction *copy = instruction->clone();
    for (unsigned i = 0; i < copy->getNumOperands(); ++i) copy->setOperand(i, inFirstLane(instruction->getOperand(i)));
    copy->dropPoisonGeneratingFlags();
    copy->dropUnknownNonDebugMetadata();
    return builder_.Insert(copy);
  }

  Function &function_;
  const DataLayout &layout_;
  Blocks blocks_;
  const Shapes shapes_;
  const DenseSet<const BasicBlock *> ofAll_;
  IRBuilder<> builder_;
  SmallPtrSet<LoadInst *, 16> replaced_;
};

}  // namespace

bool joinElementLoads(Function &function) {
  if (none_of(instructions(function),
              [](const Instruction &each) { return primitiveOf(&each) == Primitive::matrixMultiply; }))
    return false;
  return Joiner(function).run();
}

}  // namespace lanes
