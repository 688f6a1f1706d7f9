/// Loads of words at places of a row that neighbouring lanes share, as packed codes are: the row comes into registers,
/// from which an instruction picks each lane's word in a fraction of the time that a gather takes.
#include "Widen.hpp"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsX86.h"

using namespace llvm;

namespace lanes {

namespace {

constexpr unsigned deepestPlace = 12;  ///< operations of a place
/// Lanes whose words come from one window, and its bytes: two registers of AVX-512, or a part of one of AVX2.
constexpr unsigned wideBytes = 128, narrowLanes = 4, narrowBytes = 16;
/// The words of neighbours are that far apart at most, so that a row is known to end.
constexpr unsigned laneBytes = 8;

SmallVector<int, width> firstsOf(unsigned lanes) {
  SmallVector<int, width> places;
  for (unsigned lane = 0; lane < width; ++lane) places.push_back(int(lane / lanes * lanes));
  return places;
}

}  // namespace

/// Whether a value is made of the lane's number and of what all lanes share, nothing else.
bool Widener::isOfLaneNumber(const Value *value, unsigned depth) const {
  if (shapes_.of(value).isScalar()) return true;
  const auto *instruction = dyn_cast<Instruction>(value);
  return instruction && depth < deepestPlace && isa<BinaryOperator, CastInst, MinMaxIntrinsic>(instruction) &&
         all_of(
             instruction->operands(),
             [&](const Use &operand) {
               return isa<Function>(operand.get()) || isOfLaneNumber(operand.get(), depth + 1);
             });
}

/// Where lanes read 32 bits of a row that neighbours share, at multiples of 16 bits from its beginning.
std::optional<Widener::PlacesInRow> Widener::placesInRow(Value *pointer, const Access &access) {
  if (access.size != wordBytes || access.count != 1 || access.align < Align(2)) return std::nullopt;
  const auto address = indexedHere(pointer);
  if (!address || !shapes_.of(address->base).isUniformInRuns()) return std::nullopt;
  const auto &[base, index, scale] = *address;
  const unsigned run = std::min(shapes_.of(base).lanesOfRun(), lanesAtHand(pointer));
  if (run < narrowLanes || !index->getType()->isIntegerTy(scale.getBitWidth()) || !isOfLaneNumber(index))
    return std::nullopt;
  const bool mayBeWide = isAvx512() && hasFeature("+avx512bw");
  if (!mayBeWide && !hasFeature("+avx2")) return std::nullopt;
  return PlacesInRow{index, scale, run, mayBeWide && run >= half};
}

/// What lanes read there. By a gather where words are too far apart, or a page ends among the bytes that may come into
/// registers: one of the lanes reads in that page.
Widener::Parts Widener::loadFromRow(const PlacesInRow &row, const Access &access, Value *pointer) {
  const unsigned lanes = row.isWide ? half : narrowLanes, bytes = row.isWide ? wideBytes : narrowBytes;
  const unsigned reach = row.run * laneBytes;
  Value *pointers = vector(pointer), *index = vector(row.index);
  Type *type = index->getType();
  Value *places = builder_.CreateMul(index, ConstantInt::get(type, row.scale));
  Value *windows = builder_.CreateShuffleVector(places, firstsOf(lanes));
  Value *inWindow = builder_.CreateSub(places, windows);
  Value *inRow = builder_.CreateSub(windows, builder_.CreateShuffleVector(places, firstsOf(row.run)));
  Value *fits = builder_.CreateAnd(builder_.CreateICmpULE(inWindow, ConstantInt::get(type, bytes - wordBytes)),
                                   builder_.CreateICmpULE(inRow, ConstantInt::get(type, reach - bytes)));
  Value *holds = builder_.CreateNot(any(both(mask_, builder_.CreateNot(fits))));
  // Lanes none of which is there read where one does that is.
  Value *active = builder_.CreateBinaryIntrinsic(Intrinsic::cttz, bits(mask_), builder_.getTrue());
  Value *elsewhere = builder_.CreateExtractElement(pointers, active);
  Parts begins;
  const auto placeOf = [&](unsigned lane, unsigned count) {
    return builder_.CreateSelect(builder_.CreateOrReduce(partOf(mask_, lane, count)), inLane(pointer, lane), elsewhere);
  };
  for (unsigned lane = 0; lane < width; lane += lanes) begins.push_back(placeOf(lane, lanes));
  for (unsigned lane = 0; lane < width; lane += row.run)
    holds = builder_.CreateAnd(holds, isInPage(placeOf(lane, row.run), reach));
  Value *inWords = builder_.CreateTrunc(inWindow, vectorType(builder_.getInt32Ty()));
  Parts result;
  branch(
      holds,
      [&] {
        Value *words = row.isWide ? pickWide(begins, inWords) : pickNarrow(begins, inWords);
        return Parts{builder_.CreateBitCast(words, vectorType(access.element))};
      },
      [&] { return gather(access, pointers, mask_); }, result);
  return result;
}

/// The words at `places`, multiples of 2 bytes, of the windows of 16 lanes.
Value *Widener::pickWide(const Parts &begins, Value *places) {
  constexpr unsigned pieces = wideBytes / 2 / 2;
  Type *type = vectorType(builder_.getInt16Ty(), pieces), *words = vectorType(builder_.getInt32Ty(), half);
  Parts picked;
  for (unsigned i = 0; i < begins.size(); ++i) {
    Value *registers[2];
    for (unsigned k = 0; k < 2; ++k)
      registers[k] = builder_.CreateAlignedLoad(type, builder_.CreateConstGEP1_32(type, begins[i], k), Align(2));
    // Two pieces of 16 bits a word.
    Value *low = builder_.CreateLShr(partOf(places, i * half, half), 1);
    Value *high = builder_.CreateShl(builder_.CreateAdd(low, ConstantInt::get(words, 1)), 16);
    Value *indices = builder_.CreateBitCast(builder_.CreateOr(low, high), type);
    Value *word =
        builder_.CreateIntrinsic(Intrinsic::x86_avx512_vpermi2var_hi_512, {}, {registers[0], indices, registers[1]});
    picked.push_back(builder_.CreateBitCast(word, words));
  }
  return concatenateVectors(builder_, picked);
}

/// Those of the windows of 4 lanes, of which a register has two.
Value *Widener::pickNarrow(const Parts &begins, Value *places) {
  constexpr unsigned lanes = 2 * narrowLanes;
  Type *window = vectorType(builder_.getInt8Ty(), narrowBytes),
       *pair = vectorType(builder_.getInt8Ty(), 2 * narrowBytes);
  Type *words = vectorType(builder_.getInt32Ty(), lanes);
  Parts picked;
  for (unsigned i = 0; i < begins.size(); i += 2) {
    Parts loaded;
    for (unsigned k = 0; k < 2; ++k) loaded.push_back(builder_.CreateAlignedLoad(window, begins[i + k], Align(2)));
    Value *bytes = builder_.CreateMul(partOf(places, i * narrowLanes, lanes), ConstantInt::get(words, 0x01010101));
    bytes = builder_.CreateAdd(bytes, ConstantInt::get(words, 0x03020100));
    Value *word = builder_.CreateIntrinsic(Intrinsic::x86_avx2_pshuf_b, {},
                                           {concatenateVectors(builder_, loaded), builder_.CreateBitCast(bytes, pair)});
    picked.push_back(builder_.CreateBitCast(word, words));
  }
  return concatenateVectors(builder_, picked);
}

}  // namespace lanes
