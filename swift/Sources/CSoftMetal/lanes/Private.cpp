#include "Private.hpp"

#include "Primitives.hpp"
#include "llvm/IR/GetElementPtrTypeIterator.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/LowerMemIntrinsics.h"
#include "llvm/Analysis/TargetTransformInfo.h"

using namespace llvm;

namespace lanes {
namespace {

constexpr uint64_t mostBytes = 2 << 20;  ///< for the private memory of a SIMD group

class Division {
 public:
  explicit Division(AllocaInst &own) : own_(own), layout_(own.getModule()->getDataLayout()), builder_(&own) {}

  void run() {
    const auto *count = dyn_cast<ConstantInt>(own_.getArraySize());
    if (!count) throw Declined{"a private array of unknown size"};
    size_ = layout_.getTypeAllocSize(own_.getAllocatedType()).getFixedValue() * count->getZExtValue();
    bool isMultiplied = false;
    if (size_ > shareBytes && holdsShares(own_, isMultiplied) && isMultiplied) return divideShares();
    sideBySide_ = size_ > 0 && visit(own_) && unit_ != 0 && size_ % unit_ == 0 &&
                  all_of(offsets_, [&](uint64_t offset) { return offset % unit_ == 0; });
    const uint64_t each = sideBySide_ ? size_ : alignTo(std::max<uint64_t>(size_, 1), own_.getAlign());
    if (each * width > mostBytes) throw Declined{"private arrays of more than 64 KiB a thread"};
    Function *lane =
        cast<Function>(own_.getModule()->getOrInsertFunction("sm_lane", builder_.getInt32Ty()).getCallee());
    builder_.SetInsertPoint(&own_);
    AllocaInst *all = builder_.CreateAlloca(ArrayType::get(builder_.getInt8Ty(), each * width), nullptr, "private");
    all->setAlignment(std::max(own_.getAlign(), Align(64)));
    Value *place = builder_.CreateMul(builder_.CreateZExt(builder_.CreateCall(lane), builder_.getInt64Ty()),
                                      builder_.getInt64(sideBySide_ ? unit_ : each));
    Value *root = builder_.CreateGEP(builder_.getInt8Ty(), all, place);
    if (sideBySide_)
      rewrite(own_, root);
    else
      own_.replaceAllUsesWith(root);
    own_.eraseFromParent();
  }

 private:
  /// Whether all that is done with `pointer` are accesses to whole shares of matrices of floats; `isMultiplied`: to
  /// what is multiplied, or a product.
  bool holdsShares(Instruction &pointer, bool &isMultiplied) {
    const auto isShare = [this](Type *type) {
      const auto *vector = dyn_cast<FixedVectorType>(type);
      return type->isDoubleTy() || (vector && vector->getElementType()->isFloatTy() &&
                                    layout_.getTypeStoreSize(type).getFixedValue() == shareBytes);
    };
    const auto isProduct = [](const Value *value) {
      const auto *cast = dyn_cast<BitCastInst>(value);
      return primitiveOf(cast ? cast->getOperand(0) : value) == Primitive::matrixMultiply;
    };
    const auto isFactor = [](const User *user) { return primitiveOf(user) == Primitive::matrixMultiply; };
    return all_of(pointer.users(), [&](User *user) {
      if (auto *gep = dyn_cast<GetElementPtrInst>(user)) {
        for (auto step = gep_type_begin(gep); step != gep_type_end(gep); ++step) {
          const auto *known = dyn_cast<ConstantInt>(step.getOperand());
          if (auto *structure = step.getStructTypeOrNull()) {
            const auto offset = layout_.getStructLayout(structure)->getElementOffset(unsigned(known->getZExtValue()));
            if (offset % shareBytes != 0) return false;
            continue;
          }
          const uint64_t stride = step.getSequentialElementStride(layout_).getFixedValue();
          if ((known ? stride * known->getZExtValue() : stride) % shareBytes != 0) return false;
        }
        return holdsShares(*gep, isMultiplied);
      }
      if (auto *load = dyn_cast<LoadInst>(user)) {
        isMultiplied |= any_of(load->users(), [&](const User *loaded) {
          return isFactor(loaded) || (isa<BitCastInst>(loaded) && any_of(loaded->users(), isFactor));
        });
        return load->isSimple() && isShare(load->getType());
      }
      if (auto *store = dyn_cast<StoreInst>(user)) {
        isMultiplied |= isProduct(store->getValueOperand());
        return store->getValueOperand() != &pointer && store->isSimple() &&
               isShare(store->getValueOperand()->getType());
      }
      const auto *call = dyn_cast<IntrinsicInst>(user);
      return call && call->isLifetimeStartOrEnd();
    });
  }

