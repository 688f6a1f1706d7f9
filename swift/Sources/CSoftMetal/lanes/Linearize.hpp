/// In which order one flow of control visits the blocks that 32 lanes run through.
///
/// A pure algorithm on graphs, after partial control-flow linearisation (Moll
/// and Hack, PLDI 2018). Blocks are numbered in an order in which every edge
/// leads forwards but those from a loop's only latch to its header, and the
/// blocks of a loop are neighbours. While a block runs, all other lanes wait:
/// each in front of a block that is `pending`. Next comes the pending block of
/// the lowest number. So no lane is passed by, and lanes that diverge reconverge
/// at the first block that all of them reach.
#pragma once

#include <set>
#include <vector>

namespace lanes {

struct FlowBlock {
  std::vector<int> successors;  ///< 0 (end), 1 or 2
  /// Two successors: lanes may go to both at once. Otherwise all go to the same one.
  bool isDivergent = false;
};

/// How the one flow of control goes on.
struct FlowStep {
  /// One a successor where they are chosen between, one in all where not: the block to go to.
  std::vector<int> targets;
  /// Blocks in front of which lanes may wait while this one runs; all have higher numbers.
  std::set<int> pending;
  /// Lanes may be absent when control comes here: then it goes on to `skip`.
  bool mayBeEmpty = false;
  int skip = -1;
};

std::vector<FlowStep> linearize(const std::vector<FlowBlock> &blocks);

}  // namespace lanes
