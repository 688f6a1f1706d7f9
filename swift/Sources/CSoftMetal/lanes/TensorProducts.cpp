#include "TensorProducts.hpp"

#include <list>

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;

namespace lanes {
namespace {

/// A function of the header: left factors, a right one, and the sum so far.
struct ProductKind {
  StringLiteral name;
  /// Parts of the left factor, the smallest first.
  unsigned parts;
  Intrinsic::ID eightSteps, sixteenSteps;
};

constexpr unsigned sharedMemory = 3;

const ProductKind productKinds[] = {
    {"sm_product_bf16", 1, Intrinsic::nvvm_mma_m16n8k8_row_col_bf16, Intrinsic::nvvm_mma_m16n8k16_row_col_bf16},
    {"sm_product_f16", 1, Intrinsic::nvvm_mma_m16n8k8_row_col_f32_f32, Intrinsic::nvvm_mma_m16n8k16_row_col_f32_f32},
    {"sm_product_bf16_parts", 3, Intrinsic::nvvm_mma_m16n8k8_row_col_bf16, Intrinsic::nvvm_mma_m16n8k16_row_col_bf16},
    {"sm_product_tf32_parts", 2, Intrinsic::nvvm_mma_m16n8k8_row_col_tf32, Intrinsic::not_intrinsic},
};

const Function *calleeOf(const Value *value) {
  const auto *call = dyn_cast<CallBase>(value);
  return call ? call->getCalledFunction() : nullptr;
}

const ProductKind *productKindOf(const Instruction &instruction) {
  const Function *callee = calleeOf(&instruction);
  const auto *kind = callee ? find_if(productKinds, [&](const auto &each) { return callee->getName() == each.name; })
                            : std::end(productKinds);
  return kind == std::end(productKinds) ? nullptr : kind;
}

/// 8 or 16 rows of a sum, and its steps.
struct TensorProduct {
  const ProductKind *kind;
  /// A call for each 8 rows and each 8 steps, the steps in order.
  SmallVector<SmallVector<CallBase *, 2>, 2> steps;

