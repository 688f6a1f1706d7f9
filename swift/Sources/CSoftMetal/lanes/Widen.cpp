#include "Widen.hpp"

#include "Products.hpp"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace lanes {

Widener::Widener(Function &source, Function &target, Blocks &blocks, const Shapes &shapes, uint64_t registerBits)
    : source_(source),
      target_(target),
      blocks_(blocks),
      shapes_(shapes),
      layout_(source.getParent()->getDataLayout()),
      builder_(source.getContext()),
      registerBits_(registerBits),
      ways_(source, blocks.dominators) {}

void Widener::run() {
  for (unsigned i = 0; i < source_.arg_size(); ++i) current_[source_.getArg(i)] = {target_.getArg(i)};
  std::vector<FlowBlock> flow;
  for (BasicBlock *block : blocks_.order) {
    FlowBlock next;
    for (BasicBlock *successor : successors(block)) next.successors.push_back(blocks_.index[successor]);
    next.isDivergent = blocks_.isDivergent(block);
    flow.push_back(next);
  }
  steps_ = linearize(flow);
  findMatrices();
  tiles_ =
      std::make_unique<Tiles>(blocks_, [this](const Value *value) { return isMatrix(value); }, registerBits_ >= 512);
  makeSlots();
  findByteTables();
  builder_.SetInsertPoint(entry_);
  forgetByteTables();
  builder_.CreateStore(Constant::getAllOnesValue(vectorType(builder_.getInt1Ty())), states_[blocks_.order[0]].arriving);
  builder_.CreateBr(states_[blocks_.order[0]].head);
  for (size_t i = 0; i < blocks_.order.size(); ++i) emitBlock(static_cast<int>(i));
}

AllocaInst *Widener::slot(Type *type, const Twine &name) {
  IRBuilder<> start(entry_, entry_->begin());
  AllocaInst *result = start.CreateAlloca(type, nullptr, name);
  return result;
}

/// Whether the value is kept on the stack. Sums of a group are, by the first of them.
bool Widener::needsSlot(const Instruction &instruction) const {
  const Tiles::Group *group = tiles_->groupOf(&instruction);
  if (!group) return isAskedElsewhere(instruction);
  return &instruction == group->front() &&
         any_of(*group, [this](const Instruction *sum) { return isAskedElsewhere(*sum); });
}

/// Whether another block asks for the value. What an assumed value is made of may be asked for wherever that is.
bool Widener::isAskedElsewhere(const Instruction &instruction) const {
  if (instruction.getType()->isVoidTy()) return false;
  if (isa<PHINode>(instruction)) return true;
  for (const Use &use : instruction.uses()) {
    const auto *user = cast<Instruction>(use.getUser());
    const auto *phi = dyn_cast<PHINode>(user);
    const BasicBlock *block = phi ? phi->getIncomingBlock(use) : user->getParent();
    if (block != instruction.getParent() || shapes_.of(user).isAssumed) return true;
    if (isMatrix(user) && Tiles::isAlias(user) && tiles_->groupOf(user) && isAskedElsewhere(*user)) return true;
  }
  return false;
}

void Widener::makeSlots() {
  LLVMContext &context = source_.getContext();
  entry_ = BasicBlock::Create(context, "lanes", &target_);
  Type *maskType = vectorType(builder_.getInt1Ty());
  for (BasicBlock *block : blocks_.order) {
    Block &state = states_[block];
    state.head = BasicBlock::Create(context, block->getName(), &target_);
    state.arriving = slot(maskType, "arriving");
    for (Instruction &instruction : *block) {
      if (!needsSlot(instruction)) continue;
      for (Type *type : slotTypes(instruction)) slots_[&instruction].push_back(slot(type, "slot"));
    }
  }
  keepFactors();
  for (BasicBlock *block : blocks_.order) {
    BasicBlock *equivalent = blocks_.equivalent(block);
    if (!equivalent) continue;
    states_[block].equivalent = equivalent;
    states_[block].isAwaited = !ways_.flags(*block).empty();
    Block &other = states_[equivalent];
    if (!other.mask) other.mask = slot(maskType, "mask");
  }
  builder_.SetInsertPoint(entry_);
  for (BasicBlock *block : blocks_.order)
    builder_.CreateStore(Constant::getNullValue(maskType), states_[block].arriving);
}

