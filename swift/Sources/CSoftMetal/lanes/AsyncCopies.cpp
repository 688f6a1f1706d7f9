#include "AsyncCopies.hpp"

#include <algorithm>
#include <optional>

#include "Nvptx.hpp"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace lanes {
namespace {

constexpr Intrinsic::ID copyOf16Bytes = Intrinsic::nvvm_cp_async_cg_shared_global_16;
constexpr uint64_t bytes = 16;

bool isCopy(const Instruction &instruction) {
  const auto *call = dyn_cast<IntrinsicInst>(&instruction);
  return call && call->getIntrinsicID() == copyOf16Bytes;
}

bool isFromDeviceToThreadgroup(const Value *to, MaybeAlign aligned, const Value *from, MaybeAlign alignedFrom) {
  return to->getType()->getPointerAddressSpace() == sharedMemory && aligned.valueOrOne() >= bytes &&
         from->getType()->getPointerAddressSpace() == globalMemory && alignedFrom.valueOrOne() >= bytes;
}

/// The load that a store has its bytes from, where nothing else wants them and nothing between may change them.
LoadInst *copiedBy(StoreInst &store) {
  auto *load = dyn_cast<LoadInst>(store.getValueOperand());
  if (!load || !load->hasOneUse() || load->getParent() != store.getParent() || !load->isSimple() || !store.isSimple() ||
      store.getDataLayout().getTypeStoreSize(load->getType()) != bytes ||
      !isFromDeviceToThreadgroup(store.getPointerOperand(), store.getAlign(), load->getPointerOperand(),
                                 load->getAlign()))
    return nullptr;
  for (const Instruction *each = load->getNextNode(); each != &store; each = each->getNextNode()) {
    const auto *other = dyn_cast<StoreInst>(each);
    const bool isShared = other && other->getPointerAddressSpace() == sharedMemory;
    if (each->mayHaveSideEffects() && !isShared && !isCopy(*each)) return nullptr;
  }
  return load;
}

/// Makes the instruction a copy, if it moves 16 bytes as they are.
bool replace(Instruction &instruction) {
  const auto copy = [&](Value *to, Value *from) {
    IRBuilder<>(&instruction).CreateIntrinsic(copyOf16Bytes, {}, {to, from});
    instruction.eraseFromParent();
  };
  if (auto *store = dyn_cast<StoreInst>(&instruction)) {
    LoadInst *load = copiedBy(*store);
    if (!load) return false;
    copy(store->getPointerOperand(), load->getPointerOperand());
    load->eraseFromParent();
    return true;
  }
  auto *move = dyn_cast<MemCpyInst>(&instruction);
  const auto *length = move ? dyn_cast<ConstantInt>(move->getLength()) : nullptr;
  if (!length || !length->equalsInt(bytes) || move->isVolatile() ||
      !isFromDeviceToThreadgroup(move->getRawDest(), move->getDestAlign(), move->getRawSource(),
                                 move->getSourceAlign()))
    return false;
  copy(move->getRawDest(), move->getRawSource());
  return true;
}

/// What an instruction is to copies on their way.
struct Event {
  enum Kind { copy, access, simdgroupBarrier, threadgroupBarrier };
  Kind kind;
  Instruction *instruction;
  /// The variable of a copy or an access; null where it may be any.
  const Value *variable;
};

/// The variable of threadgroup memory that a pointer leads into, null where it may be any; none where it leads to other
/// memory.
std::optional<const Value *> variableAt(const Value *pointer) {
  if (pointer->getType()->getPointerAddressSpace() == globalMemory) return std::nullopt;
  SmallVector<const Value *, 4> objects;
  getUnderlyingObjects(pointer, objects, /*LI=*/nullptr, /*MaxLookup=*/0);
  if (objects.size() != 1) return nullptr;
  const Value *object = objects[0];
  const auto *argument = dyn_cast<Argument>(object);
  if (isa<AllocaInst>(object) || (argument && isEntry(*argument->getParent()))) return std::nullopt;
  if (!isa<GlobalVariable>(object)) return nullptr;
  if (object->getType()->getPointerAddressSpace() != sharedMemory) return std::nullopt;
  return object;
}

std::optional<Event::Kind> barrierKind(const Instruction &instruction) {
  const auto *call = dyn_cast<IntrinsicInst>(&instruction);
  if (!call) return std::nullopt;
  switch (call->getIntrinsicID()) {
    case Intrinsic::nvvm_bar_warp_sync:
      return Event::simdgroupBarrier;
    case Intrinsic::nvvm_barrier0:
    case Intrinsic::nvvm_barrier_sync:
      return Event::threadgroupBarrier;
    default:
      return std::nullopt;
  }
}

void addEvents(Instruction &instruction, SmallVectorImpl<Event> &events) {
  const auto add = [&](Event::Kind kind, std::optional<const Value *> variable) {
    if (variable) events.push_back({kind, &instruction, *variable});
  };
  if (const auto kind = barrierKind(instruction)) return add(*kind, nullptr);
  if (isa<ReturnInst>(instruction)) return add(Event::access, nullptr);
  if (!instruction.mayReadOrWriteMemory()) return;
  if (const Value *pointer = getLoadStorePointerOperand(&instruction)) {
    const bool isDevice = pointer->getType()->getPointerAddressSpace() == globalMemory;
    return add(Event::access, isDevice && isa<StoreInst>(instruction) ? nullptr : variableAt(pointer));
  }
  const auto *call = dyn_cast<CallBase>(&instruction);
  if (isCopy(instruction)) return add(Event::copy, variableAt(call->getArgOperand(0)).value_or(nullptr));
  if (call && call->onlyAccessesInaccessibleMemory()) return;
  if (call && call->onlyAccessesArgMemory() && call->onlyReadsMemory()) {
    for (const Value *argument : call->args())
      if (argument->getType()->isPointerTy()) add(Event::access, variableAt(argument));
    return;
  }
  add(Event::access, nullptr);
}

/// What is on its way, of all ways that lead to a place.
struct InFlight {
  /// For each variable at least how many groups are younger than its last.
  SmallMapVector<const Value *, unsigned, 4> ages;
  /// Variables with copies that are in no group yet.
  SmallSetVector<const Value *, 4> begun;