  ArrayRef<CallBase *> results() const { return steps.back(); }
  Value *right(unsigned step) const { return steps[step][0]->getArgOperand(kind->parts); }
  Value *sum(unsigned row) const { return steps.front()[row]->getArgOperand(kind->parts + 1); }
};

/// Whether the block needs a value before an instruction of it.
bool isUsedBefore(const CallBase &value, const Instruction &place) {
  return any_of(value.users(), [&](const User *user) {
    const auto *instruction = cast<Instruction>(user);
    return instruction->getParent() == place.getParent() && !isa<PHINode>(instruction) &&
           (instruction == &place || instruction->comesBefore(&place));
  });
}

/// The products of a block, those with one right factor by two.
std::list<TensorProduct> rowsOf(BasicBlock &block) {
  std::list<TensorProduct> products;
  for (Instruction &instruction : block) {
    const ProductKind *kind = productKindOf(instruction);
    if (!kind) continue;
    auto &call = cast<CallBase>(instruction);
    const auto other = find_if(products, [&](const TensorProduct &each) {
      return each.kind == kind && each.results().size() == 1 && each.right(0) == call.getArgOperand(kind->parts) &&
             !isUsedBefore(*each.results()[0], call);
    });
    if (other == products.end()) {
      products.push_back({kind, {{&call}}});
      continue;
    }
    // Where the second is, behind all that either needs.
    TensorProduct joined = *other;
    joined.steps[0].push_back(&call);
    products.erase(other);
    products.push_back(joined);
  }
  return products;
}

/// Joins products that are the sum of another, and all that comes of it.
void joinSteps(std::list<TensorProduct> &products) {
  for (auto second = products.begin(); second != products.end(); ++second) {
    if (second->kind->sixteenSteps == Intrinsic::not_intrinsic) continue;
    const auto first = std::find_if(products.begin(), second, [&](const TensorProduct &each) {
      if (each.kind != second->kind || each.steps.size() != 1 || each.results().size() != second->results().size())
        return false;
      for (unsigned row = 0; row < each.results().size(); ++row)
        if (second->sum(row) != each.results()[row] || !each.results()[row]->hasOneUse()) return false;
      return true;
    });
    if (first == second) continue;
    second->steps.insert(second->steps.begin(), first->steps[0]);
    products.erase(first);
  }
}

/// Words of a factor: one of two elements of 16 bits, or two of 32.
SmallVector<Value *, 2> wordsOf(Value *factor, IRBuilder<> &builder) {
  if (!factor->getType()->isVectorTy()) return {factor};
  Value *words = builder.CreateBitCast(factor, FixedVectorType::get(builder.getInt32Ty(), 2));
  return {builder.CreateExtractElement(words, uint64_t(0)), builder.CreateExtractElement(words, uint64_t(1))};
}

void emit(const TensorProduct &product) {
  const unsigned rows = product.results().size(), steps = product.steps.size();
  CallBase *last = product.results().back();
  IRBuilder<> builder(last);
  Function *instruction =
      Intrinsic::getDeclaration(last->getModule(), steps == 2 ? product.kind->sixteenSteps : product.kind->eightSteps);
  Value *zero = ConstantFP::get(builder.getFloatTy(), 0);
  SmallVector<Value *, 4> sums;
  for (unsigned row = 0; row < 2; ++row)
    for (uint64_t i = 0; i < 2; ++i)
      sums.push_back(row < rows ? builder.CreateExtractElement(product.sum(row), i) : zero);
  for (unsigned part = 0; part < product.kind->parts; ++part) {
    // A column of words is that of two rows of matrices; words of 32 bits are two columns.
    SmallVector<Value *, 10> arguments;
    const auto push = [&](Value *word) {
      Type *type = instruction->getFunctionType()->getParamType(arguments.size());
      arguments.push_back(builder.CreateBitCast(word, type));
    };
    for (unsigned step = 0; step < steps; ++step) {
      const auto &calls = product.steps[step];
      SmallVector<SmallVector<Value *, 2>, 2> words;
      for (CallBase *call : calls) words.push_back(wordsOf(call->getArgOperand(part), builder));
      for (unsigned column = 0; column < words[0].size(); ++column)
        for (unsigned row = 0; row < 2; ++row) push(row < rows ? words[row][column] : builder.getInt32(0));
    }
    for (unsigned step = 0; step < steps; ++step)
      for (Value *word : wordsOf(product.right(step), builder)) push(word);
    for (Value *sum : sums) push(sum);
    CallInst *result = builder.CreateCall(instruction, arguments);
    result->setConvergent();
    for (unsigned i = 0; i < 4; ++i) sums[i] = builder.CreateExtractValue(result, i);
  }
  for (unsigned row = 0; row < rows; ++row) {
    Value *pair = PoisonValue::get(last->getType());
    for (uint64_t i = 0; i < 2; ++i) pair = builder.CreateInsertElement(pair, sums[2 * row + i], i);
    product.results()[row]->replaceAllUsesWith(pair);
  }
  for (const auto &calls : reverse(product.steps))
    for (CallBase *call : calls) call->eraseFromParent();
}

/// The pointer to shared memory that a pointer to any memory is; null where that is not known.
Value *sharedPointer(Value *pointer, IRBuilder<> &builder) {
  if (auto *cast = dyn_cast<AddrSpaceCastOperator>(pointer))
    return cast->getSrcAddressSpace() == sharedMemory ? cast->getPointerOperand() : nullptr;
  auto *offset = dyn_cast<GEPOperator>(pointer);
  Value *base = offset ? sharedPointer(offset->getPointerOperand(), builder) : nullptr;
  if (!base) return nullptr;
  const SmallVector<Value *, 4> indices(offset->indices());
  return builder.CreateGEP(offset->getSourceElementType(), base, indices);
}

/// A matrix of 16-bit elements in shared memory.
class SharedMatrix {
 public:
  explicit SharedMatrix(CallBase &load)
      : load_(load),
        builder_(&load),
        stride_(load.getArgOperand(1)),
        matrix_(sharedPointer(load.getArgOperand(0), builder_)) {}

