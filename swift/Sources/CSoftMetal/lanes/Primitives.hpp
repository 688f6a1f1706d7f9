/// What a front end hands to the pass. This is the whole contract.
///
/// A kernel is a function `void (ptr group, i32 simdgroup)` that calls
/// `sm_kernel`. It is written for one thread; the pass makes it run a SIMD
/// group. Arguments are the same for all lanes. Its body calls, besides
/// functions that can be inlined and mathematical functions of the C library:
///
///   void  sm_kernel(i32 lanes, i1 regular)
///                                  first in the function: how many lanes exist (from lane 0 on; 32 or more: all),
///                                  and whether they are all there and lie in one row of the threadgroup,
///                                  from a multiple of 32 on; the constant true has no other version made
///   void  sm_independent()         anywhere: threads neither wait for each other nor exchange anything, so that
///                                  lanes may access memory before others do (ByRegister)
///   i1    sm_regular()             whether `regular` held; a constant in each of the two versions that are made
///   i32   sm_lane()                0 to 31
///   ptr   sm_group(), i32 sm_simdgroup()
///                                  the kernel's arguments
///   i32   sm_position(i32 a, i32 b) a + b, which wraps in no lane; where `regular` holds, a is a multiple of 32
///   i32   sm_active()              the active lanes, a bit each
///   i32   sm_ballot(i1)            the active lanes where it holds
///   iN    sm_shuffle_N(iN, i32)    N = 8, 16, 32, 64: the value that a lane has (modulo 32)
///   T     sm_reduce_OP_T(T)        OP = add mul and or xor min max over the active lanes;
///                                  T = i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32 (and, or, xor: no float)
///   T     sm_prefix_OP_T(T, i1)    OP = add mul: over the active lanes before this one, and with it where the
///                                  second argument holds
///   void  sm_barrier(ptr wait, ptr diverged, ptr group)
///                                  calls wait(group) once for the SIMD group, or diverged(group), which does not
///                                  return, where lanes wait elsewhere that could come to a barrier too
///   void  sm_order()               orders the lanes' memory accesses
///   void  sm_turn()                in a loop, where each turn ends: lanes that leave the loop do what is before it as
///                                  part of the turn
///   double sm_matrix_load_32(ptr, i64 stride, i1 transposed), float sm_matrix_load_16(...)
///   void  sm_matrix_store_32(double, ptr, i64 stride, i1 transposed), sm_matrix_store_16(float, ...)
///   double sm_matrix_multiply(double a, double b, double c)
///                                  a * b + c in float, each element's products in order, fused
///
/// A lane's share of an 8x8 matrix is two neighbours of a row: two floats in
/// the bits of a double, two 16-bit values in those of a float. Lane l holds
/// row (l/4 & 4) + l/2 % 4, columns (l/4 & 2) * 2 + l % 2 * 2 and the next.
///
/// Functions that involve several lanes are declared `convergent`. The result
/// of each is defined in this order of lanes: sums and products combine lane l
/// with l + 16, then + 8, 4, 2, 1, an inactive lane counting as the neutral
/// element; minimum and maximum go through the active lanes in order, and a
/// NaN loses against a number; prefixes go through the lanes in order.
#pragma once

#include <string>

#include "llvm/IR/InstrTypes.h"

namespace lanes {

constexpr unsigned width = 32;
/// Bytes from row to row of a matrix in private memory, where two lie side by side.
constexpr unsigned privateRowBytes = 64;
constexpr uint64_t shareBytes = 8;  ///< of a lane's two elements of a matrix of floats

enum class Primitive {
  none,
  kernel,
  independent,
  regular,
  lane,
  group,
  simdgroup,
  position,
  active,
  ballot,
  all,  ///< `sm_all(i1)`, of the pass's own making: whether it holds in all active lanes
  shuffle,
  reduce,
  prefix,
  barrier,
  order,
  turn,
  matrixLoad,
  matrixStore,
  matrixMultiply,
  shareLoad,   ///< `<2 x float> sm_share_load(ptr)`, likewise: the lane's share of a matrix in private memory
  shareStore,  ///< `sm_share_store(<2 x float>, ptr)`
};

Primitive primitiveOf(const llvm::Value *value);

/// Of `sm_reduce_OP_T`: OP and T.
struct Reduction {
  llvm::StringRef operation, type;
  bool isSigned() const { return type.starts_with("i"); }
};
Reduction reductionOf(const llvm::CallBase &call);

/// Thrown where a kernel is beyond the pass; the module has not been changed for it then.
struct Declined {
  std::string reason;
};

}  // namespace lanes
