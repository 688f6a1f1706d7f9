/// Loads from a table of 256 words at the bytes of a word, as codes of 8 bits are decoded: all bytes of 16 lanes' words
/// look up at once what the table's words have for their first byte, in another instruction for their second, and so
/// on. A look-up of words would need the table in 16 registers for every 16 of them.
#include "Hide.hpp"
#include "Widen.hpp"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;
using namespace PatternMatch;

namespace lanes {

namespace {

constexpr unsigned tableWords = 256;
/// Bytes of a register, and registers with one byte of each word of the table.
constexpr unsigned registerBytes = 64, planeRegisters = tableWords / registerBytes;

/// Whether it may change what a table in memory has.
bool mayWrite(const Instruction &instruction) {
  switch (primitiveOf(&instruction)) {
    case Primitive::none:
      break;
    case Primitive::barrier:
    case Primitive::order:
    case Primitive::matrixStore:
      return true;
    default:
      return false;
  }
  const auto *intrinsic = dyn_cast<IntrinsicInst>(&instruction);
  if (!instruction.mayWriteToMemory() || (intrinsic && intrinsic->isAssumeLikeIntrinsic())) return false;
  const auto *store = dyn_cast<StoreInst>(&instruction);
  return !store || !isa<AllocaInst>(getUnderlyingObject(store->getPointerOperand()));
}

bool mayWrite(const BasicBlock &block) {
  return any_of(block, [](const Instruction &instruction) { return mayWrite(instruction); });
}

/// Whether the table stays as it is while the innermost loop around `block` goes on: to turn it is worth it then.
bool isKeptInLoop(const LoopInfo &loops, const BasicBlock &block) {
  const Loop *loop = loops.getLoopFor(&block);
  return loop && none_of(loop->blocks(), [](const BasicBlock *each) { return mayWrite(*each); });
}

}  // namespace

/// How a load's address is an element of a table by a byte of a word, whatever block asks.
std::optional<Widener::ByteIndex> Widener::byteIndexOf(const LoadInst &load) const {
  if (!load.isSimple() || !(load.getType()->isIntegerTy(32) || load.getType()->isFloatTy())) return std::nullopt;
  const auto address = indexedBy(load.getPointerOperand());
  if (!address || address->scale != wordBytes || !mayBeTable(address->base, tableWords * wordBytes))
    return std::nullopt;
  Value *index = address->index, *word = nullptr;
  if (auto *extended = dyn_cast<ZExtInst>(index)) index = extended->getOperand(0);
  if (!index->getType()->isIntegerTy(32)) return std::nullopt;
  const APInt *shift = nullptr;
  uint64_t bits = 0;
  const bool isLast = match(index, m_LShr(m_Value(word), m_SpecificInt(24)));
  if (isLast)
    bits = 24;
  else if (match(index, m_And(m_LShr(m_Value(word), m_APInt(shift)), m_SpecificInt(255))))
    bits = shift->getZExtValue();
  else if (!match(index, m_And(m_Value(word), m_SpecificInt(255))))
    return std::nullopt;
  if (bits % 8 != 0 || bits > 24) return std::nullopt;
  return ByteIndex{address->base, word, unsigned(bits / 8)};
}

/// Makes room for the tables of such loads.
void Widener::findByteTables() {
  if (!isAvx512() || !hasFeature("+avx512vbmi")) return;
  for (BasicBlock *block : blocks_.order) {
    for (const Instruction &instruction : *block) {
      const auto *load = dyn_cast<LoadInst>(&instruction);
      const auto index = load ? byteIndexOf(*load) : std::nullopt;
      if (!index || byteTables_.contains(index->base) || !isKeptInLoop(blocks_.loops, *block)) continue;
      AllocaInst *planes = slot(ArrayType::get(builder_.getInt8Ty(), tableWords * wordBytes), "planes");
      planes->setAlignment(Align(registerBytes));
      byteTables_[index->base] = {hiddenAddressOf(planes), slot(builder_.getPtrTy(), "planes.of")};
    }
  }
}

/// Tables may have changed: planes of them are of no use.
void Widener::forgetByteTables() {
  for (const auto &[base, table] : byteTables_)
    builder_.CreateStore(ConstantPointerNull::get(builder_.getPtrTy()), table.of);
}

void Widener::forgetByteTablesAfter(const BasicBlock &block) {
  if (!byteTables_.empty() && mayWrite(block)) forgetByteTables();
}

/// Does `load`, and with it those that follow in its block at other bytes of the same word. False where there are none.
bool Widener::loadByBytes(LoadInst &load) {
  const auto index = byteIndexOf(load);
  const auto found = index ? byteTables_.find(index->base) : byteTables_.end();
  if (found == byteTables_.end() || !isAtHand(index->base) || !isAtHand(index->word) ||
      !isKeptInLoop(blocks_.loops, *load.getParent()))
    return false;
  SmallVector<std::pair<LoadInst *, unsigned>, wordBytes> loads;
  for (Instruction &each : make_range(load.getIterator(), load.getParent()->end())) {
    auto *other = dyn_cast<LoadInst>(&each);
    const auto own = other ? byteIndexOf(*other) : std::nullopt;
    if (own && own->base == index->base && own->word == index->word) loads.push_back({other, own->byte});
  }
  if (loads.size() < 2) return false;
  const ByteTable &table = found->second;
  Value *first = scalar(index->base), *word = vector(index->word), *base = vector(index->base);
  Value *isTurned = builder_.CreateICmpEQ(builder_.CreateLoad(builder_.getPtrTy(), table.of), first);
  Parts ready, results;
  branch(
      isTurned, [&] { return Parts{builder_.getTrue()}; },
      [&] {
        Value *isWhole = isInPage(first, tableWords * wordBytes);
        Parts none;
        branch(
            isWhole, [&] { return turnTable(table, first, load.getAlign()), Parts(); }, [] { return Parts(); }, none);
        return Parts{isWhole};
      },
      ready);
  const Access number{builder_.getInt32Ty(), 1, 0, load.getAlign(), wordBytes, 0, true};
  branch(
      ready[0], [&] { return lookUpBytes(table, word); },
      [&] {
        Parts gathered;
        for (unsigned byte = 0; byte < wordBytes; ++byte) {
          Value *place = builder_.CreateAnd(builder_.CreateLShr(word, 8 * byte), 255);
          Value *pointers = builder_.CreateGEP(number.element, base, place);
          gathered.append(gather(number, pointers, mask_));
        }
        return gathered;
      },
      results);
  for (const auto &[each, byte] : loads)
    set(*each, {builder_.CreateBitCast(results[byte], vectorType(each->getType()))});
  return true;
}

/// Fills the planes of the table at `first`: of each byte of a word four registers, with those of 64 words each.
void Widener::turnTable(const ByteTable &table, Value *first, Align align) {
  Type *plane = vectorType(builder_.getInt8Ty(), registerBytes),
       *words = vectorType(builder_.getInt32Ty(), registerBytes);
  for (unsigned i = 0; i < planeRegisters; ++i) {
    Value *loaded = builder_.CreateAlignedLoad(words, builder_.CreateConstGEP1_32(words, first, i), align);
    for (unsigned byte = 0; byte < wordBytes; ++byte)
      builder_.CreateStore(builder_.CreateTrunc(builder_.CreateLShr(loaded, 8 * byte), plane),
                           builder_.CreateConstGEP1_32(plane, table.planes, byte * planeRegisters + i));
  }
  builder_.CreateStore(first, table.of);
}

/// The table's words at byte 0 of all lanes' words, at byte 1, 2 and 3.
Widener::Parts Widener::lookUpBytes(const ByteTable &table, Value *word) {
  Type *plane = vectorType(builder_.getInt8Ty(), registerBytes);
  Type *pairs = vectorType(builder_.getInt16Ty(), 2 * half), *words = vectorType(builder_.getInt32Ty(), half);
  // LLVM would make permutations of two registers of it, which take Intel's processors two turns of one unit, if it saw
  // what is shifted.
  const auto merge = [&](Value *low, Value *high, uint64_t lowBits) {
    return builder_.CreateOr(builder_.CreateAnd(hide(builder_, low), lowBits),
                             builder_.CreateAnd(hide(builder_, high), ~lowBits));
  };
  // Of each byte of the result, what all bytes of the words find, of 16 lanes in each register.
  Parts found[width / half];
  for (unsigned byte = 0; byte < wordBytes; ++byte) {
    Value *registers[planeRegisters];
    for (unsigned i = 0; i < planeRegisters; ++i)
      registers[i] =
          builder_.CreateLoad(plane, builder_.CreateConstGEP1_32(plane, table.planes, byte * planeRegisters + i));
    for (unsigned k = 0; k < width / half; ++k) {
      Value *bytes = builder_.CreateBitCast(partOf(word, k * half, half), plane);
      const auto pick = [&](Value *low, Value *high) {
        return builder_.CreateIntrinsic(Intrinsic::x86_avx512_vpermi2var_qi_512, {}, {low, bytes, high});
      };
      Value *isUpper = builder_.CreateICmpSLT(bytes, Constant::getNullValue(plane));
      Value *picked =
          builder_.CreateSelect(isUpper, pick(registers[2], registers[3]), pick(registers[0], registers[1]));
      found[k].push_back(builder_.CreateBitCast(picked, pairs));
    }
  }
  std::array<Parts, wordBytes> results;
  for (const Parts &bytes : found) {
    // Four by four bytes change places: in pairs first, then pairs in words.
    Value *even[2], *odd[2];
    for (unsigned i = 0; i < 2; ++i) {
      Value *a = bytes[2 * i], *b = bytes[2 * i + 1];
      even[i] = merge(a, builder_.CreateShl(b, 8), 0x00ff);
      odd[i] = merge(builder_.CreateLShr(a, 8), b, 0x00ff);
    }
    for (Value **each : {even, odd}) {
      Value *a = builder_.CreateBitCast(each[0], words), *b = builder_.CreateBitCast(each[1], words);
      const unsigned first = each == even ? 0 : 1;
      results[first].push_back(merge(a, builder_.CreateShl(b, 16), 0x0000ffff));
      results[first + 2].push_back(merge(builder_.CreateLShr(a, 16), b, 0x0000ffff));
    }
  }
  Parts all;
  for (Parts &halves : results) all.push_back(concatenateVectors(builder_, halves));
  return all;
}

}  // namespace lanes