void Widener::emitBlock(int index) {
  BasicBlock *block = blocks_.order[index];
  const Block &state = states_[block];
  const FlowStep &step = steps_[index];
  Type *maskType = vectorType(builder_.getInt1Ty());
  index_ = index;
  for (auto place = current_.begin(); place != current_.end();) {
    const auto here = place++;
    if (!isa<Argument>(here->first)) current_.erase(here);
  }
  loadedRows_.clear();
  for (Boxes *boxes : {&lefts_, &rights_})
    for (Box &box : boxes->all) box.value = nullptr;
  words_.clear();
  inLane_.clear();
  builder_.SetInsertPoint(state.head);
  if (state.equivalent) {
    mask_ = builder_.CreateLoad(maskType, states_[state.equivalent].mask);
    if (state.isAwaited) builder_.CreateStore(Constant::getNullValue(maskType), state.arriving);
  } else {
    mask_ = builder_.CreateLoad(maskType, state.arriving);
    if (step.mayBeEmpty) {
      if (step.skip < 0) throw Declined{"control flow without an end"};
      BasicBlock *body = BasicBlock::Create(source_.getContext(), block->getName() + ".on", &target_);
      builder_.CreateCondBr(any(mask_), body, states_[blocks_.order[step.skip]].head);
      builder_.SetInsertPoint(body);
    }
    builder_.CreateStore(Constant::getNullValue(maskType), state.arriving);
  }
  if (state.mask) builder_.CreateStore(mask_, state.mask);
  for (Instruction &instruction : *block)
    if (!isa<PHINode>(instruction) && !instruction.isTerminator()) widen(instruction);
  forgetByteTablesAfter(*block);
  emitTerminator(block, step);
}

void Widener::emitTerminator(BasicBlock *block, const FlowStep &step) {
  const Instruction *terminator = block->getTerminator();
  if (isa<ReturnInst>(terminator)) {
    builder_.CreateRetVoid();
    return;
  }
  const auto *branch = dyn_cast<BranchInst>(terminator);
  if (!branch) throw Declined{std::string("a terminator: ") + terminator->getOpcodeName()};
  const auto head = [&](int index) { return states_[blocks_.order[index]].head; };
  if (branch->isUnconditional()) {
    edge(block, branch->getSuccessor(0), mask_);
    Instruction *jump = builder_.CreateBr(head(step.targets[0]));
    const Loop *loop = blocks_.loops.getLoopFor(block);
    if (loop && loop->getLoopLatch() == block) keepLoop(*jump, *loop);
    return;
  }
  if (blocks_.isDivergent(block)) {
    Value *condition = vector(branch->getCondition());
    edge(block, branch->getSuccessor(0), both(mask_, condition));
    edge(block, branch->getSuccessor(1), both(mask_, builder_.CreateNot(condition)));
    builder_.CreateBr(head(step.targets[0]));
    return;
  }
  BasicBlock *edges[2];
  for (auto &each : edges) each = BasicBlock::Create(source_.getContext(), "edge", &target_);
  builder_.CreateCondBr(scalar(branch->getCondition()), edges[0], edges[1]);
  const auto known = current_;
  for (unsigned i = 0; i < 2; ++i) {
    current_ = known;
    builder_.SetInsertPoint(edges[i]);
    edge(block, branch->getSuccessor(i), mask_);
    builder_.CreateBr(head(step.targets[i]));
  }
}

/// Products of matrices are long: a loop over them, of which few go into a function, takes long to compile unrolled.
void Widener::keepLoop(Instruction &jump, const Loop &loop) {
  if (!hasProducts(loop)) return;
  LLVMContext &context = source_.getContext();
  MDNode *disable = MDNode::get(context, MDString::get(context, "llvm.loop.unroll.disable"));
  MDNode *name = MDNode::getDistinct(context, {nullptr, disable});
  name->replaceOperandWith(0, name);
  jump.setMetadata(LLVMContext::MD_loop, name);
}

/// What goes along an edge: lanes, and the values of phis. At a join the others' values stay.
void Widener::edge(BasicBlock *from, BasicBlock *to, Value *lanes) {
  const Block &state = states_[to];
  if (state.isAwaited) {
    Value *waiting = builder_.CreateLoad(lanes->getType(), state.arriving);
    builder_.CreateStore(builder_.CreateOr(waiting, lanes), state.arriving);
  }
  SmallVector<std::pair<Value *, AllocaInst *>, 8> stores;
  for (PHINode &phi : to->phis()) {
    Value *incoming = phi.getIncomingValueForBlock(from);
    if (const Tiles::Group *group = tiles_->groupOf(&phi)) {
      if (group->front() != &phi) continue;
      SmallVector<Value *, 2> sums;
      for (const Instruction *sum : *group) sums.push_back(cast<PHINode>(sum)->getIncomingValueForBlock(from));
      const Parts values = rows(sums);
      for (unsigned i = 0; i < values.size(); ++i) stores.push_back({values[i], slots_[&phi][i]});
      continue;
    }
    const auto &slots = slots_[&phi];
    if (shapes_.of(&phi).isScalar()) {
      stores.push_back({scalar(incoming), slots[0]});
      continue;
    }
    for (unsigned i = 0; i < slots.size(); ++i) {
      Value *value = isMatrix(&phi) ? matrix(incoming) : vector(incoming, i);
      if (blocks_.isJoin(to))
        value = builder_.CreateSelect(lanes, value, builder_.CreateLoad(value->getType(), slots[i]));
      stores.push_back({value, slots[i]});
    }
  }
  for (const auto &[value, place] : stores) builder_.CreateStore(value, place);
}

}  // namespace lanes
