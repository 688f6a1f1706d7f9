#include "ValueArguments.hpp"

#include <map>

#include "Nvptx.hpp"
#include "llvm/ADT/SetVector.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace lanes {
namespace {

/// The most that a launch takes, and what the place of any argument in it is a multiple of.
constexpr uint64_t parameterBytes = 4096, alignment = 16;

/// An argument of the kernel, in all of its entries.
struct ReadArgument {
  uint64_t bytes = 0;
  uint64_t offset = 0;  ///< in the parameter
  SmallVector<CallInst *, 2> addresses;
  SmallSetVector<Value *, 16> places;  ///< the pointers that come from an address
  SmallSetVector<LoadInst *, 16> loads;

  void follow() {
    SmallVector<Value *, 8> left(addresses.begin(), addresses.end());
    while (!left.empty()) {
      for (User *user : left.pop_back_val()->users()) {
        if (auto *load = dyn_cast<LoadInst>(user); load && load->isSimple())
          loads.insert(load);
        else if (isa<IntToPtrInst, GetElementPtrInst, PHINode, SelectInst>(user) && user->getType()->isPointerTy() &&
                 places.insert(user))
          left.push_back(user);
      }
    }
  }
};

/// By index, as the host finds them.
using Arguments = std::map<uint64_t, ReadArgument>;

/// The argument that a pointer comes from where it is made, whatever is added to it on the way; null where that is
/// none.
const ReadArgument *argumentOf(const Value *place, const Arguments &arguments) {
  while (const auto *element = dyn_cast<GetElementPtrInst>(place)) place = element->getPointerOperand();
  const auto found = find_if(
      arguments, [&](const auto &each) { return isa<IntToPtrInst>(place) && is_contained(each.second.places, place); });
  return found == arguments.end() ? nullptr : &found->second;
}

/// The pointer that a pointer is a known number of bytes behind, if that is known, and adds these to `distance`.
Value *base(Value *place, int64_t &distance) {
  auto *element = dyn_cast<GetElementPtrInst>(place);
  APInt offset(64, 0);
  if (!element || !element->accumulateConstantOffset(element->getModule()->getDataLayout(), offset)) return nullptr;
  distance += offset.getSExtValue();
  return element->getPointerOperand();
}

/// Whether a load can be of the parameter, on each of the ways to its place. `through` are the meetings of ways so far,
/// `room` how many more places may be looked at: where ways part and meet again and again they are without number.
bool isReadable(const LoadInst &load, Value *place, int64_t distance, const Arguments &arguments, unsigned &room,
                SmallPtrSet<Value *, 4> through = {}, bool isOnlyWay = true) {
  if (room == 0) return false;
  --room;
  while (Value *further = base(place, distance)) place = further;
  const auto isEach = [&](Value *value) { return isReadable(load, value, distance, arguments, room, through, false); };
  if (auto *select = dyn_cast<SelectInst>(place))
    return isEach(select->getTrueValue()) && isEach(select->getFalseValue());
  if (auto *phi = dyn_cast<PHINode>(place)) return through.insert(phi).second && all_of(phi->incoming_values(), isEach);
  const ReadArgument *argument = argumentOf(place, arguments);
  if (!argument) return false;
  const uint64_t size = load.getModule()->getDataLayout().getTypeStoreSize(load.getType());
  // A place that is computed is right on its own way alone, and in one value may lead to what is behind it.
  if (!isa<IntToPtrInst>(place)) return isOnlyWay && 2 * size <= argument->bytes;
  // A read that never runs may be of any place; outside of the parameter the assembler refuses it.
  return distance >= 0 && distance + size <= argument->bytes;
}

/// Drops arguments that have no room behind `end`, and what is read of the others elsewhere, and lays out those of
/// which anything is left. Returns the end of the last.
uint64_t layOut(Arguments &arguments, uint64_t end) {
  uint64_t room = parameterBytes - alignTo(end, alignment);
  const auto eraseWhere = [&](auto isGone) {
    for (auto each = arguments.begin(); each != arguments.end();)
      each = isGone(each->second) ? arguments.erase(each) : std::next(each);
  };
  eraseWhere([&](const ReadArgument &argument) {
    const uint64_t size = alignTo(argument.bytes, alignment);
    if (size > room) return true;
    room -= size;
    return false;
  });
  for (auto &[index, argument] : arguments)
    argument.loads.remove_if([&](LoadInst *load) {
      unsigned room = 64;
      return !isReadable(*load, load->getPointerOperand(), 0, arguments, room);
    });
  eraseWhere([](const ReadArgument &argument) { return argument.loads.empty(); });
  for (auto &[index, argument] : arguments) {
    argument.offset = alignTo(end, alignment);
    end = argument.offset + argument.bytes;
  }
  return end;
}

/// Reads from the parameter what was read from the memory of arguments. Where ways with different places meet, each
/// has a load: LLVM makes a copy of a parameter whose places meet.
class ParameterReads {
 public:
  /// - Parameter address: of an argument, which has `offset` in the parameter.
  void add(CallInst &address, uint64_t offset) {
    Function &entry = *address.getFunction();
    IRBuilder<> builder(&*entry.getEntryBlock().getFirstNonPHIOrDbgOrAlloca());
    places_[&address] = builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), entry.getArg(0), offset);
  }

  void replace(LoadInst &load) {
    load.replaceAllUsesWith(read(load, load.getPointerOperand(), 0, &load));
    load.eraseFromParent();
  }

 private:
  Value *read(const LoadInst &load, Value *place, int64_t distance, Instruction *before) {
    while (Value *further = base(place, distance)) place = further;
    if (auto *select = dyn_cast<SelectInst>(place)) {
      Value *yes = read(load, select->getTrueValue(), distance, before);
      Value *no = read(load, select->getFalseValue(), distance, before);
      return IRBuilder<>(before).CreateSelect(select->getCondition(), yes, no);
    }
    if (auto *phi = dyn_cast<PHINode>(place)) {
      PHINode *value = IRBuilder<>(phi).CreatePHI(load.getType(), phi->getNumIncomingValues());
      DenseMap<BasicBlock *, Value *> known;
      for (unsigned i = 0; i < phi->getNumIncomingValues(); ++i) {
        BasicBlock *from = phi->getIncomingBlock(i);
        Value *&each = known[from];
        if (!each) each = read(load, phi->getIncomingValue(i), distance, from->getTerminator());
        value->addIncoming(each, from);
      }
      return value;
    }
    IRBuilder<> builder(before);
    Value *from = builder.CreateConstGEP1_64(builder.getInt8Ty(), settled(place, builder), distance);
    auto *value = cast<LoadInst>(load.clone());
    value->setOperand(0, from);
    value->setAlignment(std::min(value->getAlign(), Align(alignment)));
    return builder.Insert(value);
  }

  Value *settled(Value *place, IRBuilder<> &builder) {
    if (auto *element = dyn_cast<GetElementPtrInst>(place)) {
      const SmallVector<Value *, 4> indices(element->indices());
      return builder.CreateGEP(element->getSourceElementType(), settled(element->getPointerOperand(), builder),
                               indices);
    }
    return places_.at(cast<IntToPtrInst>(place)->getOperand(0));
  }

  DenseMap<Value *, Value *> places_;
};

