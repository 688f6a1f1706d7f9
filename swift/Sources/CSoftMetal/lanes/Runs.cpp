/// What neighbouring lanes do together, where all 32 do not: 8 lanes own a row, say, and go through it side by side.
#include "Widen.hpp"
#include "llvm/Analysis/VectorUtils.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace lanes {
namespace {

constexpr unsigned deepestCopy = 12;         ///< operations of an address
constexpr unsigned four = 4, sixteen = 16;   ///< components of 32 bits a lane; a register

/// Whether a value is of an address, which is computed lane by lane as for all lanes.
bool isNumber(const Value *value) { return value->getType()->isIntegerTy() || value->getType()->isPointerTy(); }

/// Whether an instruction gives any lane its value, without harm in those that are not there.
bool isArithmetic(const Instruction &instruction) {
  return isa<GetElementPtrInst, CastInst>(instruction) ||
         (isa<BinaryOperator>(instruction) && !instruction.isIntDivRem());
}

/// `count` numbers from `first` on, each as `of` makes it a place.
template <typename Of>
SmallVector<int, 128> placesFor(unsigned count, Of of) {
  SmallVector<int, 128> places;
  for (unsigned i = 0; i < count; ++i) places.push_back(int(of(i)));
  return places;
}

}  // namespace

/// Of how many neighbours each has a value where any of them comes to the block under way: those that come together
/// there, or did to where it was made, or what it is made of.
unsigned Widener::lanesAtHand(const Value *value, unsigned depth) const {
  if (shapes_.of(value).isScalar()) return width;
  const BasicBlock *underWay = blocks_.order[size_t(index_)];
  const auto *instruction = dyn_cast<Instruction>(value);
  const BasicBlock *block = instruction ? instruction->getParent() : underWay;
  const bool isOfOperands = instruction && (isArithmetic(*instruction) || isa<MinMaxIntrinsic>(instruction));
  if (block != underWay || !isOfOperands || depth == deepestCopy)
    return std::max(shapes_.lanesTogether(block), shapes_.lanesTogether(underWay));
  unsigned lanes = width;
  for (const Use &operand : instruction->operands())
    if (!isa<Function>(operand.get())) lanes = std::min(lanes, lanesAtHand(operand.get(), depth + 1));
  return lanes;
}

/// What a value is in one lane, without those of the others.
Value *Widener::inLane(Value *value, unsigned lane, unsigned depth) {
  if (isa<Constant>(value)) return value;
  const auto known = inLane_.find({value, lane});
  if (known != inLane_.end()) return known->second;
  const Shape shape = shapes_.of(value);
  auto *instruction = dyn_cast<Instruction>(value);
  Value *result;
  if (shape.isUniform() || (shape.isScalar() && !shape.isAssumed)) {
    result = scalar(value);
    const uint64_t distance = uint64_t(shape.stride) * lane;
    if (distance != 0)
      result = value->getType()->isPointerTy()
                   ? builder_.CreateGEP(builder_.getInt8Ty(), result, builder_.getInt64(distance))
                   : builder_.CreateAdd(result, ConstantInt::get(value->getType(), distance));
  } else if (instruction && instruction->getParent() == blocks_.order[size_t(index_)] && depth < deepestCopy &&
             isNumber(value) && isArithmetic(*instruction) && all_of(instruction->operands(), isNumber)) {
    Instruction *copy = instruction->clone();
    for (Use &operand : copy->operands()) operand.set(inLane(operand.get(), lane, depth + 1));
    copy->dropPoisonGeneratingFlags();
    copy->dropUnknownNonDebugMetadata();
    result = builder_.Insert(copy);
  } else {
    result = builder_.CreateExtractElement(vector(value), uint64_t(lane));
  }
  return inLane_[{value, lane}] = result;
}

/// Which words are there of the run of lane `first`, which has `count` of them.
Value *Widener::maskOfRun(const Access &access, unsigned first, unsigned count) {
  return builder_.CreateShuffleVector(
      mask_, placesFor(count, [&](unsigned k) { return access.areTogether ? first : first + k * access.run / count; }));
}