  /// Whether its rows begin at multiples of 2^bits bytes.
  bool isAligned(unsigned bits) const {
    const DataLayout &layout = load_.getModule()->getDataLayout();
    const auto zeros = [&](Value *value) {
      return computeKnownBits(value, layout, 0, nullptr, &load_).countMinTrailingZeros();
    };
    return matrix_ && zeros(matrix_) >= bits && zeros(stride_) + 1 >= bits;
  }

  /// Transposed: the hardware takes the address of a row from each of eight lanes.
  Value *transposed() {
    Value *address = place(builder_.CreateAnd(lane(), 7), builder_.getInt32(0));
    CallInst *result = builder_.CreateIntrinsic(Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x1_trans_b16,
                                                {address->getType()}, {address});
    result->setConvergent();
    return result;
  }

  /// The lane's two of a row.
  Value *pair() {
    Value *number = lane();
    Value *column = builder_.CreateMul(builder_.CreateAnd(number, 3), builder_.getInt32(2));
    return builder_.CreateAlignedLoad(builder_.getInt32Ty(), place(builder_.CreateLShr(number, 2), column), Align(4));
  }

 private:
  Value *lane() { return builder_.CreateIntrinsic(Intrinsic::nvvm_read_ptx_sreg_laneid, {}, {}); }

  /// The address of an element: what differs from lane to lane first, which neighbours then have in common.
  Value *place(Value *row, Value *column) {
    const DataLayout &layout = load_.getModule()->getDataLayout();
    APInt offset(layout.getIndexTypeSizeInBits(matrix_->getType()), 0);
    Value *base = matrix_->stripAndAccumulateConstantOffsets(layout, offset, /*AllowNonInbounds=*/true);
    Value *stride = builder_.CreateTrunc(stride_, builder_.getInt32Ty());
    Value *element = builder_.CreateAdd(builder_.CreateMul(row, stride), column);
    return builder_.CreateGEP(builder_.getInt8Ty(), builder_.CreateGEP(builder_.getInt16Ty(), base, element),
                              builder_.getInt(offset));
  }

  CallBase &load_;
  IRBuilder<> builder_;
  Value *stride_, *matrix_;
};

/// Loads from shared memory as the hardware has them.
void loadShared(CallBase &load) {
  SharedMatrix matrix(load);
  SmallVector<CallBase *, 2> transposed;
  for (User *user : load.users())
    if (const Function *callee = calleeOf(user); callee && callee->getName() == "sm_transposed")
      transposed.push_back(cast<CallBase>(user));
  if (!transposed.empty() && matrix.isAligned(4)) {
    Value *result = matrix.transposed();
    for (CallBase *call : transposed) {
      call->replaceAllUsesWith(result);
      call->eraseFromParent();
    }
  }
  if (!load.use_empty() && matrix.isAligned(2)) load.replaceAllUsesWith(matrix.pair());
  if (load.use_empty()) load.eraseFromParent();
}

}  // namespace

void joinTensorProducts(Function &function) {
  for (BasicBlock &block : function) {
    std::list<TensorProduct> products = rowsOf(block);
    joinSteps(products);
    for (const TensorProduct &product : products)
      if (product.results().size() + product.steps.size() > 2) emit(product);
  }
  SmallVector<CallBase *, 32> loads;
  for (Instruction &instruction : instructions(function))
    if (const Function *callee = calleeOf(&instruction); callee && callee->getName() == "sm_row_pair")
      loads.push_back(cast<CallBase>(&instruction));
  for (CallBase *load : loads) loadShared(*load);
}

}  // namespace lanes
