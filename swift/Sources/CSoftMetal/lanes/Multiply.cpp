/// Products of 8x8 matrices.
#include "Hide.hpp"
#include "Widen.hpp"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/TargetParser/Triple.h"

using namespace llvm;

namespace lanes {

/// Memory for a left matrix. It is read by an address of which LLVM does not know what it is, lest it see through that
/// and permute registers instead.
Widener::Factors Widener::makeFactors() {
  AllocaInst *place = slot(FixedVectorType::get(builder_.getFloatTy(), elements), "factors");
  place->setAlignment(Align(64));
  return {place, hiddenAddressOf(place)};
}

/// The address of a slot that LLVM leaves in memory, since it does not see whose it is.
Value *Widener::hiddenAddressOf(AllocaInst *place) {
  IRBuilder<> start(entry_);
  if (Instruction *end = entry_->getTerminator()) start.SetInsertPoint(end);
  return hide(start, place);
}

/// A left matrix from another block, as from before a loop, goes to memory there: what has just been stored is read at
/// a lower rate than what lies in the cache.
void Widener::keepFactors() {
  for (const BasicBlock *block : blocks_.order) {
    for (const Instruction &instruction : *block) {
      if (primitiveOf(&instruction) != Primitive::matrixMultiply) continue;
      const auto *left = dyn_cast<Instruction>(instruction.getOperand(0));
      if (left && left->getParent() != block && !isa<PHINode>(left) && isMatrix(left) && !tiles_->groupOf(left) &&
          slots_.contains(left) && !kept_.contains(left))
        kept_[left] = makeFactors();
    }
  }
}

/// `rows(left, right, sums)`: the sums of eight rows with the product of two matrices in memory. Eight rows of 256 bits
/// and what a step needs fill the registers of a processor that has 16; in line LLVM would mix several products and
/// keep all of them on the stack.
Function *Widener::multiplier() {
  Module &module = *target_.getParent();
  constexpr StringRef name = "lanes.multiply";
  if (Function *known = module.getFunction(name)) return known;
  LLVMContext &context = module.getContext();
  Type *pointer = builder_.getPtrTy(), *element = builder_.getFloatTy(), *row = FixedVectorType::get(element, side);
  const SmallVector<Type *, side> rows(side, row);
  SmallVector<Type *, side + 2> types = {pointer, pointer};
  types.append(rows);
  auto *function = Function::Create(FunctionType::get(StructType::get(context, rows), types, false),
                                    GlobalValue::InternalLinkage, name, module);
  // Rows come and go in registers.
  function->setCallingConv(CallingConv::X86_RegCall);
  function->setAttributes(
      AttributeList().addFnAttributes(context, AttrBuilder(context, target_.getAttributes().getFnAttrs())));
  for (const auto kind : {Attribute::MinSize, Attribute::OptimizeForSize}) function->removeFnAttr(kind);
  for (const auto kind : {Attribute::NoInline, Attribute::NoUnwind, Attribute::WillReturn}) function->addFnAttr(kind);
  function->setMemoryEffects(MemoryEffects::argMemOnly(ModRefInfo::Ref));

  IRBuilder<> builder(BasicBlock::Create(context, "", function));
  SmallVector<Value *, side> sums;
  for (int i = 0; i < side; ++i) sums.push_back(function->getArg(unsigned(2 + i)));
  for (int k = 0; k < side; ++k) {
    Value *place = builder.CreateConstGEP1_32(row, function->getArg(1), unsigned(k));
    Value *column = builder.CreateAlignedLoad(row, place, Align(32));
    for (int i = 0; i < side; ++i) {
      Value *factor = builder.CreateConstGEP1_32(element, function->getArg(0), unsigned(i * side + k));
      Value *spread = builder.CreateVectorSplat(side, builder.CreateLoad(element, factor));
      sums[size_t(i)] = builder.CreateIntrinsic(Intrinsic::fma, {row}, {spread, column, sums[size_t(i)]});
    }
  }
  Value *result = PoisonValue::get(function->getReturnType());
  for (unsigned i = 0; i < side; ++i) result = builder.CreateInsertValue(result, sums[i], i);
  builder.CreateRet(result);
  return function;
}

/// A product by a call. Matrices lie in memory of which a block has a few places, so that those on which products
/// follow each other are stored once.
Widener::Parts Widener::multiplyByCall(Value *left, Value *right, const Parts &sums) {
  const auto placeOf = [&](Value *value, Boxes &boxes, const auto &store) -> AllocaInst * {
    for (const Box &box : boxes.all)
      if (box.value == value) return box.place;
    Box &box = boxes.all[boxes.next++ % boxes.all.size()];
    if (!box.place) {
      box.place = slot(FixedVectorType::get(builder_.getFloatTy(), elements), "matrix");
      box.place->setAlignment(Align(64));
    }
    box.value = value;
    store(box.place);
    return box.place;
  };
  Value *factors = kept_.lookup(left).place;
  if (!factors)
    factors =
        placeOf(left, lefts_, [&](AllocaInst *place) { builder_.CreateAlignedStore(matrix(left), place, Align(64)); });
  Value *columns = placeOf(right, rights_, [&](AllocaInst *place) {
    const Parts columns = rows({right});
    for (unsigned i = 0; i < columns.size(); ++i)
      builder_.CreateAlignedStore(columns[i], builder_.CreateConstGEP1_32(columns[i]->getType(), place, i), Align(32));
  });
  SmallVector<Value *, side + 2> arguments = {factors, columns};
  arguments.append(sums.begin(), sums.end());
  CallInst *call = builder_.CreateCall(multiplier(), arguments);
  call->setCallingConv(CallingConv::X86_RegCall);
  Parts result;
  for (unsigned i = 0; i < side; ++i) result.push_back(builder_.CreateExtractValue(call, i));
  return result;
}

/// Products of one left matrix: its elements, each for a whole row, times rows of the right ones. The left matrix goes
/// through memory, from where a processor spreads an element for nothing.
void Widener::multiply(const Tiles::Group &group) {
  SmallVector<Value *, 2> right, sums;
  for (Instruction *product : group) {
    right.push_back(product->getOperand(1));
    sums.push_back(product->getOperand(2));
  }
  Value *left = group.front()->getOperand(0);
  if (Triple(target_.getParent()->getTargetTriple()).isX86() && registerBits_ == 256)
    return set(*group.front(), multiplyByCall(left, right[0], rows(sums)));
  Factors factors = kept_.lookup(left);
  if (!factors.place) {
    if (!factors_.place) factors_ = makeFactors();
    factors = factors_;
    builder_.CreateAlignedStore(matrix(left), factors.place, Align(64));
  }
  const Parts columns = rows(right);
  Parts result = rows(sums);
  Type *element = builder_.getFloatTy();
  const unsigned count = unsigned(side * group.size());
  for (int k = 0; k < side; ++k) {
    for (int i = 0; i < side; ++i) {
      Value *place = builder_.CreateConstGEP1_32(element, factors.hidden, unsigned(i * side + k));
      Value *factor = builder_.CreateVectorSplat(count, builder_.CreateLoad(element, place));
      result[i] = builder_.CreateIntrinsic(Intrinsic::fma, {factor->getType()}, {factor, columns[k], result[i]});
    }
  }
  set(*group.front(), std::move(result));
}

}  // namespace lanes
