#include "ActiveLanes.hpp"

#include "Blocks.hpp"
#include "Nvptx.hpp"
#include "TensorProducts.hpp"
#include "VectorCopies.hpp"
#include "llvm/Analysis/PostDominators.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Transforms/IPO/AlwaysInliner.h"
#include "llvm/Transforms/Scalar/InferAddressSpaces.h"
#include "llvm/Transforms/Scalar/InferAlignment.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace llvm;
using namespace PatternMatch;

namespace lanes {
namespace {

constexpr StringLiteral question = "sm_active_lanes", transposition = "sm_transposed", whole = "sm_whole_simdgroups",
                        argumentAddress = "sm_value_argument";

/// Functions of the header that have a meaning here.
constexpr StringLiteral known[] = {question,
                                   transposition,
                                   whole,
                                   "sm_row_pair",
                                   "sm_product_bf16",
                                   "sm_product_f16",
                                   "sm_product_bf16_parts",
                                   "sm_product_tf32_parts"};

CallBase *callOf(Value *value, StringRef name) {
  auto *call = dyn_cast<CallBase>(value);
  const Function *callee = call ? call->getCalledFunction() : nullptr;
  return callee && callee->getName() == name ? call : nullptr;
}

bool isQuestion(Instruction &instruction) { return callOf(&instruction, question) != nullptr; }

/// What is transposed twice is as it was, and what is transposed once in a block need not be again.
void joinTranspositions(Function &function) {
  for (BasicBlock &block : function) {
    SmallDenseMap<Value *, CallBase *> done;
    for (Instruction &instruction : make_early_inc_range(block)) {
      CallBase *outer = callOf(&instruction, transposition);
      if (!outer) continue;
      Value *operand = outer->getArgOperand(0);
      CallBase *inner = callOf(operand, transposition), *same = done.lookup(operand);
      if (!inner && !same) {
        done[operand] = outer;
        continue;
      }
      outer->replaceAllUsesWith(inner ? inner->getArgOperand(0) : same);
      outer->eraseFromParent();
      if (inner && inner->use_empty()) {
        if (done.lookup(inner->getArgOperand(0)) == inner) done.erase(inner->getArgOperand(0));
        inner->eraseFromParent();
      }
    }
  }
}

/// Calls of a function that has done its service become its body.
void dissolve(Function *function) {
  if (!function || function->isDeclaration()) return;
  function->removeFnAttr(Attribute::NoInline);
  function->addFnAttr(Attribute::AlwaysInline);
}

/// What lanes of a warp may have apart, values and blocks, on the safe side: what is not known to be the same for all
/// lanes differs.
class Divergence {
 public:
  explicit Divergence(Function &function) : function_(function), joins_(function), loops_(DominatorTree(function)) {
    // Values that differ make branches that part, and those more values that differ.
    do {
      findValues();
    } while (findBlocks());
  }

  /// Whether all lanes of a warp come to the block together, or none.
  bool isTogether(const BasicBlock *block) const { return !parted_.contains(block); }

 private:
  void findValues() {
    for (bool isChanged = true; isChanged;) {
      isChanged = false;
      for (Instruction &instruction : instructions(function_))
        if (!differing_.contains(&instruction) && differs(instruction))
          isChanged |= differing_.insert(&instruction).second;
    }
  }

  /// True where a block is new among those that lanes come to apart.
  bool findBlocks() {
    bool isChanged = false;
    for (BasicBlock &block : function_) {
      const Instruction *end = block.getTerminator();
      const bool parts = end->getNumSuccessors() > 1 &&
                         any_of(end->operands(), [&](const Use &operand) { return isApart(operand.get()); });
      if (!parts) continue;
      for (const BasicBlock *apart : blocksApart(&block, joins_, loops_)) isChanged |= parted_.insert(apart).second;
    }
    return isChanged;
  }

  bool isApart(const Value *value) const { return differing_.contains(value); }

  bool differs(Instruction &instruction) const {
    // Lanes may be in different turns of a loop, and leave it with what each has.
    if (parted_.contains(instruction.getParent())) return true;
    if (isa<AllocaInst>(instruction)) return true;
    if (const auto *phi = dyn_cast<PHINode>(&instruction)) {
      if (any_of(phi->incoming_values(), [&](const Use &use) { return isApart(use.get()); })) return true;
      return !phi->hasConstantValue() && any_of(phi->blocks(), [&](const BasicBlock *block) {
        return parted_.contains(block) ||
               any_of(block->getTerminator()->operands(), [&](const Use &operand) { return isApart(operand.get()); });
      });
    }
    if (auto *call = dyn_cast<CallBase>(&instruction)) return differs(*call);
    if (const auto *load = dyn_cast<LoadInst>(&instruction))
      return !load->isSimple() || isApart(load->getPointerOperand());
    if (isa<AtomicRMWInst, AtomicCmpXchgInst>(instruction)) return true;
    return any_of(instruction.operands(), [&](const Use &operand) { return isApart(operand.get()); });
  }

