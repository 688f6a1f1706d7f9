/// Loads at an index below 256: of a table that fits into registers, which instructions of AVX-512 pick from in less
/// than half of the time that a gather takes.
#include "Widen.hpp"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Operator.h"
#include "llvm/TargetParser/Triple.h"

using namespace llvm;

namespace lanes {

namespace {

/// Elements of 32 bits in a register, and those that an instruction picks from.
constexpr unsigned ofRegister = 16, ofPair = 2 * ofRegister;
constexpr unsigned mostElements = 256;
/// The smallest page: memory of which a byte can be read can be read whole.
constexpr uint64_t page = 4096;

}  // namespace

/// The table that `pointer` is an element of, for elements of 32 bits. One that is an object of its own has to have as
/// many elements as the index may ask for; of others a part is known to be there.
std::optional<Widener::Table> Widener::tableOf(Value *pointer, const Access &access) {
  const bool isAvx512 = Triple(source_.getParent()->getTargetTriple()).isX86() && registerBits_ == 512;
  if (!isAvx512 || access.size != 4 || access.count != 1) return std::nullopt;
  // In the load's block: what an address of another is made of may not be at hand.
  auto *address = dyn_cast<GetElementPtrInst>(pointer);
  if (!address || address->getParent() != blocks_.order[size_t(index_)]) return std::nullopt;
  Value *base = address->getPointerOperand();
  const Shape shape = shapes_.of(base);
  if (!shape.isUniform() || shape.isAssumed) return std::nullopt;
  const unsigned bits = layout_.getIndexTypeSizeInBits(pointer->getType());
  MapVector<Value *, APInt> indices;
  APInt offset(bits, 0);
  if (!cast<GEPOperator>(address)->collectOffset(layout_, bits, indices, offset)) return std::nullopt;
  if (!offset.isZero() || indices.size() != 1) return std::nullopt;
  const auto &[index, scale] = indices.front();
  if (scale != 4) return std::nullopt;
  const APInt largest = computeKnownBits(index, layout_).getMaxValue();
  if (largest.uge(mostElements)) return std::nullopt;
  const unsigned count = std::max(ofPair, unsigned(PowerOf2Ceil(largest.getZExtValue() + 1)));
  const Value *object = getUnderlyingObject(base);
  const auto *global = dyn_cast<GlobalVariable>(object);
  if (isa<AllocaInst>(object)) return std::nullopt;
  if (global && (global != base ||
                 layout_.getTypeAllocSize(global->getValueType()).getFixedValue() < uint64_t(count) * access.size))
    return std::nullopt;
  return Table{base, index, count};
}

/// What lanes find in `table`, which is read whole where no page ends in it: one of the lanes reads in that page.
Widener::Parts Widener::lookUp(const Table &table, const Access &access, Value *pointer) {
  Value *first = scalar(table.base);
  Type *words = FixedVectorType::get(builder_.getInt32Ty(), ofRegister);
  Value *index = builder_.CreateZExtOrTrunc(vector(table.index), vectorType(builder_.getInt32Ty()));
  Value *pointers = vector(pointer);
  Value *inPage = builder_.CreateAnd(builder_.CreatePtrToInt(first, builder_.getInt64Ty()), page - 1);
  Parts result;
  branch(
      builder_.CreateICmpULE(inPage, builder_.getInt64(page - table.count * access.size)),
      [&] {
        Parts registers, halves;
        for (unsigned i = 0; i < table.count; i += ofRegister)
          registers.push_back(builder_.CreateAlignedLoad(
              words, builder_.CreateConstGEP1_32(builder_.getInt32Ty(), first, i), access.align));
        for (unsigned lane = 0; lane < width; lane += ofRegister) {
          SmallVector<int, ofRegister> places;
          for (unsigned i = 0; i < ofRegister; ++i) places.push_back(int(lane + i));
          Value *of16 = builder_.CreateShuffleVector(index, places);
          Parts picked;
          for (unsigned i = 0; i < registers.size(); i += 2)
            picked.push_back(builder_.CreateIntrinsic(Intrinsic::x86_avx512_vpermi2var_d_512, {},
                                                      {registers[i], of16, registers[i + 1]}));
          // The bits of an index that the instruction does not look at.
          for (uint64_t bit = ofPair; picked.size() > 1; bit *= 2) {
            Value *isSet = builder_.CreateIsNotNull(builder_.CreateAnd(of16, ConstantInt::get(words, bit)));
            for (unsigned i = 0; i + 1 < picked.size(); ++i) {
              picked[i] = builder_.CreateSelect(isSet, picked[i + 1], picked[i]);
              picked.erase(picked.begin() + i + 1);
            }
          }
          halves.push_back(picked[0]);
        }
        return Parts{builder_.CreateBitCast(concatenateVectors(builder_, halves), vectorType(access.element))};
      },
      [&] { return gather(access, pointers, mask_); }, result);
  return result;
}

}  // namespace lanes