  /// Matrices, each in rows as anywhere in memory: two side by side, since neighbours are multiplied together.
  void divideShares() {
    const uint64_t each = 8 * privateRowBytes * divideCeil(size_, 2 * shareBytes);
    if (each > mostBytes) throw Declined{"private arrays of more than 64 KiB a thread"};
    AllocaInst *all = builder_.CreateAlloca(ArrayType::get(builder_.getInt8Ty(), each), nullptr, "matrices");
    all->setAlignment(Align(privateRowBytes));
    rewriteShares(own_, all, builder_.getInt64(0));
    own_.eraseFromParent();
  }

  /// Moves all that is done with `pointer`, `offset` bytes into what a thread had.
  void rewriteShares(Instruction &pointer, Value *all, Value *offset) {
    LLVMContext &context = pointer.getContext();
    Type *share = FixedVectorType::get(builder_.getFloatTy(), 2), *address = builder_.getPtrTy();
    const auto primitive = [&](StringRef name, Type *result, ArrayRef<Type *> arguments, MemoryEffects effects) {
      FunctionCallee callee = own_.getModule()->getOrInsertFunction(name, FunctionType::get(result, arguments, false));
      auto *function = cast<Function>(callee.getCallee());
      function->setMemoryEffects(effects);
      function->setDoesNotThrow();
      function->addFnAttr(Attribute::WillReturn);
      return callee;
    };
    for (User *user : make_early_inc_range(pointer.users())) {
      auto *instruction = cast<Instruction>(user);
      builder_.SetInsertPoint(instruction);
      if (auto *gep = dyn_cast<GetElementPtrInst>(instruction)) {
        Value *further = scaledOffset(*gep, 1);
        rewriteShares(*gep, all, builder_.CreateAdd(offset, further));
      } else if (isa<LoadInst, StoreInst>(instruction)) {
        Value *index = builder_.CreateLShr(offset, Log2_64(shareBytes));
        Value *place = builder_.CreateAdd(
            builder_.CreateMul(builder_.CreateLShr(index, 1), builder_.getInt64(8 * privateRowBytes)),
            builder_.CreateMul(builder_.CreateAnd(index, 1), builder_.getInt64(privateRowBytes / 2)));
        place = builder_.CreateGEP(builder_.getInt8Ty(), all, place);
        if (auto *load = dyn_cast<LoadInst>(instruction)) {
          const auto callee = primitive("sm_share_load", share, {address}, MemoryEffects::argMemOnly(ModRefInfo::Ref));
          load->replaceAllUsesWith(builder_.CreateBitCast(builder_.CreateCall(callee, {place}), load->getType()));
        } else {
          const auto callee = primitive("sm_share_store", Type::getVoidTy(context), {share, address},
                                        MemoryEffects::argMemOnly(ModRefInfo::ModRef));
          Value *value = cast<StoreInst>(instruction)->getValueOperand();
          builder_.CreateCall(callee, {builder_.CreateBitCast(value, share), place});
        }
      }
      instruction->eraseFromParent();
    }
  }

  /// Whether all that is done with `pointer` are accesses of one size.
  bool visit(Instruction &pointer) {
    for (User *user : pointer.users()) {
      if (auto *gep = dyn_cast<GetElementPtrInst>(user)) {
        for (auto step = gep_type_begin(gep); step != gep_type_end(gep); ++step) {
          if (auto *structure = step.getStructTypeOrNull()) {
            const auto field = cast<ConstantInt>(step.getOperand())->getZExtValue();
            offsets_.push_back(layout_.getStructLayout(structure)->getElementOffset(unsigned(field)));
          } else if (const auto *known = dyn_cast<ConstantInt>(step.getOperand())) {
            offsets_.push_back(uint64_t(known->getSExtValue()) *
                               step.getSequentialElementStride(layout_).getFixedValue());
          } else {
            offsets_.push_back(step.getSequentialElementStride(layout_).getFixedValue());
          }
        }
        if (!visit(*gep)) return false;
      } else if (auto *load = dyn_cast<LoadInst>(user)) {
        if (!load->isSimple() || !accept(load->getType())) return false;
      } else if (auto *store = dyn_cast<StoreInst>(user)) {
        if (store->getValueOperand() == &pointer || !store->isSimple() || !accept(store->getValueOperand()->getType()))
          return false;
      } else {
        const auto *call = dyn_cast<IntrinsicInst>(user);
        if (!call || !call->isLifetimeStartOrEnd()) return false;
      }
    }
    return true;
  }

