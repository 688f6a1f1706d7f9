/// Which 8x8 matrices are sums of products, and which of them lie side by side.
///
/// A sum is kept as its eight rows. Two products of one left matrix are one of rows twice as long: a row of the result
/// is then the left matrix's elements, one after another, times rows of the right ones. What is added to them, the phis
/// that carry them around a loop among it, lies side by side as well.
#pragma once

#include <functional>

#include "Blocks.hpp"
#include "llvm/IR/Instructions.h"

namespace lanes {

class Tiles {
 public:
  /// One sum or two neighbours.
  using Group = llvm::SmallVector<llvm::Instruction *, 2>;
  using Predicate = std::function<bool(const llvm::Value *)>;

  /// `mayPair`: a register holds sixteen floats.
  Tiles(const Blocks &blocks, const Predicate &isMatrix, bool mayPair);

  /// The group of a sum; null for what is none.
  const Group *groupOf(const llvm::Value *value) const;
  /// The value without casts between a share and its bits.
  static const llvm::Value *sumOf(const llvm::Value *value);
  static bool isAlias(const llvm::Value *value) { return sumOf(value) != value; }
  /// Whether the product is computed together with one further down.
  bool isDeferred(const llvm::Instruction *product) const;

 private:
  void pairProducts(llvm::BasicBlock *block);
  bool mayLieSideBySide(const llvm::Value *first, const llvm::Value *second) const;
  void pairPhis(llvm::Value *first, llvm::Value *second);
  void makeSingle(llvm::Value *value);
  bool mayWait(const llvm::Value *value, const llvm::Instruction *second) const;
  bool isPaired(const llvm::Value *value) const { return second_.contains(value) || first_.contains(value); }

  Predicate isMatrix_;
  llvm::DenseMap<const llvm::Value *, llvm::Instruction *> second_, first_;  ///< partners
  llvm::DenseMap<const llvm::Value *, Group> groups_;
};

}  // namespace lanes