/// Lanes' components of 32 bits that lie four by four, where a register holds sixteen.
bool Widener::isFourByFour(const Access &access) const {
  return access.size == 4 && access.step == four && access.count > 1 && registerBits_ >= 512;
}

/// A permutation of two registers leaves half a register of each of two components, another one puts the halves
/// together. LLVM would need as many for every component alone. `placeOf`: where the elements of a lane, a multiple of
/// four, and the three after it begin.
Widener::Parts Widener::loadFourByFour(const Access &access, const std::function<Value *(unsigned)> &placeOf) {
  Type *type = FixedVectorType::get(access.element, sixteen);
  Parts registers;
  for (unsigned lane = 0; lane < width; lane += four) {
    Value *mask = builder_.CreateShuffleVector(
        mask_, Constant::getNullValue(mask_->getType()),
        placesFor(sixteen, [&](unsigned k) { return lane + k / four + (k % four < access.count ? 0 : width); }));
    registers.push_back(builder_.CreateMaskedLoad(type, placeOf(lane), access.align, mask, PoisonValue::get(type)));
  }
  Parts results;
  for (unsigned pair = 0; pair < access.count; pair += 2) {
    const auto places = placesFor(sixteen, [&](unsigned k) { return k % 8 * four + pair + k / 8; });
    Parts halves;
    for (unsigned i = 0; i < registers.size(); i += 2)
      halves.push_back(builder_.CreateShuffleVector(registers[i], registers[i + 1], places));
    for (unsigned component = 0; component < std::min(2u, access.count - pair); ++component) {
      Parts wholes;
      for (unsigned i = 0; i < halves.size(); i += 2)
        wholes.push_back(builder_.CreateShuffleVector(halves[i], halves[i + 1], placesFor(sixteen, [&](unsigned k) {
                                                        return component * 8 + k % 8 + k / 8 * sixteen;
                                                      })));
      results.push_back(concatenateVectors(builder_, wholes));
    }
  }
  return results;
}

/// The inverse.
void Widener::storeFourByFour(const Access &access, const Parts &values,
                              const std::function<Value *(unsigned)> &placeOf) {
  const auto pairOf = [&](unsigned component, unsigned half, unsigned part) {
    Value *none = PoisonValue::get(values[0]->getType());
    Value *a = values[component], *b = component + 1 < values.size() ? values[component + 1] : none;
    return builder_.CreateShuffleVector(
        a, b, placesFor(sixteen, [&](unsigned k) { return half * sixteen + part * 8 + k / 2 + k % 2 * width; }));
  };
  for (unsigned half = 0; half < 2; ++half)
    for (unsigned part = 0; part < 2; ++part) {
      Value *low = pairOf(0, half, part);
      Value *high = values.size() > 2 ? pairOf(2, half, part) : PoisonValue::get(low->getType());
      for (unsigned quarter = 0; quarter < 2; ++quarter) {
        Value *all = builder_.CreateShuffleVector(low, high, placesFor(sixteen, [&](unsigned k) {
                                                    return quarter * 8 + k / four * 2 + k % 2 + k % four / 2 * sixteen;
                                                  }));
        const unsigned lane = half * sixteen + part * 8 + quarter * four;
        Value *mask = builder_.CreateShuffleVector(
            mask_, Constant::getNullValue(mask_->getType()),
            placesFor(sixteen, [&](unsigned k) { return lane + k / four + (k % four < access.count ? 0 : width); }));
        builder_.CreateMaskedStore(all, placeOf(lane), access.align, mask);
      }
    }
}

/// Four components of 16 bits a lane, where a register holds sixteen.
bool Widener::areFourHalves(const Access &access) const {
  return access.size == 2 && access.step == four && access.count == four && registerBits_ == 256;
}

