/// Makes the function that runs 32 lanes out of the one that runs a thread.
///
/// Whole-function vectorisation (Karrenberg and Hack, CGO 2011), as in ispc
/// (Pharr and Mark, InPar 2012): what differs between lanes becomes vectors of
/// 32, branches that lanes take differently become masks. Every value that
/// crosses blocks, every phi and every mask has a slot on the stack, written
/// where it changes; mem2reg makes values of them again.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>

#include "BarrierWays.hpp"
#include "Linearize.hpp"
#include "Primitives.hpp"
#include "Shapes.hpp"
#include "Tiles.hpp"
#include "llvm/ADT/MapVector.h"
#include "llvm/IR/IRBuilder.h"

namespace lanes {

constexpr unsigned wordBytes = 4;  ///< of 32 bits
constexpr int side = 8, elements = side * side;  ///< of a matrix
/// Memory of so many bytes, at a multiple of them, can be read whole where a byte of it can.
constexpr uint64_t smallestPage = 4096;

class Widener {
 public:
  /// Fills `target`, which has the signature of `source` and no body. Its registers have `registerBits`.
  Widener(llvm::Function &source, llvm::Function &target, Blocks &blocks, const Shapes &shapes, uint64_t registerBits);
  void run();

 private:
  using Parts = llvm::SmallVector<llvm::Value *, 4>;
  struct Block {
    llvm::BasicBlock *head = nullptr;
    llvm::AllocaInst *arriving = nullptr;  ///< lanes that wait in front of it, where that is asked
    llvm::AllocaInst *mask = nullptr;      ///< lanes it ran with, where another block runs with the same
    llvm::BasicBlock *equivalent = nullptr;
    bool isAwaited = true;  ///< whether `arriving` is kept
  };

  /// Where the elements of a left matrix are, each for a whole row of products.
  struct Factors {
    llvm::AllocaInst *place = nullptr;
    llvm::Value *hidden = nullptr;  ///< its address, for reads
  };

  /// Memory for a matrix, and which is there in the block under way.
  struct Box {
    llvm::AllocaInst *place = nullptr;
    llvm::Value *value = nullptr;
  };

  /// A few of them, of which the one that was filled first is filled next.
  struct Boxes {
    std::array<Box, 4> all;
    size_t next = 0;
  };

  // Blocks and edges (Widen.cpp)
  void makeSlots();
  void emitBlock(int index);
  void emitTerminator(llvm::BasicBlock *block, const FlowStep &step);
  void keepLoop(llvm::Instruction &jump, const llvm::Loop &loop);
  void edge(llvm::BasicBlock *from, llvm::BasicBlock *to, llvm::Value *lanes);
  llvm::AllocaInst *slot(llvm::Type *type, const llvm::Twine &name);
  bool needsSlot(const llvm::Instruction &instruction) const;
  bool isAskedElsewhere(const llvm::Instruction &instruction) const;

  // Values (Values.cpp)
  const Parts &parts(llvm::Value *value);
  bool isAtHand(const llvm::Value *value) const;
  llvm::Value *scalar(llvm::Value *value);
  llvm::Value *vector(llvm::Value *value, unsigned component = 0);
  llvm::Value *matrix(llvm::Value *value);
  llvm::Value *exact(llvm::Instruction &instruction);
  llvm::Value *check(llvm::Value *value);
  void set(llvm::Instruction &instruction, Parts parts);
  void findMatrices();
  bool mayBeMatrix(const llvm::Instruction &instruction) const;
  bool isMatrix(const llvm::Value *value) const { return matrices_.contains(value); }
  llvm::Type *laneType(llvm::Type *type) const;
  llvm::Type *elementType(llvm::Type *share) const;
  llvm::Type *vectorType(llvm::Type *type, unsigned count = width) const;
  llvm::SmallVector<llvm::Type *, 4> slotTypes(const llvm::Instruction &instruction) const;
  llvm::Constant *ramp(llvm::Type *type, int64_t stride) const;
  llvm::Value *splat(llvm::Value *value, unsigned count = width);
  llvm::Value *partOf(llvm::Value *vector, unsigned first, unsigned count);
  llvm::Value *any(llvm::Value *mask);
  llvm::Value *bits(llvm::Value *mask);
  llvm::Value *both(llvm::Value *mask, llvm::Value *condition);

  // Instructions (Instructions.cpp)
  void widen(llvm::Instruction &instruction);
  bool widenScalar(llvm::Instruction &instruction);
  void widenCall(llvm::CallBase &call);
  void widenBitcast(llvm::Instruction &cast);
  void widenShuffle(llvm::Instruction &instruction);
  llvm::Value *divideInRuns(llvm::Instruction &instruction, llvm::Value *a, llvm::Value *b);
  llvm::Value *element(llvm::Instruction &instruction, llvm::ArrayRef<llvm::Value *> operands, llvm::Value *mask);
  llvm::Value *widerFloat(llvm::Value *value, llvm::Type *type);
  llvm::Value *narrowFloat(llvm::Value *value, llvm::Type *type);

