#include "Shares.hpp"

#include "Primitives.hpp"
#include "llvm/IR/GetElementPtrTypeIterator.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;
using namespace PatternMatch;

namespace lanes {
namespace {

constexpr uint64_t elementBytes = 4;
constexpr unsigned deepest = 8;  ///< operations on a pair, one on another

bool isProductOrItsBits(const Value *value) {
  const auto *cast = dyn_cast<BitCastInst>(value);
  return primitiveOf(cast ? cast->getOperand(0) : value) == Primitive::matrixMultiply;
}

bool isMultiplied(const Value &value) {
  return any_of(value.users(), [](const User *user) {
    return primitiveOf(user) == Primitive::matrixMultiply || (isa<BitCastInst>(user) && isMultiplied(*user));
  });
}

/// The accesses to one private array.
class ShareArray {
 public:
  explicit ShareArray(AllocaInst &array)
      : array_(array),
        layout_(array.getModule()->getDataLayout()),
        share_(FixedVectorType::get(Type::getFloatTy(array.getContext()), 2)) {}

  void run() {
    if (!visit(array_, 0) || !holdsProducts_) return;
    for (const auto &[access, pointer, isWhole, index] : accesses_) rewrite(*access, *pointer, isWhole, index);
  }

 private:
  struct Access {
    Instruction *access;
    Instruction *pointer;
    bool isWhole;
    unsigned index;  ///< of the element
  };

  /// Whether all that is done with `pointer`, which lies `offset` bytes into a share, is known.
  bool visit(Instruction &pointer, uint64_t offset) {
    return all_of(pointer.users(), [&](User *user) {
      if (auto *gep = dyn_cast<GetElementPtrInst>(user)) {
        uint64_t further = offset;
        return addOffset(*gep, further) && visit(*gep, further % shareBytes);
      }
      if (auto *load = dyn_cast<LoadInst>(user)) {
        holdsProducts_ |= isMultiplied(*load);
        return load->isSimple() && accept(*load, load->getType(), pointer, offset);
      }
      if (auto *store = dyn_cast<StoreInst>(user)) {
        Value *value = store->getValueOperand();
        holdsProducts_ |= isProductOrItsBits(value);
        return value != &pointer && store->isSimple() && accept(*store, value->getType(), pointer, offset);
      }
      const auto *call = dyn_cast<IntrinsicInst>(user);
      return call && call->isLifetimeStartOrEnd();
    });
  }

  bool addOffset(const GetElementPtrInst &gep, uint64_t &offset) const {
    for (auto step = gep_type_begin(gep); step != gep_type_end(gep); ++step) {
      const auto *known = dyn_cast<ConstantInt>(step.getOperand());
      if (auto *structure = step.getStructTypeOrNull()) {
        offset += layout_.getStructLayout(structure)->getElementOffset(unsigned(known->getZExtValue()));
        continue;
      }
      const uint64_t stride = step.getSequentialElementStride(layout_).getFixedValue();
      if (!known && stride % shareBytes != 0) return false;
      if (known) offset += stride * uint64_t(known->getSExtValue());
    }
    return true;
  }

  bool accept(Instruction &access, const Type *type, Instruction &pointer, uint64_t offset) {
    const bool isWhole = type->isDoubleTy() || type->isIntegerTy(64) || type == share_;
    if (!(isWhole && offset == 0) && !(type->isFloatTy() && offset % elementBytes == 0)) return false;
    accesses_.push_back({&access, &pointer, isWhole, unsigned(offset / elementBytes)});
    return true;
  }

  void rewrite(Instruction &access, Instruction &pointer, bool isWhole, unsigned index) {
    IRBuilder<> builder(&access);
    Value *place = index == 0 ? &pointer : beginning(pointer, builder);
    auto *load = dyn_cast<LoadInst>(&access);
    if (load) {
      Value *value = builder.CreateAlignedLoad(share_, place, Align(elementBytes));
      value = isWhole ? builder.CreateBitCast(value, load->getType()) : builder.CreateExtractElement(value, index);
      load->replaceAllUsesWith(value);
    } else {
      Value *value = cast<StoreInst>(access).getValueOperand();
      value = isWhole ? builder.CreateBitCast(value, share_)
                      : builder.CreateInsertElement(builder.CreateAlignedLoad(share_, place, Align(elementBytes)),
                                                    value, index);
      builder.CreateAlignedStore(value, place, Align(elementBytes));
    }
    access.eraseFromParent();
  }