  bool differs(CallBase &call) const {
    if (isQuestion(call)) return false;
    if (callOf(&call, argumentAddress)) return isApart(call.getArgOperand(0));
    const auto *intrinsic = dyn_cast<IntrinsicInst>(&call);
    if (!intrinsic) return true;
    switch (intrinsic->getIntrinsicID()) {
      // One answer for all.
      case Intrinsic::nvvm_vote_ballot_sync:
      case Intrinsic::nvvm_vote_all_sync:
      case Intrinsic::nvvm_vote_any_sync:
      case Intrinsic::nvvm_redux_sync_add:
      case Intrinsic::nvvm_redux_sync_and:
      case Intrinsic::nvvm_redux_sync_or:
      case Intrinsic::nvvm_redux_sync_xor:
      case Intrinsic::nvvm_redux_sync_min:
      case Intrinsic::nvvm_redux_sync_max:
      case Intrinsic::nvvm_redux_sync_umin:
      case Intrinsic::nvvm_redux_sync_umax:
      case Intrinsic::nvvm_read_ptx_sreg_ntid_x:
      case Intrinsic::nvvm_read_ptx_sreg_ntid_y:
      case Intrinsic::nvvm_read_ptx_sreg_ntid_z:
      case Intrinsic::nvvm_read_ptx_sreg_ctaid_x:
      case Intrinsic::nvvm_read_ptx_sreg_ctaid_y:
      case Intrinsic::nvvm_read_ptx_sreg_ctaid_z:
        return false;
      // Of one lane, for all.
      case Intrinsic::nvvm_shfl_sync_idx_i32:
      case Intrinsic::nvvm_shfl_sync_idx_f32:
        return isApart(call.getArgOperand(2));
      default:
        break;
    }
    const bool isMath =
        call.doesNotAccessMemory() && !call.getCalledFunction()->getName().starts_with("llvm.nvvm.read");
    return !isMath || any_of(call.args(), [&](const Use &argument) { return isApart(argument.get()); });
  }

  Function &function_;
  PostDominatorTree joins_;
  LoopInfo loops_;
  SmallPtrSet<const Value *, 32> differing_;
  SmallPtrSet<const BasicBlock *, 32> parted_;
};

/// Where a SIMD group may lack lanes, no answer is taken to be "all": what is there for all of them alone would be as
/// much code again, and the other way has the same result for them. Headers ask; what a user sees comes of votes.
void expectSome(Function &partial) {
  for (Instruction &asked : instructions(partial)) {
    if (!isQuestion(asked)) continue;
    for (User *user : make_early_inc_range(asked.users())) {
      ICmpInst::Predicate predicate;
      if (!match(user, m_c_ICmp(predicate, m_Specific(&asked), m_AllOnes())) || !ICmpInst::isEquality(predicate))
        continue;
      user->replaceAllUsesWith(ConstantInt::getBool(user->getType(), predicate == ICmpInst::ICMP_NE));
      cast<Instruction>(user)->eraseFromParent();
    }
  }
}

/// Whether a kernel says that its SIMD groups are whole, which it then does no longer.
bool takeWhole(Function &kernel) {
  bool found = false;
  for (Instruction &instruction : make_early_inc_range(instructions(kernel))) {
    if (!callOf(&instruction, whole)) continue;
    instruction.eraseFromParent();
    found = true;
  }
  return found;
}

}  // namespace

PreservedAnalyses ActiveLanes::run(Module &module, ModuleAnalysisManager &analyses) {
  if (none_of(known, [&](StringRef name) { return module.getFunction(name); })) return PreservedAnalyses::all();
  SmallVector<Function *, 4> kernels;
  for (Function &function : module)
    if (isEntry(function)) kernels.push_back(&function);
  auto &functions = analyses.getResult<FunctionAnalysisManagerModuleProxy>(module).getManager();
  for (Function *kernel : kernels) {
    SmallVector<Instruction *, 32> together;
    const Divergence divergence(*kernel);
    for (Instruction &instruction : instructions(*kernel))
      if (isQuestion(instruction) && divergence.isTogether(instruction.getParent())) together.push_back(&instruction);
    joinTranspositions(*kernel);
    SmallVector<Function *, 2> entries{kernel};
    if (!takeWhole(*kernel)) {
      ValueToValueMapTy map;
      Function *partial = CloneFunction(kernel, map);
      partial->setName(kernel->getName() + "_partial");
      // By the module's annotations it would be none where LLVM has asked of a function, since gone, at this address.
      partial->setCallingConv(CallingConv::PTX_Kernel);
      expectSome(*partial);
      entries.push_back(partial);
    }
    for (Instruction *instruction : together) {
      instruction->replaceAllUsesWith(Constant::getAllOnesValue(instruction->getType()));
      instruction->eraseFromParent();
    }
    functions.invalidate(*kernel, PreservedAnalyses::none());
    if (!together.empty())
      builder_->buildFunctionSimplificationPipeline(OptimizationLevel::O3, ThinOrFullLTOPhase::None)
          .run(*kernel, functions);
    for (Function *each : entries) joinTensorProducts(*each);
  }
  for (StringRef name : known) dissolve(module.getFunction(name));
  AlwaysInlinerPass(/*InsertLifetime=*/false).run(module, analyses);
  // What is known of an address is lost in one that may be of any memory: neighbours become one access only after this.
  FunctionPassManager passes;
  passes.addPass(InferAddressSpacesPass());
  passes.addPass(InferAlignmentPass());
  functions.clear();
  passes.addPass(SROAPass(SROAOptions::ModifyCFG));
  for (Function &function : module) {
    if (function.isDeclaration()) continue;
    copyByWords(function);
    passes.run(function, functions);
  }
  return PreservedAnalyses::none();
}

}  // namespace lanes