  // Values of 64 bits made of words (Words.cpp)
  const Parts *knownWords(llvm::Value *value);
  Parts wholeOf(const Parts &words, llvm::Type *type);
  void setWords(llvm::Instruction &instruction, Parts words);
  bool widenWords(llvm::Instruction &instruction);

  // Memory (Memory.cpp, Runs.cpp, Serial.cpp)
  /// `count` neighbouring elements in each lane, `step` elements from lane to lane of a run; 0: no such step.
  struct Access {
    llvm::Type *element;
    unsigned count, step;
    llvm::Align align;
    uint64_t size;
    unsigned run;      ///< lanes whose addresses go together; 0: not known
    bool areTogether;  ///< and that are there together or not at all
  };
  Access accessOf(llvm::Value *pointer, llvm::Type *type, llvm::Align align);
  /// An address `scale` times an index behind a base.
  struct Indexed {
    llvm::Value *base, *index;
    llvm::APInt scale;
  };
  std::optional<Indexed> indexedBy(const llvm::Value *pointer) const;
  std::optional<Indexed> indexedHere(const llvm::Value *pointer) const;
  llvm::Value *isInPage(llvm::Value *address, uint64_t bytes);
  /// `count` elements, of which each lane loads that of its index.
  struct Table {
    llvm::Value *base, *index;
    unsigned count;
  };
  bool mayBeTable(const llvm::Value *base, uint64_t bytes) const;
  std::optional<Table> tableOf(llvm::Value *pointer, const Access &access);
  Parts lookUp(const Table &table, const Access &access, llvm::Value *pointer);  // Tables.cpp
  /// An element of a table of 256 words, by byte number `byte` of a word.
  struct ByteIndex {
    llvm::Value *base, *word;
    unsigned byte;
  };
  /// Such a table byte by byte, first those of the words' first bytes, and whose it is: null where nothing is there.
  struct ByteTable {
    llvm::Value *planes;
    llvm::AllocaInst *of;
  };
  std::optional<ByteIndex> byteIndexOf(const llvm::LoadInst &load) const;
  void findByteTables();
  void forgetByteTables();
  void forgetByteTablesAfter(const llvm::BasicBlock &block);
  bool loadByBytes(llvm::LoadInst &load);
  void turnTable(const ByteTable &table, llvm::Value *first, llvm::Align align);
  Parts lookUpBytes(const ByteTable &table, llvm::Value *word);  // ByteTables.cpp
  /// Bytes from the beginning of a row that a run of lanes has, `scale` times an index.
  struct PlacesInRow {
    llvm::Value *index;
    llvm::APInt scale;
    unsigned run;
    bool isWide;  ///< for registers of AVX-512
  };
  bool isOfLaneNumber(const llvm::Value *value, unsigned depth = 0) const;
  std::optional<PlacesInRow> placesInRow(llvm::Value *pointer, const Access &access);
  Parts loadFromRow(const PlacesInRow &row, const Access &access, llvm::Value *pointer);
  llvm::Value *pickWide(const Parts &begins, llvm::Value *places);
  llvm::Value *pickNarrow(const Parts &begins, llvm::Value *places);  // RowLoads.cpp
  void widenLoad(llvm::LoadInst &load);
  void widenStore(llvm::StoreInst &store);
  Parts loadParts(llvm::Value *pointer, llvm::Type *type, llvm::Align align);
  void storeParts(llvm::Value *pointer, llvm::Type *type, llvm::Align align, const Parts &values);
  Parts loadStrided(const Access &access, llvm::Value *base);
  Parts loadFourByFour(const Access &access, const std::function<llvm::Value *(unsigned)> &placeOf);
  void storeFourByFour(const Access &access, const Parts &values,
                       const std::function<llvm::Value *(unsigned)> &placeOf);
  bool isFourByFour(const Access &access) const;
  bool areFourHalves(const Access &access) const;
  llvm::Constant *absent(const Access &access, llvm::Type *type) const;
  Parts componentsOfFourHalves(const Access &access, llvm::Value *all);
  unsigned lanesAtHand(const llvm::Value *value, unsigned depth = 0) const;
  llvm::Value *inLane(llvm::Value *value, unsigned lane, unsigned depth = 0);
  llvm::Value *maskOfRun(const Access &access, unsigned first, unsigned count);
  llvm::Value *placeInRun(const Access &access, llvm::Value *pointer, unsigned lane);
  Parts loadRuns(const Access &access, llvm::Value *pointer);
  Parts loadMasked(const Access &access, const Parts &places);
  void storeRuns(const Access &access, llvm::Value *pointer, const Parts &values);
  Parts loadOncePerRun(const Access &access, llvm::Value *pointer);
  static std::pair<unsigned, uint64_t> wordsOf(const Access &access);
  Access inWords(const Access &access);
  Parts recut(const Parts &parts, llvm::Type *element, unsigned to);
  Parts componentsOf(const Access &access, llvm::Value *all);
  llvm::Value *elementsOf(const Access &access, const Parts &values);
  Parts gather(const Access &access, llvm::Value *pointers, llvm::Value *mask);
  void storeStrided(const Access &access, llvm::Value *base, const Parts &values);
  void scatter(const Access &access, llvm::Value *pointers, const Parts &values);
  llvm::Value *wideMask(const Access &access);
  bool isWhole(const Access &access) const;
  void branch(llvm::Value *condition, const std::function<Parts()> &then, const std::function<Parts()> &otherwise,
              Parts &results);
  void serial(llvm::Instruction &instruction);