/// Makes the parameter of an entry `bytes` long, and says what it has.
void extend(Function &entry, uint64_t bytes, const Arguments &arguments) {
  LLVMContext &context = entry.getContext();
  entry.removeParamAttr(0, Attribute::ByVal);
  entry.removeParamAttr(0, Attribute::Alignment);
  entry.addParamAttr(0, Attribute::getWithByValType(context, ArrayType::get(Type::getInt8Ty(context), bytes)));
  entry.addParamAttr(0, Attribute::getWithAlignment(context, Align(alignment)));
  IRBuilder<> builder(&*entry.getEntryBlock().getFirstNonPHIOrDbgOrAlloca());
  FunctionType *type = FunctionType::get(builder.getVoidTy(), false);
  for (const auto &[index, argument] : arguments) {
    std::string comment = "// sm_value";
    for (const uint64_t number : {index, argument.offset, argument.bytes}) comment += " " + std::to_string(number);
    builder.CreateCall(InlineAsm::get(type, comment, "", /*sideEffects=*/true));
  }
}

}  // namespace

PreservedAnalyses ValueArguments::run(Module &module, ModuleAnalysisManager &) {
  Function *marker = module.getFunction("sm_value_argument");
  if (!marker) return PreservedAnalyses::all();
  SmallVector<Function *, 2> entries;
  uint64_t end = 0;
  for (Function &function : module) {
    if (!isEntry(function)) continue;
    entries.push_back(&function);
    end = module.getDataLayout().getTypeAllocSize(function.getParamByValType(0));
  }
  Arguments arguments;
  SmallVector<CallInst *, 8> calls;
  for (User *user : marker->users()) {
    calls.push_back(cast<CallInst>(user));
    ReadArgument &argument = arguments[cast<ConstantInt>(calls.back()->getArgOperand(1))->getZExtValue()];
    argument.bytes = cast<ConstantInt>(calls.back()->getArgOperand(2))->getZExtValue();
    if (isEntry(*calls.back()->getFunction())) argument.addresses.push_back(calls.back());
  }
  for (auto &[index, argument] : arguments) argument.follow();
  end = layOut(arguments, end);
  ParameterReads reads;
  for (auto &[index, argument] : arguments)
    for (CallInst *address : argument.addresses) reads.add(*address, argument.offset);
  SmallSetVector<LoadInst *, 16> loads;
  for (auto &[index, argument] : arguments) loads.insert(argument.loads.begin(), argument.loads.end());
  for (LoadInst *load : loads) reads.replace(*load);
  for (CallInst *call : calls) {
    call->replaceAllUsesWith(call->getArgOperand(0));
    call->eraseFromParent();
  }
  marker->eraseFromParent();
  if (!arguments.empty())
    for (Function *entry : entries) extend(*entry, end, arguments);
  return PreservedAnalyses::none();
}

}  // namespace lanes
