/// What an integer or an address is in each lane, as a sum: a number of each lane's own, and for some values that all
/// lanes share, how often each of them is in it.
#pragma once

#include <array>

#include "Primitives.hpp"
#include "Shapes.hpp"
#include "llvm/ADT/MapVector.h"
#include "llvm/IR/IRBuilder.h"

namespace lanes {

class LaneForm {
 public:
  using Counts = std::array<int64_t, width>;
  /// A value that all lanes share, and how it becomes 64 bits.
  enum class Extension : unsigned { none, zero, sign };
  using Term = std::pair<llvm::Value *, unsigned>;

  /// False where the value is no such sum.
  static bool of(llvm::Value *value, const Shapes &shapes, const llvm::DataLayout &layout, LaneForm &form);

  LaneForm minus(const LaneForm &other) const;
  bool isSame() const;  ///< whether all lanes have it alike
  Counts numbers{};
  llvm::MapVector<Term, Counts> terms;

 private:
  enum class Wraps { may, notUnsigned, notSigned };
  bool add(llvm::Value *value, const Counts &factor, Wraps wraps, unsigned depth);
  bool addAddress(llvm::GetElementPtrInst &gep, const Counts &factor, unsigned depth);
  bool addLeaf(llvm::Value *value, const Counts &factor, Wraps wraps);

  const Shapes *shapes_ = nullptr;
  const llvm::DataLayout *layout_ = nullptr;
};

/// What `value`, an integer, is in each lane, where that follows from the lane's number alone.
bool knownInLanes(llvm::Value *value, LaneForm::Counts &numbers, unsigned depth = 0);

}  // namespace lanes