  // Barriers (Barriers.cpp)
  void barrier(llvm::CallBase &call);
  llvm::Value *onTheirWay(llvm::BasicBlock *block);

  // Functions of several lanes (LaneFunctions.cpp, Matrices.cpp, Multiply.cpp)
  void widenPrimitive(llvm::CallBase &call, Primitive primitive);
  llvm::Value *holdsInAll(llvm::Value *condition);
  llvm::Value *shuffle(llvm::CallBase &call);
  llvm::Value *shuffleToRuns(llvm::CallBase &call);
  llvm::Value *exchange(llvm::Value *values, llvm::Value *lane, bool isTable = false);
  bool staysInRun(llvm::ArrayRef<int> places) const;
  llvm::Value *permute(llvm::Value *from, llvm::Value *indices, bool isTable);
  static constexpr unsigned half = width / 2;  ///< elements of 32 bits in a register of AVX-512
  bool isAvx512() const;
  bool hasFeature(llvm::StringRef name) const;
  llvm::Value *permuteAvx512(const Parts &registers, llvm::Value *indices);
  llvm::Value *permuteAvx2(llvm::Value *from, llvm::Value *indices, unsigned sources);
  llvm::Value *permuteTableAvx2(llvm::Value *from, llvm::Value *indices);  // Permute.cpp
  llvm::Value *reduce(llvm::CallBase &call);
  llvm::Value *prefix(llvm::CallBase &call);
  llvm::Value *combine(llvm::StringRef operation, const Reduction &reduction, llvm::Type *type, llvm::Value *a,
                       llvm::Value *b);
  llvm::Constant *startOf(const Reduction &reduction, llvm::Type *type);
  void matrixLoad(llvm::CallBase &call);
  void matrixStore(llvm::CallBase &call);
  void shareLoad(llvm::CallBase &call);
  void shareStore(llvm::CallBase &call);
  llvm::Value *sharePlaces(llvm::Value *matrices, unsigned component);
  bool isLazy(const llvm::Value *value) const;
  llvm::Value *castOf(llvm::CastInst &conversion, llvm::Value *from);
  void multiply(const Tiles::Group &group);
  Parts multiplyByCall(llvm::Value *left, llvm::Value *right, const Parts &sums);
  llvm::Function *multiplier();
  Factors makeFactors();
  llvm::Value *hiddenAddressOf(llvm::AllocaInst *place);
  void keepFactors();
  Parts rows(llvm::ArrayRef<llvm::Value *> tiles);
  Parts transposedRows(Parts rows);
  Parts widenedColumns(const llvm::CastInst &conversion, llvm::ArrayRef<llvm::Value *> tiles);
  Parts rowsOf(llvm::Value *matrix);
  Parts sideBySide(const Parts &left, const Parts &right);
  llvm::Value *joined(Parts rows);
  llvm::Value *transpose(llvm::Value *matrix);
  llvm::Value *fromMatrix(llvm::Value *matrix, unsigned component);
  llvm::Value *carrier(llvm::Value *value);
  llvm::Value *toMatrix(llvm::Value *even, llvm::Value *odd);
  llvm::Value *lastActive(llvm::Value *value);

  llvm::Function &source_, &target_;
  Blocks &blocks_;
  const Shapes &shapes_;
  const llvm::DataLayout &layout_;
  llvm::IRBuilder<> builder_;
  llvm::BasicBlock *entry_ = nullptr;
  const uint64_t registerBits_;
  std::unique_ptr<Tiles> tiles_;
  const BarrierWays ways_;
  std::vector<FlowStep> steps_;
  llvm::DenseMap<const llvm::BasicBlock *, Block> states_;
  llvm::DenseMap<const llvm::Value *, llvm::SmallVector<llvm::AllocaInst *, 4>> slots_;
  llvm::DenseMap<const llvm::Value *, Parts> current_;  ///< known in the block under way
  llvm::DenseMap<const llvm::Value *, Parts> words_;    ///< likewise, of values of 64 bits
  llvm::MapVector<const llvm::Value *, ByteTable> byteTables_;  ///< by their base
  llvm::DenseMap<std::pair<const llvm::Value *, unsigned>, llvm::Value *> inLane_;  ///< likewise, by lane
  llvm::DenseSet<const llvm::Value *> matrices_;
  llvm::DenseMap<const llvm::Value *, Parts> loadedRows_;  ///< of matrices loaded in the block under way
  llvm::Value *mask_ = nullptr;  ///< of the block under way; never empty
  int index_ = 0;                ///< of the block under way
  Factors factors_;  ///< of the product under way
  Boxes lefts_, rights_;  ///< of products by calls
  llvm::DenseMap<const llvm::Value *, Factors> kept_;  ///< of matrices that products in other blocks have on the left
};

}  // namespace lanes