  /// Where the share begins whose second element `pointer` leads to.
  Value *beginning(Instruction &pointer, IRBuilder<> &builder) {
    auto &gep = cast<GetElementPtrInst>(pointer);
    Type *word = builder.getInt64Ty();
    uint64_t constant = 0;
    Value *place = gep.getPointerOperand();
    for (auto step = gep_type_begin(gep); step != gep_type_end(gep); ++step) {
      const auto *known = dyn_cast<ConstantInt>(step.getOperand());
      if (auto *structure = step.getStructTypeOrNull()) {
        constant += layout_.getStructLayout(structure)->getElementOffset(unsigned(known->getZExtValue()));
        continue;
      }
      const uint64_t stride = step.getSequentialElementStride(layout_).getFixedValue();
      if (known)
        constant += stride * uint64_t(known->getSExtValue());
      else
        place = builder.CreateGEP(ArrayType::get(builder.getInt8Ty(), stride), place,
                                  builder.CreateSExtOrTrunc(step.getOperand(), word));
    }
    constant -= elementBytes;
    return constant == 0 ? place : builder.CreateGEP(builder.getInt8Ty(), place, builder.getInt64(constant));
  }

  AllocaInst &array_;
  const DataLayout &layout_;
  Type *share_;
  SmallVector<Access, 16> accesses_;
  bool holdsProducts_ = false;
};

/// The pair that consists of `first` and `second`; null where none is made. `hasPair`: something in it was one.
Value *pack(Value *first, Value *second, IRBuilder<> &builder, bool &hasPair, unsigned depth) {
  Value *pair = nullptr;
  if (match(first, m_ExtractElt(m_Value(pair), m_Zero())) && match(second, m_ExtractElt(m_Specific(pair), m_One())) &&
      cast<VectorType>(pair->getType())->getElementCount() == ElementCount::getFixed(2)) {
    hasPair = true;
    return pair;
  }
  if (auto *a = dyn_cast<Constant>(first))
    if (auto *b = dyn_cast<Constant>(second)) return ConstantVector::get({a, b});
  if (first == second) return builder.CreateVectorSplat(2, first);
  auto *a = dyn_cast<Instruction>(first), *b = dyn_cast<Instruction>(second);
  if (!a || !b || depth == deepest || a->getOpcode() != b->getOpcode() || a->getType() != b->getType() ||
      !(isa<CastInst>(a) || isa<BinaryOperator>(a) || isa<UnaryOperator>(a)) ||
      a->getOperand(0)->getType() != b->getOperand(0)->getType())
    return nullptr;
  SmallVector<Value *, 2> operands;
  for (unsigned i = 0; i < a->getNumOperands(); ++i) {
    operands.push_back(pack(a->getOperand(i), b->getOperand(i), builder, hasPair, depth + 1));
    if (!operands.back()) return nullptr;
  }
  Value *result;
  if (auto *conversion = dyn_cast<CastInst>(a))
    result = builder.CreateCast(conversion->getOpcode(), operands[0], FixedVectorType::get(a->getType(), 2));
  else if (auto *unary = dyn_cast<UnaryOperator>(a))
    result = builder.CreateUnOp(unary->getOpcode(), operands[0]);
  else
    result = builder.CreateBinOp(cast<BinaryOperator>(a)->getOpcode(), operands[0], operands[1]);
  if (auto *made = dyn_cast<Instruction>(result); made && made->getOpcode() == a->getOpcode()) {
    made->copyIRFlags(a);
    made->andIRFlags(b);
  }
  return result;
}

}  // namespace

void takeWholeShares(Function &function) {
  SmallVector<AllocaInst *, 8> arrays;
  for (Instruction &instruction : function.getEntryBlock())
    if (auto *array = dyn_cast<AllocaInst>(&instruction)) arrays.push_back(array);
  for (AllocaInst *array : arrays) ShareArray(*array).run();
}

void packElements(Function &function) {
  for (Instruction &instruction : make_early_inc_range(instructions(function))) {
    Value *first = nullptr, *second = nullptr;
    if (!match(&instruction, m_InsertElt(m_InsertElt(m_Undef(), m_Value(first), m_Zero()), m_Value(second), m_One())) ||
        cast<VectorType>(instruction.getType())->getElementCount() != ElementCount::getFixed(2))
      continue;
    IRBuilder<> builder(&instruction);
    bool hasPair = false;
    Value *pair = pack(first, second, builder, hasPair, 0);
    if (pair && hasPair) instruction.replaceAllUsesWith(pair);
  }
}

}  // namespace lanes
