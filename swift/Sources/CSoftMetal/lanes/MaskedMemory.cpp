#include "MaskedMemory.hpp"

#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace lanes {
namespace {

/// What a call of one of LLVM's four masked accesses has.
struct MaskedAccess {
  bool isLoad, hasAddresses;  ///< addresses: one a lane, else one for all
  Value *address, *mask, *values;  ///< values: what is stored, or what lanes that are not active get
  Align align;

  FixedVectorType *type() const { return cast<FixedVectorType>(values->getType()); }
};

bool isMaskedAccess(const IntrinsicInst &call, MaskedAccess &access) {
  const Intrinsic::ID id = call.getIntrinsicID();
  const bool isLoad = id == Intrinsic::masked_load || id == Intrinsic::masked_gather;
  if (!isLoad && id != Intrinsic::masked_store && id != Intrinsic::masked_scatter) return false;
  const unsigned first = isLoad ? 0 : 1;
  access = {isLoad,
            id == Intrinsic::masked_gather || id == Intrinsic::masked_scatter,
            call.getArgOperand(first),
            call.getArgOperand(first + 2),
            call.getArgOperand(isLoad ? 3 : 0),
            cast<ConstantInt>(call.getArgOperand(first + 1))->getMaybeAlignValue().valueOrOne()};
  return true;
}

bool isLegal(const MaskedAccess &access, const TargetTransformInfo &target) {
  Type *type = access.values->getType();
  if (!access.hasAddresses)
    return access.isLoad ? target.isLegalMaskedLoad(type, access.align) : target.isLegalMaskedStore(type, access.align);
  auto *vector = cast<VectorType>(type);
  return access.isLoad ? target.isLegalMaskedGather(type, access.align) &&
                             !target.forceScalarizeMaskedGather(vector, access.align)
                       : target.isLegalMaskedScatter(type, access.align) &&
                             !target.forceScalarizeMaskedScatter(vector, access.align);
}

/// `function(address, values, mask as an integer)`, a loop over the bits of the mask.
Function *accessInOrder(Module &module, const Function &user, const MaskedAccess &access) {
  LLVMContext &context = module.getContext();
  FixedVectorType *type = access.type();
  const unsigned count = type->getNumElements();
  std::string name;
  raw_string_ostream(name) << "lanes." << (access.isLoad ? "load" : "store") << (access.hasAddresses ? ".each." : ".")
                           << *type << "." << access.align.value();
  if (Function *known = module.getFunction(name)) return known;
  Type *mask = IntegerType::get(context, count), *result = access.isLoad ? type : Type::getVoidTy(context);
  auto *signature = FunctionType::get(result, {access.address->getType(), type, mask}, false);
  auto *function = Function::Create(signature, GlobalValue::InternalLinkage, name, module);
  function->setAttributes(
      AttributeList().addFnAttributes(context, AttrBuilder(context, user.getAttributes().getFnAttrs())));
  function->addFnAttr(Attribute::NoInline);

  IRBuilder<> builder(BasicBlock::Create(context, "", function));
  const auto boxed = [&](Value *value) {
    AllocaInst *box = builder.CreateAlloca(value->getType());
    builder.CreateStore(value, box);
    return box;
  };
  AllocaInst *values = boxed(function->getArg(1));
  AllocaInst *addresses = access.hasAddresses ? boxed(function->getArg(0)) : nullptr;
  BasicBlock *before = builder.GetInsertBlock(), *loop = BasicBlock::Create(context, "each", function),
             *after = BasicBlock::Create(context, "all", function);
  Value *none = ConstantInt::get(mask, 0), *active = function->getArg(2);
  builder.CreateCondBr(builder.CreateICmpEQ(active, none), after, loop);
  builder.SetInsertPoint(loop);
  PHINode *left = builder.CreatePHI(mask, 2);
  left->addIncoming(active, before);
  Value *lane = builder.CreateBinaryIntrinsic(Intrinsic::cttz, left, builder.getTrue());
  lane = builder.CreateZExtOrTrunc(lane, builder.getInt64Ty());
  Type *element = type->getElementType();
  Value *place = builder.CreateGEP(element, values, lane);
  Value *address = addresses
                       ? builder.CreateLoad(builder.getPtrTy(), builder.CreateGEP(builder.getPtrTy(), addresses, lane))
                       : builder.CreateGEP(element, function->getArg(0), lane);
  const Align align =
      access.hasAddresses ? access.align : commonAlignment(access.align, type->getScalarSizeInBits() / 8);
  Value *from = access.isLoad ? address : place, *to = access.isLoad ? place : address;
  const Align natural(1);
  Value *moved = builder.CreateAlignedLoad(element, from, access.isLoad ? align : natural);
  builder.CreateAlignedStore(moved, to, access.isLoad ? natural : align);
  Value *rest = builder.CreateAnd(left, builder.CreateSub(left, ConstantInt::get(mask, 1)));
  left->addIncoming(rest, loop);
  builder.CreateCondBr(builder.CreateICmpEQ(rest, none), after, loop);
  builder.SetInsertPoint(after);
  if (access.isLoad)
    builder.CreateRet(builder.CreateLoad(type, values));
  else
    builder.CreateRetVoid();
  return function;
}

}  // namespace

PreservedAnalyses CompactMasks::run(Module &module, ModuleAnalysisManager &analyses) {
  auto &functions = analyses.getResult<FunctionAnalysisManagerModuleProxy>(module).getManager();
  SmallVector<IntrinsicInst *, 16> found;
  for (Function &function : module) {
    if (function.isDeclaration()) continue;
    const TargetTransformInfo &target = functions.getResult<TargetIRAnalysis>(function);
    for (Instruction &instruction : instructions(function)) {
      auto *call = dyn_cast<IntrinsicInst>(&instruction);
      MaskedAccess access;
      if (call && isMaskedAccess(*call, access) && !isa<Constant>(access.mask) && !isLegal(access, target))
        found.push_back(call);
    }
  }
  for (IntrinsicInst *call : found) {
    // Anew: one may use what another was.
    MaskedAccess access;
    if (!isMaskedAccess(*call, access)) continue;
    IRBuilder<> builder(call);
    Function *function = accessInOrder(module, *call->getFunction(), access);
    Value *mask = builder.CreateBitCast(access.mask, builder.getIntNTy(access.type()->getNumElements()));
    call->replaceAllUsesWith(builder.CreateCall(function, {access.address, access.values, mask}));
    call->eraseFromParent();
  }
  return found.empty() ? PreservedAnalyses::all() : PreservedAnalyses::none();
}

}  // namespace lanes
