/// How a value differs between the lanes of a SIMD group.
///
/// Divergence analysis with shapes (Karrenberg and Hack, CGO 2011): a value is
/// the same for all lanes, grows by a fixed stride from lane to lane, or
/// varies. What does not vary stays a scalar: the value of lane 0.
#pragma once

#include <cstdint>

#include "Blocks.hpp"
#include "Primitives.hpp"
#include "llvm/IR/InstrTypes.h"

namespace lanes {

struct Shape {
  enum Kind : uint8_t { unknown, strided, varying };
  Kind kind = unknown;
  /// The stride holds only where the integers widened on the way do not wrap between lane 0 and lane 31.
  bool isAssumed = false;
  int64_t stride = 0;
  /// Low bits of lane 0's value that are 0.
  unsigned zeros = 0;
  /// An unsigned bound of every lane's value, from which follows that none wraps; all ones: not known.
  uint64_t limit = ~uint64_t(0);
  unsigned run = 1;

  bool isUniform() const { return kind == strided && stride == 0 && !isAssumed; }
  bool isScalar() const { return kind == strided; }
  bool operator==(const Shape &o) const {
    return kind == o.kind && isAssumed == o.isAssumed && stride == o.stride && zeros == o.zeros && limit == o.limit &&
           run == o.run;
  }

  /// How many neighbouring lanes the value is strided in, from multiples of that on: a power of two. 1: none; all
  /// lanes where it is strided as a whole. Of a varying value, `stride` and `zeros` are those of each such run.
  unsigned lanesOfRun() const { return kind == strided ? (isAssumed ? 1 : width) : run; }
  bool isUniformInRuns() const { return lanesOfRun() > 1 && stride == 0; }

  static Shape uniform(unsigned zeros = 0) { return {strided, false, 0, zeros, ~uint64_t(0)}; }
  static Shape different() { return {varying, false, 0, 0, ~uint64_t(0)}; }
  static Shape inRuns(unsigned lanes, int64_t stride, unsigned zeros = 0, uint64_t limit = ~uint64_t(0)) {
    return lanes < 4 ? different() : Shape{varying, false, stride, zeros, limit, lanes};
  }
};

class Shapes {
 public:
  /// `mayAssume`: widened integers may be taken not to wrap, to be checked at run time.
  Shapes(llvm::Function &function, Blocks &blocks, bool mayAssume);

  Shape of(const llvm::Value *value) const;
  /// Lanes of each run that come to `block` together or not at all; 1 where they may part.
  unsigned lanesTogether(const llvm::BasicBlock *block) const { return together_.lookup(block); }

 private:
  Shape compute(const llvm::Instruction &instruction) const;
  Shape arithmetic(const llvm::BinaryOperator &operation) const;
  Shape arithmeticInRuns(const llvm::BinaryOperator &operation) const;
  Shape conversion(const llvm::CastInst &cast) const;
  Shape address(const llvm::Instruction &gep) const;
  Shape phi(const llvm::Instruction &phi) const;
  Shape call(const llvm::CallBase &call) const;
  Shape fromOperands(const llvm::Instruction &instruction) const;
  unsigned lanesByOneEdge(const llvm::BasicBlock *join) const;
  void findTogether();
  void update(const llvm::Instruction &instruction, bool &changed);

  Blocks &blocks_;
  const llvm::DataLayout &layout_;
  bool mayAssume_;
  llvm::DenseMap<const llvm::Value *, Shape> shapes_;
  llvm::DenseMap<const llvm::BasicBlock *, unsigned> together_;
};

}  // namespace lanes
