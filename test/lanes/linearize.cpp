// Random flow graphs, walked by 32 lanes as `linearize` says: no lane is passed by or lost, no block runs without a
// lane unless it says that it may be empty, and all lanes come to the end. Prints how many graphs there were.
#include "Linearize.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>

using lanes::FlowBlock;
using lanes::FlowStep;

namespace {

std::mt19937 bits;
unsigned below(unsigned count) { return bits() % count; }

/// Blocks in the order that `linearize` asks for, made from nested statements.
class Graph {
 public:
  std::vector<FlowBlock> blocks;

  Graph() {
    const int end = statements(add(), 4, {});
    const int last = add();
    connect(end, last);
    for (const int block : returning_) connect(block, last);
  }

 private:
  struct Loop {
    std::vector<int> *leaving, *continuing;
  };

  int add() {
    blocks.push_back({});
    return static_cast<int>(blocks.size()) - 1;
  }
  void connect(int from, int to) { blocks[from].successors.push_back(to); }

  /// Statements from block `at` on; returns the block after them.
  int statements(int at, int depth, std::vector<Loop> around) {
    for (unsigned count = 1 + below(3); count > 0; --count) at = statement(at, depth, around);
    return at;
  }

  int statement(int at, int depth, std::vector<Loop> &around) {
    switch (depth > 0 ? below(8) : 7) {
      case 0:
      case 1: {  // if
        blocks[at].isDivergent = below(2);
        const int then = add();
        connect(at, then);
        const int thenEnd = statements(then, depth - 1, around);
        int other = -1, otherEnd = at;
        if (below(2)) {
          other = add();
          connect(at, other);
          otherEnd = statements(other, depth - 1, around);
        }
        const int join = add();
        connect(thenEnd, join);
        connect(otherEnd, join);
        return join;
      }
      case 2:
      case 3: {  // while
        const int header = add();
        connect(at, header);
        std::vector<int> leaving, continuing;
        std::vector<Loop> inside = around;
        inside.push_back({&leaving, &continuing});
        const bool testsFirst = below(2);
        int body = header;
        if (testsFirst) {
          blocks[header].isDivergent = below(2);
          body = add();
          connect(header, body);
        }
        const int bodyEnd = statements(body, depth - 1, inside);
        if (!testsFirst) blocks[bodyEnd].isDivergent = below(2);
        const int latch = add();
        connect(bodyEnd, latch);
        connect(latch, header);
        for (const int block : continuing) connect(block, latch);
        const int exit = add();
        connect(testsFirst ? header : bodyEnd, exit);
        for (const int block : leaving) connect(block, exit);
        return exit;
      }
      case 4:
      case 5: {  // break, continue or return, on a condition
        const unsigned kind = below(3);
        if (kind < 2 && around.empty()) return at;
        blocks[at].isDivergent = below(2);
        const int next = add();
        connect(at, next);
        if (kind == 2)
          returning_.push_back(at);
        else if (kind == 0)
          around[below(unsigned(around.size()))].leaving->push_back(at);
        else
          around.back().continuing->push_back(at);
        return next;
      }
      default:
        return at;
    }
  }

  std::vector<int> returning_;
};

[[noreturn]] void fail(unsigned seed, const char *reason) {
  std::printf("graph %u: %s\n", seed, reason);
  std::exit(1);
}

void walk(unsigned seed, const std::vector<FlowBlock> &blocks, const std::vector<FlowStep> &steps) {
  const uint32_t everyone = ~0u;
  std::vector<uint32_t> arriving(blocks.size());
  arriving[0] = everyone;
  const auto check = [&](int at) {
    uint32_t there = arriving[at];
    for (const int pending : steps[at].pending) {
      if (pending <= at) fail(seed, "waits in front of what has run");
      if (there & arriving[pending]) fail(seed, "a lane in two places");
      there |= arriving[pending];
    }
    if (there != everyone) fail(seed, "a lane is passed by");
  };
  int at = 0;
  for (unsigned length = 0;; ++length) {
    check(at);
    const FlowBlock &block = blocks[at];
    const FlowStep &step = steps[at];
    const uint32_t mask = arriving[at];
    if (mask == 0) {
      if (!step.mayBeEmpty) fail(seed, "runs without a lane");
      at = step.skip;
      continue;
    }
    arriving[at] = 0;
    if (block.successors.empty()) {
      if (mask != everyone) fail(seed, "ends before the others");
      return;
    }
    // Whoever has walked long enough takes the way that leads on.
    const bool isTired = length > 500;
    if (block.successors.size() == 1) {
      arriving[block.successors[0]] |= mask;
      at = step.targets[0];
    } else if (block.isDivergent) {
      const uint32_t first = isTired ? 0 : mask & bits();
      arriving[block.successors[0]] |= first;
      arriving[block.successors[1]] |= mask & ~first;
      at = step.targets[0];
    } else {
      const unsigned chosen = isTired ? 1 : below(2);
      arriving[block.successors[chosen]] |= mask;
      at = step.targets[chosen];
    }
    if (length > 5000) return;  // a loop whose only way out is the first
  }
}

}  // namespace

int main(int count, char **arguments) {
  const unsigned first = count > 1 ? unsigned(std::atoi(arguments[1])) : 1;
  const unsigned graphs = count > 2 ? unsigned(std::atoi(arguments[2])) : 2000;
  for (unsigned seed = first; seed < first + graphs; ++seed) {
    bits.seed(seed);
    const Graph graph;
    const auto steps = lanes::linearize(graph.blocks);
    for (int round = 0; round < 8; ++round) walk(seed, graph.blocks, steps);
  }
  std::printf("%u graphs\n", graphs);
}