  bool accept(Type *type) {
    const uint64_t size = layout_.getTypeStoreSize(type->getScalarType()).getFixedValue();
    if (type->isStructTy() || type->isArrayTy() || type->getScalarType()->isIntegerTy(1)) return false;
    if (size != layout_.getTypeAllocSize(type->getScalarType()).getFixedValue()) return false;
    // Wider accesses are taken apart.
    unit_ = unit_ == 0 ? size : std::min(unit_, size);
    return isPowerOf2_64(size);
  }

  /// What an access of `type` is taken apart into: elements of the unit's size.
  FixedVectorType *pieces(Type *type) {
    Type *element = type->getScalarType();
    const uint64_t size = layout_.getTypeStoreSize(element).getFixedValue();
    const auto *vector = dyn_cast<FixedVectorType>(type);
    const uint64_t count = (vector ? vector->getNumElements() : 1) * size / unit_;
    // The share of a matrix is two floats.
    Type *piece = size == unit_                         ? element
                  : element->isDoubleTy() && unit_ == 4 ? builder_.getFloatTy()
                                                        : builder_.getIntNTy(unsigned(unit_ * 8));
    return FixedVectorType::get(piece, unsigned(count));
  }

  /// Moves all that is done with `pointer` to `place`, where every offset counts 32 times.
  void rewrite(Instruction &pointer, Value *place) {
    for (User *user : make_early_inc_range(pointer.users())) {
      auto *instruction = cast<Instruction>(user);
      builder_.SetInsertPoint(instruction);
      if (auto *gep = dyn_cast<GetElementPtrInst>(instruction)) {
        rewrite(*gep, builder_.CreateGEP(builder_.getInt8Ty(), place, scaledOffset(*gep, width)));
      } else if (auto *load = dyn_cast<LoadInst>(instruction)) {
        load->replaceAllUsesWith(divide(*load, place));
      } else if (auto *store = dyn_cast<StoreInst>(instruction)) {
        divide(*store, place);
      }
      instruction->eraseFromParent();
    }
  }

  /// The bytes that `gep` adds, `factor` times.
  Value *scaledOffset(GetElementPtrInst &gep, uint64_t factor) {
    Value *sum = builder_.getInt64(0);
    for (auto step = gep_type_begin(gep); step != gep_type_end(gep); ++step) {
      if (auto *structure = step.getStructTypeOrNull()) {
        const auto field = cast<ConstantInt>(step.getOperand())->getZExtValue();
        sum = builder_.CreateAdd(
            sum, builder_.getInt64(factor * layout_.getStructLayout(structure)->getElementOffset(unsigned(field))));
        continue;
      }
      const uint64_t stride = step.getSequentialElementStride(layout_).getFixedValue();
      Value *index = builder_.CreateSExtOrTrunc(step.getOperand(), builder_.getInt64Ty());
      sum = builder_.CreateAdd(sum, builder_.CreateMul(index, builder_.getInt64(factor * stride)));
    }
    return sum;
  }

  Value *component(Value *place, uint64_t index) {
    return index == 0 ? place
                      : builder_.CreateGEP(builder_.getInt8Ty(), place, builder_.getInt64(index * unit_ * width));
  }

  Value *divide(LoadInst &load, Value *place) {
    const Align align(unit_);
    FixedVectorType *vector = pieces(load.getType());
    if (vector->getNumElements() == 1) return builder_.CreateAlignedLoad(load.getType(), place, align);
    Value *result = PoisonValue::get(vector);
    for (uint64_t i = 0; i < vector->getNumElements(); ++i)
      result = builder_.CreateInsertElement(
          result, builder_.CreateAlignedLoad(vector->getElementType(), component(place, i), align), i);
    // A pointer is no vector's bits: it goes by an integer of its size.
    if (load.getType()->isPtrOrPtrVectorTy())
      return builder_.CreateIntToPtr(builder_.CreateBitCast(result, layout_.getIntPtrType(load.getType())),
                                     load.getType());
    return builder_.CreateBitCast(result, load.getType());
  }

