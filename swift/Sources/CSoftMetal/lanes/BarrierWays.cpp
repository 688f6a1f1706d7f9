#include "BarrierWays.hpp"

#include <set>

#include "Primitives.hpp"
#include "llvm/Analysis/ConstantFolding.h"
#include "llvm/IR/CFG.h"

using namespace llvm;

namespace lanes {
namespace {

using Known = std::map<const Value *, const ConstantInt *>;

constexpr unsigned deepestCondition = 8;
constexpr size_t mostStates = 1024;  ///< blocks, each with what is known there
constexpr size_t mostValues = 8;     ///< of a flag
constexpr size_t mostNext = 8;       ///< blocks in which conditions are looked for

/// What a value is where others are known, or null. Nothing is counted, so that a loop has no state a turn.
const ConstantInt *constantOf(const Value *value, const Known &known, const DataLayout &layout, unsigned depth = 0) {
  if (const auto *constant = dyn_cast<ConstantInt>(value)) return constant;
  if (const auto place = known.find(value); place != known.end()) return place->second;
  const auto *instruction = dyn_cast<Instruction>(value);
  if (!instruction || depth == deepestCondition) return nullptr;
  const auto operand = [&](unsigned index) {
    return constantOf(instruction->getOperand(index), known, layout, depth + 1);
  };
  if (isa<FreezeInst>(instruction)) return operand(0);
  if (isa<SelectInst>(instruction)) {
    const ConstantInt *condition = operand(0);
    return condition ? operand(condition->isOne() ? 1 : 2) : nullptr;
  }
  const bool isLogic = instruction->isBitwiseLogicOp() && instruction->getType()->isIntegerTy(1);
  if (!isLogic && !isa<ICmpInst, CastInst>(instruction)) return nullptr;
  SmallVector<Constant *, 2> operands;
  for (unsigned i = 0; i < instruction->getNumOperands(); ++i) {
    const ConstantInt *each = operand(i);
    // One is enough for `and` and `or`.
    if (each && isLogic && instruction->getOpcode() == Instruction::And && each->isZero()) return each;
    if (each && isLogic && instruction->getOpcode() == Instruction::Or && each->isOne()) return each;
    operands.push_back(const_cast<ConstantInt *>(each));
  }
  if (is_contained(operands, nullptr)) return nullptr;
  const auto *comparison = dyn_cast<ICmpInst>(instruction);
  return dyn_cast_or_null<ConstantInt>(
      comparison ? ConstantFoldCompareInstOperands(comparison->getPredicate(), operands[0], operands[1], layout)
                 : ConstantFoldInstOperands(const_cast<Instruction *>(instruction), operands, layout));
}

/// What is known behind an edge of a block: how the block's end decided, where more than that asks for the condition,
/// and of what `to` computes anew its integers that are constants along the edge.
Known knownBehind(const BasicBlock *from, unsigned edge, Known known, const DataLayout &layout) {
  const BasicBlock *to = from->getTerminator()->getSuccessor(edge);
  if (const auto *branch = dyn_cast<BranchInst>(from->getTerminator()); branch && branch->isConditional()) {
    const auto *condition = dyn_cast<Instruction>(branch->getCondition());
    if (condition && !condition->hasOneUse())
      known.emplace(condition, ConstantInt::getBool(condition->getContext(), edge == 0));
  }
  Known result;
  for (const auto &[value, constant] : known)
    if (cast<Instruction>(value)->getParent() != to) result.emplace(value, constant);
  for (const PHINode &phi : to->phis()) {
    if (!phi.getType()->isIntegerTy()) continue;
    if (const ConstantInt *constant = constantOf(phi.getIncomingValueForBlock(from), known, layout))
      result.emplace(&phi, constant);
  }
  return result;
}

/// The values of a flag as far as they are seen: both of a bit, and else the constants that it is chosen from.
void collect(const Value *value, SmallVectorImpl<const ConstantInt *> &constants, unsigned depth = 0) {
  if (value->getType()->isIntegerTy(1)) {
    constants.assign({ConstantInt::getFalse(value->getContext()), ConstantInt::getTrue(value->getContext())});
    return;
  }
  const auto *constant = dyn_cast<ConstantInt>(value);
  if (constant && !is_contained(constants, constant)) constants.push_back(constant);
  if (depth == deepestCondition) return;
  if (const auto *choice = dyn_cast<SelectInst>(value))
    for (const Value *each : {choice->getTrueValue(), choice->getFalseValue()}) collect(each, constants, depth + 1);
  if (const auto *phi = dyn_cast<PHINode>(value))
    for (const Value *each : phi->incoming_values()) collect(each, constants, depth + 1);
}

}  // namespace

BarrierWays::BarrierWays(const Function &function, const DominatorTree &dominators) : dominators_(dominators) {
  for (const BasicBlock &block : function)
    if (any_of(block, [](const Instruction &each) { return primitiveOf(&each) == Primitive::barrier; }))
      barriers_.insert(&block);
}

/// What a condition is made of and is known in front of `block`.
void BarrierWays::findKnown(const Value *condition, const BasicBlock &block, ValueSet &found, unsigned depth) const {
  const auto *instruction = dyn_cast<Instruction>(condition);
  if (!instruction || depth == deepestCondition) return;
  const BasicBlock *parent = instruction->getParent();
  if (parent == &block ? isa<PHINode>(instruction) : dominators_.dominates(parent, &block)) {
    if (instruction->getType()->isIntegerTy() && instruction->getType()->getIntegerBitWidth() <= 32)
      found.insert(instruction);
    return;
  }
  if (isa<FreezeInst, SelectInst, ICmpInst, CastInst>(instruction) || instruction->isBitwiseLogicOp())
    for (const Value *operand : instruction->operands()) findKnown(operand, block, found, depth + 1);
}

SmallVector<BarrierWays::Flag, 2> BarrierWays::flags(const BasicBlock &block) const {
  SmallVector<Flag, 2> result;
  if (!reach(block)) return result;
  ValueSet found;
  // In what is next, as far as nothing is computed anew.
  SetVector<const BasicBlock *> next;
  next.insert(&block);
  for (size_t i = 0; i < next.size() && i < mostNext; ++i) {
    const auto *branch = dyn_cast<BranchInst>(next[i]->getTerminator());
    if (branch && branch->isConditional()) findKnown(branch->getCondition(), block, found);
    for (const BasicBlock *successor : successors(next[i]))
      if (!dominators_.dominates(successor, &block)) next.insert(successor);
  }
  for (const Instruction *each : found) {
    SmallVector<const ConstantInt *, 8> values;
    collect(each, values);
    if (values.size() > mostValues) continue;
    Flag flag{each, {}};
    for (const ConstantInt *value : values)
      if (!reach(block, {{each, value}})) flag.apart.push_back(value);
    if (!flag.apart.empty()) result.push_back(flag);
  }
  return result;
}

bool BarrierWays::reach(const BasicBlock &from, const Known &known) const {
  if (barriers_.empty()) return false;
  const DataLayout &layout = from.getModule()->getDataLayout();
  using State = std::pair<const BasicBlock *, Known>;
  std::set<State> seen;
  SmallVector<State, 16> todo{{&from, known}};
  while (!todo.empty()) {
    const State state = todo.pop_back_val();
    if (!seen.insert(state).second) continue;
    const auto &[block, facts] = state;
    if (barriers_.contains(block) || seen.size() > mostStates) return true;
    const auto *branch = dyn_cast<BranchInst>(block->getTerminator());
    const ConstantInt *condition =
        branch && branch->isConditional() ? constantOf(branch->getCondition(), facts, layout) : nullptr;
    for (unsigned edge = 0; edge < succ_size(block); ++edge) {
      if (condition && edge != (condition->isOne() ? 0 : 1)) continue;
      todo.push_back({block->getTerminator()->getSuccessor(edge), knownBehind(block, edge, facts, layout)});
    }
  }
  return false;
}

}  // namespace lanes
