/// Loads at an index below 256: of a table that fits into registers, which instructions of AVX-512 pick from in less
/// than half of the time that a gather takes.
#include "Widen.hpp"
#include "llvm/Analysis/ValueTracking.h"

using namespace llvm;

namespace lanes {

namespace {

constexpr unsigned mostElements = 256;

}  // namespace

/// Whether all lanes have so many bytes of memory at `base`, as far as is known: a lane's own array is none; a constant
/// has to have as many; of others a part is known to be there.
bool Widener::mayBeTable(const Value *base, uint64_t bytes) const {
  if (!shapes_.of(base).isUniform()) return false;
  const Value *object = getUnderlyingObject(base);
  const auto *global = dyn_cast<GlobalVariable>(object);
  return !isa<AllocaInst>(object) &&
         (!global || (global == base && layout_.getTypeAllocSize(global->getValueType()).getFixedValue() >= bytes));
}

/// The table that `pointer` is an element of, for elements of 32 bits.
std::optional<Widener::Table> Widener::tableOf(Value *pointer, const Access &access) {
  if (!isAvx512() || access.size != 4 || access.count != 1) return std::nullopt;
  const auto address = indexedHere(pointer);
  if (!address || address->scale != 4) return std::nullopt;
  const APInt largest = computeKnownBits(address->index, layout_).getMaxValue();
  if (largest.uge(mostElements)) return std::nullopt;
  const unsigned count = std::max(width, unsigned(PowerOf2Ceil(largest.getZExtValue() + 1)));
  if (!mayBeTable(address->base, count * access.size)) return std::nullopt;
  return Table{address->base, address->index, count};
}

/// What lanes find in `table`, which is read whole where no page ends in it: one of the lanes reads in that page.
Widener::Parts Widener::lookUp(const Table &table, const Access &access, Value *pointer) {
  Value *first = scalar(table.base), *pointers = vector(pointer);
  Value *index = builder_.CreateZExtOrTrunc(vector(table.index), vectorType(builder_.getInt32Ty()));
  Parts result;
  branch(
      isInPage(first, table.count * access.size),
      [&] {
        Parts registers;
        for (unsigned i = 0; i < table.count; i += half) {
          Value *place = builder_.CreateConstGEP1_32(builder_.getInt32Ty(), first, i);
          registers.push_back(builder_.CreateAlignedLoad(vectorType(builder_.getInt32Ty(), half), place, access.align));
        }
        return Parts{builder_.CreateBitCast(permuteAvx512(registers, index), vectorType(access.element))};
      },
      [&] { return gather(access, pointers, mask_); }, result);
  return result;
}

}  // namespace lanes
