#include "Tiles.hpp"

#include "Primitives.hpp"

using namespace llvm;

namespace lanes {
namespace {

constexpr size_t furthest = 64;  ///< products between two that are paired

bool isShareOfFloats(const Type *type) {
  const auto *vector = dyn_cast<FixedVectorType>(type);
  return type->isDoubleTy() || (vector && vector->getNumElements() == 2 && vector->getElementType()->isFloatTy());
}

bool isProduct(const Value *value) { return primitiveOf(value) == Primitive::matrixMultiply; }

}  // namespace

const Value *Tiles::sumOf(const Value *value) {
  const auto *cast = dyn_cast<BitCastInst>(value);
  while (cast && isShareOfFloats(cast->getSrcTy()) && isShareOfFloats(cast->getDestTy())) {
    value = cast->getOperand(0);
    cast = dyn_cast<BitCastInst>(value);
  }
  return value;
}

Tiles::Tiles(const Blocks &blocks, const Predicate &isMatrix, bool mayPair) : isMatrix_(isMatrix) {
  if (mayPair)
    for (BasicBlock *block : blocks.order) pairProducts(block);
  for (const auto &[second, first] : first_) {
    // One at a time: to insert one may move the other.
    const Group group = {first, second_.lookup(first)};
    groups_[first] = group;
    groups_[second] = group;
  }
  for (BasicBlock *block : blocks.order)
    for (Instruction &instruction : *block)
      if (isProduct(&instruction)) makeSingle(&instruction);
}

const Tiles::Group *Tiles::groupOf(const Value *value) const {
  const auto place = groups_.find(sumOf(value));
  return place == groups_.end() ? nullptr : &place->second;
}

bool Tiles::isDeferred(const Instruction *product) const { return second_.contains(product); }

/// A product that is alone, and the phis that lead to it.
void Tiles::makeSingle(Value *value) {
  auto *sum = dyn_cast<Instruction>(const_cast<Value *>(sumOf(value)));
  if (!sum || groups_.contains(sum) || !isMatrix_(sum)) return;
  auto *phi = dyn_cast<PHINode>(sum);
  if (!phi && !isProduct(sum)) return;
  groups_[sum] = {sum};
  if (!phi) return makeSingle(sum->getOperand(2));
  for (Value *incoming : phi->incoming_values()) makeSingle(incoming);
}

/// The first that comes and the next of the same left matrix; then those are parted that cannot wait for the other.
void Tiles::pairProducts(BasicBlock *block) {
  SmallVector<Instruction *, 64> products;
  for (Instruction &instruction : *block)
    if (isProduct(&instruction)) products.push_back(&instruction);
  for (size_t i = 0; i < products.size(); ++i) {
    Instruction *first = products[i];
    if (isPaired(first)) continue;
    for (size_t k = i + 1; k < std::min(products.size(), i + furthest); ++k) {
      Instruction *second = products[k];
      if (isPaired(second) || second->getOperand(0) != first->getOperand(0) ||
          !mayLieSideBySide(first->getOperand(2), second->getOperand(2)))
        continue;
      second_[first] = second;
      first_[second] = first;
      break;
    }
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (Instruction *first : products) {
      Instruction *second = second_.lookup(first);
      if (!second || mayWait(first, second)) continue;
      second_.erase(first);
      first_.erase(second);
      changed = true;
    }
  }
  for (Instruction *first : products)
    if (Instruction *second = second_.lookup(first)) pairPhis(first->getOperand(2), second->getOperand(2));
}

bool Tiles::mayLieSideBySide(const Value *first, const Value *second) const {
  first = sumOf(first), second = sumOf(second);
  if (second_.lookup(first) == second && isa<Instruction>(first)) return true;
  if (isPaired(first) || isPaired(second)) return false;
  const auto *a = dyn_cast<PHINode>(first), *b = dyn_cast<PHINode>(second);
  return first != second ? !a == !b && (!a || a->getParent() == b->getParent()) : isa<Constant>(first);
}

/// What two neighbours are added to, where it comes around a loop or from two ways.
void Tiles::pairPhis(Value *first, Value *second) {
  auto *a = dyn_cast<PHINode>(const_cast<Value *>(sumOf(first)));
  auto *b = dyn_cast<PHINode>(const_cast<Value *>(sumOf(second)));
  if (!a || !b || a == b || a->getParent() != b->getParent() || !isMatrix_(a) || !isMatrix_(b)) return;
  if (isPaired(a) || isPaired(b)) return;
  second_[a] = b;
  first_[b] = a;
  for (BasicBlock *from : a->blocks()) pairPhis(a->getIncomingValueForBlock(from), b->getIncomingValueForBlock(from));
}

/// Whether nothing asks for `value` before `second`, but products that wait for longer themselves.
bool Tiles::mayWait(const Value *value, const Instruction *second) const {
  for (const User *user : value->users()) {
    const auto *instruction = cast<Instruction>(user);
    if (isa<PHINode>(instruction) || instruction->getParent() != second->getParent() ||
        second->comesBefore(instruction))
      continue;
    if (isAlias(instruction)) {
      if (!mayWait(instruction, second)) return false;
      continue;
    }
    const Instruction *other = isProduct(instruction) ? second_.lookup(instruction) : nullptr;
    if (!other || !second->comesBefore(other)) return false;
  }
  return true;
}

}  // namespace lanes
