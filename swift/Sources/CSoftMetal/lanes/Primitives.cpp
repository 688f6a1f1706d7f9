#include "Primitives.hpp"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/IR/Function.h"

using namespace llvm;

namespace lanes {

Primitive primitiveOf(const Value *value) {
  const auto *call = dyn_cast<CallBase>(value);
  const Function *callee = call ? call->getCalledFunction() : nullptr;
  if (!callee || !callee->isDeclaration() || !callee->getName().starts_with("sm_")) return Primitive::none;
  return StringSwitch<Primitive>(callee->getName().drop_front(3))
      .Case("kernel", Primitive::kernel)
      .Case("independent", Primitive::independent)
      .Case("regular", Primitive::regular)
      .Case("lane", Primitive::lane)
      .Case("group", Primitive::group)
      .Case("simdgroup", Primitive::simdgroup)
      .Case("position", Primitive::position)
      .Case("active", Primitive::active)
      .Case("ballot", Primitive::ballot)
      .Case("all", Primitive::all)
      .Case("barrier", Primitive::barrier)
      .Case("order", Primitive::order)
      .Case("turn", Primitive::turn)
      .Case("matrix_multiply", Primitive::matrixMultiply)
      .Case("share_load", Primitive::shareLoad)
      .Case("share_store", Primitive::shareStore)
      .StartsWith("shuffle_", Primitive::shuffle)
      .StartsWith("reduce_", Primitive::reduce)
      .StartsWith("prefix_", Primitive::prefix)
      .StartsWith("matrix_load_", Primitive::matrixLoad)
      .StartsWith("matrix_store_", Primitive::matrixStore)
      .Default(Primitive::none);
}

Reduction reductionOf(const CallBase &call) {
  const auto parts = call.getCalledFunction()->getName().drop_front(3).split('_').second.split('_');
  return {parts.first, parts.second};
}

}  // namespace lanes
