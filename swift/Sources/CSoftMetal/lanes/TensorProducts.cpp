#include "TensorProducts.hpp"

#include "Nvptx.hpp"

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

/// Pointers to shared memory that pointers to any memory are.
class SharedPointers {
 public:
  /// Null where that is not known. Beside the pointer itself, so that loads have one of it.
  Value *of(Value *pointer) {
    if (auto *cast = dyn_cast<AddrSpaceCastOperator>(pointer))
      return cast->getSrcAddressSpace() == sharedMemory ? cast->getPointerOperand() : nullptr;
    auto *offset = dyn_cast<GEPOperator>(pointer);
    if (!offset) return nullptr;
    const auto found = known_.find(pointer);
    if (found != known_.end()) return found->second;
    Value *result = nullptr;
    if (Value *base = of(offset->getPointerOperand())) {
      const SmallVector<Value *, 4> indices(offset->indices());
      if (auto *instruction = dyn_cast<Instruction>(pointer))
        result = IRBuilder<>(instruction).CreateGEP(offset->getSourceElementType(), base, indices);
      else if (auto *constant = dyn_cast<Constant>(base))
        result = ConstantExpr::getGetElementPtr(offset->getSourceElementType(), constant, indices);
    }
    return known_[pointer] = result;
  }

 private:
  DenseMap<Value *, Value *> known_;
};

/// A matrix of 16-bit elements in shared memory, of which a load asks.
struct SharedMatrix {
  CallBase *load;
  /// Its address without what is constant, which `offset` has in bytes.
  Value *base = nullptr;
  int64_t offset = 0;
  Value *stride = nullptr;
  bool isTransposed = false;
  /// Whether rows begin where the hardware loads them from, at multiples of 16 bytes, or where a lane can, of 4.
  bool areRowsAligned = false, arePairsAligned = false;
  SmallVector<CallBase *, 2> results;

  SharedMatrix(CallBase &call, SharedPointers &pointers) : load(&call), stride(call.getArgOperand(1)) {
    Value *matrix = pointers.of(load->getArgOperand(0));
    if (!matrix) return;
    const DataLayout &layout = load->getModule()->getDataLayout();
    const auto zeros = [&](Value *value) {
      return computeKnownBits(value, layout, 0, nullptr, load).countMinTrailingZeros();
    };
    const unsigned bits = std::min(zeros(matrix), zeros(stride) + 1);
    areRowsAligned = bits >= 4;
    arePairsAligned = bits >= 2;
    APInt constant(layout.getIndexTypeSizeInBits(matrix->getType()), 0);
    base = matrix->stripAndAccumulateConstantOffsets(layout, constant, /*AllowNonInbounds=*/true);
    offset = constant.getSExtValue();
    for (User *user : load->users())
      if (const Function *callee = calleeOf(user); callee && callee->getName() == "sm_transposed")
        results.push_back(cast<CallBase>(user));
    isTransposed = !results.empty() && results.size() == load->getNumUses();
    if (!isTransposed) results = {load};
  }
};

/// Matrices of one place in memory, as many as an instruction loads.
struct SharedMatrices {
  SmallVector<SharedMatrix, 4> all;

  /// Whether an instruction can load the matrix too: its address is that of the first, and so much more for the lanes
  /// of odd matrices, and so much for those of the upper two.
  bool takes(const SharedMatrix &next) const {
    const SharedMatrix &first = all.front();
    return first.areRowsAligned && next.areRowsAligned && first.base == next.base && first.stride == next.stride &&
           first.isTransposed == next.isTransposed && all.size() < 4 &&
           (all.size() < 3 || next.offset - all[2].offset == all[1].offset - first.offset);
  }

  void load() {
    // What a product takes in neighbouring registers comes in such.
    if (all.size() == 4 && isBefore(all[0], all[2])) std::swap(all[1], all[2]);
    // Three are two and one.
    const ArrayRef<SharedMatrix> matrices(all);
    const size_t count = all.size() == 3 ? 2 : all.size();
    emit(matrices.take_front(count));
    if (count < all.size()) emit(matrices.drop_front(count));
    for (const SharedMatrix &matrix : all)
      if (matrix.load->use_empty()) matrix.load->eraseFromParent();
  }

 private:
  /// Whether a product has one matrix as the operand before the other.
  static bool isBefore(const SharedMatrix &first, const SharedMatrix &second) {
    return any_of(second.results, [&](const CallBase *result) {
      return any_of(usesOf(*result), [&](const Use *use) {
        const auto *call = dyn_cast<CallBase>(use->getUser());
        if (!call || use->getOperandNo() == 0) return false;
        const Value *before = call->getArgOperand(use->getOperandNo() - 1);
        if (const auto *cast = dyn_cast<BitCastInst>(before)) before = cast->getOperand(0);
        return is_contained(first.results, before);
      });
    });
  }

