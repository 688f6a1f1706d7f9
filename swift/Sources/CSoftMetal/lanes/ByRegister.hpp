/// Lanes a register at a time, where threads have nothing to do with each other.
#pragma once

#include "llvm/IR/PassManager.h"

namespace lanes {

/// Attribute of a function whose threads may run one after another: no barrier, no function of several lanes.
constexpr const char *independent = "softmetal-independent";

/// Marks an access by all lanes, of which each has its own bytes, those of the next lane behind them. The mark is an
/// access group: LLVM keeps that metadata where it changes the type of what is accessed, and makes nothing of a group
/// that no loop names.
void markLaneAfterLane(llvm::Instruction &access);

/// All lanes load, compute and store together, which takes as many registers as lanes have values under way, times the
/// registers of a value: 4 with AVX2. A compiler may not store for some lanes before it has loaded for others, who may
/// be neighbours in memory. Threads that are independent may go before others: what neighbouring loads and stores of a
/// block have between them is done for the lanes of one register, then for those of the next, and so is a long
/// computation that other blocks need. Where that is little, only each access is cut: LLVM scatters the parts of one of
/// many registers, and a copy whose stores go up in memory is up to 1.4 times as fast (EPYC with AVX2).
class ByRegister : public llvm::PassInfoMixin<ByRegister> {
 public:
  static bool isRequired() { return true; }
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);
};

}  // namespace lanes