/// Eight lanes at a time: two lanes' components side by side, then those of four lanes, as words of 32 bits, then of
/// eight. Each step is one instruction for a register, where LLVM would need some eight a component.
Widener::Parts Widener::componentsOfFourHalves(const Access &access, Value *all) {
  constexpr unsigned together = 8, halves = 2;
  Parts quarters[four];
  for (unsigned first = 0; first < width; first += together) {
    Value *pairs[halves];
    for (unsigned side = 0; side < halves; ++side) {
      // Lanes 0, 1, 4 and 5, or 2, 3, 6 and 7.
      const auto lanes = placesFor(sixteen, [&](unsigned k) { return first * four + side * 8 + k % 8 + k / 8 * 16; });
      const auto paired = placesFor(sixteen, [&](unsigned k) { return k / 8 * 8 + k % 2 * four + k % 8 / 2; });
      pairs[side] =
          builder_.CreateBitCast(builder_.CreateShuffleVector(builder_.CreateShuffleVector(all, lanes), paired),
                                 FixedVectorType::get(builder_.getInt32Ty(), together));
    }
    for (unsigned part = 0; part < halves; ++part) {
      const auto unpacked =
          placesFor(together, [&](unsigned k) { return k / four * four + part * 2 + k % four / 2 + k % 2 * together; });
      Value *words = builder_.CreateBitCast(builder_.CreateShuffleVector(pairs[0], pairs[1], unpacked),
                                            FixedVectorType::get(builder_.getInt64Ty(), four));
      words = builder_.CreateShuffleVector(words, placesFor(four, [&](unsigned k) { return k % 2 * 2 + k / 2; }));
      Value *two = builder_.CreateBitCast(words, FixedVectorType::get(access.element, sixteen));
      for (unsigned i = 0; i < halves; ++i)
        quarters[part * 2 + i].push_back(
            builder_.CreateShuffleVector(two, placesFor(together, [&](unsigned k) { return i * together + k; })));
    }
  }
  Parts results;
  for (Parts &each : quarters) results.push_back(concatenateVectors(builder_, each));
  return results;
}

/// Where a lane's elements are, by the address of the first lane of its run.
Value *Widener::placeInRun(const Access &access, Value *pointer, unsigned lane) {
  Value *base = inLane(pointer, lane / access.run * access.run);
  return builder_.CreateConstGEP1_32(access.element, base, lane % access.run * access.step);
}

/// Whether a run's access is of words of 32 bits without gaps, each of one lane where those of a run may part.
bool Widener::isWhole(const Access &access) const {
  const uint64_t lanes = access.areTogether ? access.run : 1;
  return access.step == access.count && lanes * access.step * access.size % 4 == 0;
}

/// One access a run. Where lanes of it may part, all of it is read as far as no page ends in it: a load by a mask takes
/// tens of cycles on Zen 5, where stores are under way.
Widener::Parts Widener::loadRuns(const Access &access, Value *pointer) {
  if (isFourByFour(access))
    return loadFourByFour(access, [&](unsigned lane) { return placeInRun(access, pointer, lane); });
  const unsigned count = access.run * access.step;
  Type *type = FixedVectorType::get(access.element, count);
  Parts places, result;
  for (unsigned lane = 0; lane < width; lane += access.run) places.push_back(placeInRun(access, pointer, lane));
  const auto masked = [&] { return Parts{concatenateVectors(builder_, loadMasked(access, places))}; };
  if (access.areTogether) return componentsOf(access, masked()[0]);
  Value *holds = builder_.getTrue();
  for (unsigned i = 0; i < places.size(); ++i) {
    Value *isAsked = builder_.CreateOrReduce(partOf(mask_, i * access.run, access.run));
    holds = builder_.CreateAnd(holds, builder_.CreateAnd(isInPage(places[i], count * access.size), isAsked));
  }
  branch(
      holds,
      [&] {
        Parts runs;
        for (Value *place : places) runs.push_back(builder_.CreateAlignedLoad(type, place, access.align));
        return Parts{concatenateVectors(builder_, runs)};
      },
      masked, result);
  return componentsOf(access, result[0]);
}