  /// The uses of a value, as what type they may be.
  static SmallVector<const Use *, 4> usesOf(const Value &value) {
    SmallVector<const Use *, 4> uses;
    for (const Use &use : value.uses()) {
      if (const auto *cast = dyn_cast<BitCastInst>(use.getUser()))
        for (const Use &further : cast->uses()) uses.push_back(&further);
      else
        uses.push_back(&use);
    }
    return uses;
  }

  static void emit(ArrayRef<SharedMatrix> matrices) {
    const SharedMatrix &first = matrices.front();
    if (!first.arePairsAligned) return;
    IRBuilder<> builder(first.load);
    Value *lane = builder.CreateIntrinsic(Intrinsic::nvvm_read_ptx_sreg_laneid, {}, {});
    const auto times = [&](Value *number, int64_t bytes) {
      return builder.CreateMul(number, builder.getInt32(static_cast<uint32_t>(bytes)));
    };
    // What differs from lane to lane first, which neighbours then have in common.
    const auto place = [&](Value *row, Value *bytes) {
      Value *stride = builder.CreateShl(builder.CreateTrunc(first.stride, builder.getInt32Ty()), 1);
      Value *ofLane = builder.CreateAdd(builder.CreateMul(row, stride), bytes);
      return builder.CreateGEP(builder.getInt8Ty(), builder.CreateGEP(builder.getInt8Ty(), first.base, ofLane),
                               builder.getInt64(first.offset));
    };
    if (!first.areRowsAligned || (matrices.size() == 1 && !first.isTransposed)) {
      // The lane's two of a row.
      Value *pair = place(builder.CreateLShr(lane, 2), times(builder.CreateAnd(lane, 3), 4));
      return replace(first, builder.CreateAlignedLoad(builder.getInt32Ty(), pair, Align(4)), builder);
    }
    // The hardware takes the address of a row from each lane: of 8 rows a matrix, one matrix behind the other.
    Value *bytes = builder.getInt32(0);
    const auto step = [&](unsigned matrix, unsigned shift) {
      if (matrices.size() <= matrix) return;
      Value *bit = builder.CreateAnd(builder.CreateLShr(lane, shift), 1);
      bytes = builder.CreateAdd(bytes, times(bit, matrices[matrix].offset - first.offset));
    };
    step(1, 3);
    step(2, 4);
    Value *address = place(builder.CreateAnd(lane, 7), bytes);
    const Intrinsic::ID instructions[][3] = {
        {Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x1_b16, Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x2_b16,
         Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x4_b16},
        {Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x1_trans_b16,
         Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x2_trans_b16,
         Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x4_trans_b16}};
    CallInst *loaded =
        builder.CreateIntrinsic(instructions[first.isTransposed][matrices.size() / 2], {address->getType()}, {address});
    loaded->setConvergent();
    for (const auto &[number, matrix] : enumerate(matrices))
      replace(matrix, matrices.size() == 1 ? loaded : builder.CreateExtractValue(loaded, number), builder);
  }

  static void replace(const SharedMatrix &matrix, Value *words, IRBuilder<> &builder) {
    // Of a lane that reads pairs a transposed matrix is transposed behind it.
    const bool isPair = isa<LoadInst>(words);
    if (matrix.isTransposed && isPair) return matrix.load->replaceAllUsesWith(words);
    for (CallBase *result : matrix.results) result->replaceAllUsesWith(words);
    for (CallBase *result : matrix.results)
      if (result != matrix.load) result->eraseFromParent();
  }
};

/// Loads from shared memory as the hardware has them, up to four matrices at once where nothing is written between.
void loadShared(BasicBlock &block, SharedPointers &pointers) {
  SmallVector<SharedMatrices, 16> groups;
  size_t firstOpen = 0;
  for (Instruction &instruction : block) {
    const Function *callee = calleeOf(&instruction);
    const StringRef name = callee ? callee->getName() : "";
    if (name == "sm_row_pair") {
      const SharedMatrix matrix(cast<CallBase>(instruction), pointers);
      const auto group = find_if(drop_begin(groups, firstOpen), [&](const auto &each) { return each.takes(matrix); });
      if (group == groups.end())
        groups.push_back({{matrix}});
      else
        group->all.push_back(matrix);
    } else if (instruction.mayWriteToMemory() && name != "sm_transposed" && !productKindOf(instruction)) {
      firstOpen = groups.size();
    }
  }
  for (SharedMatrices &group : groups) group.load();
}

}  // namespace

void joinTensorProducts(Function &function) {
  for (BasicBlock &block : function) {
    std::list<TensorProduct> products = rowsOf(block);
    joinSteps(products);
    for (const TensorProduct &product : products)
      if (product.results().size() + product.steps.size() > 2) emit(product);
  }
  SharedPointers pointers;
  for (BasicBlock &block : function) loadShared(block, pointers);
}

}  // namespace lanes
