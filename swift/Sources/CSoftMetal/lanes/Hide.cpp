#include "Hide.hpp"

#include "llvm/IR/InlineAsm.h"

using namespace llvm;

namespace lanes {

Value *hide(IRBuilder<> &builder, Value *value) {
  Type *type = value->getType();
  auto *nothing = InlineAsm::get(FunctionType::get(type, {type}, false), "", type->isVectorTy() ? "=v,0" : "=r,0",
                                 /*hasSideEffects=*/false);
  return builder.CreateCall(nothing, {value});
}

}  // namespace lanes