/// The runs at `places`, of lanes that are there.
Widener::Parts Widener::loadMasked(const Access &access, const Parts &places) {
  const unsigned count = access.run * access.step;
  Type *type = FixedVectorType::get(access.element, count), *loadedType = type;
  // Few processors have masks of elements of 8 or 16 bits.
  const unsigned words = unsigned(count * access.size / 4);
  if (isWhole(access)) loadedType = FixedVectorType::get(builder_.getInt32Ty(), words);
  Value *wide = isWhole(access) ? nullptr : wideMask(access);
  Parts runs;
  for (unsigned i = 0; i < places.size(); ++i) {
    const unsigned lane = i * access.run;
    Value *mask = wide ? partOf(wide, lane * access.step, count) : maskOfRun(access, lane, words);
    Value *loaded = builder_.CreateMaskedLoad(loadedType, places[i], access.align, mask, absent(access, loadedType));
    runs.push_back(builder_.CreateBitCast(loaded, type));
  }
  return runs;
}

void Widener::storeRuns(const Access &access, Value *pointer, const Parts &values) {
  const auto placeOf = [&](unsigned lane) { return placeInRun(access, pointer, lane); };
  if (isFourByFour(access)) return storeFourByFour(access, values, placeOf);
  const unsigned count = access.run * access.step;
  Value *wide = isWhole(access) ? nullptr : wideMask(access), *all = elementsOf(access, values);
  for (unsigned lane = 0; lane < width; lane += access.run) {
    Value *own = partOf(all, lane * access.step, count), *mask;
    if (isWhole(access)) {
      own = builder_.CreateBitCast(own, FixedVectorType::get(builder_.getInt32Ty(), unsigned(count * access.size / 4)));
      mask = maskOfRun(access, lane, cast<FixedVectorType>(own->getType())->getNumElements());
    } else {
      mask = partOf(wide, lane * access.step, count);
    }
    builder_.CreateMaskedStore(own, placeOf(lane), access.align, mask);
  }
}

/// Lanes of a run that read one place read it once.
Widener::Parts Widener::loadOncePerRun(const Access &access, Value *pointer) {
  const unsigned runs = width / access.run;
  const auto firsts = placesFor(runs, [&](unsigned i) { return i * access.run; });
  Value *pointers = builder_.CreateShuffleVector(vector(pointer), firsts);
  Value *mask = builder_.CreateShuffleVector(mask_, firsts);
  Parts results;
  for (unsigned i = 0; i < access.count; ++i) {
    Type *type = FixedVectorType::get(access.element, runs);
    Value *places = i ? builder_.CreateGEP(access.element, pointers, builder_.getInt64(i)) : pointers;
    Value *loaded = builder_.CreateMaskedGather(type, places, commonAlignment(access.align, i * access.size), mask,
                                                PoisonValue::get(type));
    results.push_back(
        builder_.CreateShuffleVector(loaded, placesFor(width, [&](unsigned lane) { return lane / access.run; })));
  }
  return results;
}

/// Divisions are done one by one: once for each run, where its lanes divide the same.
Value *Widener::divideInRuns(Instruction &instruction, Value *a, Value *b) {
  const Shape shape = shapes_.of(&instruction);
  if (instruction.getType()->isVectorTy() || shape.kind != Shape::varying || !shape.isUniformInRuns()) return nullptr;
  const unsigned run = std::min(shape.lanesOfRun(), shapes_.lanesTogether(blocks_.order[size_t(index_)]));
  if (run < 2) return nullptr;
  const auto firsts = placesFor(width / run, [&](unsigned i) { return i * run; });
  Value *quotient =
      builder_.CreateBinOp(cast<BinaryOperator>(instruction).getOpcode(), builder_.CreateShuffleVector(a, firsts),
                           builder_.CreateShuffleVector(b, firsts));
  return builder_.CreateShuffleVector(quotient, placesFor(width, [&](unsigned lane) { return lane / run; }));
}

}  // namespace lanes
