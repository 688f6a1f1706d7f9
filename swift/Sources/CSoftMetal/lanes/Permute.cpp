/// Permutations of lanes that are known at run time only.
#include "Widen.hpp"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/TargetParser/Triple.h"

using namespace llvm;
using namespace PatternMatch;

namespace lanes {

namespace {

/// Elements of 32 bits in a register of AVX2.
constexpr unsigned eight = 8;

/// An index without masks that leave its low bits, those of `bits`, as they are: permutations look at no others.
Value *withoutMasks(Value *index, uint64_t bits) {
  Value *whole = nullptr;
  const APInt *kept = nullptr;
  while (match(index, m_And(m_Value(whole), m_APInt(kept))) && (kept->getZExtValue() & bits) == bits) index = whole;
  return index;
}

/// Whether 32 elements are those of the first `period` lanes again and again.
Value *repeats(IRBuilder<> &builder, Value *vector, unsigned period) {
  SmallVector<int, width> places;
  for (unsigned i = 0; i < width; ++i) places.push_back(int(i % period));
  return builder.CreateAndReduce(builder.CreateICmpEQ(vector, builder.CreateShuffleVector(vector, places)));
}

}  // namespace

/// Registers of 512 bits on x86 are those of AVX-512.
bool Widener::isAvx512() const {
  return Triple(source_.getParent()->getTargetTriple()).isX86() && registerBits_ == 512;
}

/// Whether code is made for processors with a feature, "+avx2" say.
bool Widener::hasFeature(StringRef name) const {
  SmallVector<StringRef, 64> features;
  source_.getFnAttribute("target-features").getValueAsString().split(features, ',');
  return is_contained(features, name);
}

/// An instruction picks 16 elements out of two registers; the bits of an index that it does not look at choose among
/// pairs of `registers`. Lanes of one register after those of the other: both at once would not leave room for a table.
Value *Widener::permuteAvx512(const Parts &registers, Value *indices) {
  indices = withoutMasks(indices, registers.size() * half - 1);
  Parts halves;
  for (unsigned first = 0; first < width; first += half) {
    Value *index = partOf(indices, first, half);
    Parts picked;
    for (unsigned i = 0; i < registers.size(); i += 2)
      picked.push_back(builder_.CreateIntrinsic(Intrinsic::x86_avx512_vpermi2var_d_512, {},
                                                {registers[i], index, registers[i + 1]}));
    for (uint64_t bit = width; picked.size() > 1; bit *= 2) {
      Value *isSet = builder_.CreateIsNotNull(builder_.CreateAnd(index, ConstantInt::get(index->getType(), bit)));
      for (unsigned i = 0; i + 1 < picked.size(); ++i) {
        picked[i] = builder_.CreateSelect(isSet, picked[i + 1], picked[i]);
        picked.erase(picked.begin() + i + 1);
      }
    }
    halves.push_back(picked[0]);
  }
  return concatenateVectors(builder_, halves);
}

/// An instruction picks 8 elements out of 8, by the low bits of an index; its higher bits choose among `sources`
/// registers, 1, 2 or 4, by their place in the sign, which is what a choice between two registers looks at.
Value *Widener::permuteAvx2(Value *from, Value *indices, unsigned sources) {
  Type *floats = FixedVectorType::get(builder_.getFloatTy(), eight);
  Parts quarters;
  for (unsigned first = 0; first < width; first += eight) {
    Value *index = partOf(indices, first, eight);
    Parts picked;
    for (unsigned source = 0; source < sources; ++source)
      picked.push_back(
          builder_.CreateIntrinsic(Intrinsic::x86_avx2_permd, {}, {partOf(from, source * eight, eight), index}));
    for (uint64_t bit = 3; picked.size() > 1; ++bit) {
      Value *sign = builder_.CreateBitCast(builder_.CreateShl(index, 31 - bit), floats);
      for (unsigned i = 0; i + 1 < picked.size(); ++i) {
        Value *low = builder_.CreateBitCast(picked[i], floats), *high = builder_.CreateBitCast(picked[i + 1], floats);
        Value *chosen = builder_.CreateIntrinsic(Intrinsic::x86_avx_blendv_ps_256, {}, {low, high, sign});
        picked[i] = builder_.CreateBitCast(chosen, index->getType());
        picked.erase(picked.begin() + i + 1);
      }
    }
    quarters.push_back(picked[0]);
  }
  return concatenateVectors(builder_, quarters);
}

/// The same where a loop finds one table again and again: one of few numbers repeats itself over the lanes, and takes
/// fewer registers.
Value *Widener::permuteTableAvx2(Value *from, Value *indices) {
  Value *is16 = repeats(builder_, from, 2 * eight), *is8 = repeats(builder_, from, eight);
  Parts result;
  branch(
      is16,
      [&] {
        Parts few;
        branch(
            is8, [&] { return Parts{permuteAvx2(from, indices, 1)}; },
            [&] { return Parts{permuteAvx2(from, indices, 2)}; }, few);
        return few;
      },
      [&] { return Parts{permuteAvx2(from, indices, 4)}; }, result);
  return result[0];
}

/// Lane l gets what lane `indices[l]`, below 32, has. LLVM has no operation for it: on x86 there are instructions for
/// 32 bits, else all go through memory. `isTable`: a loop asks for the same lanes' values in each turn.
Value *Widener::permute(Value *from, Value *indices, bool isTable) {
  Type *type = from->getType(), *element = type->getScalarType();
  if (element->getScalarSizeInBits() == 32 && (isAvx512() || hasFeature("+avx2"))) {
    Type *words = vectorType(builder_.getInt32Ty());
    Value *bits = builder_.CreateBitCast(from, words);
    indices = builder_.CreateZExtOrTrunc(withoutMasks(indices, width - 1), words);
    Value *result = isAvx512() ? permuteAvx512({partOf(bits, 0, half), partOf(bits, half, half)}, indices)
                    : isTable  ? permuteTableAvx2(bits, indices)
                               : permuteAvx2(bits, indices, width / eight);
    return builder_.CreateBitCast(result, type);
  }
  AllocaInst *box = slot(type, "shuffle");
  builder_.CreateStore(from, box);
  const unsigned size = element->getScalarSizeInBits() / 8;
  Value *places = builder_.CreateGEP(element, box, builder_.CreateZExt(indices, vectorType(builder_.getInt64Ty())));
  return builder_.CreateMaskedGather(
      type, places, Align(size), Constant::getAllOnesValue(vectorType(builder_.getInt1Ty())), PoisonValue::get(type));
}

}  // namespace lanes
