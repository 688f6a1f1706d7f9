/// Permutations of lanes that are known at run time only.
#include "Widen.hpp"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/IR/Module.h"
#include "llvm/TargetParser/Triple.h"

using namespace llvm;

namespace lanes {

/// Lane l gets what lane `indices[l]`, below 32, has. LLVM has no operation for it: on x86 from AVX-512 on an
/// instruction picks 16 elements of 32 bits out of 32, else all go through memory.
Value *Widener::permute(Value *from, Value *indices) {
  Type *type = from->getType(), *element = type->getScalarType();
  // Registers of 512 bits on x86 are those of AVX-512.
  const bool isAvx512 = Triple(source_.getParent()->getTargetTriple()).isX86() && registerBits_ == 512;
  if (isAvx512 && element->getScalarSizeInBits() == 32) {
    Type *words = vectorType(builder_.getInt32Ty());
    Value *bits = builder_.CreateBitCast(from, words);
    indices = builder_.CreateZExtOrTrunc(indices, words);
    constexpr unsigned half = width / 2;
    SmallVector<int, width> places[2];
    for (unsigned i = 0; i < width; ++i) places[i / half].push_back(int(i));
    const auto part = [&](Value *vector, unsigned i) { return builder_.CreateShuffleVector(vector, places[i]); };
    Value *low = part(bits, 0), *high = part(bits, 1);
    Parts halves;
    for (unsigned i = 0; i < 2; ++i)
      halves.push_back(
          builder_.CreateIntrinsic(Intrinsic::x86_avx512_vpermi2var_d_512, {}, {low, part(indices, i), high}));
    return builder_.CreateBitCast(concatenateVectors(builder_, halves), type);
  }
  AllocaInst *box = slot(type, "shuffle");
  builder_.CreateStore(from, box);
  const unsigned size = element->getScalarSizeInBits() / 8;
  Value *places = builder_.CreateGEP(element, box, builder_.CreateZExt(indices, vectorType(builder_.getInt64Ty())));
  return builder_.CreateMaskedGather(
      type, places, Align(size), Constant::getAllOnesValue(vectorType(builder_.getInt1Ty())), PoisonValue::get(type));
}

}  // namespace lanes