  void divide(StoreInst &store, Value *place) {
    const Align align(unit_);
    Value *value = store.getValueOperand();
    FixedVectorType *vector = pieces(value->getType());
    if (vector->getNumElements() == 1) {
      builder_.CreateAlignedStore(value, place, align);
      return;
    }
    if (value->getType()->isPtrOrPtrVectorTy())
      value = builder_.CreatePtrToInt(value, layout_.getIntPtrType(value->getType()));
    value = builder_.CreateBitCast(value, vector);
    for (uint64_t i = 0; i < vector->getNumElements(); ++i)
      builder_.CreateAlignedStore(builder_.CreateExtractElement(value, i), component(place, i), align);
  }

  AllocaInst &own_;
  const DataLayout &layout_;
  IRBuilder<> builder_;
  uint64_t size_ = 0, unit_ = 0;
  bool sideBySide_ = false;
  SmallVector<uint64_t, 16> offsets_;
};

/// A short copy or fill, in the largest pieces that the alignment allows.
bool expandShort(MemIntrinsic &call) {
  const auto *length = dyn_cast<ConstantInt>(call.getLength());
  if (!length) return false;
  uint64_t align = call.getDestAlign().valueOrOne().value();
  auto *transfer = dyn_cast<MemTransferInst>(&call);
  if (transfer) align = std::min(align, transfer->getSourceAlign().valueOrOne().value());
  const uint64_t size = length->getZExtValue(), piece = std::min<uint64_t>(align, 4);
  if (size > 64 * piece || call.isVolatile()) return false;
  IRBuilder<> builder(&call);
  SmallVector<std::pair<Value *, uint64_t>, 16> values;
  for (uint64_t at = 0; at < size;) {
    uint64_t bytes = piece;
    while (at + bytes > size) bytes /= 2;
    Type *type = builder.getIntNTy(unsigned(bytes * 8));
    Value *value;
    if (transfer) {
      Value *from = builder.CreateGEP(builder.getInt8Ty(), transfer->getSource(), builder.getInt64(at));
      value = builder.CreateAlignedLoad(type, from, Align(bytes));
    } else {
      value = builder.CreateZExt(cast<MemSetInst>(call).getValue(), type);
      value = builder.CreateMul(value, ConstantInt::get(type, APInt::getSplat(unsigned(bytes * 8), APInt(8, 1))));
    }
    values.push_back({value, at});
    at += bytes;
  }
  for (const auto &[value, at] : values) {
    Value *to = builder.CreateGEP(builder.getInt8Ty(), call.getDest(), builder.getInt64(at));
    builder.CreateAlignedStore(value, to, Align(value->getType()->getIntegerBitWidth() / 8));
  }
  return true;
}

}  // namespace

void expandCopies(Function &function) {
  const TargetTransformInfo target(function.getParent()->getDataLayout());
  SmallVector<MemIntrinsic *, 8> calls;
  for (Instruction &instruction : instructions(function))
    if (auto *call = dyn_cast<MemIntrinsic>(&instruction)) calls.push_back(call);
  for (MemIntrinsic *call : calls) {
    if (!expandShort(*call)) {
      if (auto *copy = dyn_cast<MemCpyInst>(call))
        expandMemCpyAsLoop(copy, target);
      else if (auto *fill = dyn_cast<MemSetInst>(call))
        expandMemSetAsLoop(fill);
      else if (!expandMemMoveAsLoop(cast<MemMoveInst>(call), target))
        throw Declined{"a move of memory"};
    }
    call->eraseFromParent();
  }
}

void dividePrivateMemory(Function &function) {
  SmallVector<AllocaInst *, 8> arrays;
  for (Instruction &instruction : instructions(function))
    if (auto *array = dyn_cast<AllocaInst>(&instruction)) {
      if (instruction.getParent() != &function.getEntryBlock()) throw Declined{"private memory in a loop"};
      arrays.push_back(array);
    }
  for (AllocaInst *array : arrays) Division(*array).run();
}

}  // namespace lanes
