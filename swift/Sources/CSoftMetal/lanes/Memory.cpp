/// Loads and stores: once, as one vector, or lane by lane.
#include "ByRegister.hpp"
#include "Widen.hpp"
#include "llvm/Analysis/VectorUtils.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Operator.h"

using namespace llvm;

namespace lanes {

Widener::Access Widener::accessOf(Value *pointer, Type *type, Align align) {
  Type *element = laneType(type);
  const auto *vector = dyn_cast<FixedVectorType>(type);
  if (element->isIntegerTy() && element->getIntegerBitWidth() % 8 != 0) throw Declined{"memory of odd bits"};
  const uint64_t size = layout_.getTypeStoreSize(element).getFixedValue();
  Access access{element, vector ? vector->getNumElements() : 1, 0, align, size, 0, true};
  if (size != layout_.getTypeAllocSize(element).getFixedValue()) return access;
  const Shape shape = shapes_.of(pointer);
  const BasicBlock *source = blocks_.order[size_t(index_)];
  unsigned run = shape.isScalar() ? width : shape.lanesOfRun();
  if (run > 1) run = std::min(run, lanesAtHand(pointer));
  if (run == 1) return access;
  access.run = run;
  access.areTogether = run <= shapes_.lanesTogether(source);
  if (shape.stride <= 0 || uint64_t(shape.stride) % size != 0) return access;
  const uint64_t step = uint64_t(shape.stride) / size;
  // Wider steps waste more of the vector than lane by lane costs.
  if (step < access.count || step > (size <= 2 ? 8u : 4u)) return access;
  access.step = unsigned(step);
  access.align = commonAlignment(align, uint64_t(shape.stride));
  return access;
}

/// How an address is made of one index.
std::optional<Widener::Indexed> Widener::indexedBy(const Value *pointer) const {
  const auto *address = dyn_cast<GetElementPtrInst>(pointer);
  if (!address) return std::nullopt;
  const unsigned bits = layout_.getIndexTypeSizeInBits(pointer->getType());
  MapVector<Value *, APInt> indices;
  APInt offset(bits, 0);
  if (!cast<GEPOperator>(address)->collectOffset(layout_, bits, indices, offset)) return std::nullopt;
  if (!offset.isZero() || indices.size() != 1) return std::nullopt;
  return Indexed{address->getOperand(0), indices.front().first, indices.front().second};
}

/// The same of an address of the block under way: what one of another block is made of may not be at hand.
std::optional<Widener::Indexed> Widener::indexedHere(const Value *pointer) const {
  const auto *address = dyn_cast<Instruction>(pointer);
  return address && address->getParent() == blocks_.order[size_t(index_)] ? indexedBy(pointer) : std::nullopt;
}

/// Whether so many bytes from an address on lie in one page.
Value *Widener::isInPage(Value *address, uint64_t bytes) {
  Value *place = builder_.CreateAnd(builder_.CreatePtrToInt(address, builder_.getInt64Ty()), smallestPage - 1);
  return builder_.CreateICmpULE(place, builder_.getInt64(smallestPage - bytes));
}

/// Which elements of a strided access are there.
Value *Widener::wideMask(const Access &access) {
  if (access.step == 1) return mask_;
  SmallVector<int, 128> places;
  for (unsigned lane = 0; lane < width; ++lane)
    for (unsigned i = 0; i < access.step; ++i) places.push_back(int(i < access.count ? lane : width + lane));
  return builder_.CreateShuffleVector(mask_, Constant::getNullValue(mask_->getType()), places);
}

/// What lanes that are not there load: nothing, but where their bits come beside those of others on the way.
Constant *Widener::absent(const Access &access, Type *type) const {
  return areFourHalves(access) ? Constant::getNullValue(type) : PoisonValue::get(type);
}

Widener::Parts Widener::loadStrided(const Access &access, Value *base) {
  if (isFourByFour(access))
    return loadFourByFour(access,
                          [&](unsigned lane) { return builder_.CreateConstGEP1_32(access.element, base, lane * 4); });
  const Access words = inWords(access);
  Type *type = FixedVectorType::get(words.element, width * words.step);
  CallInst *all = builder_.CreateMaskedLoad(type, base, access.align, wideMask(words), absent(access, type));
  if (source_.hasFnAttribute(independent)) markLaneAfterLane(*all);
  return componentsOf(access, builder_.CreateBitCast(all, FixedVectorType::get(access.element, width * access.step)));
}

/// The components of all lanes' elements, `step` elements a lane.
Widener::Parts Widener::componentsOf(const Access &access, Value *all) {
  if (access.step == 1) return {all};
  if (areFourHalves(access)) return componentsOfFourHalves(access, all);
  Parts results;
  for (unsigned i = 0; i < access.count; ++i) {
    SmallVector<int, width> places;
    for (unsigned lane = 0; lane < width; ++lane) places.push_back(int(lane * access.step + i));
    results.push_back(builder_.CreateShuffleVector(all, places));
  }
  return results;
}

/// The inverse; elements between those of the lanes are poison.
Value *Widener::elementsOf(const Access &access, const Parts &values) {
  if (access.step == 1) return values[0];
  Parts components = values;
  Value *all = values.size() == 1 ? values[0] : concatenateVectors(builder_, components);
  SmallVector<int, 128> places;
  for (unsigned lane = 0; lane < width; ++lane)
    for (unsigned i = 0; i < access.step; ++i) places.push_back(i < access.count ? int(i * width + lane) : -1);
  return builder_.CreateShuffleVector(all, places);
}

void Widener::storeStrided(const Access &access, Value *base, const Parts &values) {
  if (isFourByFour(access))
    return storeFourByFour(access, values,
                           [&](unsigned lane) { return builder_.CreateConstGEP1_32(access.element, base, lane * 4); });
  const Access words = inWords(access);
  Value *all =
      builder_.CreateBitCast(elementsOf(access, values), FixedVectorType::get(words.element, width * words.step));
  CallInst *store = builder_.CreateMaskedStore(all, base, access.align, wideMask(words));
  if (source_.hasFnAttribute(independent)) markLaneAfterLane(*store);
}

/// The words that a lane's components of 8 or 16 bits are moved by where each lane has its own address, since
/// processors gather nothing smaller: how many, and of how many bytes. One component a word where they do not fit.
std::pair<unsigned, uint64_t> Widener::wordsOf(const Access &access) {
  const uint64_t bytes = access.count * access.size;
  if (access.size >= 4 || access.count == 1) return {access.count, access.size};
  for (const uint64_t word : {8, 4})
    if (bytes % word == 0) return {unsigned(bytes / word), word};
  return {access.count, access.size};
}

/// An access of neighbouring lanes by the words of `wordsOf`, as far as nothing lies between them: few processors have
/// masks of elements of 8 or 16 bits.
Widener::Access Widener::inWords(const Access &access) {
  const auto [count, size] = wordsOf(access);
  if (size == access.size || access.step != access.count) return access;
  return {builder_.getIntNTy(unsigned(size * 8)), count, count, access.align, size, access.run, access.areTogether};
}

/// Vectors of all lanes' parts, `from` a lane, cut into `to` parts a lane of type `element`.
Widener::Parts Widener::recut(const Parts &parts, Type *element, unsigned to) {
  const unsigned from = parts.size();
  Parts given = parts, results;
  Value *all = from == 1 ? given[0] : concatenateVectors(builder_, given);
  SmallVector<int, 256> places;
  for (unsigned lane = 0; lane < width; ++lane)
    for (unsigned i = 0; i < from; ++i) places.push_back(int(i * width + lane));
  if (from > 1) all = builder_.CreateShuffleVector(all, places);
  all = builder_.CreateBitCast(all, FixedVectorType::get(element, width * to));
  for (unsigned i = 0; i < to; ++i) {
    places.clear();
    for (unsigned lane = 0; lane < width; ++lane) places.push_back(int(lane * to + i));
    results.push_back(to == 1 ? all : builder_.CreateShuffleVector(all, places));
  }
  return results;
}

Widener::Parts Widener::gather(const Access &access, Value *pointers, Value *mask) {
  const auto [count, size] = wordsOf(access);
  const bool isRecut = size != access.size;
  Type *element = isRecut ? builder_.getIntNTy(unsigned(size * 8)) : access.element;
  Parts results;
  for (unsigned i = 0; i < count; ++i) {
    Value *places = i ? builder_.CreateGEP(element, pointers, builder_.getInt64(i)) : pointers;
    Type *type = FixedVectorType::get(element, cast<FixedVectorType>(mask->getType())->getNumElements());
    results.push_back(builder_.CreateMaskedGather(type, places, commonAlignment(access.align, i * size), mask,
                                                  PoisonValue::get(type)));
  }
  return isRecut ? recut(results, access.element, access.count) : results;
}

/// In lane order, a lane's components together: where lanes write to one place the last wins.
void Widener::scatter(const Access &access, Value *pointers, const Parts &values) {
  const auto [count, size] = wordsOf(access);
  const bool isRecut = size != access.size;
  Type *element = isRecut ? builder_.getIntNTy(unsigned(size * 8)) : access.element;
  const Parts words = isRecut ? recut(values, element, count) : values;
  for (unsigned i = 0; i < count; ++i) {
    Value *places = i ? builder_.CreateGEP(element, pointers, builder_.getInt64(i)) : pointers;
    builder_.CreateMaskedScatter(words[i], places, commonAlignment(access.align, i * size), mask_);
  }
}

/// Two ways, of which `condition` chooses one; merges what they result in.
void Widener::branch(Value *condition, const std::function<Parts()> &then, const std::function<Parts()> &otherwise,
                     Parts &results) {
  LLVMContext &context = source_.getContext();
  BasicBlock *ways[2], *ends[2], *join = BasicBlock::Create(context, "joined", &target_);
  for (auto &way : ways) way = BasicBlock::Create(context, "way", &target_);
  builder_.CreateCondBr(condition, ways[0], ways[1]);
  Parts values[2];
  for (unsigned i = 0; i < 2; ++i) {
    builder_.SetInsertPoint(ways[i]);
    values[i] = i == 0 ? then() : otherwise();
    ends[i] = builder_.GetInsertBlock();
    builder_.CreateBr(join);
  }
  builder_.SetInsertPoint(join);
  for (unsigned i = 0; i < values[0].size(); ++i) {
    PHINode *phi = builder_.CreatePHI(values[0][i]->getType(), 2);
    for (unsigned k = 0; k < 2; ++k) phi->addIncoming(values[k][i], ends[k]);
    results.push_back(phi);
  }
}

void Widener::widenLoad(LoadInst &load) {
  if (load.isAtomic() || load.isVolatile()) return serial(load);
  // With another of its block, or with it others that follow.
  if (current_.contains(&load) || loadByBytes(load)) return;
  set(load, loadParts(load.getPointerOperand(), load.getType(), load.getAlign()));
}

Widener::Parts Widener::loadParts(Value *pointer, Type *type, Align align) {
  const Access access = accessOf(pointer, type, align);
  const Shape shape = shapes_.of(pointer);
  if (shape.kind == Shape::varying && access.step > 0) return loadRuns(access, pointer);
  if (shape.kind == Shape::varying && access.run > 1 && access.areTogether && shape.stride == 0)
    return loadOncePerRun(access, pointer);
  if (access.step == 0) {
    if (const auto table = tableOf(pointer, access)) return lookUp(*table, access, pointer);
    if (const auto row = placesInRow(pointer, access)) return loadFromRow(*row, access, pointer);
    return gather(access, vector(pointer), mask_);
  }
  Value *base = scalar(pointer);
  if (!shape.isAssumed) return loadStrided(access, base);
  Value *pointers = vector(pointer), *holds = check(pointer);
  Parts results;
  branch(holds, [&] { return loadStrided(access, base); }, [&] { return gather(access, pointers, mask_); }, results);
  return results;
}

void Widener::widenStore(StoreInst &store) {
  Value *pointer = store.getPointerOperand(), *value = store.getValueOperand();
  const Shape shape = shapes_.of(pointer);
  const auto *type = dyn_cast<FixedVectorType>(value->getType());
  if (shape.isUniform()) {
    // The last lane's value stays.
    Value *last = nullptr;
    if (shapes_.of(value).isUniform()) {
      last = scalar(value);
    } else if (!type) {
      last = lastActive(value);
    } else {
      last = PoisonValue::get(FixedVectorType::get(laneType(value->getType()), type->getNumElements()));
      Value *zeros = builder_.CreateBinaryIntrinsic(Intrinsic::ctlz, bits(mask_), builder_.getTrue());
      Value *lane = builder_.CreateXor(zeros, builder_.getInt32(width - 1));
      for (unsigned i = 0; i < type->getNumElements(); ++i)
        last = builder_.CreateInsertElement(last, builder_.CreateExtractElement(vector(value, i), lane), uint64_t(i));
    }
    auto *copy = cast<StoreInst>(store.clone());
    copy->setOperand(0, last);
    copy->setOperand(1, scalar(pointer));
    copy->dropUnknownNonDebugMetadata();
    builder_.Insert(copy);
    return;
  }
  if (store.isAtomic() || store.isVolatile()) return serial(store);
  const Parts *words = knownWords(value);
  if (words && !isa<Constant>(value))
    return storeParts(pointer, FixedVectorType::get(builder_.getInt32Ty(), unsigned(words->size())), store.getAlign(),
                      Parts(*words));
  Parts values;
  for (unsigned i = 0; i < (type ? type->getNumElements() : 1); ++i) values.push_back(vector(value, i));
  storeParts(pointer, value->getType(), store.getAlign(), values);
}

void Widener::storeParts(Value *pointer, Type *type, Align align, const Parts &values) {
  const Access access = accessOf(pointer, type, align);
  const Shape shape = shapes_.of(pointer);
  if (shape.kind == Shape::varying && access.step > 0) return storeRuns(access, pointer, values);
  if (access.step == 0) return scatter(access, vector(pointer), values);
  Value *base = scalar(pointer);
  if (!shape.isAssumed) return storeStrided(access, base, values);
  Value *pointers = vector(pointer), *holds = check(pointer);
  Parts none;
  branch(
      holds, [&] { return storeStrided(access, base, values), Parts(); },
      [&] { return scatter(access, pointers, values), Parts(); }, none);
}

}  // namespace lanes