  /// How many of the youngest groups may stay before an access; none where nothing is to be waited for.
  std::optional<unsigned> allowed(const Value *variable) const {
    std::optional<unsigned> result;
    for (const auto &[other, age] : ages)
      if (!variable || !other || variable == other) result = std::min(age, result.value_or(oldest));
    return result;
  }

  void close() {
    for (auto &[variable, age] : ages) age = std::min(age + 1, oldest);
    for (const Value *variable : begun) ages[variable] = 0;
    begun.clear();
  }

  void wait(unsigned groups) {
    ages.remove_if([&](const auto &entry) { return entry.second >= groups; });
  }

  /// Adds another way to the same place. True where that changes anything.
  bool join(const InFlight &other) {
    bool isChanged = false;
    for (const auto &[variable, age] : other.ages) {
      const auto [place, isNew] = ages.insert({variable, age});
      if (isNew || age < place->second) place->second = age, isChanged = true;
    }
    for (const Value *variable : other.begun) isChanged |= begun.insert(variable);
    return isChanged;
  }

 private:
  /// A group that is as old is as good as one that is older.
  static constexpr unsigned oldest = 7;
};

class Waits {
 public:
  explicit Waits(Function &function) : function_(function) {
    for (BasicBlock &block : function)
      for (Instruction &instruction : block) addEvents(instruction, events_[&block]);
    for (auto &[block, events] : events_)
      for (const auto &[number, event] : enumerate(events))
        if (event.kind >= Event::simdgroupBarrier) behind_[event.instruction] = accessesBehind(*block, number);
  }

  void insert() {
    const ReversePostOrderTraversal<Function *> blocks(&function_);
    for (bool isChanged = true; isChanged;) {
      isChanged = false;
      for (BasicBlock *block : blocks) {
        const InFlight end = follow(*block, /*inserts=*/false);
        for (BasicBlock *next : successors(block)) isChanged |= before_[next].join(end);
      }
    }
    for (BasicBlock *block : blocks) follow(*block, /*inserts=*/true);
  }

 private:
  /// The variables that threads may access behind a barrier before they meet again: at one of their SIMD group, and
  /// those of others at one of the threadgroup.
  SmallSetVector<const Value *, 4> accessesBehind(BasicBlock &block, size_t number) const {
    SmallSetVector<const Value *, 4> result;
    const Event::Kind least = events_.find(&block)->second[number].kind;
    /// Whether the next barrier is in there.
    const auto ends = [&](ArrayRef<Event> events) {
      for (const Event &event : events) {
        if (event.kind >= least) return true;
        if (event.kind <= Event::access) result.insert(event.variable);
      }
      return false;
    };
    if (ends(ArrayRef(events_.find(&block)->second).drop_front(number + 1))) return result;
    SmallVector<BasicBlock *, 16> todo(successors(&block));
    SmallPtrSet<BasicBlock *, 16> seen;
    while (!todo.empty()) {
      BasicBlock *next = todo.pop_back_val();
      if (seen.insert(next).second && !ends(events_.find(next)->second)) append_range(todo, successors(next));
    }
    return result;
  }

