#include "Linearize.hpp"

namespace lanes {
namespace {

class Linearizer {
 public:
  explicit Linearizer(const std::vector<FlowBlock> &blocks) : blocks_(blocks), steps_(blocks.size()) {}

  /// Sets only grow, so this ends; what a step decides is that of the last round.
  std::vector<FlowStep> run() {
    do {
      changed_ = false;
      for (size_t i = 0; i < blocks_.size(); ++i) visit(static_cast<int>(i));
    } while (changed_);
    return steps_;
  }

 private:
  void visit(int block) {
    FlowStep &step = steps_[block];
    const std::vector<int> &successors = blocks_[block].successors;
    step.targets.clear();
    if (blocks_[block].isDivergent) {
      step.targets = {go(step.pending, {successors.begin(), successors.end()}, -1)};
    } else {
      for (const int successor : successors) step.targets.push_back(go(step.pending, {successor}, successor));
    }
    if (step.mayBeEmpty && !step.pending.empty()) step.skip = go(step.pending, {}, -1);
  }

  /// Goes to the first of the blocks that lanes wait for or have just reached; `certain` has lanes for sure.
  int go(std::set<int> waiting, const std::set<int> &reached, int certain) {
    waiting.insert(reached.begin(), reached.end());
    const int target = *waiting.begin();
    // Lanes do not vanish: where they can only be in one place, they are there.
    const bool hasLanes = target == certain || waiting.size() == 1;
    waiting.erase(waiting.begin());
    FlowStep &step = steps_[target];
    if (!hasLanes && !step.mayBeEmpty) step.mayBeEmpty = changed_ = true;
    for (const int other : waiting) changed_ |= step.pending.insert(other).second;
    return target;
  }

  const std::vector<FlowBlock> &blocks_;
  std::vector<FlowStep> steps_;
  bool changed_ = false;
};

}  // namespace

std::vector<FlowStep> linearize(const std::vector<FlowBlock> &blocks) { return Linearizer(blocks).run(); }

}  // namespace lanes