  /// Follows copies through a block. A group has what is begun until something else comes, on whichever way, so that
  /// ways that join have as many groups.
  InFlight follow(BasicBlock &block, bool inserts) {
    InFlight state = before_[&block];
    for (const Event &event : events_[&block]) {
      IRBuilder<> builder(event.instruction);
      const bool goesOn = event.kind == Event::copy && state.begun.contains(event.variable);
      if (!state.begun.empty() && !goesOn) {
        if (inserts) builder.CreateIntrinsic(Intrinsic::nvvm_cp_async_commit_group, {}, {});
        state.close();
      }
      if (const auto groups = allowed(state, event)) {
        if (inserts) builder.CreateIntrinsic(Intrinsic::nvvm_cp_async_wait_group, {}, {builder.getInt32(*groups)});
        state.wait(*groups);
      }
      if (event.kind == Event::copy) state.begun.insert(event.variable);
    }
    return state;
  }

  std::optional<unsigned> allowed(const InFlight &state, const Event &event) {
    if (event.kind <= Event::access) return state.allowed(event.variable);
    std::optional<unsigned> result;
    for (const Value *variable : behind_[event.instruction])
      if (const auto groups = state.allowed(variable)) result = std::min(*groups, result.value_or(*groups));
    return result;
  }

  Function &function_;
  DenseMap<BasicBlock *, SmallVector<Event, 8>> events_;
  DenseMap<Instruction *, SmallSetVector<const Value *, 4>> behind_;
  DenseMap<BasicBlock *, InFlight> before_;
};

/// The place that a pointer is a constant number of bytes behind, and these bytes. What it is cast from, in another
/// address space, has other addresses.
std::pair<Value *, int64_t> placeOf(Value *pointer, const DataLayout &layout) {
  APInt offset(layout.getIndexTypeSizeInBits(pointer->getType()), 0);
  Value *base = pointer->stripAndAccumulateConstantOffsets(layout, offset, /*AllowNonInbounds=*/true);
  const bool isShort = offset.isSignedIntN(24);  // as the hardware's instructions have them
  const bool isUncast = base->getType() == pointer->getType();
  return isShort && isUncast ? std::pair(base, offset.getSExtValue()) : std::pair(pointer, int64_t(0));
}

/// Writes constant offsets into the instructions: LLVM's own form of the copy has none, so that each one in a loop
/// would keep two addresses in registers.
void addOffsets(Function &function) {
  for (Instruction &instruction : make_early_inc_range(instructions(function))) {
    if (!isCopy(instruction)) continue;
    const DataLayout &layout = function.getDataLayout();
    const auto [to, toOffset] = placeOf(instruction.getOperand(0), layout);
    const auto [from, fromOffset] = placeOf(instruction.getOperand(1), layout);
    IRBuilder<> builder(&instruction);
    const std::string text =
        "cp.async.cg.shared.global [$0+" + std::to_string(toOffset) + "], [$1+" + std::to_string(fromOffset) + "], 16;";
    auto *type = FunctionType::get(builder.getVoidTy(), {to->getType(), from->getType()}, false);
    builder.CreateCall(InlineAsm::get(type, text, "l,l,~{memory}", /*hasSideEffects=*/true), {to, from});
    instruction.eraseFromParent();
  }
}

}  // namespace

PreservedAnalyses AsyncCopies::run(Function &function, FunctionAnalysisManager &) {
  if (!isNvptx(*function.getParent())) return PreservedAnalyses::all();
  bool isChanged = false;
  for (Instruction &instruction : make_early_inc_range(instructions(function))) isChanged |= replace(instruction);
  return isChanged ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

PreservedAnalyses AwaitCopies::run(Function &function, FunctionAnalysisManager &) {
  if (none_of(instructions(function), isCopy)) return PreservedAnalyses::all();
  Waits(function).insert();
  addOffsets(function);
  return PreservedAnalyses::none();
}

}  // namespace lanes
